"""Activations: sigmoid, softplus, silu, mish, gelu and their like, from e^-|x|, which never overflows.

Where an activation falls off to one side, that tail keeps its digits: it is computed as such, not as 1 minus nearly 1.
Nearly all are plain scalar functions of the functions above: each type and target has its own of those.
"""

from ...engine.primitives import fma
from .define import compiled, in_double
from .error import erf, scaled_erfc
from .exponential import exp, times_exp
from .logarithm import log1p

SQRT_HALF = 0.7071067811865476
FAR = -1000.0  # where e^x has vanished, while x e^x can still be computed
LOG_OF_2_64 = 44.3614195558365


def sigmoid(x):
    """1 / (1 + e^-x), to 3 ulp: for x < 0 as e^x / (1 + e^x), which does not overflow."""
    e = exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


def log_sigmoid(x):
    """log(sigmoid(x)), to 3 ulp."""
    rest = log1p(exp(-abs(x)))
    return x - rest if x < 0.0 else -rest


def softplus(x):
    """log(1 + e^x), to 3 ulp."""
    return (x if x > 0.0 else 0.0) + log1p(exp(-abs(x)))


def logit(x):
    """log(x / (1 - x)), to 3 ulp, also near 1/2, where it vanishes: there 2 x - 1 is exact."""
    low = 1.0 - x if x > 0.5 else x + 0.0
    tiny = low >= 0.0 and low < 1e-37  # its reciprocal may overflow
    size = log1p(abs(2.0 * x - 1.0) / (low * 2.0**64 if tiny else low)) + (LOG_OF_2_64 if tiny else 0.0)
    return size if x >= 0.5 else -size


def silu(x):
    """x sigmoid(x), to 4 ulp."""
    size = abs(x)
    share = (FAR if x < FAR else x) / (1.0 + exp(-size))
    return share if x >= 0.0 else times_exp(-size, 0.0, share)


def mish(x):
    """x tanh(softplus(x)), to 4 ulp: x n / (n + 2) with n = e^x (e^x + 2), here divided by e^2x where x > 0."""
    size = abs(x)
    e = exp(-size)
    right = (1.0 + 2.0 * e) / (1.0 + 2.0 * e + 2.0 * e * e)
    left = (e + 2.0) / (e * (e + 2.0) + 2.0)
    return x * right if x >= 0.0 else times_exp(-size, 0.0, (FAR if x < FAR else x) * left)


@in_double
def gelu(x):
    """x times the normal distribution's probability of a value below x. float64: to 4 ulp.

    float32: to 4 ulp for x > -1/2; below, the error is up to 2^-23 |x|, for an accurate tail would take twice the time.

    The probability of a value beyond |x| is e^(-x^2 / 2) erfcx(|x| / sqrt 2) / 2.
    """
    size = abs(x)
    t = 40.0 if size > 40.0 else size
    square = t * t
    tail = times_exp(-0.5 * square, -0.5 * fma(t, t, -square), 0.5 * t * scaled_erfc(t * SQRT_HALF))
    return x - tail if x >= 0.0 else -tail


@compiled(gelu, "float32")
def gelu_float32(x):
    half = 0.5 * x
    return half + half * erf(x * SQRT_HALF)


def gelu_tanh(x):
    """The tanh approximation of `gelu`, x (1 + tanh(u)) / 2 = x sigmoid(2 u): to 4 ulp, and 2 |u| more below 0."""
    return x * sigmoid(x * (1.5957691216057308 + 0.07135481627260025 * x * x))
