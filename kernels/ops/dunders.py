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
from redispatch.dispatch.symbolic import SymFloat, SymInt
from redispatch.dispatch.tensor import Tensor, ask_default, overridable, overridable_in_python

from .arithmetic import add, div, floor_divide, mul, pow, remainder, rsub, sub
from .binary import bitwise_left_shift, bitwise_right_shift
from .comparison import bitwise_and, bitwise_or, bitwise_xor, eq, ge, gt, le, lt, ne, scalar_like
from .elementary import abs, neg
from .from_data import from_numpy
from .linalg import matmul

Binary = Callable[[Any, Any], Any]
NUMBERS = (int, float, complex, np.number, np.bool_, SymInt, SymFloat)


def dunder(name: str, function: Binary, *, lanes: Any = None, swapped: bool = False, asked: str = "") -> None:
    """Makes `Tensor.__name__` of a function of the two operands, of which the second may turn out to be none.

    lanes: the public function to which it comes, with both operands and nothing else; `swapped` if in the other order.
    asked: whether overrides are to see the method itself, and not what it calls: as one which PyTorch has in "C++", or
        in "Python".
    """

    @functools.wraps(function)
    def meaning(self: Any, other: Any) -> Any:
        if asked == "Python" and function is not over and not isinstance(self, Tensor):
            return NotImplemented
        try:
            if asked and overridden((self, other), {}):
                return convention(getattr(Tensor, name), (self, other), {})
            if isinstance(other, NUMBERS):
                return function(self, other.item() if isinstance(other, np.generic) else other)
            if isinstance(other, Tensor) or overrides(other):
                return function(self, other)
        except TypeError as error:
            if not hasattr(error, "is_not_handled"):
                raise
        return NotImplemented

    meaning.__name__, meaning.__qualname__ = name, name
    convention = OfPython(meaning) if asked == "Python" else call_overridden
    if asked:
        asks(meaning)
    attach_dunder(name, meaning, lanes, (1, 0) if swapped else (0, 1))


def attach_dunder(name: str, meaning: Callable[..., Any], lanes: Any = None, order: Sequence[int] = (0, 1)) -> Any:
    """Makes `Tensor.__name__` of what it means and, where there is one, of the public function to which it comes."""
    made = meaning
    if lanes is not None:
        parameters = ("self", "other")[: len(order)]
        made = FixedEntryPoint(
            name,
            parameters,
            order,
            lambda: entry_point_of(lanes).forms(),
            meaning,
            module=meaning.__module__,
            by_default=ask_default,
        ).function
        made.__doc__ = meaning.__doc__
    setattr(Tensor, name, made)
    return made


def method(name: str) -> Binary:
    """Calls the method `name` of the first operand's class."""
    return lambda self, other: getattr(Tensor, name)(self, other)


def over(self: Any, other: Any) -> Any:
    """other / self"""
    return self.reciprocal().mul(other)


def of_tensors(function: Binary) -> Binary:
    """Makes a method with the operands in the other order, a number as a tensor."""
    return lambda self, other: function(as_tensor_like(other, self), self)


def matrix(function: Binary) -> Binary:
    """Makes a method for tensors alone."""
    return lambda self, other: NotImplemented if isinstance(other, NUMBERS) else function(self, other)


def as_tensor_like(value: Any, tensor: Tensor) -> Any:
    """A number as a tensor without dimensions on the same device; what is none as it is."""
    return scalar_like(value, tensor, device=tensor.device) if isinstance(value, NUMBERS) else value


shift_left, shift_right = Tensor.__lshift__, Tensor.__rshift__

dunder("__add__", method("add"), lanes=add)
dunder("__radd__", method("add"), lanes=add)
dunder("__iadd__", method("add_"), lanes=add.inplace)
dunder("__sub__", method("sub"), lanes=sub)
dunder("__rsub__", lambda self, other: rsub(self, other), lanes=rsub, asked="Python")
dunder("__isub__", method("sub_"), lanes=sub.inplace)
dunder("__mul__", method("mul"), lanes=mul)
dunder("__rmul__", method("mul"), lanes=mul)
dunder("__imul__", method("mul_"), lanes=mul.inplace)
dunder("__truediv__", method("div"), lanes=div)
dunder("__rtruediv__", over, asked="Python")
dunder("__itruediv__", method("div_"), lanes=div.inplace)
# Python 2's names of division, which programs that forward methods by name still look for
dunder("__div__", method("div"), lanes=div)
dunder("__rdiv__", over, asked="Python")
dunder("__idiv__", method("div_"))
dunder("__floordiv__", method("floor_divide"), lanes=floor_divide, asked="Python")
dunder("__rfloordiv__", of_tensors(floor_divide), asked="Python")
dunder("__ifloordiv__", method("floor_divide_"), lanes=floor_divide.inplace)
dunder("__mod__", method("remainder"), lanes=remainder)
dunder("__rmod__", of_tensors(remainder), asked="Python")
dunder("__imod__", method("remainder_"), lanes=remainder.inplace)
dunder("__pow__", method("pow"), lanes=pow, asked="Python")
dunder("__rpow__", lambda self, other: pow(other, self), lanes=pow, swapped=True, asked="Python")
dunder("__ipow__", method("pow_"), lanes=pow.inplace, asked="Python")
dunder("__matmul__", matrix(method("matmul")), lanes=matmul)
dunder("__rmatmul__", matrix(lambda self, other: other.matmul(self)), lanes=matmul, swapped=True, asked="Python")
dunder("__eq__", method("eq"), asked="C++")  # no lanes, which come with `equal_to_array`
dunder("__ne__", method("ne"), lanes=ne)
dunder("__lt__", method("lt"), lanes=lt)
dunder("__le__", method("le"), lanes=le)
dunder("__gt__", method("gt"), lanes=gt)
dunder("__ge__", method("ge"), lanes=ge)
dunder("__and__", method("bitwise_and"), lanes=bitwise_and, asked="C++")
dunder("__rand__", method("bitwise_and"), lanes=bitwise_and)
dunder("__iand__", method("bitwise_and_"), lanes=bitwise_and.inplace, asked="C++")
dunder("__or__", method("bitwise_or"), lanes=bitwise_or, asked="C++")
dunder("__ror__", method("bitwise_or"), lanes=bitwise_or)
dunder("__ior__", method("bitwise_or_"), lanes=bitwise_or.inplace, asked="C++")
dunder("__xor__", method("bitwise_xor"), lanes=bitwise_xor, asked="C++")
dunder("__rxor__", method("bitwise_xor"), lanes=bitwise_xor)
dunder("__ixor__", method("bitwise_xor_"), lanes=bitwise_xor.inplace, asked="C++")
dunder("__lshift__", shift_left, lanes=shift_left, asked="C++")
dunder("__ilshift__", method("bitwise_left_shift_"), lanes=bitwise_left_shift.inplace, asked="C++")
dunder("__rshift__", shift_right, lanes=shift_right, asked="C++")
dunder("__irshift__", method("bitwise_right_shift_"), lanes=bitwise_right_shift.inplace, asked="C++")
dunder("__rlshift__", lambda self, other: bitwise_left_shift(other, self), asked="Python")
dunder("__rrshift__", lambda self, other: bitwise_right_shift(other, self), asked="Python")

plainly_equal: Any = Tensor.__eq__


def equal_to_array(self: Any, other: Any) -> Any:
    """`tensor == array`, with the array taken for a tensor: numpy would leave the comparison to us."""
    if isinstance(other, np.ndarray):
        try:
            other = from_numpy(other)
        except TypeError:  # of a dtype that no tensor has
            return NotImplemented
    return plainly_equal(self, other)


attach_dunder("__eq__", equal_to_array, eq)

# --- of one tensor ----------------------------------------------------------------------------------------------------


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
