"""Copying and converting between any two operands, and filling one.

A copy is the elementwise loop whose scalar function is the identity, so that it broadcasts, converts and walks any
strides. Read next: `convert.py` for what a conversion means.
"""

import math

import numpy as np

from .compile import Kernel
from .convert import array_type, store
from .elementwise import Elementwise, Number
from .geometry import contiguous_strides
from .operand import DTYPES, Operand
from .pool import parallel_for


def identity(x):
    return x


def real_part(x):
    return x.real


def arange_loop(lo, hi, out, out_at, start, step):
    for i in range(lo, hi):
        out[uint64(out_at + i)] = store_one(start + i * step)


uint64 = np.uint64
store_one = float  # replaced by the store of the output's dtype

_COPY = Elementwise("copy", identity)
_REAL = Elementwise("copy_real", real_part)
_ARANGE: dict[str, Kernel] = {}


def copy(out: Operand, x: Operand) -> None:
    """Write `x`, broadcast to the shape of `out`, into `out`, converted to its dtype. They must not overlap partly."""
    if out.dtype == x.dtype and DTYPES[out.dtype].compute != out.dtype:
        out, x = out._replace(dtype="int16"), x._replace(dtype="int16")  # move 16-bit floats as they are
        out, x = out._replace(array=out.array.view(np.int16)), x._replace(array=x.array.view(np.int16))
    drops_imaginary = DTYPES[x.dtype].kind == "complex" and DTYPES[out.dtype].kind not in ("complex", "bool")
    (_REAL if drops_imaginary else _COPY).run(out, x)


def fill(out: Operand, value: Number) -> None:
    """Write one number everywhere."""
    _COPY.run(out, value, dtype=out.dtype)


def arange(out: Operand, start: float, step: float) -> None:
    """Write start, start + step, ... into a 1-d `out`: integers exactly, floats computed in float64, rounded once."""
    (size,) = out.shape
    if size == 0:
        return
    number = "float64" if DTYPES[out.dtype].kind == "float" else "int64"
    if out.strides != contiguous_strides(out.shape):
        dense = Operand(np.empty(size, out.array.dtype), out.dtype, (size,), (1,))
        arange(dense, start, step)
        copy(out, dense)
        return
    kernel = _ARANGE.get(out.dtype)
    if kernel is None:
        kernel = _ARANGE[out.dtype] = Kernel(arange_loop, name="arange", given={"store_one": store(out.dtype)})
    entry = kernel.entry("int64", "int64", array_type(out.dtype), "int64", number, number)
    first, by = (float(start), float(step)) if number == "float64" else (math.trunc(start), math.trunc(step))
    parallel_for(entry, size, (out.array, out.offset, first, by))
