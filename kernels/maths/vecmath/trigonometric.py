"""sin, cos, tan, to the last place for every finite angle.

An angle is x = n pi/2 + r with |r| <= pi/4; sin and cos of r are short polynomials, and n mod 4 says which of them, and
with which sign, is the answer. What must be right is r, and far out nearly all of x cancels. Up to `MODERATE`, pi/2 as
three floats is enough; r comes as a sum of two. Beyond, n mod 4 and r are read from the digits of x / (2 pi), which
takes long integers (`bits_of_turn`) and no vector: the idea is Payne and Hanek's (1983).

One large angle would make a whole loop scalar, so each function also comes as `..._moderate`, for loops which look
first whether any angle of a block is large (`usually`, in `elementwise.py`).

asin, acos, atan, atan2 are odd polynomials near 0, and ways to get there. Read next: `error.py`.
"""

import math

import numpy as np

from ...engine.primitives import bits_of_double, bits_of_turn, fma
from ...engine.program import integral, polynomial
from .coefficients import ASIN, ATAN, COS, SIN
from .define import ROUND, compiled, compiled_paired, of_numpy, paired
from .pieces import integer_of, quick_two_sum, two_product, two_sum

float64 = np.float64
MODERATE = 100000.0
TWO_OVER_PI = 0.6366197723675814
HALF_PI_32, HALF_PI_REST_32, HALF_PI_LAST_32 = 1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15
HALF_PI, HALF_PI_REST, HALF_PI_LAST = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33
PIECE_0, PIECE_1, PIECE_2, PIECE_3 = (4 * 2.0 ** (-48 * i) for i in (1, 2, 3, 4))  # of a turn, in quarters


sin = of_numpy("sin", np.sin, "The sine, to 1 ulp; NaN at the infinities.")
cos = of_numpy("cos", np.cos, "The cosine, to 1 ulp; NaN at the infinities.")
tan = of_numpy("tan", np.tan, "The tangent, to 3 ulp; NaN at the infinities.")
sin_moderate = of_numpy("sin_moderate", np.sin, "`sin` for |x| <= MODERATE and NaN.")
cos_moderate = of_numpy("cos_moderate", np.cos, "`cos` for |x| <= MODERATE and NaN.")
tan_moderate = of_numpy("tan_moderate", np.tan, "`tan` for |x| <= MODERATE and NaN.")


def is_moderate(x):
    """Whether the `..._moderate` functions serve x."""
    return abs(x) <= MODERATE


# --- where on the circle -------------------------------------------------------------------------------------------


def less_quarters(x, n, first, second, third):
    """x - n (first + second + third), as high + low; n first must not be rounded against x."""
    rest = fma(-n, first, x)  # exact
    product, lost = two_product(n, second)
    high, low = two_sum(rest, -product)
    return high, low - lost - n * third


@paired
def reduce(x):
    """(n, high, low) with x = n pi/2 + high + low."""
    shifted = x * TWO_OVER_PI + ROUND
    n = shifted - ROUND
    high, low = less_quarters(x, n, HALF_PI, HALF_PI_REST, HALF_PI_LAST)
    return integer_of(shifted), high, low


@integral
def integer_parts(bits):
    """(m, e) of a normal m 2^e with an integer m, of its bits."""
    return (bits & 0x000FFFFFFFFFFFFF) | 0x0010000000000000, ((bits >> 52) & 0x7FF) - 1075


def reduce_large(size):
    """(n, high, low) with size = n pi/2 + high + low, up to whole turns, for a finite size >= 0 however large."""
    if size < 0.75:
        return 0, size, 0.0
    m, e = integer_parts(bits_of_double(size))
    quarters = float64(bits_of_turn(m, e, 0)) * PIECE_0
    shifted = quarters + ROUND
    nearest = quarters - (shifted - ROUND)
    high, low = quick_two_sum(nearest, float64(bits_of_turn(m, e, 1)) * PIECE_1)
    rest = float64(bits_of_turn(m, e, 2)) * PIECE_2 + float64(bits_of_turn(m, e, 3)) * PIECE_3
    high, low = quick_two_sum(high, low + rest)
    angle, lost = two_product(high, HALF_PI)
    high, low = quick_two_sum(angle, lost + (high * HALF_PI_REST + low * HALF_PI))
    return integer_of(shifted), high, low


# --- near zero -----------------------------------------------------------------------------------------------------


@paired
def sine(high, low):
    z = high * high
    return high + (high * z * polynomial(z, SIN) + low)


@paired
def cosine(high, low):
    z = high * high
    half = 0.5 * z
    most = 1.0 - half  # what this loses is added to what follows
    return most + ((1.0 - most - half) + (z * z * polynomial(z, COS) - high * low))


@integral
def sine_of_quarter(n, sine, cosine):
    """sin(n pi/2 + r), of sin r and cos r."""
    size = cosine if n & 1 else sine
    return -size if n & 2 else size


@integral
def cosine_of_quarter(n, sine, cosine):
    """cos(n pi/2 + r), of sin r and cos r."""
    size = sine if n & 1 else cosine
    return -size if (n + 1) & 2 else size


@integral
def tangent_of_quarter(n, sine, cosine):
    """tan(n pi/2 + r), of sin r and cos r."""
    return (-cosine if n & 1 else sine) / (sine if n & 1 else cosine)


# --- the functions -------------------------------------------------------------------------------------------------


TINY, TINY_32 = 1e-20, 1e-10  # below which the functions are their argument, and keep the sign of zero


@compiled_paired(sin_moderate)
def sin_body(x):
    n, high, low = reduce(x)
    result = sine_of_quarter(n, sine(high, low), cosine(high, low))
    return x if abs(x) < TINY else result


@compiled_paired(cos_moderate)
def cos_body(x):
    n, high, low = reduce(x)
    return cosine_of_quarter(n, sine(high, low), cosine(high, low))


@compiled_paired(tan_moderate)
def tan_body(x):
    n, high, low = reduce(x)
    result = tangent_of_quarter(n, sine(high, low), cosine(high, low))
    return x if abs(x) < TINY else result


@compiled(sin, "float64")
def sin_anywhere(x):
    if not abs(x) < math.inf:
        return math.nan
    n, high, low = reduce_large(abs(x))
    result = sine_of_quarter(n, sine(high, low), cosine(high, low))
    return x if abs(x) < TINY else (-result if x < 0.0 else result)


@compiled(cos, "float64")
def cos_anywhere(x):
    if not abs(x) < math.inf:
        return math.nan
    n, high, low = reduce_large(abs(x))
    return cosine_of_quarter(n, sine(high, low), cosine(high, low))


@compiled(tan, "float64")
def tan_anywhere(x):
    if not abs(x) < math.inf:
        return math.nan
    n, high, low = reduce_large(abs(x))
    result = tangent_of_quarter(n, sine(high, low), cosine(high, low))
    return x if abs(x) < TINY else (-result if x < 0.0 else result)


# --- their inverses ---------------------------------------------------------------------------------------------------

PI, PI_REST = 3.141592653589793, 1.2246467991473532e-16
QUARTER_PI, QUARTER_PI_REST = 0.7853981633974483, 3.061616997868383e-17
TAN_EIGHTH = 0.4142135623730950  # of a half turn: tan(pi / 8)


asin = of_numpy("asin", np.arcsin, "The angle in [-pi/2, pi/2] whose sine is x, to 2 ulp; NaN beyond 1.")
acos = of_numpy("acos", np.arccos, "The angle in [0, pi] whose cosine is x, to 2 ulp; NaN beyond 1.")
atan = of_numpy("atan", np.arctan, "The angle in [-pi/2, pi/2] whose tangent is x, to 2 ulp.")
atan2 = of_numpy(
    "atan2", np.arctan2, "The angle of the point (x, y), in [-pi, pi], to 2 ulp; the signs of zeros count."
)


def asin_series(x, z):
    """asin(x) - x for |x| <= 1/2 and z = x^2."""
    return x * z * polynomial(z, ASIN)


@compiled(asin, "float64")
def asin_float64(x):
    """Beyond 1/2, pi/2 - 2 asin(sqrt((1 - |x|) / 2))."""
    size = abs(x)
    outer = size > 0.5
    z = 0.5 * (1.0 - size) if outer else x * x
    s = np.sqrt(z) if outer else size
    rest = asin_series(s, z)
    far = HALF_PI - (2.0 * s + (2.0 * rest - HALF_PI_REST))
    return math.copysign(far if outer else s + rest, x)


@compiled(acos, "float64")
def acos_float64(x):
    """2 asin(sqrt((1 - |x|) / 2)) beyond 1/2, subtracted from pi where x < 0; within, pi/2 - asin(x)."""
    size = abs(x)
    outer = size > 0.5
    z = 0.5 * (1.0 - size) if outer else x * x
    s = np.sqrt(z) if outer else x
    rest = asin_series(s, z)
    near = HALF_PI - (s + (rest - HALF_PI_REST))
    double = 2.0 * (s + rest)
    far = PI - (double - PI_REST) if x < 0.0 else double
    return far if outer else near


def angle(above, below):
    """atan(above / below) in [0, pi/2] for above, below >= 0, not both 0 and not both infinite.

    Angles are taken off until the rest is below pi/8: atan(t) = pi/4 + atan((t - 1) / (t + 1)) = pi/2 - atan(1 / t).
    """
    steep = above > below
    small = below if steep else above
    large = above if steep else below
    turned = small > TAN_EIGHTH * large
    t = (small - large) / (small + large) if turned else small / large
    z = t * t
    rest = t * z * polynomial(z, ATAN)
    low = (QUARTER_PI + (t + (rest + QUARTER_PI_REST))) if turned else t + rest
    high = (QUARTER_PI - (t + (rest - QUARTER_PI_REST))) if turned else HALF_PI - (t + (rest - HALF_PI_REST))
    return high if steep else low


@compiled(atan, "float64")
def atan_float64(x):
    return math.copysign(angle(abs(x), 1.0), x)


@compiled(atan2, "float64")
def atan2_float64(y, x):
    above, below = abs(y), abs(x)
    both_infinite = above == math.inf and below == math.inf
    a, b = (1.0 if both_infinite else above), (1.0 if both_infinite else below)
    nothing = a == 0.0 and b == 0.0
    scale = 0.25 if a > 1e300 or b > 1e300 else 1.0  # their sum must not overflow
    size = angle(a * scale, 1.0 if nothing else b * scale)
    left = math.copysign(1.0, x) < 0.0
    return math.copysign(PI - (size - PI_REST) if left else size, y)
