"""Pieces of which the functions are built: powers of two, sums and products with their rounding errors.

A float is sign, exponent and fraction; writing the exponent's bits makes a power of two, and reading them splits a
number into 2^e m. Where one float is too coarse, a value is kept as an unevaluated sum high + low: `two_sum` and
`two_product` give what rounding has lost.

Complex division, expm1 and tanh stand here, too: numba's own have an error at zero, cancellation, overflow. A kernel
never raises, so a division by zero gives infinities and NaN, as it does for real numbers. Read next: `exponential.py`.
"""

import math

import numpy as np

from ...engine.primitives import bits_of_double, bits_of_float, double_of_bits, float_of_bits, fma
from ...engine.program import integral
from .define import paired

# The type of bits, from a number to its bits and back, how many bits the fraction has, and the exponent of 1.
integer, integer_32 = np.int64, np.int32
bits_of, bits_of_32 = bits_of_double, bits_of_float
from_bits, from_bits_32 = double_of_bits, float_of_bits
DIGITS, DIGITS_32 = 52, 23
BIAS, BIAS_32 = 1023, 127
ROUND_BITS, ROUND_BITS_32 = 0x4338000000000000, 0x4B400000
ONE_BITS, ONE_BITS_32 = 0x3FF0000000000000, 0x3F800000
# from the bits of sqrt(1/2) to those of 1
ROOT_TO_ONE, ROOT_TO_ONE_32 = 0x3FF0000000000000 - 0x3FE6A09E667F3BCD, 0x3F800000 - 0x3F3504F3


@paired
@integral
def integer_of(shifted):
    """n, for `shifted` = n + ROUND; for NaN, whatever."""
    return integer(bits_of(shifted) - ROUND_BITS)


@paired
@integral
def power_of_two(shifted):
    """2^n for `shifted` = n + ROUND, where that is a normal number."""
    return from_bits(integer((bits_of(shifted) - ROUND_BITS + BIAS) << DIGITS))


@paired
@integral
def scaled(x, shifted, halved):
    """x 2^n for `shifted` = n + ROUND, rounded once; in two steps, as 2^n may leave the range before the result.

    `halved` is about n / 2, + ROUND: of its bits, shifted, only those of the integer are left.
    """
    n, half = bits_of(shifted), bits_of(halved)
    return x * from_bits(integer((half << DIGITS) + ONE_BITS)) * from_bits(integer(((n - half) << DIGITS) + ONE_BITS))


@paired
@integral
def exponent(bits):
    """e, of the bits of a normal 2^e m with m in [sqrt(1/2), sqrt(2))."""
    return integer((integer(bits + ROOT_TO_ONE) >> DIGITS) - BIAS)


@paired
@integral
def fraction(bits, e):
    """m, of the same."""
    return from_bits(integer(bits - (e << DIGITS)))


def two_sum(a, b):
    """(a + b rounded, what rounding has lost)"""
    high = a + b
    other = high - a
    return high, (a - (high - other)) + (b - other)


def quick_two_sum(a, b):
    """Returns a + b and its rounding error, for |a| >= |b|, or a = 0."""
    high = a + b
    return high, b - (high - a)


def two_product(a, b):
    """(a b rounded, what rounding has lost)"""
    high = a * b
    return high, fma(a, b, -high)


# --- complex numbers --------------------------------------------------------------------------------------------------


def quotient(x, y):
    """x / y for complex numbers, divided by the larger part of y first, so that no square overflows (Smith, 1962)."""
    c, d = y.real, y.imag
    if abs(c) >= abs(d):
        if c == 0 and d == 0:
            return complex(x.real / abs(c), x.imag / abs(d))
        ratio = d / c
        scale = 1 / (c + d * ratio)
        return complex((x.real + x.imag * ratio) * scale, (x.imag - x.real * ratio) * scale)
    ratio = c / d
    scale = 1 / (c * ratio + d)
    return complex((x.real * ratio + x.imag) * scale, (x.imag * ratio - x.real) * scale)


def expm1_complex(z):
    """e^(x + iy) - 1 = (e^x - 1) cos y - 2 sin²(y / 2) + i e^x sin y, where nothing cancels for small z."""
    x, y = z.real, z.imag
    half = math.sin(y / 2)
    return complex(math.expm1(x) * math.cos(y) - 2 * half * half, math.exp(x) * math.sin(y))


def tanh_complex(z):
    """tanh (Kahan, 1987). From 22 on its real part is 1 or -1 to the last digit, and sinh² would soon overflow."""
    x, y = z.real, z.imag
    if abs(x) < 22:
        turn, rise = math.tan(y), math.sinh(x)
        steep = 1 + turn * turn
        below = 1 + steep * rise * rise
        return complex(steep * math.cosh(x) * rise / below, turn / below)
    if x != x:
        return complex(x, x)
    small = 4 * math.exp(-2 * abs(x)) * math.sin(y) * math.cos(y) if abs(y) < math.inf else 0 * x
    return complex(math.copysign(1.0, x), small if small == small else 0.0)
