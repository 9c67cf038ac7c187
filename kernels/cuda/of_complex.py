"""Functions of complex numbers, as the library's own translator compiles them for a GPU, which has neither numpy's
loops nor `cmath`.

Each is computed in double precision, and rounded once for single. Where a branch is cut, the sign of a zero says on
which side a number lies, as in C. The inverse functions are those of W. Kahan, "Branch cuts for complex elementary
functions" (1987), which never subtract what is nearly equal. Read next: `translation.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..engine.program import integral
from ..maths import vecmath
from ..maths.vecmath.pieces import (
    bits_of,
    bits_of_32,
    expm1_complex,
    from_bits,
    from_bits_32,
    integer,
    integer_32,
    tanh_complex,
    two_product,
    two_sum,
)

__all__ = ["OF_C", "OF_COMPLEX", "bits_of_32", "from_bits_32", "integer_32"]  # the last for `single`
LN_2, LN_10 = math.log(2), math.log(10)
INFINITY, LARGE, TINY = math.inf, 1e153, 1e-290  # beyond LARGE, squares overflow
HALF_PI = math.pi / 2
STEEP = 22.0  # from where on e^-x is no part of cosh x
MOST_FACTORS = 100  # of a power that is a product


def product(a, b):
    """a b, where 0 times whatever is 0."""
    return math.copysign(0.0, a) * math.copysign(1.0, b) if a == 0 or b == 0 else a * b


def length(x, y):
    """sqrt(x² + y²), which overflows only where no number is as large."""
    x, y = abs(x), abs(y)
    large, small = max(x, y), min(x, y)
    if x == INFINITY or y == INFINITY:
        return x if x == INFINITY else y
    if large == 0 or x != x or y != y:
        return x + y
    ratio = small / large
    return large * math.sqrt(1 + ratio * ratio)


@integral
def following(x, y):
    """The number next to x on the way to y."""
    if x != x or y != y:
        return x + y
    if x == y:
        return y
    if x == 0:
        return math.copysign(from_bits(integer(1)), y)
    return from_bits(integer(bits_of(x) + (1 if (y > x) == (x > 0) else -1)))


def modulus(z):
    return length(z.real, z.imag)


def square_root(z):
    x, y = z.real, z.imag
    if x == 0 and y == 0:
        return complex(0.0, y)
    if abs(y) == INFINITY:
        return complex(INFINITY, y)
    scale, back = 1.0, 1.0
    if abs(x) > LARGE or abs(y) > LARGE:
        scale, back = 0.25, 2.0
    elif abs(x) < TINY and abs(y) < TINY:
        scale, back = 18014398509481984.0, 7.450580596923828e-09  # 2^54, 2^-27
    x, y = x * scale, y * scale
    root = math.sqrt((abs(x) + modulus(complex(x, y))) / 2)
    other = abs(y) / (2 * root) if root != INFINITY else 0.0
    if x >= 0 or x != x:
        return complex(root * back, math.copysign(other, y) * back)
    return complex(other * back, math.copysign(root, y) * back)


def grown(x, y, factor):
    """e^x (cos y + i sin y) times a factor, in two steps where e^x alone would overflow."""
    once, twice = math.exp(x), factor
    if x > 700:
        once = math.exp(x / 2)
        twice = once * factor
    return complex(once * math.cos(y) * twice, product(product(once, math.sin(y)), twice))


def exponential(z):
    x, y = z.real, z.imag
    if x == -INFINITY and not abs(y) < INFINITY:
        return complex(0.0, 0.0)
    return grown(x, y, 1.0)


def exponential_2(z):
    return exponential(complex(z.real * LN_2, z.imag * LN_2))


def log_of_modulus(x, y):
    """log |x + iy|. Where that is near 0, of |x + iy|² - 1, in which nothing is lost."""
    if x != x or y != y:
        return INFINITY if abs(x) == INFINITY or abs(y) == INFINITY else x + y
    a, b = max(abs(x), abs(y)), min(abs(x), abs(y))
    if 0 < a < INFINITY and (a > LARGE or a < TINY):
        scale = 1e-200 if a > LARGE else 1e200
        size = math.log(modulus(complex(a * scale, b * scale)))
        return size + (460.51701859880916 if a > LARGE else -460.51701859880916)  # 200 log 10
    size = modulus(complex(a, b))
    if 0.7 < size < 1.5:
        first, low = two_product(a, a)
        second, lower = two_product(b, b)
        high, rest = two_sum(first - 1, second)
        return math.log1p(high + (rest + (low + lower))) / 2
    return math.log(size)


def logarithm(z):
    return complex(log_of_modulus(z.real, z.imag), math.atan2(z.imag, z.real))


def logarithm_2(z):
    return complex(log_of_modulus(z.real, z.imag) / LN_2, math.atan2(z.imag, z.real) / LN_2)


def logarithm_10(z):
    return complex(log_of_modulus(z.real, z.imag) / LN_10, math.atan2(z.imag, z.real) / LN_10)


def logarithm_1p(z):
    """log(1 + z), of |1 + z|² - 1 where z is small."""
    x, y = z.real, z.imag
    if abs(x) < 0.5 and abs(y) < 0.5:
        size = math.log1p(x * (2 + x) + y * y) / 2
    else:
        size = log_of_modulus(1 + x, y)
    return complex(size, math.atan2(y, 1 + x))


def hyperbolic_sine(z):
    x, y = z.real, z.imag
    if abs(x) > STEEP:
        half = grown(abs(x), y, 0.5)
        return complex(math.copysign(1.0, x) * half.real, half.imag)
    return complex(product(math.sinh(x), math.cos(y)), product(math.cosh(x), math.sin(y)))


def hyperbolic_cosine(z):
    x, y = z.real, z.imag
    if abs(x) > STEEP:
        half = grown(abs(x), y, 0.5)
        return complex(half.real, math.copysign(1.0, x) * half.imag)
    return complex(math.cosh(x) * math.cos(y), product(math.sinh(x), math.sin(y)))


def sine(z):
    turned = hyperbolic_sine(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def cosine(z):
    return hyperbolic_cosine(complex(-z.imag, z.real))


def tangent(z):
    turned = tanh_complex(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def log_of_large(x, y):
    """log |2 (x + iy)|"""
    return log_of_modulus(x, y) + LN_2


def arc_cosine(z):
    x, y = z.real, z.imag
    if abs(x) > LARGE or abs(y) > LARGE:
        return complex(math.atan2(abs(y), x), -math.copysign(log_of_large(x, y), y))
    below, above = square_root(complex(1 - x, -y)), square_root(complex(1 + x, y))
    return complex(
        2 * math.atan2(below.real, above.real), math.asinh(above.real * below.imag - above.imag * below.real)
    )


def arc_sine(z):
    x, y = z.real, z.imag
    if abs(x) > LARGE or abs(y) > LARGE:
        return complex(math.atan2(x, abs(y)), math.copysign(log_of_large(x, y), y))
    below, above = square_root(complex(1 - x, -y)), square_root(complex(1 + x, y))
    return complex(
        math.atan2(x, below.real * above.real - below.imag * above.imag),
        math.asinh(below.real * above.imag - below.imag * above.real),
    )


def inverse_hyperbolic_sine(z):
    turned = arc_sine(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def inverse_hyperbolic_cosine(z):
    x, y = z.real, z.imag
    if abs(x) > LARGE or abs(y) > LARGE:
        return complex(log_of_large(x, y), math.atan2(y, x))
    below, above = square_root(complex(x - 1, y)), square_root(complex(x + 1, y))
    return complex(
        math.asinh(below.real * above.real + below.imag * above.imag), 2 * math.atan2(below.imag, above.real)
    )


def inverse_hyperbolic_tangent(z):
    x, y = z.real, z.imag
    if abs(x) > LARGE or abs(y) > LARGE:
        size = modulus(z)
        left = abs(x) / size / size if size < INFINITY else 0.0
        return complex(math.copysign(left, x), math.copysign(HALF_PI, y) if y == y else y)
    if abs(x) == 1 and y == 0:
        return complex(math.copysign(INFINITY, x), y)
    if abs(x) == 1 and abs(y) < 1e-150:  # whose square is 0
        size = (LN_2 - math.log(abs(y))) / 2
    else:
        size = math.log1p(4 * abs(x) / ((1 - abs(x)) * (1 - abs(x)) + y * y)) / 4
    return complex(math.copysign(size, x), math.atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2)


def arc_tangent(z):
    turned = inverse_hyperbolic_tangent(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def power(z, w):
    """z^w: by multiplications where w is a small whole number, else by logarithms."""
    n = w.real
    if w.imag == 0 and np.floor(n) == n and abs(n) <= MOST_FACTORS:
        found, factor, left = complex(1.0, 0.0), z, int(abs(n))
        while left > 0:
            if left & 1:
                found = found * factor
            factor = factor * factor
            left = left >> 1
        return vecmath.quotient(complex(1.0, 0.0), found) if n < 0 else found
    if z.real == 0 and z.imag == 0:
        return complex(0.0, 0.0) if n > 0 else complex(math.nan, math.nan)
    return exponential(w * logarithm(z))


OF_C: dict[str, Callable[..., Any]] = {"hypot": length, "nextafter": following}  # which the CPU has of the C library
OF_COMPLEX: dict[Any, Callable[..., Any]] = {
    np.abs: modulus, np.sqrt: square_root, vecmath.exp: exponential, vecmath.exp2: exponential_2,
    vecmath.expm1: expm1_complex, vecmath.log: logarithm, vecmath.log2: logarithm_2, vecmath.log10: logarithm_10,
    vecmath.log1p: logarithm_1p, vecmath.sin: sine, vecmath.cos: cosine, vecmath.tan: tangent,
    vecmath.sinh: hyperbolic_sine, vecmath.cosh: hyperbolic_cosine, vecmath.tanh: tanh_complex,
    vecmath.asin: arc_sine, vecmath.acos: arc_cosine, vecmath.atan: arc_tangent,
    vecmath.asinh: inverse_hyperbolic_sine, vecmath.acosh: inverse_hyperbolic_cosine,
    vecmath.atanh: inverse_hyperbolic_tangent, vecmath.pow: power,
}  # fmt: skip
