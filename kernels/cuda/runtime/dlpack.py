"""DLPack: tensors of devices handed from library to library, as capsules around a C structure.

What lies in the CPU's memory goes by numpy, which speaks DLPack itself (kernels/ops/from_data.py). This is for the
memory of devices, of which numpy knows nothing: `exported` makes a capsule of a tensor, `imported` reads one. A
consumer calls the structure's `deleter` when it is done; a capsule that nobody consumed does so itself.

Source: dlpack.h of DLPack 1.0, which also tells of the form before 1.0, without version and flags.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, NamedTuple

from redispatch.dispatch.tensor import Size, dtype, dtypes

CPU, CUDA = 1, 2  # codes of device types
INT, UINT, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6  # and of kinds of dtypes
VERSION = (1, 0)
PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"
CODES: dict[dtype, tuple[int, int]] = {
    dtypes.bool: (BOOL, 8),
    dtypes.bfloat16: (BFLOAT, 16),
    dtypes.uint8: (UINT, 8),
    **{d: (INT, 8 * d.itemsize) for d in (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)},
    **{d: (FLOAT, 8 * d.itemsize) for d in (dtypes.float16, dtypes.float32, dtypes.float64)},
    **{d: (COMPLEX, 8 * d.itemsize) for d in (dtypes.complex64, dtypes.complex128)},
}
DTYPES = {code: found for found, code in CODES.items()}


class DLTensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class Managed(Structure):
    """Before version 1.0."""

    _fields_ = (("tensor", DLTensor), ("context", c_void_p), ("deleter", DELETER))


class ManagedVersioned(Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", DELETER),
        ("flags", c_uint64),
        ("tensor", DLTensor),
    )


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
is_valid = ctypes.pythonapi.PyCapsule_IsValid
is_valid.restype, is_valid.argtypes = c_int, (c_void_p, c_char_p)
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = c_void_p, (c_void_p, c_char_p)
rename = ctypes.pythonapi.PyCapsule_SetName
rename.restype, rename.argtypes = c_int, (ctypes.py_object, c_char_p)

_EXPORTED: dict[int, tuple[Any, ...]] = {}  # address of a structure -> what it needs to stay alive


@DELETER
def _done(address: int) -> None:
    """The consumer is done."""
    _EXPORTED.pop(address, None)


@DELETER
def _capsule_goes(capsule: int) -> None:
    for name in (PLAIN, VERSIONED):
        if is_valid(capsule, name):  # nobody took it: a consumer renames it
            _done(pointer_of(capsule, name))


def exported(x: Any, address: int, device: tuple[int, int], versioned: bool) -> Any:
    """A capsule of a tensor whose first element lies at `address` of a device, given as (code, index).

    Errors: BufferError for a dtype that DLPack does not know.
    """
    if x._dtype not in CODES:
        raise BufferError(f"{x._dtype} is not supported by dlpack")
    made = (ManagedVersioned if versioned else Managed)()
    dims = len(x._shape)
    sizes, strides = (c_int64 * max(dims, 1))(*x._shape), (c_int64 * max(dims, 1))(*x._stride)
    code, bits = CODES[x._dtype]
    made.tensor = DLTensor(address, *device, dims, code, bits, 1, sizes, strides, 0)
    made.deleter = _done
    if versioned:
        made.major, made.minor = VERSION
    _EXPORTED[ctypes.addressof(made)] = made, sizes, strides, x
    return new_capsule(ctypes.addressof(made), VERSIONED if versioned else PLAIN, ctypes.cast(_capsule_goes, c_void_p))


class Contents(NamedTuple):
    """The contents of a capsule. `release` is to be called when the memory is not needed any longer."""

    address: int
    device: tuple[int, int]
    dtype: dtype
    shape: Size
    strides: tuple[int, ...]
    release: Callable[[], None]


def imported(capsule: Any) -> Contents:
    """Reads a capsule, which is used up.

    Errors: RuntimeError for what is no capsule, or was used already; BufferError for a dtype that we have not, and a
    version that is not known.
    """
    name = next((name for name in (VERSIONED, PLAIN) if is_valid(id(capsule), name)), None)
    if name is None:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    where = pointer_of(id(capsule), name)
    managed = (ManagedVersioned if name == VERSIONED else Managed).from_address(where)
    if name == VERSIONED and managed.major > VERSION[0]:
        raise BufferError(f"a DLPack tensor of version {managed.major}.{managed.minor}; known are those up to 1")
    tensor = managed.tensor
    element = DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if element is None:
        raise BufferError(f"a DLPack tensor of dtype ({tensor.code}, {tensor.bits}, {tensor.lanes}) has no counterpart")
    shape = Size(tensor.shape[: tensor.ndim])
    strides, step = [0] * len(shape), 1
    for d in reversed(range(len(shape))):
        strides[d] = tensor.strides[d] if tensor.strides else step
        step *= max(shape[d], 1)
    rename(capsule, b"used_" + name)
    deleter = managed.deleter

    def release() -> None:
        if deleter:
            deleter(where)

    device = tensor.device_type, tensor.device_id
    return Contents((tensor.data or 0) + tensor.byte_offset, device, element, shape, tuple(strides), release)
