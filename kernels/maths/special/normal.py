"""The normal distribution's tail and quantiles, and erfcx, e^(x^2) erfc(x), on which they rest."""

import math

import numpy as np

from ...engine.primitives import fma
from ...engine.program import polynomial, primitive
from ..vecmath.define import by_body, compiled
from ..vecmath.error import erfc, scaled_erfc
from ..vecmath.exponential import times_exp
from ..vecmath.logarithm import log, log1p

ROOT_HALF = math.sqrt(0.5)
ROOT_TWO = math.sqrt(2.0)
ROOT_TWO_LOW = -9.667293313452913e-17  # what the rounded root has too much
ROOT_PI_HALF = math.sqrt(0.5 * math.pi)
ONE_OVER_ROOT_PI = 1 / math.sqrt(math.pi)
FAR = (1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0)  # of 1 / (2 x^2): DLMF 7.12.1


@primitive
def erfcx(x):
    """e^(x^2) erfc(x)"""
    return by_body(erfcx_float64, x)


@primitive
def log_ndtr(x):
    """The logarithm of the normal distribution function, exact far down its tail, too."""
    return by_body(log_ndtr_float64, x)


@primitive
def ndtri(p):
    """Where the normal distribution function is p; infinite at 0 and 1, NaN beyond."""
    return by_body(ndtri_float64, p)


@compiled(erfcx, "float64")
def erfcx_float64(x):
    """Below 0 from erfc(x) + erfc(-x) = 2, with what rounding x^2 has lost."""
    size = abs(x)
    if size > 28.0:
        v = 0.5 / (x * x)
        scaled = ONE_OVER_ROOT_PI / size * polynomial(v, FAR)
    else:
        scaled = scaled_erfc(size)
    if not x < 0.0:
        return scaled
    square = x * x
    return 2.0 * times_exp(square, fma(x, x, -square), 1.0) - scaled if x > -27.0 else math.inf


@compiled(log_ndtr, "float64")
def log_ndtr_float64(x):
    if x < -1.0:
        return log(0.5 * erfcx(-x * ROOT_HALF)) - 0.5 * x * x
    return log1p(-0.5 * erfc(x * ROOT_HALF))


@compiled(ndtri, "float64")
def ndtri_float64(p):
    """Newton's steps on the logarithm of the lower tail, from A&S 26.2.23, which is good to 4 digits."""
    if not 0.0 < p < 1.0:
        return -math.inf if p == 0.0 else (math.inf if p == 1.0 else math.nan)
    tail = p if p <= 0.5 else 1.0 - p
    wanted = log(tail)
    t = np.sqrt(-2.0 * wanted)
    above = 2.515517 + t * (0.802853 + t * 0.010328)
    below = 1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    x = above / below - t
    for _ in range(4):
        x -= (log_ndtr(x) - wanted) * ROOT_PI_HALF * erfcx(-x * ROOT_HALF)
    return x if p <= 0.5 else -x
