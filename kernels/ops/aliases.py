"""Second names of operators: `absolute` for `abs`, `divide` for `div`.

Each is an operator with a schema of its own, whose every form calls the same form of the other one. So modes, backends
and the autograd graph meet `abs` alone, and a library may still put a kernel of its own under the second name.
"""

from __future__ import annotations

from redispatch.dispatch.tensor import Tensor

from ..declare.declare import Operator, alias
from ..declare.public import public
from .arithmetic import clamp_op, div_mode_op, div_op, div_scalar_op, mul_op, sub_op
from .comparison import (
    ge_op,
    ge_scalar_op,
    gt_op,
    gt_scalar_op,
    le_op,
    le_scalar_op,
    lt_op,
    lt_scalar_op,
    ne_op,
    ne_scalar_op,
)
from .elementary import abs_op, neg_op, trunc_op
from .number_forms import clamp_tensor_op, div_scalar_mode_op, mul_scalar_op, sub_scalar_op
from .trigonometry import acos_op, acosh_op, asin_op, asinh_op, atan2_op, atan_op, atanh_op

# --- of one tensor ---------------------------------------------------------------------------------------------------

absolute = public(alias("absolute", abs_op))
negative = public(alias("negative", neg_op))
fix = public(alias("fix", trunc_op))
arcsin = public(alias("arcsin", asin_op))
arccos = public(alias("arccos", acos_op))
arctan = public(alias("arctan", atan_op))
arcsinh = public(alias("arcsinh", asinh_op))
arccosh = public(alias("arccosh", acosh_op))
arctanh = public(alias("arctanh", atanh_op))

positive_op = Operator("positive(Tensor(a) self) -> Tensor(a)", tags=("pointwise",))


@positive_op.implicit
def positive_composite(self: Tensor) -> Tensor:
    """The tensor itself, if it is of numbers."""
    if self._dtype.name == "bool":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


positive = public(positive_op)

# --- of two ----------------------------------------------------------------------------------------------------------

arctan2 = public(alias("arctan2", atan2_op))
subtract = public(alias("subtract", sub_op, numbers=True))
multiply = public(alias("multiply", mul_op, numbers=True))
divide = public(alias("divide", div_op, numbers=True), alias("divide", div_mode_op, numbers=True))
true_divide = public(alias("true_divide", div_op, numbers=True, tags=("pointwise",)))
not_equal = public(alias("not_equal", ne_op), alias("not_equal", ne_scalar_op))
less = public(alias("less", lt_op), alias("less", lt_scalar_op))
less_equal = public(alias("less_equal", le_op), alias("less_equal", le_scalar_op))
greater = public(alias("greater", gt_op), alias("greater", gt_scalar_op))
greater_equal = public(alias("greater_equal", ge_op), alias("greater_equal", ge_scalar_op))
clip = public(alias("clip", clamp_op, tags=("pointwise",)), alias("clip", clamp_tensor_op, tags=("pointwise",)))

# No Python call ends in these: it hands the number to the overload for tensors (number_forms.py).
alias("subtract", sub_scalar_op)
alias("multiply", mul_scalar_op)
alias("divide", div_scalar_op)
alias("divide", div_scalar_mode_op)
alias("true_divide", div_scalar_op)
