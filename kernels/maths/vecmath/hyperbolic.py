"""sinh, cosh, tanh and their inverses, from expm1 and log1p: near 0 these keep the digits that exp and log lose.

One body serves both float types, as all that depends on the type is in what it calls. Read next: `error.py`.
"""

import math

import numpy as np

from ...engine.program import polynomial
from .coefficients import TANH_32
from .define import compiled, of_numpy
from .exponential import exp, half_expm1
from .logarithm import log1p
from .pieces import tanh_complex

LN2 = 0.6931471805599453


sinh = of_numpy("sinh", np.sinh, "The hyperbolic sine, to 3 ulp.")
cosh = of_numpy("cosh", np.cosh, "The hyperbolic cosine, to 2 ulp.")
tanh = of_numpy("tanh", np.tanh, "The hyperbolic tangent, to 3 ulp.", complex=tanh_complex)
asinh = of_numpy("asinh", np.arcsinh, "The inverse of `sinh`, to 3 ulp.")
acosh = of_numpy("acosh", np.arccosh, "The inverse of `cosh`, to 3 ulp; NaN below 1.")
atanh = of_numpy("atanh", np.arctanh, "The inverse of `tanh`, to 3 ulp; infinite at -1 and 1, NaN beyond.")


@compiled(sinh, "float32", "float64")
def sinh_body(x):
    """(e^|x| - e^-|x|) / 2 = h + h / (2 h + 1) with h = (e^|x| - 1) / 2."""
    h = half_expm1(abs(x))
    size = h if h > 1e30 else h + h / (2.0 * h + 1.0)
    return x if abs(x) < 1e-10 else math.copysign(size, x)


@compiled(cosh, "float32", "float64")
def cosh_body(x):
    """(e^|x| + e^-|x|) / 2, with half of e^|x| as h + 1/2."""
    half = half_expm1(abs(x)) + 0.5
    return half + 0.25 / half


@compiled(tanh, "float64")
def tanh_float64(x):
    """(e^2|x| - 1) / (e^2|x| + 1) = h / (h + 1) with h = (e^2|x| - 1) / 2; 1 from 20 on."""
    size = abs(x)
    h = half_expm1(2.0 * (20.0 if size > 20.0 else size))
    return x if size < 1e-10 else math.copysign(h / (h + 1.0), x)


@compiled(tanh, "float32")
def tanh_float32(x):
    """Below 0.625 an odd polynomial, above it 1 - 2 / (e^2|x| + 1)."""
    size = abs(x)
    z = x * x
    near = x * (1.0 + z * polynomial(z, TANH_32))  # as a product, which keeps the sign of zero
    far = math.copysign(1.0 - 2.0 / (exp(2.0 * size) + 1.0), x)
    return near if size < 0.625 else (far if size >= 0.625 else x)


@compiled(asinh, "float32", "float64")
def asinh_body(x):
    """log(|x| + sqrt(1 + x^2)), with 1 subtracted under the logarithm; far out log(2 |x|)."""
    size = abs(x)
    large = size > 1e17
    within = size + size * size / (1.0 + np.sqrt(1.0 + size * size))
    result = log1p(size if large else within) + (LN2 if large else 0.0)
    return x if size < 1e-10 else math.copysign(result, x)


@compiled(acosh, "float32", "float64")
def acosh_body(x):
    """log(x + sqrt(x^2 - 1)), with 1 subtracted under the logarithm; far out log(2 x)."""
    large = x > 1e17
    t = x - 1.0
    within = t + np.sqrt(t * (t + 2.0))
    result = log1p(x if large else within) + (LN2 if large else 0.0)
    return math.nan if x < 1.0 else result


@compiled(atanh, "float32", "float64")
def atanh_body(x):
    """log((1 + |x|) / (1 - |x|)) / 2."""
    size = abs(x)
    result = 0.5 * log1p(2.0 * size / (1.0 - size))
    return x if size < 1e-10 else math.copysign(result, x)
