"""exp, exp2, expm1: e^x = 2^n e^r with n an integer and |r| <= ln(2) / 2, where a polynomial is short.

r = x - n ln 2 must not lose the digits that cancel, so ln 2 is two floats. x less the first is exact by a fused
multiply-add; the second enters at the end, behind what it would round.
Read next: `logarithm.py`.
"""

import numpy as np

from ...engine.primitives import fma
from ...engine.program import polynomial, primitive
from .coefficients import EXP, EXP_32
from .define import compiled, of_numpy, quiet
from .pieces import (
    ROUND,
    ROUND_32,
    expm1_complex,
    power_of_two_float32,
    power_of_two_float64,
    scaled_float32,
    scaled_float64,
    two_product,
)

LOG2_E = 1.4426950408889634
LN2, LN2_REST = 0.6931471805599453, 2.3190468138462996e-17
LN2_32, LN2_REST_32 = 0.693147182464599609375, -1.904654299957768e-09


exp = of_numpy("exp", np.exp, "e to the x, to 1 ulp.")
exp2 = of_numpy("exp2", np.exp2, "2 to the x, to 1.5 ulp; whole powers are exact.")
expm1 = of_numpy(
    "expm1", np.expm1, "e^x - 1, to 2 ulp, also near 0, where subtracting would cancel.", complex=expm1_complex
)


@primitive
def times_exp(x, rest, y):
    """y e^(x + rest), to 1.5 ulp, also where e^x alone would be subnormal; rest is at most a rounding error of x."""
    return type(x)(quiet(times_exp_float64, np.float64(x), np.float64(rest), np.float64(y)))


@primitive
def half_expm1(x):
    """(e^x - 1) / 2, to 2 ulp: finite for a little longer than `expm1`; not for |x| < 1e-20."""
    return type(x)(0.5) * quiet(np.expm1, x)


def tail_float32(high, low):
    """e^r - 1 for r = high + low, |r| <= ln(2) / 2."""
    r = high + low
    return high + (r * r * polynomial(r, EXP_32) + low)


def tail_float64(high, low):
    """e^r - 1 for r = high + low, |r| <= ln(2) / 2."""
    r = high + low
    return high + (r * r * polynomial(r, EXP) + low)


@compiled(times_exp, "float32")
def times_exp_float32(x, rest, y):
    clamped = 89.0 if x > 89.0 else (-120.0 if x < -120.0 else x)  # NaN passes; the ends give inf and 0
    shifted = clamped * LOG2_E + ROUND_32
    n = shifted - ROUND_32
    high, low = fma(-n, LN2_32, clamped), -n * LN2_REST_32
    return scaled_float32(y * (1.0 + tail_float32(high, rest + low)), shifted)


@compiled(times_exp, "float64")
def times_exp_float64(x, rest, y):
    clamped = 710.0 if x > 710.0 else (-760.0 if x < -760.0 else x)
    shifted = clamped * LOG2_E + ROUND
    n = shifted - ROUND
    high, low = fma(-n, LN2, clamped), -n * LN2_REST
    return scaled_float64(y * (1.0 + tail_float64(high, rest + low)), shifted)


@compiled(exp, "float32")
def exp_float32(x):
    return times_exp_float32(x, 0.0, 1.0)


@compiled(exp, "float64")
def exp_float64(x):
    return times_exp_float64(x, 0.0, 1.0)


@compiled(exp2, "float32")
def exp2_float32(x):
    clamped = 129.0 if x > 129.0 else (-151.0 if x < -151.0 else x)
    shifted = clamped + ROUND_32
    f = clamped - (shifted - ROUND_32)  # exact
    high, lost = two_product(f, LN2_32)
    return scaled_float32(1.0 + tail_float32(high, lost + f * LN2_REST_32), shifted)


@compiled(exp2, "float64")
def exp2_float64(x):
    clamped = 1025.0 if x > 1025.0 else (-1076.0 if x < -1076.0 else x)
    shifted = clamped + ROUND
    f = clamped - (shifted - ROUND)
    high, lost = two_product(f, LN2)
    return scaled_float64(1.0 + tail_float64(high, lost + f * LN2_REST), shifted)


@compiled(half_expm1, "float32")
def half_expm1_float32(x):
    clamped = 89.5 if x > 89.5 else (-50.0 if x < -50.0 else x)
    shifted = clamped * LOG2_E + ROUND_32
    n = shifted - ROUND_32
    high, low = fma(-n, LN2_32, clamped), -n * LN2_REST_32
    quarter = power_of_two_float32(shifted - 2.0)  # 2^n itself may overflow when the result does not
    return 2.0 * (quarter * tail_float32(high, low) + (quarter - 0.25))


@compiled(half_expm1, "float64")
def half_expm1_float64(x):
    clamped = 710.6 if x > 710.6 else (-50.0 if x < -50.0 else x)
    shifted = clamped * LOG2_E + ROUND
    n = shifted - ROUND
    high, low = fma(-n, LN2, clamped), -n * LN2_REST
    quarter = power_of_two_float64(shifted - 2.0)
    return 2.0 * (quarter * tail_float64(high, low) + (quarter - 0.25))


@compiled(expm1, "float32", "float64")
def expm1_body(x):
    return x if abs(x) < 1e-20 else 2.0 * half_expm1(x)  # keeps the sign of zero, and subnormals
