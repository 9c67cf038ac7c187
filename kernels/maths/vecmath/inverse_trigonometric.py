"""asin, acos, atan, atan2: odd polynomials near 0, and ways to get there. Read next: `hyperbolic.py`."""

import math

import numpy as np

from ...engine.program import polynomial, primitive
from .coefficients import ASIN, ATAN
from .define import compiled, quiet

PI, PI_REST = 3.141592653589793, 1.2246467991473532e-16
HALF_PI, HALF_PI_REST = 1.5707963267948966, 6.123233995736766e-17
QUARTER_PI, QUARTER_PI_REST = 0.7853981633974483, 3.061616997868383e-17
TAN_EIGHTH = 0.4142135623730950  # of a half turn: tan(pi / 8)


@primitive
def asin(x):
    """The angle in [-pi/2, pi/2] whose sine is x, to 2 ulp; NaN beyond 1."""
    return quiet(np.arcsin, x)


@primitive
def acos(x):
    """The angle in [0, pi] whose cosine is x, to 2 ulp; NaN beyond 1."""
    return quiet(np.arccos, x)


@primitive
def atan(x):
    """The angle in [-pi/2, pi/2] whose tangent is x, to 2 ulp."""
    return quiet(np.arctan, x)


@primitive
def atan2(y, x):
    """The angle of the point (x, y), in [-pi, pi], to 2 ulp; the signs of zeros count."""
    return quiet(np.arctan2, y, x)


def asin_series(x, z):
    """asin(x) - x for |x| <= 1/2 and z = x^2."""
    return x * z * polynomial(z, ASIN)


@compiled(asin, "float64")
def asin_float64(x):
    """Beyond 1/2, pi/2 - 2 asin(sqrt((1 - |x|) / 2))."""
    size = abs(x)
    outer = size > 0.5
    z = 0.5 * (1.0 - size) if outer else x * x
    s = np.sqrt(z) if outer else size
    rest = asin_series(s, z)
    far = HALF_PI - (2.0 * s + (2.0 * rest - HALF_PI_REST))
    return math.copysign(far if outer else s + rest, x)


@compiled(acos, "float64")
def acos_float64(x):
    """2 asin(sqrt((1 - |x|) / 2)) beyond 1/2, subtracted from pi where x < 0; within, pi/2 - asin(x)."""
    size = abs(x)
    outer = size > 0.5
    z = 0.5 * (1.0 - size) if outer else x * x
    s = np.sqrt(z) if outer else x
    rest = asin_series(s, z)
    near = HALF_PI - (s + (rest - HALF_PI_REST))
    double = 2.0 * (s + rest)
    far = PI - (double - PI_REST) if x < 0.0 else double
    return far if outer else near


def angle(above, below):
    """atan(above / below) in [0, pi/2] for above, below >= 0, not both 0 and not both infinite.

    Angles are taken off until the rest is below pi/8: atan(t) = pi/4 + atan((t - 1) / (t + 1)) = pi/2 - atan(1 / t).
    """
    steep = above > below
    small = below if steep else above
    large = above if steep else below
    turned = small > TAN_EIGHTH * large
    t = (small - large) / (small + large) if turned else small / large
    z = t * t
    rest = t * z * polynomial(z, ATAN)
    low = (QUARTER_PI + (t + (rest + QUARTER_PI_REST))) if turned else t + rest
    high = (QUARTER_PI - (t + (rest - QUARTER_PI_REST))) if turned else HALF_PI - (t + (rest - HALF_PI_REST))
    return high if steep else low


@compiled(atan, "float64")
def atan_float64(x):
    return math.copysign(angle(abs(x), 1.0), x)


@compiled(atan2, "float64")
def atan2_float64(y, x):
    above, below = abs(y), abs(x)
    both_infinite = above == math.inf and below == math.inf
    a, b = (1.0 if both_infinite else above), (1.0 if both_infinite else below)
    nothing = a == 0.0 and b == 0.0
    scale = 0.25 if a > 1e300 or b > 1e300 else 1.0  # their sum must not overflow
    size = angle(a * scale, 1.0 if nothing else b * scale)
    left = math.copysign(1.0, x) < 0.0
    return math.copysign(PI - (size - PI_REST) if left else size, y)


for _function, _complex in ((asin, np.arcsin), (acos, np.arccos), (atan, np.arctan)):
    compiled(_function, "complex")(_complex)
