"""Bessel functions of order 0 and 1.

Below 25 by Miller's way (A&S 9.12, example 1): the recurrence from order k + 1 down to k - 1 is stable, whatever one
starts from far above x, and J0 + 2 (J2 + J4 + ...) = 1 says what it has to be divided by. Y0 and Y1 are Neumann series
of the same numbers (DLMF 10.23.17). From 25 on by Hankel's expansion (DLMF 10.17.3), whose least term is e^(-2 x).

Read next: `modified_bessel.py`.
"""

import math

import numpy as np

from ...engine.program import integral, primitive
from ..vecmath.define import by_body, compiled
from ..vecmath.logarithm import log
from ..vecmath.trigonometric import cos, sin

EULER = 0.5772156649015329
TWO_OVER_PI = 2 / math.pi
TINY = 1e-300  # what the recurrence starts from; it grows by 1e330 at most


@primitive
def bessel_j0(x):
    """J0(x), which is even."""
    return by_body(bessel_j0_float64, x)


@primitive
def bessel_j1(x):
    """J1(x), which is odd."""
    return by_body(bessel_j1_float64, x)


@primitive
def bessel_y0(x):
    """Y0(x) for x > 0; -infinity at 0, NaN below."""
    return by_body(bessel_y0_float64, x)


@primitive
def bessel_y1(x):
    """Y1(x) for x > 0; -infinity at 0, NaN below."""
    return by_body(bessel_y1_float64, x)


@primitive
def spherical_bessel_j0(x):
    """sin(x) / x, and 1 at 0."""
    return by_body(spherical_bessel_j0_float64, x)


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
    """The same where x^2 is nothing beside 1."""
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


@compiled(bessel_j0, "float64")
def bessel_j0_float64(x):
    size = abs(x)
    if size == 0.0 or size == math.inf:
        return 1.0 if size == 0.0 else 0.0
    return bessel(size)[0] if size == size else size


@compiled(bessel_j1, "float64")
def bessel_j1_float64(x):
    size = abs(x)
    if size == 0.0 or size == math.inf:
        return 0.0
    j1 = bessel(size)[1] if size == size else size
    return -j1 if x < 0.0 else j1


@compiled(bessel_y0, "float64")
def bessel_y0_float64(x):
    if not 0.0 < x < math.inf:
        return -math.inf if x == 0.0 else (0.0 if x == math.inf else math.nan)
    return bessel(x)[2]


@compiled(bessel_y1, "float64")
def bessel_y1_float64(x):
    if not 0.0 < x < math.inf:
        return -math.inf if x == 0.0 else (0.0 if x == math.inf else math.nan)
    return bessel(x)[3]


@compiled(spherical_bessel_j0, "float64")
def spherical_bessel_j0_float64(x):
    if abs(x) == math.inf:
        return 0.0
    return sin(x) / x if x != 0.0 else 1.0
