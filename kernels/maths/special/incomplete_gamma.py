"""The incomplete gamma functions, each a share of the whole, and Hurwitz's zeta function.

Below a + 1 the lower share is a series (DLMF 8.11.4), above the upper one a continued fraction (DLMF 8.9.2), and what
is not computed is the rest of 1. Both begin with x^a e^(-x) / gamma(a + 1), which for large a is written with
log(1 + t) - t, t = (x - a) / a, and Stirling's series, so that nothing large cancels (DLMF 5.11.1).
"""

import math

import numpy as np

from ...engine.program import polynomial, primitive
from ..vecmath.define import by_body, compiled
from ..vecmath.exponential import exp, expm1
from ..vecmath.gamma import hurwitz_zeta, lgamma
from ..vecmath.logarithm import log

# B_2k / (2k (2k - 1)): Stirling's series
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
MOST_STEPS = 100_000  # enough for a up to 1e8


@primitive
def lower_gamma(a, x):
    """The integral of t^(a - 1) e^(-t) from 0 to x, divided by that to infinity."""
    return by_body(lower_gamma_float64, a, x)


@primitive
def upper_gamma(a, x):
    """The rest of it, from x to infinity."""
    return by_body(upper_gamma_float64, a, x)


@primitive
def zeta(s, q):
    """The sum of (q + k)^-s over k >= 0; infinite for s = 1 and where q + k is 0."""
    return by_body(zeta_float64, s, q)


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


@compiled(lower_gamma, "float64")
def lower_gamma_float64(a, x):
    if not (a >= 0.0 and x >= 0.0) or a == x == 0.0 or a == x == math.inf:
        return math.nan
    if x == 0.0 or a == math.inf:
        return 0.0
    if a == 0.0 or x == math.inf:
        return 1.0
    return series(a, x) if x < a + 1.0 else 1.0 - fraction(a, x)


@compiled(upper_gamma, "float64")
def upper_gamma_float64(a, x):
    if not (a >= 0.0 and x >= 0.0) or a == x == 0.0 or a == x == math.inf:
        return math.nan
    if x == 0.0 or a == math.inf:
        return 1.0
    if a == 0.0 or x == math.inf:
        return 0.0
    if x >= a + 1.0:
        return fraction(a, x)
    return upper_near_zero(a, x) if a < 1.0 and x < 1.1 else 1.0 - series(a, x)


@compiled(zeta, "float64")
def zeta_float64(s, q):
    """For q < 0, the terms up to q + k > 0 are those of a sum from 1 - fraction(q) on, up to sign."""
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
