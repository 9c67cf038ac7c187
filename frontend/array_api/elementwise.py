"""Functions of each element: the library's own, with the standard's signatures and its promotion.

Where the standard asks for something else than PyTorch does, there is a function here instead of a name.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch import Tensor

from .promotion import together

# The functions that are PyTorch's but for the signature and the promotion
UNARY = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil cos cosh exp expm1 floor imag isfinite isinf isnan log
    log10 log1p log2 logical_not negative positive real reciprocal round signbit sin sinh sqrt square tan tanh trunc
""".split()
BINARY = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
    minimum multiply nextafter not_equal pow subtract
""".split()
RENAMED = {"bitwise_invert": rd.bitwise_not, "equal": rd.eq}


def unary(function: Any) -> Any:
    """A function of the library as one of a single array, which it takes by position."""

    def elementwise(x: Tensor, /) -> Tensor:
        return function(x)

    return elementwise


def binary(function: Any) -> Any:
    """A function of the library as one of two arrays, or an array and a number, which meet in their common dtype."""

    def elementwise(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        return function(*together(x1, x2))

    return elementwise


def called(name: str, made: Any, path: str) -> Any:
    """Gives a function its name, and a docstring that names the one of the library that it calls."""
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"`redispatch.{path}`, by the standard's rules."
    return made


for _names, _form in ((UNARY, unary), (BINARY, binary)):
    for _name in _names:
        _function = RENAMED.get(_name) or getattr(rd, _name)
        globals()[_name] = called(_name, _form(_function), _function.__name__)


def conj(x: Tensor, /) -> Tensor:
    """The complex conjugate, computed: a lazy one could not be handed to other libraries."""
    return rd.conj_physical(x)


def remainder(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Returns the remainder of `x1` divided by `x2`, with the sign of `x2`, a zero too."""
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
