"""Orthogonal polynomials of degree n at x: Chebyshev's four kinds, Hermite's two, Laguerre's, Legendre's.

All by their recurrences of three terms (DLMF 18.9.1); Chebyshev's of higher degree inside (-1, 1) by their definition
with x = cos(angle) (DLMF 18.5). A degree is cut to a whole number; below 0 the polynomial is 0.
"""

from ..vecmath.define import in_double
from ..vecmath.trigonometric import acos, cos, sin

ENOUGH = 8  # up to this degree the recurrence is as good as the angle


def chebyshev(x, n, first):
    """The member of degree n of the family which begins with 1 and `first`: each is 2 x times the last, less the one
    before."""
    before, here = 1.0, first
    if n <= 0:
        return 1.0 if n == 0 else 0.0
    for _ in range(1, n):
        before, here = here, 2.0 * x * here - before
        if here != here:
            break
    return here


@in_double
def chebyshev_t(x, n):
    """cos(n angle)"""
    degree = int(n)
    if degree > ENOUGH and abs(x) <= 1.0:
        return cos(degree * acos(x))
    return chebyshev(x, degree, x)


@in_double
def chebyshev_u(x, n):
    """sin((n + 1) angle) / sin(angle)"""
    degree = int(n)
    if degree > ENOUGH and abs(x) < 1.0:
        angle = acos(x)
        return sin((degree + 1.0) * angle) / sin(angle)
    return chebyshev(x, degree, 2.0 * x)


@in_double
def chebyshev_v(x, n):
    """cos((n + 1/2) angle) / cos(angle / 2)"""
    degree = int(n)
    if degree > ENOUGH and abs(x) < 1.0:
        angle = acos(x)
        return cos((degree + 0.5) * angle) / cos(0.5 * angle)
    return chebyshev(x, degree, 2.0 * x - 1.0)


@in_double
def chebyshev_w(x, n):
    """sin((n + 1/2) angle) / sin(angle / 2)"""
    degree = int(n)
    if degree > ENOUGH and abs(x) < 1.0:
        angle = acos(x)
        return sin((degree + 0.5) * angle) / sin(0.5 * angle)
    return chebyshev(x, degree, 2.0 * x + 1.0)


@in_double
def shifted_chebyshev_t(x, n):
    """`chebyshev_t` from [0, 1]."""
    return chebyshev_t(2.0 * x - 1.0, n)


@in_double
def shifted_chebyshev_u(x, n):
    """`chebyshev_u` from [0, 1]."""
    return chebyshev_u(2.0 * x - 1.0, n)


@in_double
def shifted_chebyshev_v(x, n):
    """`chebyshev_v` from [0, 1]."""
    return chebyshev_v(2.0 * x - 1.0, n)


@in_double
def shifted_chebyshev_w(x, n):
    """`chebyshev_w` from [0, 1]."""
    return chebyshev_w(2.0 * x - 1.0, n)


@in_double
def hermite_h(x, n):
    """The physicists': 1, 2 x, 4 x^2 - 2, ..."""
    degree = int(n)
    before, here = 0.0, 1.0 if degree >= 0 else 0.0
    for k in range(degree):
        before, here = here, 2.0 * (x * here - k * before)
        if here != here:
            break
    return here


@in_double
def hermite_he(x, n):
    """The probabilists': 1, x, x^2 - 1, ..."""
    degree = int(n)
    before, here = 0.0, 1.0 if degree >= 0 else 0.0
    for k in range(degree):
        before, here = here, x * here - k * before
        if here != here:
            break
    return here


@in_double
def laguerre_l(x, n):
    """1, 1 - x, ...: 1 at 0."""
    degree = int(n)
    before, here = 0.0, 1.0 if degree >= 0 else 0.0
    for k in range(degree):
        before, here = here, ((2.0 * k + 1.0 - x) * here - k * before) / (k + 1.0)
        if here != here:
            break
    return here


@in_double
def legendre_p(x, n):
    """1, x, (3 x^2 - 1) / 2, ...: 1 at 1."""
    degree = int(n)
    before, here = 0.0, 1.0 if degree >= 0 else 0.0
    for k in range(degree):
        before, here = here, ((2.0 * k + 1.0) * x * here - k * before) / (k + 1.0)
        if here != here:
            break
    return here
