"""sin, cos, tan, to the last place for every finite angle.

An angle is x = n pi/2 + r with |r| <= pi/4; sin and cos of r are short polynomials, and n mod 4 says which of them, and
with which sign, is the answer. What must be right is r, and far out nearly all of x cancels. Up to `MODERATE`, pi/2 as
three floats is enough; r comes as a sum of two. Beyond, n mod 4 and r are read from the digits of x / (2 pi), which
takes long integers (`bits_of_turn`) and no vector: the idea is Payne and Hanek's (1983).

One large angle would make a whole loop scalar, so each function also comes as `..._moderate`, for loops which look
first whether any angle of a block is large (`usually`, in `elementwise.py`). Read next: `inverse_trigonometric.py`.
"""

import math

import numpy as np

from ...engine.primitives import bits_of_double, bits_of_turn, fma
from ...engine.program import integral, polynomial, primitive
from .coefficients import COS, COS_32, SIN, SIN_32
from .define import compiled, quiet
from .pieces import ROUND, ROUND_32, integer_of_float32, integer_of_float64, quick_two_sum, two_product, two_sum

float32, float64 = np.float32, np.float64
MODERATE = 100000.0
TWO_OVER_PI = 0.6366197723675814
HALF_PI_32, HALF_PI_REST_32, HALF_PI_LAST_32 = 1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15
HALF_PI, HALF_PI_REST, HALF_PI_LAST = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33
PIECE_0, PIECE_1, PIECE_2, PIECE_3 = (4 * 2.0 ** (-48 * i) for i in (1, 2, 3, 4))  # of a turn, in quarters


@primitive
def sin(x):
    """The sine, to 1 ulp; NaN at the infinities."""
    return quiet(np.sin, x)


@primitive
def cos(x):
    """The cosine, to 1 ulp; NaN at the infinities."""
    return quiet(np.cos, x)


@primitive
def tan(x):
    """The tangent, to 3 ulp; NaN at the infinities."""
    return quiet(np.tan, x)


@primitive
def sin_moderate(x):
    """`sin` for |x| <= MODERATE and NaN."""
    return quiet(np.sin, x)


@primitive
def cos_moderate(x):
    """`cos` for |x| <= MODERATE and NaN."""
    return quiet(np.cos, x)


@primitive
def tan_moderate(x):
    """`tan` for |x| <= MODERATE and NaN."""
    return quiet(np.tan, x)


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


def reduce_float32(x):
    """(n, high, low) with x = n pi/2 + high + low."""
    shifted = x * TWO_OVER_PI + ROUND_32
    n = shifted - ROUND_32
    high, low = less_quarters(x, n, HALF_PI_32, HALF_PI_REST_32, HALF_PI_LAST_32)
    return integer_of_float32(shifted), high, low


def reduce_float64(x):
    """(n, high, low) with x = n pi/2 + high + low."""
    shifted = x * TWO_OVER_PI + ROUND
    n = shifted - ROUND
    high, low = less_quarters(x, n, HALF_PI, HALF_PI_REST, HALF_PI_LAST)
    return integer_of_float64(shifted), high, low


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
    return integer_of_float64(shifted), high, low


# --- near zero -----------------------------------------------------------------------------------------------------


def sine_float32(high, low):
    z = high * high
    return high + (high * z * polynomial(z, SIN_32) + low)


def cosine_float32(high, low):
    z = high * high
    half = 0.5 * z
    most = 1.0 - half  # what this loses is added to what follows
    return most + ((1.0 - most - half) + (z * z * polynomial(z, COS_32) - high * low))


def sine_float64(high, low):
    z = high * high
    return high + (high * z * polynomial(z, SIN) + low)


def cosine_float64(high, low):
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


@compiled(sin_moderate, "float32")
def sin_float32(x):
    n, high, low = reduce_float32(x)
    result = sine_of_quarter(n, sine_float32(high, low), cosine_float32(high, low))
    return x if abs(x) < 1e-10 else result  # keeps the sign of zero


@compiled(cos_moderate, "float32")
def cos_float32(x):
    n, high, low = reduce_float32(x)
    return cosine_of_quarter(n, sine_float32(high, low), cosine_float32(high, low))


@compiled(tan_moderate, "float32")
def tan_float32(x):
    n, high, low = reduce_float32(x)
    result = tangent_of_quarter(n, sine_float32(high, low), cosine_float32(high, low))
    return x if abs(x) < 1e-10 else result


@compiled(sin_moderate, "float64")
def sin_float64(x):
    n, high, low = reduce_float64(x)
    result = sine_of_quarter(n, sine_float64(high, low), cosine_float64(high, low))
    return x if abs(x) < 1e-20 else result


@compiled(cos_moderate, "float64")
def cos_float64(x):
    n, high, low = reduce_float64(x)
    return cosine_of_quarter(n, sine_float64(high, low), cosine_float64(high, low))


@compiled(tan_moderate, "float64")
def tan_float64(x):
    n, high, low = reduce_float64(x)
    result = tangent_of_quarter(n, sine_float64(high, low), cosine_float64(high, low))
    return x if abs(x) < 1e-20 else result


@compiled(sin, "float64")
def sin_anywhere(x):
    if not abs(x) < math.inf:
        return math.nan
    n, high, low = reduce_large(abs(x))
    result = sine_of_quarter(n, sine_float64(high, low), cosine_float64(high, low))
    return x if abs(x) < 1e-20 else (-result if x < 0.0 else result)


@compiled(cos, "float64")
def cos_anywhere(x):
    if not abs(x) < math.inf:
        return math.nan
    n, high, low = reduce_large(abs(x))
    return cosine_of_quarter(n, sine_float64(high, low), cosine_float64(high, low))


@compiled(tan, "float64")
def tan_anywhere(x):
    if not abs(x) < math.inf:
        return math.nan
    n, high, low = reduce_large(abs(x))
    result = tangent_of_quarter(n, sine_float64(high, low), cosine_float64(high, low))
    return x if abs(x) < 1e-20 else (-result if x < 0.0 else result)


for _function, _complex in ((sin, np.sin), (cos, np.cos), (tan, np.tan)):
    compiled(_function, "complex")(_complex)
