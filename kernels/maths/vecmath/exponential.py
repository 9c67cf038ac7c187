"""exp, exp2, expm1, sinh, cosh, tanh: e^x = 2^n e^r, n an integer, |r| <= ln(2) / 2, where a polynomial is short.

r = x - n ln 2 must not lose the digits that cancel, so ln 2 is two floats. x less the first is exact by a fused
multiply-add; the second enters at the end, behind what it would round.
Read next: `logarithm.py`.
"""

import math

import numpy as np

from ...engine.primitives import fma
from ...engine.program import polynomial, primitive
from .coefficients import EXP, TANH_32
from .define import ROUND, compiled, compiled_paired, of_numpy, paired, quiet
from .pieces import expm1_complex, power_of_two, scaled, tanh_complex, two_product

LOG2_E, HALF_LOG2_E = 1.4426950408889634, 0.7213475204444817
LN2, LN2_REST = 0.6931471805599453, 2.3190468138462996e-17
LN2_32, LN2_REST_32 = 0.693147182464599609375, -1.904654299957768e-09
# beyond which the results of exp, exp2 and expm1 / 2 are infinite, 0 or -1/2
EXP_MOST, EXP_LEAST, EXP_MOST_32, EXP_LEAST_32 = 710.0, -760.0, 89.0, -120.0
EXP2_MOST, EXP2_LEAST, EXP2_MOST_32, EXP2_LEAST_32 = 1025.0, -1076.0, 129.0, -151.0
HALF_MOST, HALF_LEAST, HALF_MOST_32 = 710.6, -50.0, 89.5


exp = of_numpy("exp", np.exp, "e to the x, to 1 ulp.")
exp2 = of_numpy("exp2", np.exp2, "2 to the x, to 1.5 ulp; whole powers are exact.")
expm1 = of_numpy(
    "expm1", np.expm1, "e^x - 1, to 2 ulp, also near 0, where subtracting would cancel.", complex=expm1_complex
)


@primitive
def times_exp(x, rest, y):
    """y e^(x + rest), to 1.5 ulp, also where e^x alone would be subnormal; rest is at most a rounding error of x."""
    return type(x)(quiet(times_exp_body, np.float64(x), np.float64(rest), np.float64(y)))


@primitive
def half_expm1(x):
    """(e^x - 1) / 2, to 2 ulp: finite for a little longer than `expm1`; not for |x| < 1e-20."""
    return type(x)(0.5) * quiet(np.expm1, x)


@paired
def tail(high, low):
    """e^r - 1 for r = high + low, |r| <= ln(2) / 2."""
    r = high + low
    return high + (r * r * polynomial(r, EXP) + low)


@paired
@compiled_paired(times_exp)
def times_exp_body(x, rest, y):
    least = EXP_LEAST if x < EXP_LEAST else x  # NaN passes; each line is one instruction
    clamped = EXP_MOST if least > EXP_MOST else least
    shifted, halved = clamped * LOG2_E + ROUND, clamped * HALF_LOG2_E + ROUND
    n = shifted - ROUND
    high, low = fma(-n, LN2, clamped), -n * LN2_REST
    return scaled(y * (1.0 + tail(high, rest + low)), shifted, halved)


@compiled_paired(exp)
def exp_body(x):
    return times_exp_body(x, 0.0, 1.0)


@compiled_paired(exp2)
def exp2_body(x):
    least = EXP2_LEAST if x < EXP2_LEAST else x
    clamped = EXP2_MOST if least > EXP2_MOST else least
    shifted, halved = clamped + ROUND, clamped * 0.5 + ROUND
    f = clamped - (shifted - ROUND)  # exact
    high, lost = two_product(f, LN2)
    return scaled(1.0 + tail(high, lost + f * LN2_REST), shifted, halved)


@compiled_paired(half_expm1)
def half_expm1_body(x):
    least = HALF_LEAST if x < HALF_LEAST else x
    clamped = HALF_MOST if least > HALF_MOST else least
    shifted = clamped * LOG2_E + ROUND
    n = shifted - ROUND
    high, low = fma(-n, LN2, clamped), -n * LN2_REST
    quarter = power_of_two(shifted - 2.0)  # 2^n itself may overflow when the result does not
    return 2.0 * (quarter * tail(high, low) + (quarter - 0.25))


@compiled(expm1, "float32", "float64")
def expm1_body(x):
    return x if abs(x) < 1e-20 else 2.0 * half_expm1(x)  # keeps the sign of zero, and subnormals


# --- hyperbolic functions ---------------------------------------------------------------------------------------------
# From expm1, which near 0 keeps the digits that exp loses.

sinh = of_numpy("sinh", np.sinh, "The hyperbolic sine, to 3 ulp.")
cosh = of_numpy("cosh", np.cosh, "The hyperbolic cosine, to 2 ulp.")
tanh = of_numpy("tanh", np.tanh, "The hyperbolic tangent, to 3 ulp.", complex=tanh_complex)


@compiled(sinh, "float32", "float64")
def sinh_body(x):
    """(e^|x| - e^-|x|) / 2 = h + h / (2 h + 1) with h = (e^|x| - 1) / 2."""
    h = half_expm1(abs(x))
    size = h if h > 1e30 else h + h / (2.0 * h + 1.0)
    return x if abs(x) < 1e-10 else math.copysign(size, x)


@compiled(cosh, "float32", "float64")
def cosh_body(x):
    """(e^|x| + e^-|x|) / 2, with half of e^|x| as h + 1/2."""
    half = half_expm1(abs(x)) + 0.5
    return half + 0.25 / half


@compiled(tanh, "float64")
def tanh_float64(x):
    """(e^2|x| - 1) / (e^2|x| + 1) = h / (h + 1) with h = (e^2|x| - 1) / 2; 1 from 20 on."""
    size = abs(x)
    h = half_expm1(2.0 * (20.0 if size > 20.0 else size))
    return x if size < 1e-10 else math.copysign(h / (h + 1.0), x)


@compiled(tanh, "float32")
def tanh_float32(x):
    """Below 0.625 an odd polynomial, above it 1 - 2 / (e^2|x| + 1)."""
    size = abs(x)
    z = x * x
    near = x * (1.0 + z * polynomial(z, TANH_32))  # as a product, which keeps the sign of zero
    far = math.copysign(1.0 - 2.0 / (exp(2.0 * size) + 1.0), x)
    return near if size < 0.625 else (far if size >= 0.625 else x)
