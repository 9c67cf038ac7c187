"""Orthogonal polynomials of degree n at x: Chebyshev's four kinds, Hermite's two, Laguerre's, Legendre's.

All by their recurrences of three terms (DLMF 18.9.1); Chebyshev's of higher degree inside (-1, 1) by their definition
with x = cos(angle) (DLMF 18.5). A degree is cut to a whole number; below 0 the polynomial is 0.
"""

from ...engine.program import primitive
from ..vecmath.define import by_body, compiled
from ..vecmath.inverse_trigonometric import acos
from ..vecmath.trigonometric import cos, sin

ENOUGH = 8  # up to this degree the recurrence is as good as the angle


@primitive
def chebyshev_t(x, n):
    """cos(n angle)"""
    return by_body(chebyshev_t_float64, x, n)


@primitive
def chebyshev_u(x, n):
    """sin((n + 1) angle) / sin(angle)"""
    return by_body(chebyshev_u_float64, x, n)


@primitive
def chebyshev_v(x, n):
    """cos((n + 1/2) angle) / cos(angle / 2)"""
    return by_body(chebyshev_v_float64, x, n)


@primitive
def chebyshev_w(x, n):
    """sin((n + 1/2) angle) / sin(angle / 2)"""
    return by_body(chebyshev_w_float64, x, n)


@primitive
def shifted_chebyshev_t(x, n):
    """`chebyshev_t` from [0, 1]."""
    return by_body(shifted_chebyshev_t_float64, x, n)


@primitive
def shifted_chebyshev_u(x, n):
    """`chebyshev_u` from [0, 1]."""
    return by_body(shifted_chebyshev_u_float64, x, n)


@primitive
def shifted_chebyshev_v(x, n):
    """`chebyshev_v` from [0, 1]."""
    return by_body(shifted_chebyshev_v_float64, x, n)


@primitive
def shifted_chebyshev_w(x, n):
    """`chebyshev_w` from [0, 1]."""
    return by_body(shifted_chebyshev_w_float64, x, n)


@primitive
def hermite_h(x, n):
    """The physicists': 1, 2 x, 4 x^2 - 2, ..."""
    return by_body(hermite_h_float64, x, n)


@primitive
def hermite_he(x, n):
    """The probabilists': 1, x, x^2 - 1, ..."""
    return by_body(hermite_he_float64, x, n)


@primitive
def laguerre_l(x, n):
    """1, 1 - x, ...: 1 at 0."""
    return by_body(laguerre_l_float64, x, n)


@primitive
def legendre_p(x, n):
    """1, x, (3 x^2 - 1) / 2, ...: 1 at 1."""
    return by_body(legendre_p_float64, x, n)


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


@compiled(chebyshev_t, "float64")
def chebyshev_t_float64(x, n):
    degree = int(n)
    if degree > ENOUGH and abs(x) <= 1.0:
        return cos(degree * acos(x))
    return chebyshev(x, degree, x)


@compiled(chebyshev_u, "float64")
def chebyshev_u_float64(x, n):
    degree = int(n)
    if degree > ENOUGH and abs(x) < 1.0:
        angle = acos(x)
        return sin((degree + 1.0) * angle) / sin(angle)
    return chebyshev(x, degree, 2.0 * x)


@compiled(chebyshev_v, "float64")
def chebyshev_v_float64(x, n):
    degree = int(n)
    if degree > ENOUGH and abs(x) < 1.0:
        angle = acos(x)
        return cos((degree + 0.5) * angle) / cos(0.5 * angle)
    return chebyshev(x, degree, 2.0 * x - 1.0)


@compiled(chebyshev_w, "float64")
def chebyshev_w_float64(x, n):
    degree = int(n)
    if degree > ENOUGH and abs(x) < 1.0:
        angle = acos(x)
        return sin((degree + 0.5) * angle) / sin(0.5 * angle)
    return chebyshev(x, degree, 2.0 * x + 1.0)


@compiled(shifted_chebyshev_t, "float64")
def shifted_chebyshev_t_float64(x, n):
    return chebyshev_t(2.0 * x - 1.0, n)


@compiled(shifted_chebyshev_u, "float64")
def shifted_chebyshev_u_float64(x, n):
    return chebyshev_u(2.0 * x - 1.0, n)


@compiled(shifted_chebyshev_v, "float64")
def shifted_chebyshev_v_float64(x, n):
    return chebyshev_v(2.0 * x - 1.0, n)


@compiled(shifted_chebyshev_w, "float64")
def shifted_chebyshev_w_float64(x, n):
    return chebyshev_w(2.0 * x - 1.0, n)


@compiled(hermite_h, "float64")
def hermite_h_float64(x, n):
    degree = int(n)
    before, here = 0.0, 1.0 if degree >= 0 else 0.0
    for k in range(degree):
        before, here = here, 2.0 * (x * here - k * before)
        if here != here:
            break
    return here


@compiled(hermite_he, "float64")
def hermite_he_float64(x, n):
    degree = int(n)
    before, here = 0.0, 1.0 if degree >= 0 else 0.0
    for k in range(degree):
        before, here = here, x * here - k * before
        if here != here:
            break
    return here


@compiled(laguerre_l, "float64")
def laguerre_l_float64(x, n):
    degree = int(n)
    before, here = 0.0, 1.0 if degree >= 0 else 0.0
    for k in range(degree):
        before, here = here, ((2.0 * k + 1.0 - x) * here - k * before) / (k + 1.0)
        if here != here:
            break
    return here


@compiled(legendre_p, "float64")
def legendre_p_float64(x, n):
    degree = int(n)
    before, here = 0.0, 1.0 if degree >= 0 else 0.0
    for k in range(degree):
        before, here = here, ((2.0 * k + 1.0) * x * here - k * before) / (k + 1.0)
        if here != here:
            break
    return here
