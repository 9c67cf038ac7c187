"""log, log2, log10, log1p, asinh, acosh, atanh: log(2^e m) = e ln 2 + log m, with m in [sqrt(1/2), sqrt(2)).

Near 1 the exponent is 0, so nothing cancels. The leading terms of log(1 + f), f - f^2 / 2, are added last and exactly.
In float64 the rest is a series in s = f / (2 + f), whose square is below 0.03; in float32 a polynomial in f is as
short, and spares the division. Read next: `trigonometric.py`.
"""

import math

import numpy as np

from ...engine.primitives import bits_of_double, bits_of_float
from ...engine.program import polynomial
from .coefficients import LOG, LOG_32
from .define import compiled, compiled_paired, of_numpy, single
from .pieces import exponent, fraction

float32, float64 = np.float32, np.float64
exponent_32, fraction_32 = single(exponent), single(fraction)
SMALLEST_NORMAL_32, SMALLEST_NORMAL = 1.1754943508222875e-38, 2.2250738585072014e-308
SHIFT_32, SHIFT = 8388608.0, 4503599627370496.0  # 2^23 and 2^52 lift a subnormal into the normal range

# log of 2, of e and of 10 in one base: the first part is short, so that its product with an exponent is exact.
LN2_HIGH_32, LN2_LOW_32 = 0.693115234375, 3.1946184945309415e-05
LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
LOG2_E = 1.4426950408889634
LOG10_E = 0.4342944819032518
LOG10_2_HIGH_32, LOG10_2_LOW_32 = 0.301025390625, 4.605038981195214e-06
LOG10_2_HIGH, LOG10_2_LOW = 0.30102999566395283, 2.8363394551044964e-14


log = of_numpy("log", np.log, "The natural logarithm, to 1 ulp; NaN below 0.")
log2 = of_numpy("log2", np.log2, "The logarithm to base 2, to 2 ulp; exact for powers of 2.")
log10 = of_numpy("log10", np.log10, "The logarithm to base 10, to 2 ulp.")
log1p = of_numpy("log1p", np.log1p, "log(1 + x), to 2 ulp, also near 0, where the sum would round.")


def log_parts_32(x):
    """(e, f, g) with x = 2^e (1 + f) and log(1 + f) = f - g, for a finite x > 0."""
    tiny = x < SMALLEST_NORMAL_32
    bits = bits_of_float(x * SHIFT_32 if tiny else x)
    e = exponent_32(bits)
    f = fraction_32(bits, e) - 1.0
    g = f * f * (0.5 - f * polynomial(f, LOG_32))
    return float32(e) - (23.0 if tiny else 0.0), f, g


def log_parts(x):
    """(e, f, g) with x = 2^e (1 + f) and log(1 + f) = f - g, for a finite x > 0.

    log(1 + f) = 2 atanh(s) = 2 s + s R(s^2), and 2 s = f - s f = f - f^2 / 2 + s f^2 / 2.
    """
    tiny = x < SMALLEST_NORMAL
    bits = bits_of_double(x * SHIFT if tiny else x)
    e = exponent(bits)
    f = fraction(bits, e) - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    g = half - s * (half + z * polynomial(z, LOG))
    return float64(e) - (52.0 if tiny else 0.0), f, g


def log_special(x, result):
    """`result`, but at the ends and outside of the domain."""
    finite = result if x < math.inf else x  # inf and NaN
    return finite if x > 0.0 else (-math.inf if x == 0.0 else math.nan)


@compiled_paired(log)
def log_body(x):
    e, f, g = log_parts(x)
    return log_special(x, e * LN2_HIGH + (f - (g - e * LN2_LOW)))


@compiled_paired(log2)
def log2_body(x):
    e, f, g = log_parts(x)
    return log_special(x, e + (f - g) * LOG2_E)


@compiled_paired(log10)
def log10_body(x):
    e, f, g = log_parts(x)
    return log_special(x, e * LOG10_2_HIGH + ((f - g) * LOG10_E + e * LOG10_2_LOW))


@compiled(log1p, "float32", "float64")
def log1p_body(x):
    """log of the rounded sum, and what rounding has lost, to first order."""
    u = 1.0 + x
    lost = x - (u - 1.0)
    result = log(u) + (lost / u if u > 0.0 else 0.0)
    kept = x if abs(x) < 1e-20 else result  # keeps the sign of zero
    return kept if x < math.inf else x


# --- the inverses of hyperbolic functions -----------------------------------------------------------------------------
# From log1p, which near 0 keeps the digits that log loses.

LN2 = 0.6931471805599453

asinh = of_numpy("asinh", np.arcsinh, "The inverse of `sinh`, to 3 ulp.")
acosh = of_numpy("acosh", np.arccosh, "The inverse of `cosh`, to 3 ulp; NaN below 1.")
atanh = of_numpy("atanh", np.arctanh, "The inverse of `tanh`, to 3 ulp; infinite at -1 and 1, NaN beyond.")


@compiled(asinh, "float32", "float64")
def asinh_body(x):
    """log(|x| + sqrt(1 + x^2)), with 1 subtracted under the logarithm; far out log(2 |x|)."""
    size = abs(x)
    large = size > 1e17
    within = size + size * size / (1.0 + np.sqrt(1.0 + size * size))
    result = log1p(size if large else within) + (LN2 if large else 0.0)
    return x if size < 1e-10 else math.copysign(result, x)


@compiled(acosh, "float32", "float64")
def acosh_body(x):
    """log(x + sqrt(x^2 - 1)), with 1 subtracted under the logarithm; far out log(2 x)."""
    large = x > 1e17
    t = x - 1.0
    within = t + np.sqrt(t * (t + 2.0))
    result = log1p(x if large else within) + (LN2 if large else 0.0)
    return math.nan if x < 1.0 else result


@compiled(atanh, "float32", "float64")
def atanh_body(x):
    """log((1 + |x|) / (1 - |x|)) / 2."""
    size = abs(x)
    result = 0.5 * log1p(2.0 * size / (1.0 - size))
    return x if size < 1e-10 else math.copysign(result, x)
