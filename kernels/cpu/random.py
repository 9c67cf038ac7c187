"""Random numbers that depend on a seed and a position only: Philox4x32-10.

Philox encrypts a counter: block number `b` of a seed gives the same four 32-bit words on any thread, in any order, and
on any device. So element i of a fill is a function of (seed, offset, i), and cutting the range differently changes
nothing. A block serves four elements of up to 32 bits or two of 64; a fill of n elements uses blocks from `offset` on,
no more than `blocks(n)`, and callers move their offset on by that.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011; `tests/kernels/test_random.py`
holds its known answers. A generator of the other kind gives its `Twister` in place of a seed. Read next: `blas.py`.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides, is_contiguous, numel
from redispatch.dispatch.tensor.operand import DTYPES, Operand, memory

from ..engine.pool import parallel_for
from ..engine.primitives import offset_from, seed_from
from ..engine.program import integral
from ..engine.template import Template, store_out
from ..maths.vecmath.define import single
from ..maths.vecmath.logarithm import log
from ..maths.vecmath.trigonometric import cosine, cosine_of_quarter, sine, sine_of_quarter
from .copy import copy
from .twister import Twister

float32, float64, int32, int64, uint64 = np.float32, np.float64, np.int32, np.int64, np.uint64
M0, M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)  # the multipliers
W0, W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)  # the key moves on by these in each round
LOW, HALF_WORD = np.uint64(0xFFFFFFFF), np.uint64(32)
MASK = (1 << 64) - 1


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


def blocks(elements: int) -> int:
    """The number of blocks that a fill of so many elements may use."""
    return -(-elements // 2)


# --- loops over blocks -----------------------------------------------------------------------------------------------


def draw(w0, w1, w2, w3, a, b):
    return w0, w1, w2, w3


by = 4  # stands for how many numbers a block gives


def fill_loop(lo, hi, out, out_at, seed, offset, a, b):
    key, start = seed_from(seed, offset), offset_from(seed, offset)
    for i in range(lo, hi):
        w0, w1, w2, w3 = block(key, start + uint64(i))
        numbers = draw(w0, w1, w2, w3, a, b)
        at = uint64(out_at + by * i)
        out[at] = store_out(numbers[0])
        out[at + uint64(1)] = store_out(numbers[1])
        if by == 4:
            out[at + uint64(2)] = store_out(numbers[2])
            out[at + uint64(3)] = store_out(numbers[3])


# --- from words to numbers -------------------------------------------------------------------------------------------

STEP_24, STEP_31, STEP_53 = 2.0**-24, 2.0**-31, 2.0**-53
TO_24_BITS, TO_31_BITS, TO_53_BITS = np.uint64(8), np.uint64(1), np.uint64(11)
HALF_OF_QUARTER, TO_QUARTER, QUARTER = np.uint64(1 << 29), np.uint64(30), np.int64(30)
TURN_32 = 1.4629180792671596e-09  # 2 pi / 2^32
TO_WHOLE = np.int64(32)
EPSILON_32, EPSILON = 2.0**-24, 2.0**-53


@integral
def high_bits(word):
    """24 bits of a word, as int32: whole numbers of which each is a float32."""
    return int32(word >> TO_24_BITS)


@integral
def bits_53(high, low):
    """53 bits of two words, as int64: whole numbers of which each is a float64."""
    return int64(((high << HALF_WORD) | low) >> TO_53_BITS)


def unit_float32(word):
    """Uniform in [0, 1), in steps of 2^-24."""
    return float32(high_bits(word)) * STEP_24


def unit_float64(high, low):
    """Uniform in [0, 1), in steps of 2^-53."""
    return float64(bits_53(high, low)) * STEP_53


def between(x, low, high):
    """x of [0, 1) as a number of [low, high): what rounds to `high` becomes `low`."""
    scaled = x * (high - low) + low
    return scaled if scaled < high else low


def of_each_word(number: Callable) -> Callable:
    """Decorates a function of a word and two parameters: with the four numbers that it makes of a block."""

    def draw(w0, w1, w2, w3, a, b):
        return number(w0, a, b), number(w1, a, b), number(w2, a, b), number(w3, a, b)

    draw.__name__ = number.__name__
    return draw


def of_each_pair(number: Callable) -> Callable:
    """Decorates a function of two words and two parameters: with the two numbers that it makes of a block."""

    def draw(w0, w1, w2, w3, a, b):
        return number(w0, w1, a, b), number(w2, w3, a, b)

    draw.__name__ = number.__name__
    return draw


@of_each_word
def uniform_float32(word, low, high):
    return between(unit_float32(word), low, high)


@of_each_pair
def uniform_float64(high_word, low_word, low, high):
    return between(unit_float64(high_word, low_word), low, high)


# Box and Muller: a pair of normal numbers is a point of the plane, by the square of its distance and its direction.


@integral
def low_31_bits(word):
    return int32(word >> TO_31_BITS)


@integral
def quarter_of(word):
    """A direction as the nearest quarter of a turn, 0 to 4, ..."""
    return int32((word + HALF_OF_QUARTER) >> TO_QUARTER)


@integral
def beyond_quarter(word):
    """... and what it is beyond that, in 2^-32 of a turn."""
    return int32(int64(word) - (int64((word + HALF_OF_QUARTER) >> TO_QUARTER) << QUARTER))


sine_32, cosine_32 = single(sine), single(cosine)


def pair_float32(w0, w1, mean, std):
    u = (float32(low_31_bits(w0)) + 0.5) * STEP_31  # above 0, and finest near it, where the largest numbers come from
    radius = std * math.sqrt(-2.0 * log(u))
    n, r = quarter_of(w1), float32(beyond_quarter(w1)) * TURN_32
    across, along = sine_32(r, 0.0), cosine_32(r, 0.0)
    return (
        mean + radius * cosine_of_quarter(n, across, along),
        mean + radius * sine_of_quarter(n, across, along),
    )


def normal_float32(w0, w1, w2, w3, mean, std):
    x0, x1 = pair_float32(w0, w1, mean, std)
    x2, x3 = pair_float32(w2, w3, mean, std)
    return x0, x1, x2, x3


def normal_float64(w0, w1, w2, w3, mean, std):
    u = (float64(bits_53(w0, w1)) + 0.5) * STEP_53
    radius = std * math.sqrt(-2.0 * log(u))
    # Of the direction the second word is what is beyond the first in 2^-64 of a turn.
    n, r = quarter_of(w2), (float64(beyond_quarter(w2)) + float64(high_bits(w3)) * STEP_24) * TURN_32
    across, along = sine(r, 0.0), cosine(r, 0.0)
    return (
        mean + radius * cosine_of_quarter(n, across, along),
        mean + radius * sine_of_quarter(n, across, along),
    )


@of_each_word
def exponential_float32(word, rate, unused):
    """An exponential number, above 0: the least is what the number next below 1 would give."""
    x = -log((float32(low_31_bits(word)) + 0.5) * STEP_31)
    return (x if x > EPSILON_32 else EPSILON_32) / rate


@of_each_pair
def exponential_float64(high, low, rate, unused):
    x = -log((float64(bits_53(high, low)) + 0.5) * STEP_53)
    return (x if x > EPSILON else EPSILON) / rate


@of_each_word
@integral
def is_below(word, limit, unused):
    """1 with probability limit / 2^32."""
    return word < uint64(limit)


@of_each_word
@integral
def integers(word, low, size):
    """Whole numbers of [low, low + size), size <= 2^32: the high word of a product. One is too frequent by 2^-32."""
    return low + int64((word * uint64(size)) >> HALF_WORD)


@of_each_pair
@integral
def wide_integers(high, low_word, low, size):
    """Whole numbers of the same range of a greater size, 64 bits by it; 0 stands for 2^64."""
    n, bits = uint64(size), (high << HALF_WORD) | low_word
    return low + int64(bits % n if n > uint64(0) else bits)


def of_either_kind(loop: Callable) -> Callable:
    """Decorates a fill: a `Twister` in the place of the seed draws the numbers itself."""

    @functools.wraps(loop)
    def drawn(out: Any, seed: Any, offset: int, *numbers: Any) -> Any:
        if isinstance(seed, Twister):
            return seed.fill(loop.__name__, out, *numbers)
        return loop(out, seed, offset, *numbers)

    return drawn


# --- fills -----------------------------------------------------------------------------------------------------------

# "contract": a product and a sum may be rounded once
FILL = Template(fill_loop, "out[] out", "uint64 seed offset", "number a b", fastmath=frozenset({"contract"}))


def _fill(out: Operand, seed: int, offset: int, drawing: Callable, a: float, b: float, number: str, by: int) -> None:
    """Fills `out` by `drawing`, which makes `by` numbers of a block and takes `a` and `b` as this type of number."""
    elements = numel(out.shape)
    if elements == 0:
        return
    if not is_contiguous(out.shape, out.strides):  # the numbers go by logical position, whatever the strides
        strides = contiguous_strides(out.shape)
        dense = Operand(memory(elements, DTYPES[out.dtype].storage), out.dtype, out.shape, strides)
        _fill(dense, seed, offset, drawing, a, b, number, by)
        copy(out, dense)
        return
    entry = FILL(name=f"{drawing.__name__}_loop", number=number, out=out.dtype, draw=drawing, by=by)
    whole, rest = divmod(elements, by)
    seed, offset = seed & MASK, offset & MASK
    parallel_for(entry, whole, (out.array, out.offset, seed, offset, a, b), 8 * by)
    if rest:  # of the last block some numbers are left over
        last = memory(by, DTYPES[out.dtype].storage)
        entry(0, 1, last, 0, seed, (offset + whole) & MASK, a, b)
        if isinstance(last, np.ndarray):
            out.array[out.offset + elements - rest : out.offset + elements] = last[:rest]
        else:
            end = out._replace(shape=(rest,), strides=(1,), offset=out.offset + elements - rest)
            copy(end, Operand(last, out.dtype, (rest,), (1,)))


def _fill_real(
    out: Operand, seed: int, offset: int, single: Callable, double: Callable, a: float, b: float = 0.0
) -> None:
    """Fills with real numbers, computed in float64 where `out` is, and else in float32."""
    if DTYPES[out.dtype].compute == "float64":
        _fill(out, seed, offset, double, a, b, "float64", 2)
    else:
        _fill(out, seed, offset, single, a, b, "float32", 4)


@of_either_kind
def uniform(out: Operand, seed: int, offset: int, low: float = 0.0, high: float = 1.0) -> None:
    """Uniform numbers in [low, high). Float16 and bfloat16 are rounded, and may round up to `high`."""
    _fill_real(out, seed, offset, uniform_float32, uniform_float64, low, high)


@of_either_kind
def normal(out: Operand, seed: int, offset: int, mean: float = 0.0, std: float = 1.0) -> None:
    """Normal numbers."""
    _fill_real(out, seed, offset, normal_float32, normal_float64, mean, std)


@of_either_kind
def exponential(out: Operand, seed: int, offset: int, rate: float = 1.0) -> None:
    """Exponential numbers, all above 0, whose mean is 1 / rate."""
    _fill_real(out, seed, offset, exponential_float32, exponential_float64, rate)


@of_either_kind
def bernoulli(out: Operand, seed: int, offset: int, p: float) -> None:
    """1 with probability p, else 0, in any dtype. The probability is held to 2^-33."""
    _fill(out, seed, offset, is_below, round(p * 2**32), 0, "int64", 4)


@of_either_kind
def randint(out: Operand, seed: int, offset: int, low: int, high: int, whole: bool = False) -> None:
    """Integers in [low, high), in any dtype. ValueError where that is empty."""
    if low >= high:
        raise ValueError(f"randint expects low < high, got low={low}, high={high}")
    size = high - low
    if size <= 2**32:
        _fill(out, seed, offset, integers, low, size, "int64", 4)
    else:
        signed = size - (1 << 64) if size >> 63 else size  # its 64 bits
        _fill(out, seed, offset, wide_integers, low, signed, "int64", 2)


def shuffle_loop(lo, hi, out, keys, n):
    """Fisher and Yates: each place changes with one of those from it on, which `keys` of [0, 2^32) choose."""
    for i in range(lo, hi):
        j = i + (keys[uint64(i)] * (n - i) >> TO_WHOLE)
        out[uint64(i)], out[uint64(j)] = out[uint64(j)], out[uint64(i)]


SHUFFLE = Template(shuffle_loop, "int64[] out keys")


def permutation(n: int, seed: Any, offset: int) -> np.ndarray:
    """The whole numbers below n < 2^31 in random order, as int64."""
    if isinstance(seed, Twister):
        return seed.permutation(n)
    keys = np.empty(n, np.int64)
    _fill(Operand(keys, "int64", (n,), (1,)), seed, offset, integers, 0, 1 << 32, "int64", 4)
    out = np.arange(n)
    SHUFFLE()(0, n, out, keys, n)
    return out
