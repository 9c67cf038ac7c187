"""Second names of operators: `absolute` for `abs`, `divide` for `div`; and functions that write over their argument.

A second name is an operator with a schema of its own, whose every form calls the same form of the other one. So modes,
backends and the autograd graph meet `abs` alone, and a library may still put a kernel of its own under the second name.
`redispatch.abs_(x)` is `x.abs_()`: PyTorch has such a function for some operators, and for others the method only.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes

from ..declare.declare import Operator, alias
from ..declare.operator import composite
from ..declare.public import IN_PLACE, public
from . import activations, arithmetic, binary, comparison, elementary, float_parts, indexing, linalg, special
from .arithmetic import (
    clamp,
    div_mode_op,
    div_op,
    div_scalar_mode_op,
    div_scalar_op,
    mul_op,
    mul_scalar_op,
    sub_op,
    sub_scalar_op,
)


def second_name(name: str, *operators: Operator, **facts: Any) -> Any:
    """The function `name`, with an overload for each of the operators."""
    return public(*(alias(name, op, **facts) for op in operators))


# --- of one tensor ---------------------------------------------------------------------------------------------------

absolute = second_name("absolute", *elementary.abs.ops)
negative = second_name("negative", *elementary.neg.ops)
fix = second_name("fix", *elementary.trunc.ops)
arcsin = second_name("arcsin", *elementary.asin.ops)
arccos = second_name("arccos", *elementary.acos.ops)
arctan = second_name("arctan", *elementary.atan.ops)
arcsinh = second_name("arcsinh", *elementary.asinh.ops)
arccosh = second_name("arccosh", *elementary.acosh.ops)
arctanh = second_name("arctanh", *elementary.atanh.ops)

positive_op = Operator("positive(Tensor(a) self) -> Tensor(a)", tags=("pointwise",), refuses="bool")


@positive_op.implicit
def positive_composite(self: Tensor) -> Tensor:
    """Returns the tensor itself, if it is of numbers."""
    if self._dtype.name == "bool":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


positive = public(positive_op)


# PyTorch's oldest names of conversions
def cast_to(kind: Any) -> Any:
    def cast(self: Tensor, non_blocking: bool) -> Tensor:
        """Returns the tensor in the dtype of the name."""
        return self.to(kind, non_blocking)

    return cast


for _name, _kind in {
    "Byte": dtypes.uint8,
    "Char": dtypes.int8,
    "Short": dtypes.int16,
    "Int": dtypes.int32,
    "Long": dtypes.int64,
    "Half": dtypes.float16,
    "Float": dtypes.float32,
    "Double": dtypes.float64,
}.items():
    composite(f"_cast_{_name}(Tensor self, bool non_blocking=False) -> Tensor")(cast_to(_kind))

# --- of two ----------------------------------------------------------------------------------------------------------

arctan2 = second_name("arctan2", *elementary.atan2.ops)
subtract = second_name("subtract", sub_op, numbers=True)
multiply = second_name("multiply", mul_op, numbers=True)
divide = second_name("divide", div_op, div_mode_op, numbers=True)
true_divide = second_name("true_divide", div_op, numbers=True, tags=("pointwise",))
not_equal = second_name("not_equal", *comparison.ne.ops)
less = second_name("less", *comparison.lt.ops)
less_equal = second_name("less_equal", *comparison.le.ops)
greater = second_name("greater", *comparison.gt.ops)
greater_equal = second_name("greater_equal", *comparison.ge.ops)
clip = second_name("clip", *clamp.ops, tags=("pointwise",))

# No Python call ends in these: it hands the number to the overload for tensors (arithmetic.py).
alias("subtract", sub_scalar_op)
alias("multiply", mul_scalar_op)
alias("divide", div_scalar_op)
alias("divide", div_scalar_mode_op)
alias("true_divide", div_scalar_op)

# --- functions that write over their argument: abs_(x) is x.abs_() ----------------------------------------------------

logit_ = activations.logit.inplace
relu_ = activations.relu.inplace
sigmoid_ = activations.sigmoid.inplace
arccos_ = arccos.inplace
arccosh_ = arccosh.inplace
arcsin_ = arcsin.inplace
arcsinh_ = arcsinh.inplace
arctan_ = arctan.inplace
arctanh_ = arctanh.inplace
clip_ = clip.inplace
fix_ = fix.inplace
negative_ = negative.inplace
square_ = arithmetic.square.inplace
abs_ = elementary.abs.inplace
ceil_ = elementary.ceil.inplace
exp_ = elementary.exp.inplace
exp2_ = elementary.exp2.inplace
expm1_ = elementary.expm1.inplace
floor_ = elementary.floor.inplace
log_ = elementary.log.inplace
log10_ = elementary.log10.inplace
log1p_ = elementary.log1p.inplace
log2_ = elementary.log2.inplace
neg_ = elementary.neg.inplace
reciprocal_ = elementary.reciprocal.inplace
rsqrt_ = elementary.rsqrt.inplace
sqrt_ = elementary.sqrt.inplace
trunc_ = elementary.trunc.inplace
index_put_ = indexing.index_put.inplace
addmv_ = linalg.addmv.inplace
clamp_ = arithmetic.clamp.inplace
clamp_max_ = arithmetic.clamp_max.inplace
clamp_min_ = arithmetic.clamp_min.inplace
gcd_ = binary.gcd.inplace
lcm_ = binary.lcm.inplace
xlogy_ = binary.xlogy.inplace
deg2rad_ = float_parts.deg2rad.inplace
frac_ = float_parts.frac.inplace
ldexp_ = float_parts.ldexp.inplace
nan_to_num_ = float_parts.nan_to_num.inplace
rad2deg_ = float_parts.rad2deg.inplace
round_ = float_parts.round.inplace
sinc_ = float_parts.sinc.inplace
celu_ = activations.celu.inplace
selu_ = activations.selu.inplace
threshold_ = activations.threshold.inplace
erf_ = special.erf.inplace
i0_ = special.i0.inplace
erfc_ = special.erfc.inplace
acos_ = elementary.acos.inplace
acosh_ = elementary.acosh.inplace
asin_ = elementary.asin.inplace
asinh_ = elementary.asinh.inplace
atan_ = elementary.atan.inplace
atanh_ = elementary.atanh.inplace
cos_ = elementary.cos.inplace
cosh_ = elementary.cosh.inplace
sin_ = elementary.sin.inplace
sinh_ = elementary.sinh.inplace
tan_ = elementary.tan.inplace
tanh_ = elementary.tanh.inplace

IN_PLACE.update({name: face for name, face in globals().items() if name.endswith("_") and not name.startswith("_")})
