"""Bessel functions of order 0 and 1, plain, modified and scaled, and the Airy function that falls.

Plain ones below 25 by Miller's way (A&S 9.12, example 1): the recurrence from order k + 1 down to k - 1 is stable,
whatever one starts from far above x, and J0 + 2 (J2 + J4 + ...) = 1 says what it has to be divided by. Y0 and Y1 are
Neumann series of the same numbers (DLMF 10.23.17). From 25 on by Hankel's expansion (DLMF 10.17.3), whose least term is
e^(-2 x).

Modified ones, and scaled by e^x: I by its power series (DLMF 10.25.2), whose terms are all positive, and from 20 on by
its expansion at infinity (DLMF 10.40.1). K up to 1 by its series (DLMF 10.31.1 and 10.31.2); beyond, e^x K(x) is the
integral of exp(-x (cosh t - 1)) cosh(order t) (DLMF 10.32.9), which falls so fast on both sides of 0 that sums at equal
steps converge exponentially.

Ai: from 1 on it is a modified Bessel function of order 1/3 (DLMF 9.6.2); between -9.5 and 1 its Taylor series about the
nearest integer, whose coefficients follow from Ai'' = x Ai; further down its expansion (DLMF 9.7.9).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...engine.program import integral
from ..vecmath.define import in_double
from ..vecmath.exponential import cosh, exp, sinh
from ..vecmath.logarithm import log
from ..vecmath.trigonometric import cos, sin

EULER = 0.5772156649015329
TWO_OVER_PI = 2 / math.pi
TINY = 1e-300  # what the recurrence starts from; it grows by 1e330 at most


@integral
def highest(x):
    """The even order, far above x, at which the recurrence starts."""
    return 20 if x < 1 else 2 * int(x / 2 + 25)


def by_recurrence(x):
    """(J0, J1, Y0, Y1) for 0 < x < 25."""
    order = highest(x)
    above, here = 0.0, TINY
    whole, even, odd, first = 0.0, 0.0, 0.0, 0.0
    for k in range(order, 0, -1):
        m = k // 2
        sign = -1.0 if m % 2 == 1 else 1.0
        if k % 2 == 0:
            whole += 2.0 * here
            even += sign * here / m
        elif k > 1:
            odd += sign * k * here / (m * (m + 1.0))
        else:
            first = here
        above, here = here, 2.0 * k / x * here - above
    whole += here
    j0, j1 = here / whole, first / whole
    turn = log(0.5 * x) + EULER
    y0 = TWO_OVER_PI * (turn * j0 - 2.0 * even / whole)
    y1 = TWO_OVER_PI * ((turn - 1.0) * j1 - j0 / x - odd / whole)
    return j0, j1, y0, y1


def near_zero(x):
    """Returns the function's value where x^2 is nothing beside 1."""
    return 1.0, 0.5 * x, TWO_OVER_PI * (log(0.5 * x) + EULER), -TWO_OVER_PI / x


def hankel(x, order):
    """(P, Q), the slowly changing factors of cosine and sine."""
    square = 4.0 * order * order
    p, q, term = 1.0, 0.0, 1.0
    for k in range(1, 60):
        following = term * (square - (2.0 * k - 1.0) * (2.0 * k - 1.0)) / (8.0 * k * x)
        if abs(following) > abs(term) or abs(following) < 1e-18:
            break
        term = following
        if k % 2 == 1:
            q += term if k % 4 == 1 else -term
        else:
            p += term if k % 4 == 0 else -term
    return p, q


def far(x):
    """(J0, J1, Y0, Y1) for x >= 25."""
    size = np.sqrt(1.0 / (math.pi * x))  # with the root of 2 that the two directions below have too much
    sine, cosine = sin(x), cos(x)
    total, difference = cosine + sine, sine - cosine
    p, q = hankel(x, 0.0)
    j0, y0 = size * (p * total - q * difference), size * (p * difference + q * total)
    p, q = hankel(x, 1.0)
    j1, y1 = size * (p * difference + q * total), size * (q * difference - p * total)
    return j0, j1, y0, y1


def bessel(x):
    """(J0, J1, Y0, Y1) for x > 0."""
    if x < 1e-10:
        return near_zero(x)
    return by_recurrence(x) if x < 25.0 else far(x)


@in_double
def bessel_j0(x):
    """J0(x), which is even."""
    size = abs(x)
    if size == 0.0 or size == math.inf:
        return 1.0 if size == 0.0 else 0.0
    return bessel(size)[0] if size == size else size


@in_double
def bessel_j1(x):
    """J1(x), which is odd."""
    size = abs(x)
    if size == 0.0 or size == math.inf:
        return 0.0
    j1 = bessel(size)[1] if size == size else size
    return -j1 if x < 0.0 else j1


def second_kind(x, order):
    """Y of order 0 or 1 for x > 0; -infinity at 0, NaN below."""
    if not 0.0 < x < math.inf:
        return -math.inf if x == 0.0 else (0.0 if x == math.inf else math.nan)
    _, _, y0, y1 = bessel(x)
    return y0 if order == 0.0 else y1


@in_double
def bessel_y0(x):
    """Y0(x)"""
    return second_kind(x, 0.0)


@in_double
def bessel_y1(x):
    """Y1(x)"""
    return second_kind(x, 1.0)


@in_double
def spherical_bessel_j0(x):
    """sin(x) / x, and 1 at 0."""
    if abs(x) == math.inf:
        return 0.0
    return sin(x) / x if x != 0.0 else 1.0


# --- modified: I ----------------------------------------------------------------------------------------------------


def modified(kind: Callable, name: str, meaning: str, order: float, scaled: bool) -> Any:
    """Returns the modified function of a kind and an order, by this name."""

    def element(x):
        return kind(x, order, scaled)

    element.__name__, element.__qualname__, element.__doc__ = name, name, meaning
    return in_double(element)


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


def first_kind(x, order, scaled):
    """I of order 0, which is even, or 1, which is odd; e^(-|x|) times it where it is to be scaled."""
    size = abs(x)
    if not size >= 20.0:
        result = power_series(size, order)
        result = result * exp(-size) if scaled else result
    elif scaled:
        result = scaled_far(size, order)
    else:
        result = exp(size) * scaled_far(size, order) if size < 1000.0 else math.inf
    return -result if x < 0.0 and order == 1.0 else result


modified_bessel_i0 = modified(first_kind, "modified_bessel_i0", "I0(x)", 0.0, False)
modified_bessel_i1 = modified(first_kind, "modified_bessel_i1", "I1(x)", 1.0, False)
scaled_modified_bessel_i0 = modified(first_kind, "scaled_modified_bessel_i0", "e^(-|x|) I0(x)", 0.0, True)
scaled_modified_bessel_i1 = modified(first_kind, "scaled_modified_bessel_i1", "e^(-|x|) I1(x)", 1.0, True)


# --- modified: K ----------------------------------------------------------------------------------------------------


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


def falling_kind(x, order, scaled):
    """K of order 0 or 1 for x > 0; infinite at 0, NaN below. e^x times it where it is to be scaled."""
    if not x > 0.0 or x == math.inf:
        return math.inf if x == 0.0 else (0.0 if x == math.inf else math.nan)
    if x > 1.0:
        result = scaled_integral(x, order)
        return result if scaled else result * exp(-x)
    result = k0_series(x) if order == 0.0 else k1_series(x)
    return result * exp(x) if scaled else result


modified_bessel_k0 = modified(falling_kind, "modified_bessel_k0", "K0(x)", 0.0, False)
modified_bessel_k1 = modified(falling_kind, "modified_bessel_k1", "K1(x)", 1.0, False)
scaled_modified_bessel_k0 = modified(falling_kind, "scaled_modified_bessel_k0", "e^x K0(x)", 0.0, True)
scaled_modified_bessel_k1 = modified(falling_kind, "scaled_modified_bessel_k1", "e^x K1(x)", 1.0, True)


# --- Airy -------------------------------------------------------------------------------------------------------------

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


@integral
def place(n):
    """Returns the index of the values at the whole number n."""
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


@in_double
def airy_ai(x):
    """Ai(x); 0 at infinity."""
    if not abs(x) < math.inf:
        return 0.0 if x == math.inf else math.nan
    if x >= 1.0:
        zeta = x * np.sqrt(x) / 1.5
        return np.sqrt(x / 3.0) / math.pi * scaled_integral(zeta, 1.0 / 3.0) * exp(-zeta)
    return taylor(x) if x > -9.5 else oscillating(-x)
