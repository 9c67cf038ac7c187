"""Random numbers that depend on a seed and a position only: Philox4x32-10.

Philox encrypts a counter: block number `b` of a seed gives the same four 32-bit words on any thread, in any order, and
on any device. So element i of a fill is a function of (seed, offset, i), and cutting the range differently changes
nothing. Each element takes one block; a fill of n elements uses blocks offset .. offset + n - 1, and callers advance
their offset by n.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011; `tests/kernels/test_random.py`
holds its known answers. Read next: `blas.py`.
"""

import math
from collections.abc import Callable

import numpy as np

from .compile import Entry, Kernel
from .convert import array_type, store
from .copy import copy
from .geometry import contiguous_strides, is_contiguous, numel
from .operand import DTYPES, Operand
from .pool import parallel_for
from .program import integral

uint32, uint64 = np.uint32, np.uint64
M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)  # the multipliers
W0, W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)  # the key moves on by these in each round
LOW, HALF_WORD = np.uint64(0xFFFFFFFF), np.uint64(32)


@integral
def philox(c0, c1, c2, c3, k0, k1):
    """Ten rounds on a counter of four words with a key of two; all of them 32-bit values held in uint64."""
    for _ in range(10):
        p0, p1 = M0 * c0, M1 * c2
        c0, c1, c2, c3 = (p1 >> HALF_WORD) ^ c1 ^ k0, p1 & LOW, (p0 >> HALF_WORD) ^ c3 ^ k1, p0 & LOW
        k0, k1 = (k0 + W0) & LOW, (k1 + W1) & LOW
    return c0, c1, c2, c3


@integral
def block(seed, position):
    """The four words of one block."""
    zero = uint64(0)
    return philox(position & LOW, position >> HALF_WORD, zero, zero, seed & LOW, seed >> HALF_WORD)


def store_one(x):
    return x


def draw(words, a, b):
    return a


def fill_loop(lo, hi, out, out_at, seed, offset, a, b):
    for i in range(lo, hi):
        out[uint64(out_at + i)] = store_one(draw(block(seed, offset + uint64(i)), a, b))


float32, STEP_24 = np.float32, np.float32(2**-24)
TO_24_BITS = np.uint64(8)
TO_53_BITS = np.uint64(11)


@integral
def unit_float(words):
    """A float32-exact number in [0, 1): 24 random bits, so that rounding never reaches 1."""
    return float32(words[0] >> TO_24_BITS) * STEP_24


@integral
def unit_double(words):
    """A float64 in [0, 1): 53 random bits."""
    return (((words[0] << HALF_WORD) | words[1]) >> TO_53_BITS) * 1.1102230246251565e-16  # 2**-53


@integral
def draw_uniform(words, a, b):
    """Uniform in [a, b). A result that rounds to b becomes a."""
    x = unit_float(words) * (b - a) + a
    return x if x < b else a


@integral
def draw_uniform_double(words, a, b):
    x = unit_double(words) * (b - a) + a
    return x if x < b else a


@integral
def draw_normal(words, mean, std):
    """Normal by Box and Muller: the radius from 53 bits, 0 excluded, the angle from 32."""
    u = (((words[0] << HALF_WORD) | words[1]) >> TO_53_BITS) * 1.1102230246251565e-16
    radius = math.sqrt(-2.0 * math.log(1.0 - u))
    return mean + std * radius * math.cos(6.283185307179586 * (words[2] * 2.3283064365386963e-10))


@integral
def draw_bernoulli(words, p, unused):
    """1 with probability p."""
    return unit_double(words) < p


@integral
def draw_integer(words, low, size):
    """An integer in [low, low + size): the high half of a 64-bit product would need 128 bits; a remainder of 64 random
    bits is off by at most size / 2**64."""
    bits = (words[0] << HALF_WORD) | words[1]
    return low + np.int64(bits % uint64(size))


_ENTRIES: dict[tuple[Callable, str, str], Entry] = {}


def _fill(out: Operand, seed: int, offset: int, drawing: Callable, a: float, b: float, number: str) -> None:
    if 0 in out.shape:
        return
    if not is_contiguous(out.shape, out.strides):  # the numbers go by logical position, whatever the strides
        strides = contiguous_strides(out.shape)
        dense = Operand(np.empty(numel(out.shape), out.array.dtype), out.dtype, out.shape, strides)
        _fill(dense, seed, offset, drawing, a, b, number)
        copy(out, dense)
        return
    entry = _ENTRIES.get((drawing, out.dtype, number))
    if entry is None:
        kernel = Kernel(
            fill_loop, name=drawing.__name__ + "_loop", given={"draw": drawing, "store_one": store(out.dtype)}
        )
        signature = ("int64", "int64", array_type(out.dtype), "int64", "uint64", "uint64", number, number)
        entry = _ENTRIES[drawing, out.dtype, number] = kernel.entry(*signature)
    mask = (1 << 64) - 1
    parallel_for(entry, numel(out.shape), (out.array, out.offset, seed & mask, offset & mask, a, b), 8)


def uniform(out: Operand, seed: int, offset: int, low: float = 0.0, high: float = 1.0) -> None:
    """Uniform numbers in [low, high). Float16 and bfloat16 are rounded, and may round up to `high`."""
    drawing = draw_uniform_double if DTYPES[out.dtype].compute == "float64" else draw_uniform
    _fill(out, seed, offset, drawing, low, high, DTYPES[out.dtype].compute)


def normal(out: Operand, seed: int, offset: int, mean: float = 0.0, std: float = 1.0) -> None:
    """Normal numbers, computed in float64."""
    _fill(out, seed, offset, draw_normal, mean, std, "float64")


def bernoulli(out: Operand, seed: int, offset: int, p: float) -> None:
    """1 with probability p, else 0, in any dtype."""
    _fill(out, seed, offset, draw_bernoulli, p, 0.0, "float64")


def randint(out: Operand, seed: int, offset: int, low: int, high: int) -> None:
    """Integers in [low, high), in any dtype. ValueError where that is empty."""
    if low >= high:
        raise ValueError(f"randint expects low < high, got low={low}, high={high}")
    _fill(out, seed, offset, draw_integer, low, high - low, "int64")
