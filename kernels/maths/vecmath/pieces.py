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

int32, int64, float32, float64 = np.int32, np.int64, np.float32, np.float64

# Adding and subtracting 1.5 * 2^23 (2^52) rounds to the nearest integer; meanwhile the lowest bits are that integer.
ROUND_32 = 12582912.0
ROUND = 6755399441055744.0


@integral
def integer_of_float32(shifted):
    """n as int32, for `shifted` = n + ROUND_32; for NaN, whatever."""
    return int32(bits_of_float(shifted) - int32(0x4B400000))


@integral
def integer_of_float64(shifted):
    """n as int64, for `shifted` = n + ROUND; for NaN, whatever."""
    return bits_of_double(shifted) - 0x4338000000000000


@integral
def power_of_two_float32(shifted):
    """2^n for `shifted` = n + ROUND_32, n in [-126, 127]."""
    return float_of_bits(int32((bits_of_float(shifted) - 0x4B400000 + 127) << 23))


@integral
def power_of_two_float64(shifted):
    """2^n for `shifted` = n + ROUND, n in [-1022, 1023]."""
    return double_of_bits((bits_of_double(shifted) - 0x4338000000000000 + 1023) << 52)


@integral
def scaled_float32(x, shifted):
    """x 2^n for `shifted` = n + ROUND_32, rounded once; in two steps, as 2^n may leave the range before the result."""
    n = bits_of_float(shifted) - 0x4B400000
    half = n >> 1
    return x * float_of_bits(int32((half + 127) << 23)) * float_of_bits(int32((n - half + 127) << 23))


@integral
def scaled_float64(x, shifted):
    """x 2^n for `shifted` = n + ROUND, rounded once."""
    n = bits_of_double(shifted) - 0x4338000000000000
    half = n >> 1
    return x * double_of_bits((half + 1023) << 52) * double_of_bits((n - half + 1023) << 52)


@integral
def exponent_float32(bits):
    """e, of the bits of a normal 2^e m with m in [sqrt(1/2), sqrt(2)), as int32."""
    return int32((int32(bits + (0x3F800000 - 0x3F3504F3)) >> 23) - 127)


@integral
def fraction_float32(bits, e):
    """m, of the same."""
    return float_of_bits(int32(bits - (e << 23)))


@integral
def exponent_float64(bits):
    """e, of the bits of a normal 2^e m with m in [sqrt(1/2), sqrt(2)), as int64."""
    return ((bits + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)) >> 52) - 1023


@integral
def fraction_float64(bits, e):
    """m, of the same."""
    return double_of_bits(bits - (e << 52))


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
    """tanh. Its real part is 1 or -1, to the last digit, long before the square of cosh is too large for a number."""
    x, y = z.real, z.imag
    if abs(x) < 10:
        real, imag = math.tanh(x), math.tan(y)
        return quotient(complex(real, imag), complex(1.0, real * imag))
    if x != x:
        return complex(x, x)
    small = 4 * math.exp(-2 * abs(x)) * math.sin(y) * math.cos(y) if abs(y) < math.inf else 0 * x
    return complex(math.copysign(1.0, x), small if small == small else 0.0)
