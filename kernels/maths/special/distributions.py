"""The incomplete gamma functions, each a share of the whole, Hurwitz's zeta function, and the normal distribution.

Below a + 1 the lower share is a series (DLMF 8.11.4), above the upper one a continued fraction (DLMF 8.9.2), and what
is not computed is the rest of 1. Both begin with x^a e^(-x) / gamma(a + 1), which for large a is written with
log(1 + t) - t, t = (x - a) / a, and Stirling's series, so that nothing large cancels (DLMF 5.11.1).

The normal distribution's tail and quantiles rest on erfcx, e^(x^2) erfc(x).
"""

import math

import numpy as np

from ...engine.primitives import fma
from ...engine.program import polynomial
from ..vecmath.define import in_double
from ..vecmath.error import erfc, scaled_erfc
from ..vecmath.exponential import exp, expm1, times_exp
from ..vecmath.gamma import hurwitz_zeta, lgamma
from ..vecmath.logarithm import log, log1p

# B_2k / (2k (2k - 1)): Stirling's series
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
MOST_STEPS = 100_000  # enough for a up to 1e8


def log_of_ratio(x, a):
    """log(x / a) - t with t = x / a - 1, which is nearly -t^2 / 2 for small t."""
    t = (x - a) / a
    if abs(t) > 0.4:
        return log(x / a) - t
    r = t / (2.0 + t)  # the logarithm is 2 (r + r^3 / 3 + r^5 / 5 + ...), and 2 r - t = -r t
    square = r * r
    total, power = 0.0, r * square
    for k in range(3, 45, 2):
        total += power / k
        power *= square
    return 2.0 * total - r * t


def leading(a, x):
    """x^a e^(-x) / gamma(a + 1)"""
    if a < 10.0:
        return exp(a * log(x) - x - lgamma(a + 1.0))
    v = 1.0 / a
    square = v * v
    return exp(a * log_of_ratio(x, a) - v * polynomial(square, STIRLING)) / np.sqrt(2.0 * math.pi * a)


def series(a, x):
    """The lower share."""
    total, term, n = 1.0, 1.0, a
    for _ in range(MOST_STEPS):
        n += 1.0
        term *= x / n
        total += term
        if term < 1e-17 * total:
            break
    return leading(a, x) * total


def fraction(a, x):
    """The upper share, by Lentz's way: from the front, with ratios of numerators and of denominators."""
    b = x + 1.0 - a
    ratio, d = 1e300, 1.0 / b
    total = d
    for k in range(1, MOST_STEPS):
        step = -k * (k - a)
        b += 2.0
        d = 1.0 / (step * d + b)
        ratio = b + step / ratio
        factor = d * ratio
        total *= factor
        if abs(factor - 1.0) < 2e-16:
            break
    return leading(a, x) * a * total


def upper_near_zero(a, x):
    """The upper share where both are small: 1 - x^a / gamma(a + 1), and the rest of an alternating series."""
    size = a * log(x) - lgamma(a + 1.0)
    total, term = 0.0, 1.0
    for n in range(1, 60):
        term *= -x / n
        total += term / (a + n)
    return -expm1(size) - a * exp(size) * total


@in_double
def lower_gamma(a, x):
    """The integral of t^(a - 1) e^(-t) from 0 to x, divided by that to infinity."""
    if not (a >= 0.0 and x >= 0.0) or a == x == 0.0 or a == x == math.inf:
        return math.nan
    if x == 0.0 or a == math.inf:
        return 0.0
    if a == 0.0 or x == math.inf:
        return 1.0
    return series(a, x) if x < a + 1.0 else 1.0 - fraction(a, x)


@in_double
def upper_gamma(a, x):
    """The rest of it, from x to infinity."""
    if not (a >= 0.0 and x >= 0.0) or a == x == 0.0 or a == x == math.inf:
        return math.nan
    if x == 0.0 or a == math.inf:
        return 1.0
    if a == 0.0 or x == math.inf:
        return 0.0
    if x >= a + 1.0:
        return fraction(a, x)
    return upper_near_zero(a, x) if a < 1.0 and x < 1.1 else 1.0 - series(a, x)


@in_double
def zeta(s, q):
    """The sum of (q + k)^-s over k >= 0; infinite for s = 1 and where q + k is 0.

    For q < 0, the terms up to q + k > 0 are those of a sum from 1 - fraction(q) on, up to sign.
    """
    if s == 1.0:
        return math.inf
    if not s > 1.0 or q != q:
        return math.nan
    whole = np.floor(q)
    if q > 0.0:
        return hurwitz_zeta(s, q)
    if q == whole:
        return math.inf
    if s != np.floor(s):
        return math.nan
    mirrored = hurwitz_zeta(s, 1.0 - (q - whole)) - hurwitz_zeta(s, 1.0 - q)
    even = np.floor(0.5 * s) * 2.0 == s
    return hurwitz_zeta(s, q - whole) + (mirrored if even else -mirrored)


# --- the normal distribution ------------------------------------------------------------------------------------------

ROOT_HALF = math.sqrt(0.5)
ROOT_PI_HALF = math.sqrt(0.5 * math.pi)
ONE_OVER_ROOT_PI = 1 / math.sqrt(math.pi)
FAR = (1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0)  # of 1 / (2 x^2): DLMF 7.12.1


@in_double
def erfcx(x):
    """e^(x^2) erfc(x)

    Below 0 from erfc(x) + erfc(-x) = 2, with what rounding x^2 has lost.
    """
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


@in_double
def log_ndtr(x):
    """The logarithm of the normal distribution function, exact far down its tail, too."""
    if x < -1.0:
        return log(0.5 * erfcx(-x * ROOT_HALF)) - 0.5 * x * x
    return log1p(-0.5 * erfc(x * ROOT_HALF))


@in_double
def ndtri(p):
    """Returns the point at which the normal distribution function is p; infinite at 0 and 1, NaN beyond.

    Newton's steps on the logarithm of the lower tail, from A&S 26.2.23, which is good to 4 digits.
    """
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
