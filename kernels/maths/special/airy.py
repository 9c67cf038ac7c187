"""Ai, the Airy function that falls.

From 1 on it is a modified Bessel function of order 1/3 (DLMF 9.6.2); between -9.5 and 1 its Taylor series about the
nearest integer, whose coefficients follow from Ai'' = x Ai; further down its expansion (DLMF 9.7.9).
"""

import math

import numpy as np

from ...engine.program import integral, primitive
from ..vecmath.define import by_body, compiled
from ..vecmath.exponential import exp
from ..vecmath.trigonometric import cos, sin
from .modified_bessel import scaled_integral

# Ai and its slope at -9, -8, ..., 1, by mpmath
VALUES = (
    -0.022133721547341403,
    -0.0527050503563862,
    0.18428083525050565,
    -0.3291451736298231,
    0.35076100902411433,
    -0.07026553294928951,
    -0.37881429367765806,
    0.22740742820168558,
    0.5355608832923521,
    0.3550280538878172,
    0.13529241631288141,
)
SLOPES = (
    -0.9756639809263316,
    0.9355609381983065,
    -0.7710081684101265,
    0.3459354872813429,
    0.32719281855444315,
    -0.7906285753685813,
    0.3145837692165988,
    0.618259020741691,
    -0.01016056711664521,
    -0.2588194037928068,
    -0.1591474412967932,
)


@primitive
def airy_ai(x):
    """Ai(x); 0 at infinity."""
    return by_body(airy_ai_float64, x)


@integral
def place(n):
    """Where the values at the whole number n stand."""
    return int(n) + 9


def taylor(x):
    """About the nearest integer n: a_(k+2) (k + 2) (k + 1) = n a_k + a_(k-1)."""
    n = np.floor(x + 0.5)
    h = x - n
    before, here, following = 0.0, VALUES[place(n)], SLOPES[place(n)]
    total, power = here + following * h, h
    for k in range(30):
        before, here, following = here, following, (n * here + before) / ((k + 2.0) * (k + 1.0))
        power *= h
        total += following * power
    return total


def oscillating(x):
    """Ai(-x) for x >= 9.5."""
    root = np.sqrt(x)
    zeta = x * root / 1.5
    even, odd, term = 1.0, 0.0, 1.0
    for k in range(1, 40):
        following = term * (6.0 * k - 5.0) * (6.0 * k - 3.0) * (6.0 * k - 1.0) / (216.0 * k * (2.0 * k - 1.0) * zeta)
        if following > term or following < 1e-18:
            break
        term = following
        if k % 2 == 1:
            odd += term if k % 4 == 1 else -term
        else:
            even += term if k % 4 == 0 else -term
    sine, cosine = sin(zeta), cos(zeta)
    return ((cosine + sine) * even + (sine - cosine) * odd) / np.sqrt(2.0 * math.pi * root)


@compiled(airy_ai, "float64")
def airy_ai_float64(x):
    if not abs(x) < math.inf:
        return 0.0 if x == math.inf else math.nan
    if x >= 1.0:
        zeta = x * np.sqrt(x) / 1.5
        return np.sqrt(x / 3.0) / math.pi * scaled_integral(zeta, 1.0 / 3.0) * exp(-zeta)
    return taylor(x) if x > -9.5 else oscillating(-x)
