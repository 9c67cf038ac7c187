"""Comparing floats as integers, so that NaN has a place in the order and LLVM can vectorise.

The bits of a float, read as an integer, are ordered as the float is, once the magnitude bits of negative numbers are
flipped. In a maximum NaN becomes the largest integer, in a minimum the smallest: it wins, as PyTorch has it, and
stays NaN when the flip is undone. `max` on floats with a NaN test in each step would keep the loop scalar.
Read next: `reduce.py`.
"""

from collections.abc import Callable

import numpy as np

from .operand import DTYPES
from .primitives import bits_of_double, bits_of_float, double_of_bits, float_of_bits
from .program import integral

int32, int64 = np.int32, np.int64
MAGNITUDE32, LEAST32 = 0x7FFFFFFF, -0x80000000
MAGNITUDE64, LEAST64 = 0x7FFFFFFFFFFFFFFF, -0x8000000000000000


@integral
def key_for_max32(x):
    bits = bits_of_float(x)
    return int32(MAGNITUDE32) if x != x else int32(bits ^ ((bits >> 31) & MAGNITUDE32))


@integral
def key_for_min32(x):
    bits = bits_of_float(x)
    return int32(LEAST32) if x != x else int32(bits ^ ((bits >> 31) & MAGNITUDE32))


@integral
def from_key32(key):
    return float_of_bits(int32(key ^ ((key >> 31) & MAGNITUDE32)))


@integral
def key_for_max64(x):
    bits = bits_of_double(x)
    return int64(MAGNITUDE64) if x != x else bits ^ ((bits >> 63) & MAGNITUDE64)


@integral
def key_for_min64(x):
    bits = bits_of_double(x)
    return int64(LEAST64) if x != x else bits ^ ((bits >> 63) & MAGNITUDE64)


@integral
def from_key64(key):
    return double_of_bits(key ^ ((key >> 63) & MAGNITUDE64))


@integral
def as_is(x):
    return x


def keys(dtype: str, largest: bool) -> tuple[Callable, Callable, np.generic]:
    """For the order of `dtype`: from a loaded element to its key, back again, and a key that loses to every other."""
    info = DTYPES[DTYPES[dtype].compute]
    if info.kind == "float":
        if info.name == "float32":
            start = np.int32(LEAST32 if largest else MAGNITUDE32)
            return (key_for_max32 if largest else key_for_min32), from_key32, start
        last = np.int64(LEAST64 if largest else MAGNITUDE64)
        return (key_for_max64 if largest else key_for_min64), from_key64, last
    if info.kind == "bool":
        return as_is, as_is, np.bool_(not largest)
    limits = np.iinfo(info.storage)
    return as_is, as_is, info.storage.type(limits.min if largest else limits.max)
