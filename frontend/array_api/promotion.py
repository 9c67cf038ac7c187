"""The standard's type promotion: by dtypes alone. PyTorch's looks at dimensions, too, and gives those without less say.

`together(x1, x2)` has both operands in their common dtype before a function of the library sees them. Each function of
the namespace starts here, and its signature is the standard's: operands by position, what modifies them by keyword.

Read next: elementwise.py.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import redispatch as rd
from redispatch import Tensor, dtype

Axes = int | tuple[int, ...] | None


def result_type(*arrays_and_dtypes: Any) -> dtype:
    """The dtype that these are computed in. Numbers of Python follow the arrays, as far as their kind allows.

    Errors: ValueError where there is neither an array nor a dtype.
    """
    kinds = [x if isinstance(x, dtype) else x.dtype for x in arrays_and_dtypes if isinstance(x, Tensor | dtype)]
    if not kinds:
        raise ValueError("result_type() needs at least one array or dtype")
    numbers = [x for x in arrays_and_dtypes if not isinstance(x, Tensor | dtype)]
    return reduce(with_number, numbers, reduce(rd.promote_types, kinds))


def with_number(kind: dtype, number: complex) -> dtype:
    return rd.result_type(rd.empty(1, dtype=kind, device="meta"), number)


def together(*operands: Any) -> list[Tensor]:
    """The operands as arrays of one dtype; numbers of Python become arrays, on the device of the others.

    Errors: TypeError where none of them is an array.
    """
    arrays = [x for x in operands if isinstance(x, Tensor)]
    if not arrays:
        raise TypeError(f"one operand must be an array, got {', '.join(type(x).__name__ for x in operands)}")
    kind = result_type(*operands)
    return [
        x.to(kind) if isinstance(x, Tensor) else rd.full((), x, dtype=kind, device=arrays[0].device) for x in operands
    ]


def axes_of(x: Tensor, axis: Axes) -> list[int]:
    """The axes that `axis` means: all for None. Errors: IndexError out of range, ValueError for one named twice."""
    given = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for one in given:
        if not -x.ndim <= one < x.ndim:
            raise IndexError(f"axis {one} is out of range for an array of {x.ndim} dimensions")
    found = [one % x.ndim for one in given]
    if len(set(found)) < len(found):
        raise ValueError(f"an axis is named twice in {axis}")
    return found


def one_axis(x: Tensor, axis: int | None, function: str) -> int:
    """`axis`, which may be left out where there is only one. Errors: ValueError where there are several."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"{function}() needs an axis for an array of {x.ndim} dimensions")
    return 0 if axis is None else axis


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
    """The result of `finfo`. The library's own `finfo` names its dtype by a string, as PyTorch's does."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: dtype


class IntegerLimits(NamedTuple):
    """The result of `iinfo`."""

    bits: int
    max: int
    min: int
    dtype: dtype


def astype(x: Tensor, dtype: dtype, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """`x` in another dtype; a copy in any case, unless `copy` is False."""
    return x.to(x.device if device is None else device, dtype, copy=copy)


def can_cast(from_: Tensor | dtype, to: dtype, /) -> bool:
    """Returns whether every value of `from_` has one in `to`: whether the two promote to `to`."""
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
    """Returns whether a dtype is of a kind: another dtype, "bool", "signed integer", "unsigned integer", "integral",
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


ATOMIC = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")


class Info:
    """The result of `__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        return rd.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        real = rd.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": rd.complex128 if real is rd.float64 else rd.complex64,
            "integral": rd.int64,
            "indexing": rd.int64,
        }

    def devices(self) -> list[Any]:
        """Returns the devices that hold values."""
        return [rd.device("cpu")]

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, dtype]:
        """The dtypes of a kind, or of several, by name."""
        kinds = ATOMIC if kind is None else (kind,) if isinstance(kind, str) else kind
        return {one.name: one for kind in kinds for one in KINDS[kind]}


def __array_namespace_info__() -> Info:
    """Devices, dtypes and capabilities."""
    return Info()
