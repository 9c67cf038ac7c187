"""Complex division, expm1 and tanh, which numba's own would spoil: by an error at zero, cancellation, overflow.

A kernel never raises, so a division by zero gives infinities and NaN here, as it does for real numbers.
"""

import math


def quotient(x, y):
    """x / y for complex numbers, divided by the larger part of y first, so that no square overflows (Smith, 1962)."""
    c, d = y.real, y.imag
    if abs(c) >= abs(d):
        if c == 0 and d == 0:
            return complex(x.real / abs(c), x.imag / abs(d))
        ratio = d / c
        scale = 1 / (c + d * ratio)
        return complex((x.real + x.imag * ratio) * scale, (x.imag - x.real * ratio) * scale)
    ratio = c / d
    scale = 1 / (c * ratio + d)
    return complex((x.real * ratio + x.imag) * scale, (x.imag * ratio - x.real) * scale)


def expm1_complex(z):
    """e^(x + iy) - 1 = (e^x - 1) cos y - 2 sin²(y / 2) + i e^x sin y, where nothing cancels for small z."""
    x, y = z.real, z.imag
    half = math.sin(y / 2)
    return complex(math.expm1(x) * math.cos(y) - 2 * half * half, math.exp(x) * math.sin(y))


def tanh_complex(z):
    """tanh. Its real part is 1 or -1, to the last digit, long before the square of cosh is too large for a number."""
    x, y = z.real, z.imag
    if abs(x) < 10:
        real, imag = math.tanh(x), math.tan(y)
        return quotient(complex(real, imag), complex(1.0, real * imag))
    if x != x:
        return complex(x, x)
    small = 4 * math.exp(-2 * abs(x)) * math.sin(y) * math.cos(y) if abs(y) < math.inf else 0 * x
    return complex(math.copysign(1.0, x), small if small == small else 0.0)
