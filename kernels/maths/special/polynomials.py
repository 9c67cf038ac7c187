"""Orthogonal polynomials of degree n at x: Chebyshev's four kinds, Hermite's two, Laguerre's, Legendre's.

All by their recurrences of three terms (DLMF 18.9.1); Chebyshev's of higher degree inside (-1, 1) by their definition
with x = cos(angle) (DLMF 18.5). A degree is cut to a whole number; below 0 the polynomial is 0.
"""

import math
from collections.abc import Callable
from typing import Any

from ..vecmath.define import in_double
from ..vecmath.trigonometric import acos, cos, sin

ENOUGH = 8  # up to this degree the recurrence is as good as the angle
BELOW_ONE = math.nextafter(1.0, 0.0)


def named_as(step: Callable[..., Any]) -> Callable[[Any], Any]:
    """Decorates the polynomial that a step or a formula stands for."""

    def named(polynomial: Any) -> Any:
        polynomial.__name__, polynomial.__qualname__, polynomial.__doc__ = step.__name__, step.__name__, step.__doc__
        return polynomial

    return named


# --- Chebyshev's: families that begin with 1, and of which each is 2 x times the last, less the one before -----------


def chebyshev(slope: float, less: float, edge: float = BELOW_ONE) -> Callable[[Callable], Any]:
    """Decorates the formula of the family whose second member is slope x - less, which holds for |x| <= edge."""

    def of_formula(formula: Callable) -> Any:
        @named_as(formula)
        @in_double
        def polynomial(x, n):
            degree = int(n)
            if degree > ENOUGH and abs(x) <= edge:
                return formula(acos(x), degree)
            if degree <= 0:
                return 1.0 if degree == 0 else 0.0
            before, here = 1.0, slope * x - less
            for _ in range(1, degree):
                before, here = here, 2.0 * x * here - before
                if here != here:
                    break
            return here

        return polynomial

    return of_formula


@chebyshev(1.0, 0.0, 1.0)
def chebyshev_t(angle, n):
    """cos(n angle)"""
    return cos(n * angle)


@chebyshev(2.0, 0.0)
def chebyshev_u(angle, n):
    """sin((n + 1) angle) / sin(angle)"""
    return sin((n + 1.0) * angle) / sin(angle)


@chebyshev(2.0, 1.0)
def chebyshev_v(angle, n):
    """cos((n + 1/2) angle) / cos(angle / 2)"""
    return cos((n + 0.5) * angle) / cos(0.5 * angle)


@chebyshev(2.0, -1.0)
def chebyshev_w(angle, n):
    """sin((n + 1/2) angle) / sin(angle / 2)"""
    return sin((n + 0.5) * angle) / sin(0.5 * angle)


def shifted(family: Any) -> Any:
    """Returns a family from [0, 1] instead of [-1, 1]."""

    @named_as(family)
    @in_double
    def polynomial(x, n):
        return family(2.0 * x - 1.0, n)

    return polynomial


shifted_chebyshev_t, shifted_chebyshev_u = shifted(chebyshev_t), shifted(chebyshev_u)
shifted_chebyshev_v, shifted_chebyshev_w = shifted(chebyshev_v), shifted(chebyshev_w)

# --- families that begin with 1, by the step from degrees k - 1 and k to k + 1 ---------------------------------------


def by_recurrence(step: Callable) -> Any:
    """Decorates the step of a family; what comes before degree 0 is 0."""

    @named_as(step)
    @in_double
    def polynomial(x, n):
        degree = int(n)
        before, here = 0.0, 1.0 if degree >= 0 else 0.0
        for k in range(degree):
            before, here = here, step(x, k, before, here)
            if here != here:
                break
        return here

    return polynomial


@by_recurrence
def hermite_h(x, k, before, here):
    """The physicists': 1, 2 x, 4 x^2 - 2, ..."""
    return 2.0 * (x * here - k * before)


@by_recurrence
def hermite_he(x, k, before, here):
    """The probabilists': 1, x, x^2 - 1, ..."""
    return x * here - k * before


@by_recurrence
def laguerre_l(x, k, before, here):
    """1, 1 - x, ...: 1 at 0."""
    return ((2.0 * k + 1.0 - x) * here - k * before) / (k + 1.0)


@by_recurrence
def legendre_p(x, k, before, here):
    """1, x, (3 x^2 - 1) / 2, ...: 1 at 1."""
    return ((2.0 * k + 1.0) * x * here - k * before) / (k + 1.0)
