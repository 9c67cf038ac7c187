"""Python's operators on tensors: `a + b`, `2 ** x`, `x @ y`, `-x`, `x == y`, `x += 1`.

A binary operator answers NotImplemented for what is neither tensor nor number, and where every handler answered so,
too: Python then asks the other operand, or raises its own TypeError. Otherwise each is the method of the same meaning;
overrides see that method.

Numpy's arrays: `tensor + array` is left to numpy, which hands its result to `__array_wrap__`, and so it is a tensor;
numpy would not compare for equality, so `tensor == array` turns the array into a tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch import NotHandledError, overrides
from redispatch.tensor import Tensor, dtypes

from .arithmetic import floor_divide, pow, remainder, rsub
from .comparison import scalar_like
from .from_data import from_numpy

Binary = Callable[[Any, Any], Any]
NUMBERS = (int, float, complex, np.number, np.bool_)


def operator(function: Binary) -> Binary:
    """Makes `Tensor.__name__` of a function of the two operands, of which the second may turn out to be none."""

    @functools.wraps(function)
    def dunder(self: Any, other: Any) -> Any:
        try:
            if isinstance(other, NUMBERS):
                return function(self, other.item() if isinstance(other, np.generic) else other)
            if isinstance(other, Tensor) or overrides(other):
                return function(self, other)
        except NotHandledError:
            pass
        return NotImplemented

    setattr(Tensor, function.__name__, dunder)
    return dunder


@operator
def __add__(self: Any, other: Any) -> Any:
    return self.add(other)


@operator
def __radd__(self: Any, other: Any) -> Any:
    return self.add(other)


@operator
def __iadd__(self: Any, other: Any) -> Any:
    return self.add_(other)


@operator
def __sub__(self: Any, other: Any) -> Any:
    return self.sub(other)


@operator
def __rsub__(self: Any, other: Any) -> Any:
    return rsub(self, other)


@operator
def __isub__(self: Any, other: Any) -> Any:
    return self.sub_(other)


@operator
def __mul__(self: Any, other: Any) -> Any:
    return self.mul(other)


@operator
def __rmul__(self: Any, other: Any) -> Any:
    return self.mul(other)


@operator
def __imul__(self: Any, other: Any) -> Any:
    return self.mul_(other)


@operator
def __truediv__(self: Any, other: Any) -> Any:
    return self.div(other)


@operator
def __rtruediv__(self: Any, other: Any) -> Any:
    return self.reciprocal().mul(other)


@operator
def __itruediv__(self: Any, other: Any) -> Any:
    return self.div_(other)


@operator
def __floordiv__(self: Any, other: Any) -> Any:
    return self.floor_divide(other)


@operator
def __rfloordiv__(self: Any, other: Any) -> Any:
    return floor_divide(as_tensor_like(other, self), self)


@operator
def __ifloordiv__(self: Any, other: Any) -> Any:
    return self.floor_divide_(other)


@operator
def __mod__(self: Any, other: Any) -> Any:
    return self.remainder(other)


@operator
def __rmod__(self: Any, other: Any) -> Any:
    return remainder(as_tensor_like(other, self), self)


@operator
def __imod__(self: Any, other: Any) -> Any:
    return self.remainder_(other)


@operator
def __pow__(self: Any, other: Any) -> Any:
    return self.pow(other)


@operator
def __rpow__(self: Any, other: Any) -> Any:
    return pow(other, self)


@operator
def __ipow__(self: Any, other: Any) -> Any:
    return self.pow_(other)


@operator
def __matmul__(self: Any, other: Any) -> Any:
    return NotImplemented if isinstance(other, NUMBERS) else self.matmul(other)


@operator
def __rmatmul__(self: Any, other: Any) -> Any:
    return NotImplemented if isinstance(other, NUMBERS) else other.matmul(self)


@operator
def __eq__(self: Any, other: Any) -> Any:
    return self.eq(other)


@operator
def __ne__(self: Any, other: Any) -> Any:
    return self.ne(other)


def equal_to_array(self: Any, other: Any) -> Any:
    """`tensor == array`, with the array taken for a tensor: numpy would leave the comparison to us."""
    if isinstance(other, np.ndarray):
        try:
            other = from_numpy(other)
        except TypeError:  # of a dtype that no tensor has
            return NotImplemented
    return __eq__(self, other)


Tensor.__eq__ = equal_to_array  # type: ignore[assignment, method-assign]


@operator
def __lt__(self: Any, other: Any) -> Any:
    return self.lt(other)


@operator
def __le__(self: Any, other: Any) -> Any:
    return self.le(other)


@operator
def __gt__(self: Any, other: Any) -> Any:
    return self.gt(other)


@operator
def __ge__(self: Any, other: Any) -> Any:
    return self.ge(other)


@operator
def __and__(self: Any, other: Any) -> Any:
    return self.bitwise_and(other)


@operator
def __rand__(self: Any, other: Any) -> Any:
    return self.bitwise_and(other)


@operator
def __iand__(self: Any, other: Any) -> Any:
    return self.bitwise_and_(other)


@operator
def __or__(self: Any, other: Any) -> Any:
    return self.bitwise_or(other)


@operator
def __ror__(self: Any, other: Any) -> Any:
    return self.bitwise_or(other)


@operator
def __ior__(self: Any, other: Any) -> Any:
    return self.bitwise_or_(other)


@operator
def __xor__(self: Any, other: Any) -> Any:
    return self.bitwise_xor(other)


@operator
def __rxor__(self: Any, other: Any) -> Any:
    return self.bitwise_xor(other)


@operator
def __ixor__(self: Any, other: Any) -> Any:
    return self.bitwise_xor_(other)


def as_tensor_like(value: Any, tensor: Tensor) -> Any:
    """A number as a tensor without dimensions on the same device; what is none as it is."""
    return scalar_like(value, tensor, device=tensor.device) if isinstance(value, NUMBERS) else value


def __neg__(self: Any) -> Any:
    return self.neg()


def __pos__(self: Any) -> Any:
    if self.dtype is dtypes.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


def __abs__(self: Any) -> Any:
    return self.abs()


def __invert__(self: Any) -> Any:
    if self.dtype.is_floating_point or self.dtype.is_complex:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return self.bitwise_not()


def __array_wrap__(self: Any, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
    """The result of a numpy function on this tensor, as a tensor; truth values as uint8, which is PyTorch's way."""
    array = np.asarray(array)
    return from_numpy(array.astype(np.uint8) if array.dtype == bool else array)


for _function in (__neg__, __pos__, __abs__, __invert__, __array_wrap__):
    setattr(Tensor, _function.__name__, _function)
