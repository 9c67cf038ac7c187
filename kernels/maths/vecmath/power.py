"""pow: x^y = 2^(y log2 |x|), and the sign.

An error in the logarithm is multiplied by y log2 |x|, which reaches 1074: in float64 the logarithm and its product with
y are sums of two floats. In float32 all that happens in float64, where single floats and short polynomials are enough.
Read next: `gamma.py`.
"""

import math
import operator

import numpy as np

from ...engine.primitives import bits_of_double, bits_of_float, fma
from ...engine.program import polynomial
from .coefficients import EXP2_OF_POWER_32, LOG2_OF_POWER_32, LOG_OF_POWER
from .define import ROUND, compiled, in_double, of_numpy
from .exponential import LN2, LN2_REST, tail
from .logarithm import SHIFT, SHIFT_32, SMALLEST_NORMAL, SMALLEST_NORMAL_32, exponent_32, fraction_32
from .pieces import exponent, fraction, power_of_two, quick_two_sum, scaled, two_product

float32, float64 = np.float32, np.float64
LOG2_E, LOG2_E_REST = 1.4426950408889634, 2.0355273740931033e-17
TWO_THIRDS, TWO_THIRDS_REST = 0.6666666666666666, 3.700743415417188e-17


pow = of_numpy(
    "pow",
    np.power,
    "x to the y, to 2 ulp; special values as IEEE 754 has them, such as pow(NaN, 0) = 1.",
    complex=operator.pow,
)
pow_ordinary = of_numpy("pow_ordinary", np.power, "`pow` where `is_ordinary_power`.")


def is_ordinary_power(x, y):
    """Whether x is positive, finite and no subnormal of float32, and |y| <= 7: then nothing is special or overflows."""
    return x > 1.2e-38 and x < math.inf and abs(y) <= 7.0


def power_special(x, y, size):
    """x^y, of |x|^y as far as that is a matter of computing."""
    whole = np.floor(y) == y
    odd = whole and np.floor(0.5 * y) * 2.0 != y
    end = (x == 0.0 or abs(x) == math.inf) and y == y
    grows = (y < 0.0) == (x == 0.0)
    size = (math.inf if grows else 0.0) if end else (size if x == x else x)
    signed = -size if odd and math.copysign(1.0, x) < 0.0 else size
    result = math.nan if x < 0.0 and x > -math.inf and not whole else signed
    one = x == 1.0 or y == 0.0 or (x == -1.0 and abs(y) == math.inf)
    return 1.0 if one else result


@in_double
def log2_of_parts(e, f):
    """e + log2(1 + f) to 32 bits, for f in [sqrt(1/2) - 1, sqrt(2) - 1); in float64."""
    return e + f * polynomial(f, LOG2_OF_POWER_32)


@in_double
def exp2_of_power(t):
    """2^t to 29 bits, for |t| < 1000; in float64."""
    shifted = t + ROUND
    r = t - (shifted - ROUND)
    return polynomial(r, EXP2_OF_POWER_32) * power_of_two(shifted)


@compiled(pow_ordinary, "float32")
def pow_ordinary_float32(x, y):
    bits = bits_of_float(x)
    e = exponent_32(bits)
    f = fraction_32(bits, e) - 1.0
    return float32(exp2_of_power(float64(y) * log2_of_parts(float64(e), float64(f))))


@compiled(pow, "float32")
def pow_float32(x, y):
    size = abs(x)
    tiny = size < SMALLEST_NORMAL_32
    bits = bits_of_float(size * SHIFT_32 if tiny else size)
    e = exponent_32(bits)
    f = fraction_32(bits, e) - 1.0
    shifted = float32(e) - (23.0 if tiny else 0.0)
    t = float64(y) * log2_of_parts(float64(shifted), float64(f))
    clamped = 200.0 if t > 200.0 else (-200.0 if t < -200.0 else t)
    return power_special(x, y, float32(exp2_of_power(clamped)))


def log2_of_power(x):
    """log2 |x| as high + low, for a finite x that is not 0, to 65 bits.

    With s = f / (2 + f) and z = s^2, log(1 + f) = s (2 + z (2/3 + z Q(z))). The last term is small, and a single float.
    """
    size = abs(x)
    tiny = size < SMALLEST_NORMAL
    bits = bits_of_double(size * SHIFT if tiny else size)
    whole = exponent(bits)
    f = fraction(bits, whole) - 1.0
    below, below_low = quick_two_sum(2.0, f)
    inverse = 1.0 / below
    s = f * inverse
    s_low = (fma(-s, below, f) - s * below_low) * inverse
    z, z_low = two_product(s, s)
    z_low = z_low + 2.0 * s * s_low
    p, p_low = quick_two_sum(TWO_THIRDS, TWO_THIRDS_REST + z * polynomial(z, LOG_OF_POWER))
    t, t_low = two_product(p, z)
    u, u_low = quick_two_sum(2.0, t)
    u_low = u_low + (t_low + (p * z_low + p_low * z))
    log, log_low = two_product(u, s)
    log_low = log_low + (u * s_low + u_low * s)
    high, low = two_product(log, LOG2_E)
    low = low + (log * LOG2_E_REST + log_low * LOG2_E)
    e = float64(whole) - (52.0 if tiny else 0.0)
    total, rest = quick_two_sum(e, high)
    near = e == 0.0
    return (high if near else total), (low if near else rest + low)


@compiled(pow_ordinary, "float64")
def power_of_size(x, y):
    """|x|^y, as far as that is a matter of computing."""
    high, low = log2_of_power(x)
    t = y * high
    inside = abs(t) < 1100.0
    t_low = fma(y, high, -t) + y * low if inside else 0.0
    clamped = 1100.0 if t > 1100.0 else (-1100.0 if t < -1100.0 else t)
    shifted, halved = clamped + ROUND, clamped * 0.5 + ROUND
    r = (clamped - (shifted - ROUND)) + t_low
    most, rest = two_product(r, LN2)
    return scaled(1.0 + tail(most, rest + r * LN2_REST), shifted, halved)


@compiled(pow, "float64")
def pow_float64(x, y):
    return power_special(x, y, power_of_size(x, y))
