"""Modified Bessel functions of order 0 and 1, plain and scaled: e^(-x) I(x), e^x K(x).

I by its power series (DLMF 10.25.2), whose terms are all positive, and from 20 on by its expansion at infinity
(DLMF 10.40.1). K up to 1 by its series (DLMF 10.31.1 and 10.31.2); beyond, e^x K(x) is the integral of
exp(-x (cosh t - 1)) cosh(order t) (DLMF 10.32.9), which falls so fast on both sides of 0 that sums at equal steps
converge exponentially. Read next: `airy.py`.
"""

import math

import numpy as np

from ...engine.program import primitive
from ..vecmath.define import by_body, compiled
from ..vecmath.exponential import exp
from ..vecmath.hyperbolic import cosh, sinh
from ..vecmath.logarithm import log
from .bessel import EULER


@primitive
def modified_bessel_i0(x):
    """I0(x), which is even."""
    return by_body(modified_bessel_i0_float64, x)


@primitive
def modified_bessel_i1(x):
    """I1(x), which is odd."""
    return by_body(modified_bessel_i1_float64, x)


@primitive
def scaled_modified_bessel_i0(x):
    """e^(-|x|) I0(x)"""
    return by_body(scaled_modified_bessel_i0_float64, x)


@primitive
def scaled_modified_bessel_i1(x):
    """e^(-|x|) I1(x)"""
    return by_body(scaled_modified_bessel_i1_float64, x)


@primitive
def modified_bessel_k0(x):
    """K0(x) for x > 0; infinite at 0, NaN below."""
    return by_body(modified_bessel_k0_float64, x)


@primitive
def modified_bessel_k1(x):
    """K1(x) for x > 0; infinite at 0, NaN below."""
    return by_body(modified_bessel_k1_float64, x)


@primitive
def scaled_modified_bessel_k0(x):
    """e^x K0(x)"""
    return by_body(scaled_modified_bessel_k0_float64, x)


@primitive
def scaled_modified_bessel_k1(x):
    """e^x K1(x)"""
    return by_body(scaled_modified_bessel_k1_float64, x)


# --- I ---------------------------------------------------------------------------------------------------------------


def power_series(x, order):
    """I of order 0 or 1 for 0 <= x < 20: the sum of (x / 2)^(2 k + order) / (k! (k + order)!)."""
    square = 0.25 * x * x
    term = 0.5 * x if order == 1.0 else 1.0
    total = term
    for k in range(1, 100):
        term *= square / (k * (k + order))
        total += term
        if term < 1e-17 * total:
            break
    return total


def scaled_far(x, order):
    """e^(-x) I(x) for x >= 20."""
    square = 4.0 * order * order
    total, term = 1.0, 1.0
    for k in range(1, 60):
        following = term * ((2.0 * k - 1.0) * (2.0 * k - 1.0) - square) / (8.0 * k * x)
        if abs(following) > abs(term) or abs(following) < 1e-18:
            break
        term = following
        total += term
    return total / np.sqrt(2.0 * math.pi * x) if x < math.inf else 0.0


@compiled(modified_bessel_i0, "float64")
def modified_bessel_i0_float64(x):
    size = abs(x)
    if not size >= 20.0:
        return power_series(size, 0.0)
    return exp(size) * scaled_far(size, 0.0) if size < 1000.0 else math.inf


@compiled(modified_bessel_i1, "float64")
def modified_bessel_i1_float64(x):
    size = abs(x)
    if not size >= 20.0:
        result = power_series(size, 1.0)
    else:
        result = exp(size) * scaled_far(size, 1.0) if size < 1000.0 else math.inf
    return -result if x < 0.0 else result


@compiled(scaled_modified_bessel_i0, "float64")
def scaled_modified_bessel_i0_float64(x):
    size = abs(x)
    return scaled_far(size, 0.0) if size >= 20.0 else power_series(size, 0.0) * exp(-size)


@compiled(scaled_modified_bessel_i1, "float64")
def scaled_modified_bessel_i1_float64(x):
    size = abs(x)
    result = scaled_far(size, 1.0) if size >= 20.0 else power_series(size, 1.0) * exp(-size)
    return -result if x < 0.0 else result


# --- K ---------------------------------------------------------------------------------------------------------------


def k0_series(x):
    """K0 for 0 < x <= 1: -(log(x / 2) + gamma) I0(x), and the same sum with each term times 1 + 1/2 + ... + 1/k."""
    square = 0.25 * x * x
    term, harmonic, total = 1.0, 0.0, 0.0
    turn = -log(0.5 * x) - EULER
    for k in range(20):
        if k > 0:
            term *= square / (k * float(k))
            harmonic += 1.0 / k
        total += term * (turn + harmonic)
    return total


def k1_series(x):
    """K1 for 0 < x <= 1: 1 / x + log(x / 2) I1(x), less a sum with the digammas of k + 1 and k + 2 in its terms."""
    square = 0.25 * x * x
    term, digammas, total = 0.5 * x, 1.0 - 2.0 * EULER, 0.0
    turn = log(0.5 * x)
    for k in range(20):
        if k > 0:
            term *= square / (k * (k + 1.0))
            digammas += 1.0 / k + 1.0 / (k + 1.0)
        total += term * (turn - 0.5 * digammas)
    return 1.0 / x + total


def scaled_integral(x, order):
    """e^x K(x): the integral over t > 0, by steps so short that what they leave out is below 1e-16."""
    step = min(0.22, 0.55 / np.sqrt(x))
    total, t = 0.5, step
    while True:
        half = sinh(0.5 * t)
        exponent = 2.0 * x * half * half
        if not exponent < 45.0:
            break
        total += exp(-exponent) * cosh(order * t)
        t += step
    return total * step


@compiled(modified_bessel_k0, "float64")
def modified_bessel_k0_float64(x):
    if not x > 0.0 or x == math.inf:
        return math.inf if x == 0.0 else (0.0 if x == math.inf else math.nan)
    return k0_series(x) if x <= 1.0 else scaled_integral(x, 0.0) * exp(-x)


@compiled(modified_bessel_k1, "float64")
def modified_bessel_k1_float64(x):
    if not x > 0.0 or x == math.inf:
        return math.inf if x == 0.0 else (0.0 if x == math.inf else math.nan)
    return k1_series(x) if x <= 1.0 else scaled_integral(x, 1.0) * exp(-x)


@compiled(scaled_modified_bessel_k0, "float64")
def scaled_modified_bessel_k0_float64(x):
    if not x > 0.0 or x == math.inf:
        return math.inf if x == 0.0 else (0.0 if x == math.inf else math.nan)
    return k0_series(x) * exp(x) if x <= 1.0 else scaled_integral(x, 0.0)


@compiled(scaled_modified_bessel_k1, "float64")
def scaled_modified_bessel_k1_float64(x):
    if not x > 0.0 or x == math.inf:
        return math.inf if x == 0.0 else (0.0 if x == math.inf else math.nan)
    return k1_series(x) * exp(x) if x <= 1.0 else scaled_integral(x, 1.0)
