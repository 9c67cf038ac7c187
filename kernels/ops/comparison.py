"""Comparisons, logic and choice: eq to ge, logical and bitwise operators, `where`, tests for NaN and infinity."""

from __future__ import annotations

import math
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes, result_type, strided

from ..declare.declare import Function, Operator
from ..declare.pointwise import COMPLEX, FLOATING, Pointwise, pointwise
from ..declare.public import public
from .creation import ones_like, scalar_tensor_op


def comparison(name: str, body: Function, *, ordered: bool = False) -> tuple[Pointwise, Pointwise]:
    """`name.Tensor` and `name.Scalar`: bool results, no gradient. `ordered`: complex numbers are not."""
    made = []
    unsupported = dict.fromkeys(COMPLEX, f"{name}_cpu") if ordered else None
    for overload, kind in (("Tensor", "Tensor"), ("Scalar", "Scalar")):
        op = pointwise(
            f"{name}.{overload}(Tensor self, {kind} other) -> Tensor",
            inplace=True,
            out=f"{overload}_out",
            promotion="compare",
            unsupported=unsupported,
        )
        op.scalar(body)
        op.not_differentiable()
        made.append(op)
    return made[0], made[1]


def equal_elements(self, other):
    return self == other


def unequal_elements(self, other):
    return self != other


def less_elements(self, other):
    return self < other


def less_or_equal_elements(self, other):
    return self <= other


def greater_elements(self, other):
    return self > other


def greater_or_equal_elements(self, other):
    return self >= other


eq_op, eq_scalar_op = comparison("eq", equal_elements)
ne_op, ne_scalar_op = comparison("ne", unequal_elements)
lt_op, lt_scalar_op = comparison("lt", less_elements, ordered=True)
le_op, le_scalar_op = comparison("le", less_or_equal_elements, ordered=True)
gt_op, gt_scalar_op = comparison("gt", greater_elements, ordered=True)
ge_op, ge_scalar_op = comparison("ge", greater_or_equal_elements, ordered=True)
eq = public(eq_op, eq_scalar_op)
ne = public(ne_op, ne_scalar_op)
lt = public(lt_op, lt_scalar_op)
le = public(le_op, le_scalar_op)
gt = public(gt_op, gt_scalar_op)
ge = public(ge_op, ge_scalar_op)

# --- logic ---------------------------------------------------------------------------------------------------------

logical_and_op = pointwise(
    "logical_and(Tensor self, Tensor other) -> Tensor", inplace=True, out="out", promotion="compare"
)
logical_or_op = pointwise(
    "logical_or(Tensor self, Tensor other) -> Tensor", inplace=True, out="out", promotion="compare"
)
logical_xor_op = pointwise(
    "logical_xor(Tensor self, Tensor other) -> Tensor", inplace=True, out="out", promotion="compare"
)
logical_not_op = pointwise("logical_not(Tensor self) -> Tensor", inplace=True, out="out", promotion="compare")


@logical_and_op.scalar
def both(self, other):
    return (self != 0) and (other != 0)


@logical_or_op.scalar
def either(self, other):
    return (self != 0) or (other != 0)


@logical_xor_op.scalar
def one_of_two(self, other):
    return (self != 0) != (other != 0)


@logical_not_op.scalar
def is_zero(self):
    return self == 0


for _op in (logical_and_op, logical_or_op, logical_xor_op, logical_not_op):
    _op.not_differentiable()
logical_and = public(logical_and_op)
logical_or = public(logical_or_op)
logical_xor = public(logical_xor_op)
logical_not = public(logical_not_op)


def bitwise(name: str, spoken: str, body: Function) -> tuple[Pointwise, Pointwise]:
    """`name.Tensor` and `name.Scalar`, for integers and bool only."""
    made = []
    unsupported = dict.fromkeys((*FLOATING, *COMPLEX), spoken)
    for overload in ("Tensor", "Scalar"):
        op = pointwise(
            f"{name}.{overload}(Tensor self, {overload} other) -> Tensor",
            inplace=True,
            out=f"{overload}_out",
            unsupported=unsupported,
        )
        op.scalar(body)
        op.not_differentiable()
        made.append(op)
    return made[0], made[1]


def and_bits(self, other):
    return self & other


def or_bits(self, other):
    return self | other


def xor_bits(self, other):
    return self ^ other


bitwise_and_op, bitwise_and_scalar_op = bitwise("bitwise_and", "bitwise_and_cpu", and_bits)
bitwise_or_op, bitwise_or_scalar_op = bitwise("bitwise_or", "bitwise_or_cpu", or_bits)
bitwise_xor_op, bitwise_xor_scalar_op = bitwise("bitwise_xor", "bitwise_xor_cpu", xor_bits)
bitwise_and = public(bitwise_and_op, bitwise_and_scalar_op)
bitwise_or = public(bitwise_or_op, bitwise_or_scalar_op)
bitwise_xor = public(bitwise_xor_op, bitwise_xor_scalar_op)

bitwise_not_op = pointwise(
    "bitwise_not(Tensor self) -> Tensor",
    inplace=True,
    out="out",
    exact_out=True,
    unsupported=dict.fromkeys((*FLOATING, *COMPLEX), "bitwise_not_cpu"),
)


def flip_bits(self):
    return ~self


def flip_bool(self):
    return not self


bitwise_not_op.scalar(bool=flip_bool, int=flip_bits, uint=flip_bits)
bitwise_not_op.not_differentiable()
bitwise_not = public(bitwise_not_op)

# --- NaN and infinity ----------------------------------------------------------------------------------------------

isnan_op = pointwise("isnan(Tensor self) -> Tensor", promotion="compare")
isinf_op = pointwise("isinf(Tensor self) -> Tensor", promotion="compare")
isfinite_op = Operator("isfinite(Tensor self) -> Tensor", tags=("pointwise",))


@isnan_op.scalar
def differs_from_itself(self):
    return self != self


def is_infinite(self):
    return self == math.inf or self == -math.inf


def never(self):
    return False


def has_infinite_part(self):
    return abs(self.real) == math.inf or abs(self.imag) == math.inf


isinf_op.scalar(float=is_infinite, complex=has_infinite_part, int=never, uint=never, bool=never)


@isfinite_op.implicit
def isfinite_implicit(self: Tensor) -> Tensor:
    """Whether it equals itself and is not as large as infinity; every whole number is finite."""
    if not (self.is_floating_point() or self.is_complex()):
        return ones_like(self, dtype=dtypes.bool)
    bounded = self.abs() != math.inf
    return (self == self) * bounded


isnan_op.not_differentiable()
isinf_op.not_differentiable()
isnan = public(isnan_op)
isinf = public(isinf_op)
isfinite = public(isfinite_op)

# --- where ---------------------------------------------------------------------------------------------------------

where_op = pointwise(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", out="self_out", keep=("condition",)
)


@where_op.check
def check_where(condition: Tensor, self: Any, other: Any) -> None:
    if condition._dtype.name not in ("bool", "uint8"):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition._dtype.tensor_name}"
        )


@where_op.scalar
def choose(condition, self, other):
    return self if condition else other


where_op.derivative(
    self=lambda grad, condition: grad.masked_fill(condition.logical_not(), 0),
    other=lambda grad, condition: grad.masked_fill(condition, 0),
)

where_scalar_self_op = Operator("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
where_scalar_other_op = Operator("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
where_scalar_op = Operator("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
where_condition_op = Operator("where(Tensor condition) -> Tensor[]")


def scalar_like(value: Any, *others: Any, device: Any) -> Tensor:
    """A number as a tensor without dimensions, of the dtype in which it and the others are computed."""
    return scalar_tensor_op.functional(value, dtype=result_type(value, *others), layout=strided, device=device)


@where_scalar_self_op.implicit
def where_scalar_self(condition: Tensor, self: Any, other: Tensor) -> Tensor:
    return where_op.functional(condition, scalar_like(self, other, device=condition._device), other)


@where_scalar_other_op.implicit
def where_scalar_other(condition: Tensor, self: Tensor, other: Any) -> Tensor:
    return where_op.functional(condition, self, scalar_like(other, self, device=condition._device))


@where_scalar_op.implicit
def where_scalars(condition: Tensor, self: Any, other: Any) -> Tensor:
    device = condition._device
    second = scalar_like(other, self, device=device)
    first = scalar_like(self, other, device=device)
    return where_op.functional(condition, first, second)


@where_condition_op.implicit
def where_condition(condition: Tensor) -> Any:
    return condition.nonzero().unbind(1)


where = public(where_op, where_scalar_self_op, where_scalar_other_op, where_scalar_op, where_condition_op, method=False)
