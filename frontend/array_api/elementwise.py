"""Functions of each element: the library's own, with the standard's signatures and its promotion.

Where the standard asks for something else than PyTorch does, there is a function here instead of a line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch import Tensor

from .promotion import together

Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Any, Any], Tensor]


def unary(function: Any, name: str = "") -> Unary:
    """A function of the library as one of a single array, which it takes by position."""

    def elementwise(x: Tensor, /) -> Tensor:
        return function(x)

    return called(elementwise, function, name)


def binary(function: Any, name: str = "") -> Binary:
    """A function of the library as one of two arrays, or an array and a number, which meet in their common dtype."""

    def elementwise(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        return function(*together(x1, x2))

    return called(elementwise, function, name)


def called(made: Any, function: Any, name: str) -> Any:
    made.__name__ = made.__qualname__ = name or function.__name__
    made.__doc__ = f"`redispatch.{function.__name__}`, by the standard's rules."
    return made


abs = unary(rd.abs)
acos = unary(rd.acos)
acosh = unary(rd.acosh)
asin = unary(rd.asin)
asinh = unary(rd.asinh)
atan = unary(rd.atan)
atanh = unary(rd.atanh)
bitwise_invert = unary(rd.bitwise_not, "bitwise_invert")
ceil = unary(rd.ceil)
cos = unary(rd.cos)
cosh = unary(rd.cosh)
exp = unary(rd.exp)
expm1 = unary(rd.expm1)
floor = unary(rd.floor)
imag = unary(rd.imag)
isfinite = unary(rd.isfinite)
isinf = unary(rd.isinf)
isnan = unary(rd.isnan)
log = unary(rd.log)
log10 = unary(rd.log10)
log1p = unary(rd.log1p)
log2 = unary(rd.log2)
logical_not = unary(rd.logical_not)
negative = unary(rd.negative)
positive = unary(rd.positive)
real = unary(rd.real)
reciprocal = unary(rd.reciprocal)
round = unary(rd.round)
signbit = unary(rd.signbit)
sin = unary(rd.sin)
sinh = unary(rd.sinh)
sqrt = unary(rd.sqrt)
square = unary(rd.square)
tan = unary(rd.tan)
tanh = unary(rd.tanh)
trunc = unary(rd.trunc)

add = binary(rd.add)
atan2 = binary(rd.atan2)
bitwise_and = binary(rd.bitwise_and)
bitwise_left_shift = binary(rd.bitwise_left_shift)
bitwise_or = binary(rd.bitwise_or)
bitwise_right_shift = binary(rd.bitwise_right_shift)
bitwise_xor = binary(rd.bitwise_xor)
copysign = binary(rd.copysign)
divide = binary(rd.divide)
equal = binary(rd.eq, "equal")
floor_divide = binary(rd.floor_divide)
greater = binary(rd.greater)
greater_equal = binary(rd.greater_equal)
hypot = binary(rd.hypot)
less = binary(rd.less)
less_equal = binary(rd.less_equal)
logaddexp = binary(rd.logaddexp)
logical_and = binary(rd.logical_and)
logical_or = binary(rd.logical_or)
logical_xor = binary(rd.logical_xor)
maximum = binary(rd.maximum)
minimum = binary(rd.minimum)
multiply = binary(rd.multiply)
nextafter = binary(rd.nextafter)
not_equal = binary(rd.not_equal)
pow = binary(rd.pow)
subtract = binary(rd.subtract)


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate, computed: a lazy one could not be handed to other libraries."""
    return rd.conj_physical(x)


def remainder(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """What is left of `x1` by division by `x2`, with the sign of `x2`, a zero too."""
    x1, x2 = together(x1, x2)
    rest = rd.remainder(x1, x2)
    return rd.where(rest == 0, rd.copysign(rest, x2), rest) if rest.dtype.is_floating_point else rest


def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; of complex numbers, the direction from 0. NaN remains NaN, where PyTorch gives 0."""
    found = rd.sgn(x)
    return rd.where(rd.isnan(x), x, found) if x.dtype.is_floating_point else found


def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """`x`, where it is not below `min` or above `max`; these broadcast with it. The dtype is that of `x`."""
    low, high = (bound if bound is None else as_bound(bound, x) for bound in (min, max))
    return x.clone() if low is None and high is None else rd.clamp(x, low, high)


def as_bound(bound: Tensor | float, x: Tensor) -> Tensor:
    return bound.to(x.dtype) if isinstance(bound, Tensor) else rd.full((), bound, dtype=x.dtype, device=x.device)
