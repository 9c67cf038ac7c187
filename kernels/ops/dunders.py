"""Python's operators on tensors: `a + b`, `2 ** x`, `x @ y`, `-x`, `x == y`, `x += 1`.

A binary operator answers NotImplemented for what is neither tensor nor number, and where every handler answered so,
too: Python then asks the other operand, or raises its own TypeError. Otherwise each is the method of the same meaning;
overrides see that method. Where one is nothing but a method or function, it takes the fast paths of that.

Numpy's arrays: `tensor + array` is left to numpy, which hands its result to `__array_wrap__`, and so it is a tensor;
numpy would not compare for equality, so `tensor == array` turns the array into a tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import (
    FixedEntryPoint,
    OfPython,
    asks,
    call_overridden,
    entry_point_of,
    overridden,
    overrides,
)
from redispatch.dispatch.tensor import Tensor, ask_default, overridable, overridable_in_python

from .arithmetic import add, div, floor_divide, mul, pow, remainder, rsub, sub
from .binary import bitwise_left_shift, bitwise_right_shift
from .comparison import bitwise_and, bitwise_or, bitwise_xor, eq, ge, gt, le, lt, ne, scalar_like
from .elementary import abs, neg
from .from_data import from_numpy
from .linalg import matmul

Binary = Callable[[Any, Any], Any]
NUMBERS = (int, float, complex, np.number, np.bool_)


def operator(
    lanes: Callable[..., Any] | None = None, swapped: bool = False, whole: bool = False, python: bool = False
) -> Callable[[Binary], Binary]:
    """Makes `Tensor.__name__` of a function of the two operands, of which the second may turn out to be none.

    lanes: the public function to which it comes, with both operands and nothing else; `swapped` if in the other order.
    whole, python: whether overrides are to see the method itself, and not what it calls; as one which PyTorch has in
    C++, or in Python.
    """

    def decorate(function: Binary) -> Binary:
        asked = OfPython(function) if python else call_overridden

        @functools.wraps(function)
        def dunder(self: Any, other: Any) -> Any:
            try:
                if (whole or python) and overridden((self, other), {}):
                    return asked(getattr(Tensor, function.__name__), (self, other), {})
                if isinstance(other, NUMBERS):
                    return function(self, other.item() if isinstance(other, np.generic) else other)
                if isinstance(other, Tensor) or overrides(other):
                    return function(self, other)
            except TypeError as error:
                if not hasattr(error, "is_not_handled"):
                    raise
            return NotImplemented

        if whole or python:
            asks(dunder)
        return attach_dunder(function.__name__, dunder, lanes, (1, 0) if swapped else (0, 1))

    return decorate


def attach_dunder(name: str, meaning: Callable[..., Any], lanes: Any = None, order: Sequence[int] = (0, 1)) -> Any:
    """Makes `Tensor.__name__` of what it means and, where there is one, of the public function to which it comes."""
    made = meaning
    if lanes is not None:
        parameters = ("self", "other")[: len(order)]
        forms = entry_point_of(lanes).forms
        made = FixedEntryPoint(
            name, parameters, order, forms, meaning, module=meaning.__module__, by_default=ask_default
        ).function
        made.__doc__ = meaning.__doc__
    setattr(Tensor, name, made)
    return made


@operator(add)
def __add__(self: Any, other: Any) -> Any:
    return Tensor.add(self, other)


@operator(add)
def __radd__(self: Any, other: Any) -> Any:
    return Tensor.add(self, other)


@operator(add.inplace)
def __iadd__(self: Any, other: Any) -> Any:
    return Tensor.add_(self, other)


@operator(sub)
def __sub__(self: Any, other: Any) -> Any:
    return Tensor.sub(self, other)


@operator(rsub, python=True)
def __rsub__(self: Any, other: Any) -> Any:
    return rsub(self, other)


@operator(sub.inplace)
def __isub__(self: Any, other: Any) -> Any:
    return Tensor.sub_(self, other)


@operator(mul)
def __mul__(self: Any, other: Any) -> Any:
    return Tensor.mul(self, other)


@operator(mul)
def __rmul__(self: Any, other: Any) -> Any:
    return Tensor.mul(self, other)


@operator(mul.inplace)
def __imul__(self: Any, other: Any) -> Any:
    return Tensor.mul_(self, other)


@operator(div)
def __truediv__(self: Any, other: Any) -> Any:
    return Tensor.div(self, other)


@operator(python=True)
def __rtruediv__(self: Any, other: Any) -> Any:
    return self.reciprocal().mul(other)


@operator(div.inplace)
def __itruediv__(self: Any, other: Any) -> Any:
    return Tensor.div_(self, other)


# Python 2's names of division, which programs that forward methods by name still look for.


@operator()
def __div__(self: Any, other: Any) -> Any:
    return Tensor.div(self, other)


@operator(python=True)
def __rdiv__(self: Any, other: Any) -> Any:
    return self.reciprocal().mul(other)


@operator()
def __idiv__(self: Any, other: Any) -> Any:
    return Tensor.div_(self, other)


@operator(floor_divide, python=True)
def __floordiv__(self: Any, other: Any) -> Any:
    return Tensor.floor_divide(self, other)


@operator(python=True)
def __rfloordiv__(self: Any, other: Any) -> Any:
    return floor_divide(as_tensor_like(other, self), self)


@operator(floor_divide.inplace)
def __ifloordiv__(self: Any, other: Any) -> Any:
    return Tensor.floor_divide_(self, other)


@operator(remainder)
def __mod__(self: Any, other: Any) -> Any:
    return Tensor.remainder(self, other)


@operator(python=True)
def __rmod__(self: Any, other: Any) -> Any:
    return remainder(as_tensor_like(other, self), self)


@operator(remainder.inplace)
def __imod__(self: Any, other: Any) -> Any:
    return Tensor.remainder_(self, other)


@operator(pow, python=True)
def __pow__(self: Any, other: Any) -> Any:
    return Tensor.pow(self, other)


@operator(pow, swapped=True, python=True)
def __rpow__(self: Any, other: Any) -> Any:
    return pow(other, self)


@operator(pow.inplace, python=True)
def __ipow__(self: Any, other: Any) -> Any:
    return Tensor.pow_(self, other)


@operator(matmul)
def __matmul__(self: Any, other: Any) -> Any:
    return NotImplemented if isinstance(other, NUMBERS) else Tensor.matmul(self, other)


@operator(matmul, swapped=True, python=True)
def __rmatmul__(self: Any, other: Any) -> Any:
    return NotImplemented if isinstance(other, NUMBERS) else other.matmul(self)


@operator(whole=True)  # no lanes, which come with `equal_to_array`
def __eq__(self: Any, other: Any) -> Any:
    return Tensor.eq(self, other)


@operator(ne)
def __ne__(self: Any, other: Any) -> Any:
    return Tensor.ne(self, other)


def equal_to_array(self: Any, other: Any) -> Any:
    """`tensor == array`, with the array taken for a tensor: numpy would leave the comparison to us."""
    if isinstance(other, np.ndarray):
        try:
            other = from_numpy(other)
        except TypeError:  # of a dtype that no tensor has
            return NotImplemented
    return __eq__(self, other)


attach_dunder("__eq__", equal_to_array, eq)


@operator(lt)
def __lt__(self: Any, other: Any) -> Any:
    return Tensor.lt(self, other)


@operator(le)
def __le__(self: Any, other: Any) -> Any:
    return Tensor.le(self, other)


@operator(gt)
def __gt__(self: Any, other: Any) -> Any:
    return Tensor.gt(self, other)


@operator(ge)
def __ge__(self: Any, other: Any) -> Any:
    return Tensor.ge(self, other)


@operator(bitwise_and, whole=True)
def __and__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_and(self, other)


@operator(bitwise_and)
def __rand__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_and(self, other)


@operator(bitwise_and.inplace, whole=True)
def __iand__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_and_(self, other)


@operator(bitwise_or, whole=True)
def __or__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_or(self, other)


@operator(bitwise_or)
def __ror__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_or(self, other)


@operator(bitwise_or.inplace, whole=True)
def __ior__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_or_(self, other)


@operator(bitwise_xor, whole=True)
def __xor__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_xor(self, other)


@operator(bitwise_xor)
def __rxor__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_xor(self, other)


@operator(bitwise_xor.inplace, whole=True)
def __ixor__(self: Any, other: Any) -> Any:
    return Tensor.bitwise_xor_(self, other)


@operator(python=True)
def __rlshift__(self: Any, other: Any) -> Any:
    return bitwise_left_shift(other, self)


@operator(python=True)
def __rrshift__(self: Any, other: Any) -> Any:
    return bitwise_right_shift(other, self)


def as_tensor_like(value: Any, tensor: Tensor) -> Any:
    """A number as a tensor without dimensions on the same device; what is none as it is."""
    return scalar_like(value, tensor, device=tensor.device) if isinstance(value, NUMBERS) else value


def __neg__(self: Any) -> Any:
    return self.neg()


def __pos__(self: Any) -> Any:
    return self.positive()


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


# PyTorch makes these of other methods, and handlers see the names of those.
SHOWN_AS = {
    "__abs__": "abs",
    "__neg__": "neg",
    "__pos__": "positive",
    "__pow__": "pow",
    "__ipow__": "pow_",
    "__rtruediv__": "__rdiv__",
    "__itruediv__": "__idiv__",
}

attach_dunder("__neg__", __neg__, neg, order=(0,))
attach_dunder("__abs__", __abs__, abs, order=(0,))
setattr(Tensor, "__pos__", __pos__)  # noqa: B010  # a type checker reads the assignment as an operation
setattr(Tensor, "__invert__", overridable(__invert__))  # noqa: B010  # attached here, and mypy knows no such name
setattr(Tensor, "__array_wrap__", overridable_in_python(__array_wrap__))  # noqa: B010  # attached here, and mypy knows no such name
for _name, _shown in SHOWN_AS.items():
    getattr(Tensor, _name).__name__ = _shown
