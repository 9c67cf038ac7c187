"""The numbers that PyTorch makes of the words of its CPU generator: a function for each distribution.

A function takes a word, or two as one of 64 bits, and two parameters. The C library computes the logarithms, as
PyTorch calls it: those of vecmath differ in the last bit. Normal numbers of float32 come from PyTorch's AVX2 kernel,
the polynomials of Cephes, with products and sums that round once; `fma` says where.

Read next: `twister.py`, the fills.
"""

import math

import numpy as np

from ..engine.primitives import (
    bfloat16_to_float,
    bits_of_double,
    bits_of_float,
    double_of_bits,
    float_of_bits,
    float_to_bfloat16,
    float_to_half,
    fma,
    half_to_float,
)
from ..engine.program import integral
from .mersenne import NONE, ONE, draw_words

float32, float64, int32, int64, uint32, uint64 = np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64
BITS_24, BITS_53 = np.uint64((1 << 24) - 1), np.uint64((1 << 53) - 1)
STEP_24, STEP_53 = 2.0**-24, 2.0**-53
TURN = 2 * math.pi
HALF_WORD = np.uint64(32)


@integral
def bits_24(word):
    return int32(word & BITS_24)


@integral
def bits_53(word):
    return int64(word & BITS_53)


def unit_float32(word):
    """Uniform in [0, 1), in steps of 2^-24."""
    return float32(bits_24(word)) * STEP_24


def unit_float64(word):
    """Uniform in [0, 1), in steps of 2^-53, of two words."""
    return float64(bits_53(word)) * STEP_53


# What rounds to the upper bound becomes the lower one.


def uniform_float32(word, low, high):
    x = fma(unit_float32(word), high - low, low)
    return low if x == high else x


def uniform_float64(word, low, high):
    x = fma(unit_float64(word), high - low, low)
    return low if x == high else x


def uniform_float16(word, low, high):
    x = half_to_float(float_to_half(fma(unit_float32(word), high - low, low)))
    return low if x == half_to_float(float_to_half(high)) else x


def uniform_bfloat16(word, low, high):
    x = bfloat16_to_float(float_to_bfloat16(fma(unit_float32(word), high - low, low)))
    return low if x == bfloat16_to_float(float_to_bfloat16(high)) else x


def exponential_number(word, minus_mean, unused):
    return minus_mean * math.log1p(-unit_float64(word))


def cauchy_number(word, median, sigma):
    return fma(sigma, math.tan(math.pi * (unit_float64(word) - 0.5)), median)


def geometric_number(word, log_of_rest, unused):
    return np.ceil(math.log(unit_float64(word)) / log_of_rest)


def is_below(word, p, unused):
    return unit_float64(word) < p


@integral
def integer(word, low, size):
    return low + int64(uint64(uint32(word)) % uint64(uint32(size)))


@integral
def wide_integer(word, low, size):
    """A size of 0 stands for 2^64: all that a word holds."""
    return int64(uint64(low) + word % uint64(size) if size != 0 else word)


# --- normal numbers: a point of the plane, by its distance and its direction (Box and Muller) -------------------------


@integral
def has_kept(state):
    return (state[630] & ONE) != NONE


@integral
def keep(state, x):
    state[628] = uint64(bits_of_double(x))
    state[630] = ONE


@integral
def taken(state):
    x = double_of_bits(int64(state[628]))
    state[628] = state[630] = NONE
    return x


@integral
def pair_of(scratch, k):
    return (uint64(scratch[uint64(k)]) << HALF_WORD) | uint64(scratch[uint64(k + 1)])


def next_normal(state, scratch):
    """The next of the normal numbers that are drawn one after another: of each two the second is kept."""
    if has_kept(state):
        return taken(state)
    draw_words(state, scratch, 4)
    radius = math.sqrt(-2.0 * math.log1p(-unit_float64(pair_of(scratch, 2))))
    turn = TURN * unit_float64(pair_of(scratch, 0))
    keep(state, radius * math.sin(turn))
    return radius * math.cos(turn)


def scaled(x, mean, std):
    return fma(x, std, mean)


def log_normal_number(x, mean, std):
    return math.exp(fma(x, std, mean))


def point_float64(distance, direction, mean, std):
    radius, turn = math.sqrt(-2.0 * math.log(1.0 - distance)), TURN * direction
    return fma(radius * math.cos(turn), std, mean), fma(radius * math.sin(turn), std, mean)


ROOT_OF_HALF, EIGHTHS = 0.5**0.5, 4 / math.pi
LOG_2, LOG_2_REST = 0.693359375, -2.12194440e-4
EIGHTH, EIGHTH_REST, EIGHTH_LAST = -0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8  # of a turn, less


@integral
def exponent(x):
    return int32((bits_of_float(x) >> 23) - 126)


@integral
def mantissa(x):
    return float_of_bits(int32((bits_of_float(x) & 0x7FFFFF) | 0x3F000000))


def cephes_log(number):
    e, m = float32(exponent(number)), mantissa(number)
    low = m < ROOT_OF_HALF
    e = e - (1.0 if low else 0.0)
    x = m - 1.0 + (m if low else 0.0)
    square = x * x
    y = fma(float32(7.0376836292e-2), x, -1.1514610310e-1)
    y = fma(fma(fma(y, x, 1.1676998740e-1), x, -1.2420140846e-1), x, 1.4249322787e-1)
    y = fma(fma(fma(y, x, -1.6668057665e-1), x, 2.0000714765e-1), x, -2.4999993993e-1)
    y = fma(y, x, 3.3333331174e-1) * x
    y = fma(y, square, e * LOG_2_REST)
    return fma(e, LOG_2, x + fma(-square, 0.5, y))


@integral
def nearest_even(x):
    """The eighths of a turn up to x, as an even number."""
    return int32((int64(int32(x)) + 1) & -2)


@integral
def has_bit(n, bit):
    return (int64(n) & bit) != 0


def cephes_sine_and_cosine(turn):
    n = nearest_even(turn * EIGHTHS)
    eighths = float32(n)
    x = fma(eighths, EIGHTH_LAST, fma(eighths, EIGHTH_REST, fma(eighths, EIGHTH, turn)))
    square = x * x
    y = fma(fma(float32(2.443315711809948e-5), square, -1.388731625493765e-3), square, 4.166664568298827e-2)
    along = fma(y * square, square, -(square * 0.5)) + 1.0
    y = fma(fma(float32(-1.9515295891e-4), square, 8.3321608736e-3), square, -1.6666654611e-1)
    across = fma(y * square, x, x)
    crossed = has_bit(n, 2)
    sine, cosine = along if crossed else across, across if crossed else along
    return -sine if has_bit(n, 4) else sine, cosine if has_bit(n - 2, 4) else -cosine


def point_float32(distance, direction, mean, std):
    radius = math.sqrt(-2.0 * cephes_log(1.0 - distance))
    sine, cosine = cephes_sine_and_cosine(TURN * direction)
    return fma(radius * cosine, std, mean), fma(radius * sine, std, mean)
