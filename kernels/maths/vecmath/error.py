"""erf, erfc, erfinv.

Up to 1, erf is an odd polynomial. Beyond, what is needed is erfc(x) = e^(-x^2) erfcx(x), whose second factor falls
slowly, like 1 / x: with v = 1 / (x + 4) it is v times a polynomial in v, from 0 to where e^(-x^2) vanishes (an idea of
Shepherd and Laframboise, 1981). x^2 is as large as 700, so its rounding error is carried along.

erfinv(x) / x is smooth in w = -log(1 - x^2) for small w, and in its root for large. Read next: `power.py`.
"""

import math

import numpy as np

from ...engine.primitives import fma
from ...engine.program import polynomial, primitive
from .coefficients import (
    ERF,
    ERF_32,
    ERF_FAR_32,
    ERFCX,
    ERFCX_FIRST,
    ERFCX_FIRST_REST,
    ERFINV_FAR,
    ERFINV_MIDDLE,
    ERFINV_NEAR,
    EXP2_32,
)
from .define import BODIES, ROUND_32, compiled, in_double, single
from .exponential import exp, times_exp
from .logarithm import log
from .pieces import power_of_two, quick_two_sum, two_product, two_sum


@primitive
def erf(x):
    """The error function, to 3 ulp."""
    return type(x)(math.erf(x))


@primitive
def erfc(x):
    """1 - erf(x), to 4 ulp, also where that is tiny."""
    return type(x)(math.erfc(x))


def reciprocal_of_sum(x, start):
    """(1 / (x + start) rounded, what rounding the sum and the quotient has lost)"""
    total, lost = two_sum(start, x)
    v = 1.0 / total
    return v, v * (fma(-v, total, 1.0) - v * lost)


def first_exactly(v, v_low, w, first, first_low, rest):
    """(v + v_low) (first + first_low + w rest), rounded once, but for what is wrong with `rest`."""
    product, product_low = two_product(w, rest)
    total, total_low = quick_two_sum(first, product)
    return v * total + (v * (total_low + product_low + first_low) + v_low * total)


START, START_32 = 4.0, 3.0
CENTRE, CENTRE_32 = 0.140625, 0.205078125  # of the polynomials in v, which changes fast with x near 0


@in_double
def scaled_erfc(x):
    """e^(x^2) erfc(x) for x >= 0, to 2 ulp, as far as erfc(x) is no zero."""
    v, v_low = reciprocal_of_sum(x, START)
    w = v - CENTRE + v_low
    return first_exactly(v, v_low, w, ERFCX_FIRST, ERFCX_FIRST_REST, polynomial(w, ERFCX))


compiled(scaled_erfc, "float32")(single(BODIES[scaled_erfc]["float64"]))
power_of_two_32 = single(power_of_two)


@compiled(erf, "float64")
def erf_float64(x):
    size = abs(x)
    z = x * x
    t = 6.0 if size > 6.0 else size
    near = x * polynomial(z, ERF)
    far = math.copysign(1.0 - exp(-t * t) * scaled_erfc(t), x)
    return near if size < 1.0 else (far if size >= 1.0 else x)


@compiled(erf, "float32")
def erf_float32(x):
    """Computes erf for float32: up to 4 it is one minus 2 to a polynomial, which spares the division."""
    size = abs(x)
    z = x * x
    t = 4.0 if size > 4.0 else size
    near = x * polynomial(z, ERF_32)
    power = polynomial(t, ERF_FAR_32)
    shifted = power + ROUND_32
    r = power - (shifted - ROUND_32)
    far = math.copysign(1.0 - polynomial(r, EXP2_32) * power_of_two_32(shifted), x)
    return near if size < 1.0 else (far if size >= 1.0 else x)


@compiled(erfc, "float32", "float64")
def erfc_body(x):
    size = abs(x)
    t = 28.0 if size > 28.0 else size
    square = t * t
    tail = times_exp(-square, -fma(t, t, -square), scaled_erfc(t))
    return 2.0 - tail if x < 0.0 else tail


@in_double
def erfinv(x):
    """The inverse of erf, to 4 ulp; infinite at -1 and 1, NaN beyond."""
    size = abs(x)
    w = -log((1.0 - size) * (1.0 + size))
    root = np.sqrt(w)
    low, middle, high = w - 2.5, root - 3.0, root - 5.0
    near = polynomial(low, ERFINV_NEAR)
    beyond = polynomial(middle, ERFINV_MIDDLE) if root < 4.0 else polynomial(high, ERFINV_FAR)
    result = x * (near if w < 5.0 else beyond)
    return math.copysign(math.inf, x) if size == 1.0 else result
