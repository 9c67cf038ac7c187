"""The derivatives of the functions of `math`, as scalar functions: what scalar_functions.py differentiates calls by.

Each is written like a user's own, and so has a derivative itself. `SLOPES` has one function for each parameter; () is
for functions that are constant piece by piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def exp_slope(x):
    return math.exp(x)


def exp2_slope(x):
    return math.log(2.0) * math.exp2(x)


def log_slope(x):
    return 1.0 / x


def log2_slope(x):
    return 1.0 / (x * math.log(2.0))


def log10_slope(x):
    return 1.0 / (x * math.log(10.0))


def log1p_slope(x):
    return 1.0 / (1.0 + x)


def sqrt_slope(x):
    return 0.5 / math.sqrt(x)


def sin_slope(x):
    return math.cos(x)


def cos_slope(x):
    return -math.sin(x)


def tan_slope(x):
    y = math.tan(x)
    return 1.0 + y * y


def asin_slope(x):
    return 1.0 / math.sqrt(1.0 - x * x)


def acos_slope(x):
    return -1.0 / math.sqrt(1.0 - x * x)


def atan_slope(x):
    return 1.0 / (1.0 + x * x)


def sinh_slope(x):
    return math.cosh(x)


def cosh_slope(x):
    return math.sinh(x)


def tanh_slope(x):
    y = math.tanh(x)
    return 1.0 - y * y


def asinh_slope(x):
    return 1.0 / math.sqrt(x * x + 1.0)


def acosh_slope(x):
    return 1.0 / math.sqrt(x * x - 1.0)


def atanh_slope(x):
    return 1.0 / (1.0 - x * x)


def erf_slope(x):
    return 2.0 / math.sqrt(math.pi) * math.exp(-x * x)


def erfc_slope(x):
    return -2.0 / math.sqrt(math.pi) * math.exp(-x * x)


def abs_slope(x):
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)


def atan2_slope_y(y, x):
    return x / (x * x + y * y)


def atan2_slope_x(y, x):
    return -y / (x * x + y * y)


def degrees_slope(x):
    return 180.0 / math.pi


def radians_slope(x):
    return math.pi / 180.0


def hypot_slope_x(x, y):
    return x / math.hypot(x, y)


def hypot_slope_y(x, y):
    return y / math.hypot(x, y)


def copysign_slope_x(x, y):
    return math.copysign(1.0, x) * math.copysign(1.0, y)


def copysign_slope_y(x, y):
    return 0.0


def fmod_slope_x(x, y):
    return 1.0


def fmod_slope_y(x, y):
    return -math.trunc(x / y)


def pow_slope_x(x, y):
    return 0.0 if y == 0.0 else y * x ** (y - 1.0)


def pow_slope_y(x, y):
    return 0.0 if x == 0.0 else x**y * math.log(x)


SLOPES: dict[str, tuple[Callable[..., Any], ...]] = {
    "exp": (exp_slope,),
    "expm1": (exp_slope,),
    "exp2": (exp2_slope,),
    "log": (log_slope,),
    "log2": (log2_slope,),
    "log10": (log10_slope,),
    "log1p": (log1p_slope,),
    "sqrt": (sqrt_slope,),
    "sin": (sin_slope,),
    "cos": (cos_slope,),
    "tan": (tan_slope,),
    "asin": (asin_slope,),
    "acos": (acos_slope,),
    "atan": (atan_slope,),
    "sinh": (sinh_slope,),
    "cosh": (cosh_slope,),
    "tanh": (tanh_slope,),
    "asinh": (asinh_slope,),
    "acosh": (acosh_slope,),
    "atanh": (atanh_slope,),
    "erf": (erf_slope,),
    "erfc": (erfc_slope,),
    "abs": (abs_slope,),
    "fabs": (abs_slope,),
    "atan2": (atan2_slope_y, atan2_slope_x),
    "pow": (pow_slope_x, pow_slope_y),
    "degrees": (degrees_slope,),
    "radians": (radians_slope,),
    "hypot": (hypot_slope_x, hypot_slope_y),
    "copysign": (copysign_slope_x, copysign_slope_y),
    "fmod": (fmod_slope_x, fmod_slope_y),
    "gcd": (),
    "floor": (),
    "ceil": (),
    "trunc": (),
    "isfinite": (),
    "isinf": (),
    "isnan": (),
}
