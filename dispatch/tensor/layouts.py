"""Layouts, memory formats and schemes of quantisation: names for how a tensor's elements lie in its storage."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import ARGUMENT_TYPES, VALUE_CLASSES

from . import dtypes
from .dtypes import NUMBERED, dtype


class _Named:
    """A value that is known by its name, under which users find it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(_Named):
    """`strided`: every element at offset + index * stride. The only layout with kernels here; the others are names, by
    which programs ask, and which a wrapper subclass may show as its own."""

    __module__ = "redispatch"  # where users find it


class named_layout(layout):
    """A layout that is no more than a name. A class of its own, since fast paths pass values of `layout` on unseen."""


class memory_format(_Named):
    """In which order of dimensions a tensor is dense: row by row, channels last, or as its source."""

    __module__ = "redispatch"  # where users find it


class qscheme(_Named):
    """The way to read the codes of a quantised tensor: by one scale and zero point, or by those of their channel."""

    __module__ = "redispatch"  # where users find it


per_tensor_affine, per_channel_affine = qscheme("per_tensor_affine"), qscheme("per_channel_affine")
per_tensor_symmetric, per_channel_symmetric = qscheme("per_tensor_symmetric"), qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")
SCHEMES = (per_tensor_affine, per_channel_affine, per_channel_affine_float_qparams)  # the others are names
strided = layout("strided")
jagged = named_layout("jagged")
sparse_coo, sparse_csr, sparse_csc = map(named_layout, ("sparse_coo", "sparse_csr", "sparse_csc"))
sparse_bsr, sparse_bsc = map(named_layout, ("sparse_bsr", "sparse_bsc"))
_mkldnn = named_layout("_mkldnn")
contiguous_format = legacy_contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

_FORMATS = (contiguous_format, preserve_format, channels_last, channels_last_3d)


def _as_dtype(value: Any) -> dtype:
    if isinstance(value, dtype):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(NUMBERED):
        return NUMBERED[value]
    raise TypeError(f"Unable to cast {value!r} to a dtype")


def _as_layout(value: Any) -> layout:
    if isinstance(value, layout):
        if value is not strided:
            raise NotImplementedError(
                f"no operator makes a tensor of the layout {value}: there are kernels for strided ones"
            )
        return value
    if value == 0:
        return strided
    raise TypeError(f"Unable to cast {value!r} to a layout")


def _as_memory_format(value: Any) -> memory_format:
    if isinstance(value, memory_format):
        return value
    if isinstance(value, int) and 0 <= value < len(_FORMATS):
        return _FORMATS[value]
    raise TypeError(f"Unable to cast {value!r} to a memory format")


def _of_python_type(value: Any) -> Any:
    """`dtype=float` means float64, as in numpy."""
    if value is float:
        return dtypes.float64
    if value is int:
        return dtypes.int64
    if value is bool:
        return dtypes.bool
    return dtypes.complex128 if value is complex else value


ARGUMENT_TYPES |= {
    "dtype of Python type": _of_python_type,
    "ScalarType": _as_dtype,
    "Layout": _as_layout,
    "MemoryFormat": _as_memory_format,
}
VALUE_CLASSES |= {"ScalarType": dtype, "Layout": layout, "MemoryFormat": memory_format}


def channels_last_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a dense tensor (N, C, *spatial) whose channels lie side by side."""
    order = (1, *range(len(shape) - 1, 1, -1), 0)
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)
