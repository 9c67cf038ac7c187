"""Comparisons, logic and choice: eq to ge, logical and bitwise operators, `where`, tests for NaN and infinity."""

from __future__ import annotations

import math
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes, result_type, strided

from ..declare.declare import Function
from ..declare.operator import binary, composite, pointwise, unary
from ..declare.pointwise import COMPLEX, FLOATING
from ..declare.public import public
from .creation import ones_like, scalar_tensor_op


def of_two(name: str, **facts: Any) -> Any:
    """A decorator: the function `name` of two operands, with overloads for a tensor and a number as the second."""

    def declare(elements: Function) -> Any:
        return public(
            *(
                pointwise(
                    f"{name}.{kind}(Tensor self, {kind} other) -> Tensor",
                    elements,
                    inplace=True,
                    out=f"{kind}_out",
                    core=True,
                    derivative=False,
                    **facts,
                )
                for kind in ("Tensor", "Scalar")
            ),
            doc=elements.__doc__ or "",
        )

    return declare


# --- comparison ----------------------------------------------------------------------------------------------------


@of_two("eq", promotion="compare")
def eq(self, other):
    """Returns for each pair of elements whether they are equal."""
    return self == other


@of_two("ne", promotion="compare")
def ne(self, other):
    """Returns for each pair of elements whether they differ."""
    return self != other


@of_two("lt", promotion="compare", refuses=COMPLEX)
def lt(self, other):
    """Returns for each pair of elements whether the first is less."""
    return self < other


@of_two("le", promotion="compare", refuses=COMPLEX)
def le(self, other):
    """Returns for each pair of elements whether the first is less or equal."""
    return self <= other


@of_two("gt", promotion="compare", refuses=COMPLEX)
def gt(self, other):
    """Returns for each pair of elements whether the first is greater."""
    return self > other


@of_two("ge", promotion="compare", refuses=COMPLEX)
def ge(self, other):
    """Returns for each pair of elements whether the first is greater or equal."""
    return self >= other


# --- logic ---------------------------------------------------------------------------------------------------------


@binary("logical_and", "compare", core=True, derivative=False)
def logical_and(self, other):
    """Returns for each pair of elements whether both are nonzero."""
    return (self != 0) and (other != 0)


@binary("logical_or", "compare", core=True, derivative=False)
def logical_or(self, other):
    """Returns for each pair of elements whether at least one is nonzero."""
    return (self != 0) or (other != 0)


@binary("logical_xor", "compare", core=True, derivative=False)
def logical_xor(self, other):
    """Returns for each pair of elements whether exactly one is nonzero."""
    return (self != 0) != (other != 0)


@unary("logical_not", "compare", core=True, derivative=False)
def logical_not(self):
    """Returns for each element whether it is zero."""
    return self == 0


@of_two("bitwise_and", refuses=(*FLOATING, *COMPLEX))
def bitwise_and(self, other):
    """Returns the bits that both elements of each pair have."""
    return self & other


@of_two("bitwise_or", refuses=(*FLOATING, *COMPLEX))
def bitwise_or(self, other):
    """Returns the bits that at least one element of each pair has."""
    return self | other


@of_two("bitwise_xor", refuses=(*FLOATING, *COMPLEX))
def bitwise_xor(self, other):
    """Returns the bits that exactly one element of each pair has."""
    return self ^ other


def flip_bits(self):
    return ~self


def flip_bool(self):
    return not self


bitwise_not = unary(
    "bitwise_not",
    {"bool": flip_bool, "int": flip_bits, "uint": flip_bits},
    exact_out=True,
    core=True,
    refuses=(*FLOATING, *COMPLEX),
    derivative=False,
    doc="Returns the bitwise complement of each element; of bools the opposite.",
)

# --- NaN and infinity ----------------------------------------------------------------------------------------------


@unary("isnan", "compare", inplace=False, out=None, core=True, derivative=False)
def isnan(self):
    """Returns for each element whether it is not a number (NaN)."""
    return self != self


def is_infinite(self):
    return self == math.inf or self == -math.inf


def never(self):
    return False


def has_infinite_part(self):
    return abs(self.real) == math.inf or abs(self.imag) == math.inf


isinf = unary(
    "isinf",
    {"float": is_infinite, "complex": has_infinite_part, "int": never, "uint": never, "bool": never},
    "compare",
    inplace=False,
    out=None,
    core=True,
    derivative=False,
    doc="Returns for each element whether it is infinite.",
)


@composite("isfinite(Tensor self) -> Tensor", tags=("pointwise",))
def isfinite(self):
    """Returns for each element whether it is finite; every whole number is."""
    if not (self.is_floating_point() or self.is_complex()):
        return ones_like(self, dtype=dtypes.bool)
    bounded = self.abs() != math.inf
    return (self == self) * bounded


# --- where ---------------------------------------------------------------------------------------------------------


def choose(condition, self, other):
    return self if condition else other


where_op = pointwise(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    choose,
    out="self_out",
    core=True,
    keep=("condition",),
    derivative={
        "self": lambda grad, condition: kept_where(condition, grad),
        "other": lambda grad, condition: where_scalar_self_op.functional(condition, 0, grad),
    },
)


@where_op.check
def check_where(condition, self, other):
    if condition._dtype.name not in ("bool", "uint8"):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition._dtype.tensor_name}"
        )


def scalar_like(value: Any, *others: Any, device: Any) -> Tensor:
    """A number as a tensor without dimensions, of the dtype in which it and the others are computed."""
    return scalar_tensor_op.functional(value, dtype=result_type(value, *others), layout=strided, device=device)


@composite("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
def where_scalar_self_op(condition, self, other):
    return where_op.functional(condition, scalar_like(self, other, device=condition._device), other)


@composite("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
def where_scalar_other_op(condition, self, other):
    return where_op.functional(condition, self, scalar_like(other, self, device=condition._device))


def kept_where(condition: Tensor, grad: Tensor) -> Tensor:
    """The gradient where the condition holds, and zeros elsewhere."""
    return where_op.functional(condition, grad, scalar_like(0, grad, device=grad._device))


@composite("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
def where_scalar_op(condition, self, other):
    device = condition._device
    second = scalar_like(other, self, device=device)
    first = scalar_like(self, other, device=device)
    return where_op.functional(condition, first, second)


@composite("where(Tensor condition) -> Tensor[]", face=False)
def where_condition_op(condition):
    return condition.nonzero().unbind(1)


where = public(
    where_op,
    where_scalar_self_op,
    where_scalar_other_op,
    where_scalar_op,
    where_condition_op,
    method=False,
    doc="Returns elements of `self` where `condition` is true, and of `other` elsewhere.",
)
