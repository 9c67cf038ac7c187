"""Data types and questions about them: `astype`, `can_cast`, `finfo`, `iinfo`, `isdtype`, `result_type`.

The library has no uint16, uint32 and uint64, and so the namespace has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import redispatch as rd
from redispatch import Tensor, dtype

from .promotion import result_type

KINDS: dict[str, tuple[dtype, ...]] = {
    "bool": (rd.bool,),
    "signed integer": (rd.int8, rd.int16, rd.int32, rd.int64),
    "unsigned integer": (rd.uint8,),
    "real floating": (rd.float32, rd.float64),
    "complex floating": (rd.complex64, rd.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


class FloatLimits(NamedTuple):
    """What `finfo` returns. The library's own `finfo` names its dtype by a string, as PyTorch's does."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


class IntegerLimits(NamedTuple):
    """What `iinfo` returns."""

    bits: int
    max: int
    min: int
    dtype: dtype


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` in another dtype; a copy in any case, unless `copy` is False."""
    return x.to(x.device if device is None else device, dtype, copy=copy)


def can_cast(from_: Tensor | dtype, to: dtype, /) -> bool:
    """Whether every value of `from_` has one in `to`: whether the two promote to `to`."""
    return result_type(from_, to) is to


def finfo(type: Tensor | dtype, /) -> FloatLimits:
    """The limits of a floating dtype, or of an array's; of a complex dtype those of its parts."""
    found = rd.finfo(dtype_of(type))
    kind = getattr(rd, found.dtype)
    return FloatLimits(found.bits, found.eps, found.max, found.min, found.smallest_normal, kind)


def iinfo(type: Tensor | dtype, /) -> IntegerLimits:
    """The limits of an integer dtype, or of an array's."""
    found = rd.iinfo(dtype_of(type))
    return IntegerLimits(found.bits, found.max, found.min, dtype_of(type))


def isdtype(dtype: dtype, kind: dtype | str | tuple[dtype | str, ...]) -> bool:
    """Whether a dtype is of a kind: another dtype, "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric", or any of several.

    Errors: ValueError for a kind of another name, TypeError for what is no kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"no kind of dtype is called {kind!r}; there are {', '.join(KINDS)}")
        return dtype in KINDS[kind]
    if not isinstance(kind, rd.dtype):
        raise TypeError(f"a kind is a dtype, a string or a tuple of these, not {type(kind).__name__}")
    return dtype is kind


def dtype_of(x: Tensor | dtype) -> dtype:
    return x.dtype if isinstance(x, Tensor) else x
