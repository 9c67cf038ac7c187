"""Loading, storing and converting one element, from any dtype to any other; and which of two elements is the larger.

An element is loaded into its compute type (`DTYPES[...].compute`: 16-bit floats become float32), and stored from
whatever the scalar function returned. Conversions follow C, as PyTorch's do: a float is truncated towards zero, an
integer wraps, anything nonzero is True, a complex number loses its imaginary part.

These functions are globals of the generated loops. Read next: `elementwise.py`.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES

from . import float8
from .primitives import bfloat16_to_float, float_to_bfloat16, float_to_half, half_to_float, maximum, minimum

bool_, float32, float64 = np.bool_, np.float32, np.float64
uint8, int8, int16, int32, int64 = np.uint8, np.int8, np.int16, np.int32, np.int64
uint16, uint32, uint64 = np.uint16, np.uint32, np.uint64
complex64, complex128 = np.complex64, np.complex128


def as_is(x):
    return x


def real_part(x):
    return x.real


def to_bool(x):
    return bool_(x != 0)


def to_uint8(x):
    return uint8(int64(x))  # through a wide signed integer: -1.0 becomes 255, as in PyTorch


def to_int8(x):
    return int8(int32(x))


def to_int16(x):
    return int16(int32(x))


def to_int32(x):
    return int32(x)


def to_int64(x):
    return int64(x)


def to_float32(x):
    return float32(x)


def to_float64(x):
    return float64(x)


def to_complex64(x):
    return complex64(x)


def to_complex128(x):
    return complex128(x)


def store_float16(x):
    return float_to_half(x * float32(1))  # a float is left as it is, and an integer becomes one


def store_bfloat16(x):
    return float_to_bfloat16(float32(x))


def to_uint16(x):
    return uint16(int64(x))


def to_uint32(x):
    return uint32(int64(x))


def to_uint64(x):
    return uint64(x)


def load_complex32(bits):
    return complex64(complex(half_to_float(uint16(bits)), half_to_float(uint16(bits >> uint32(16)))))


def store_complex32(x):
    z = complex64(x)
    return uint32(float_to_half(z.real)) | (uint32(float_to_half(z.imag)) << uint32(16))


CONVERT: dict[str, Callable] = {
    "bool": to_bool,
    "uint8": to_uint8,
    "int8": to_int8,
    "int16": to_int16,
    "int32": to_int32,
    "int64": to_int64,
    "float32": to_float32,
    "float64": to_float64,
    "complex64": to_complex64,
    "complex128": to_complex128,
    "uint16": to_uint16,
    "uint32": to_uint32,
    "uint64": to_uint64,
}
LOAD: dict[str, Callable] = {
    "float16": half_to_float, "bfloat16": bfloat16_to_float, "complex32": load_complex32, **float8.LOAD,
}  # fmt: skip
STORE: dict[str, Callable] = {
    **CONVERT, "float16": store_float16, "bfloat16": store_bfloat16, "complex32": store_complex32, **float8.STORE,
}  # fmt: skip


def load(dtype: str) -> Callable:
    """The function from what the storage holds to the compute type of `dtype`."""
    return LOAD.get(dtype, as_is)


def store(dtype: str) -> Callable:
    """The function from a computed real number (or complex, for complex `dtype` and bool) to what is stored."""
    return STORE[DTYPES[dtype].name]


@cache  # numpy takes 2 us to say a dtype's name
def array_type(dtype: str) -> str:
    """The signature's word for a storage of `dtype`."""
    return f"{DTYPES[dtype].storage.name}[]"


def conversion(from_dtype: str, to_dtype: str) -> list[Callable]:
    """The functions that take a loaded element of one dtype to the compute type of another, in order."""
    have, want = DTYPES[from_dtype].compute, DTYPES[to_dtype].compute
    if have == want:
        return []
    drop = DTYPES[have].kind == "complex" and DTYPES[want].kind not in ("complex", "bool")
    return ([real_part] if drop else []) + [CONVERT[want]]


def real_type(dtype: str) -> str | None:
    """Returns the type that literals of a scalar function have when it computes in `dtype`; None for integers."""
    compute = DTYPES[dtype].compute
    return {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}.get(compute)


# --- which is larger: NaN beats all, as PyTorch has it ----------------------------------------------------------------

# A comparison with a NaN test in each step would keep a loop over floats scalar; theirs is a primitive that LLVM knows.


class Order(NamedTuple):
    """The facts on a dtype for a search for the largest element, or the smallest."""

    pick: Callable  # the better of two; of equal ones either
    beats: Callable  # whether the first of two is the better one: not when they are equal, or both NaN
    worst: np.generic  # an element that beats none


def larger(acc, x):
    return x if x > acc else acc


def smaller(acc, x):
    return x if x < acc else acc


def is_above(x, best):
    return x > best or (x != x and best == best)


def is_below(x, best):
    return x < best or (x != x and best == best)


def order(dtype: str, largest: bool) -> Order:
    """The order of loaded elements of `dtype`. There is none of complex numbers."""
    info = DTYPES[DTYPES[dtype].compute]
    beats = is_above if largest else is_below
    if info.kind == "float":
        return Order(maximum if largest else minimum, beats, info.storage.type(-np.inf if largest else np.inf))
    pick = larger if largest else smaller
    if info.kind == "bool":
        return Order(pick, beats, np.bool_(not largest))
    limits = np.iinfo(info.storage)
    return Order(pick, beats, info.storage.type(limits.min if largest else limits.max))
