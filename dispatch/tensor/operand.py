"""The operand of a kernel: the flat array of a whole storage, and how to walk it.

A view never becomes a numpy view: every view of a storage shares the storage's one flat array, and differs in
`shape`, `strides` and `offset` only. This keeps a small operator call free of numpy's own view objects.
16-bit floats are stored as `uint16` and computed in `float32`, because numba's CPU target knows neither of them.

Read next: `geometry.py` (shapes and strides), then `kernels/engine/elementwise.py` (the first kernels).
"""

from typing import NamedTuple

import numpy as np


class DType(NamedTuple):
    """One element type: its kind, the numpy type that stores it, and the type that kernels compute in."""

    name: str
    kind: str  # "bool", "uint", "int", "float" or "complex"
    storage: np.dtype
    compute: str


def _dtype(name: str, kind: str, storage: type | None = None, compute: str | None = None) -> DType:
    return DType(name, kind, np.dtype(storage or name), compute or name)


DTYPES: dict[str, DType] = {
    "bool": _dtype("bool", "bool"),
    "uint8": _dtype("uint8", "uint"),
    "int8": _dtype("int8", "int"),
    "int16": _dtype("int16", "int"),
    "int32": _dtype("int32", "int"),
    "int64": _dtype("int64", "int"),
    "float16": _dtype("float16", "float", np.uint16, "float32"),
    "bfloat16": _dtype("bfloat16", "float", np.uint16, "float32"),
    "float32": _dtype("float32", "float"),
    "float64": _dtype("float64", "float"),
    "complex64": _dtype("complex64", "complex"),
    "complex128": _dtype("complex128", "complex"),
}


class Operand(NamedTuple):
    """A strided window onto a storage. Strides and offset count elements; strides are never negative.

    `array` is 1-D, C-contiguous, spans the whole storage and has the dtype `DTYPES[dtype].storage`.
    """

    array: np.ndarray
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


def as_ndarray(operand: Operand) -> np.ndarray:
    """The numpy view of an operand, for BLAS and for tests; 16-bit floats come as their `uint16` storage."""
    if 0 in operand.shape:  # its offset may lie behind the end of the memory, which numpy refuses
        return np.empty(operand.shape, operand.array.dtype)
    size = operand.array.itemsize
    return np.ndarray(
        operand.shape,
        operand.array.dtype,
        operand.array,
        operand.offset * size,
        tuple(stride * size for stride in operand.strides),
    )
