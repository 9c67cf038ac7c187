"""Second names of operators: `absolute` for `abs`, `divide` for `div`.

Each is an operator with a schema of its own, whose every form calls the same form of the other one. So modes, backends
and the autograd graph meet `abs` alone, and a library may still put a kernel of its own under the second name.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor

from ..declare.declare import Operator, alias
from ..declare.public import public
from . import comparison, elementary
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
