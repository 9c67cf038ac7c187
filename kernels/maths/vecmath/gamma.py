"""lgamma, digamma, polygamma: polynomials near 1 and 2, Stirling's formula further out, reflection below 0.

lgamma vanishes at 1 and 2, and digamma at 1.46: there each is a product with the distance from that root. Below 0 both
have a root between any two poles, where the two sides of the reflection cancel: there the error is relative to these
sides. Negative arguments are rare, and take as long as all others together, so each function also comes as
`..._positive` (`usually`, in `elementwise.py`). Read next: `activations.py`.
"""

import math

import numpy as np

from ...engine.program import polynomial
from .coefficients import DIGAMMA_FAR, DIGAMMA_NEAR, LGAMMA_FAR, LGAMMA_NEAR
from .define import in_double
from .exponential import exp
from .logarithm import LN2_HIGH, LN2_LOW, log, log_parts
from .pieces import two_product
from .power import pow
from .trigonometric import cosine, sine

PI, PI_REST = 3.141592653589793, 1.2246467991473532e-16
STIRLING = 0.4189385332046727  # (log(2 pi) - 1) / 2
DIGAMMA_ROOT, DIGAMMA_ROOT_REST = 1.4616321449683622, 9.549995429965697e-17


def is_positive(x):
    """Whether the `..._positive` functions serve x."""
    return x > 0.0


@in_double
def lgamma_positive(x):
    """`lgamma` for x > 0 and NaN.

    Up to 1.25 as lgamma(1 + x) - log x.
    """
    near = x < 3.0
    e, f, g = log_parts(x)
    rest = f - (g - e * LN2_LOW)  # of the logarithm, without e times the larger part of ln 2
    small = x < 1.25
    w = x - 1.0 if small else (x if near else 3.0) - 2.0
    close = w * polynomial(w, LGAMMA_NEAR) - (e * LN2_HIGH + rest if small else 0.0)
    v = 1.0 / (3.0 if near else x)
    u = v * v
    far = (x - 0.5) * ((e * LN2_HIGH - 1.0) + rest) + (STIRLING + v * polynomial(u, LGAMMA_FAR))
    result = close if near else far
    return result if x < math.inf else x


@in_double
def digamma_positive(x):
    """`digamma` for x > 0 and NaN.

    Below 1 as digamma(1 + x) - 1 / x.
    """
    small = x < 1.0
    t = x + 1.0 if small else x
    near = t < 2.0
    inverse = 1.0 / x
    w = (t if near else 2.0) - 1.5
    close = (t - DIGAMMA_ROOT - DIGAMMA_ROOT_REST) * polynomial(w, DIGAMMA_NEAR)
    v = 0.5 if near else inverse
    u = v * v
    far = log(x) - (0.5 * v + u * polynomial(u, DIGAMMA_FAR))
    result = (close - inverse if small else close) if near else far
    return result if x < math.inf else x


def sine_of_pi(x):
    """sin(pi x) up to the sign, and cos(pi x) up to the same, for |x| < 2^52."""
    r = x - np.floor(x + 0.5)  # exact, like all steps until pi
    size = abs(r)
    turned = size > 0.25
    a = 0.5 - size if turned else size
    high, lost = two_product(a, PI)
    low = lost + a * PI_REST
    across, along = sine(high, low), cosine(high, low)
    return math.copysign(along if turned else across, r), (across if turned else along)


@in_double
def lgamma(x):
    """log |gamma(x)|, to 4 ulp for x > 0; infinite at 0, -1, -2, ...

    gamma(x) gamma(-x) = -pi / (x sin(pi x))
    """
    if x > 0.0 or x != x:
        return lgamma_positive(x)
    size = abs(x)
    if size < 1e-20:
        return -log(size)
    if size >= 4503599627370496.0:  # a negative integer
        return math.inf
    across, _ = sine_of_pi(x)
    return log(PI / abs(x * across)) - lgamma_positive(size)


@in_double
def digamma(x):
    """The derivative of lgamma, to 4 ulp for x > 0; infinite at the zeros, NaN at -1, -2, ...

    digamma(x) = digamma(-x) - 1 / x - pi / tan(pi x)
    """
    if x > 0.0 or x != x:
        return digamma_positive(x)
    size = abs(x)
    if size < 1e-20:
        return -1.0 / x
    if np.floor(x) == x:
        return math.nan
    across, along = sine_of_pi(x)
    return digamma_positive(size) - 1.0 / x - PI * along / across


# --- polygamma: derivatives of digamma, no vector function -----------------------------------------------------------


def hurwitz_zeta(s, x):
    """The sum of (x + k)^-s over k >= 0, for s > 1 and x >= 0: ten terms, and Euler and Maclaurin's rest."""
    total = 0.0 * x
    a = x
    for _ in range(10):
        total += pow(a, -s)
        a += 1.0
    power = pow(a, -s)
    total += power * (a / (s - 1.0) + 0.5)
    step = power * s / a  # times Bernoulli numbers by factorials
    total += step / 12.0
    step *= (s + 1.0) * (s + 2.0) / (a * a)
    total -= step / 720.0
    step *= (s + 3.0) * (s + 4.0) / (a * a)
    total += step / 30240.0
    step *= (s + 5.0) * (s + 6.0) / (a * a)
    total -= step / 1209600.0
    step *= (s + 7.0) * (s + 8.0) / (a * a)
    total += step / 47900160.0
    return total


def trigamma(x):
    """polygamma(1, x). At a negative integer it is not infinite, but as in PyTorch what the rounded pi x makes of it.

    trigamma(x) + trigamma(1 - x) = (pi / sin(pi x))^2
    """
    mirrored = x < 0.5
    side = hurwitz_zeta(2.0, 1.0 - x if mirrored else x) if abs(x) < math.inf else 1.0 / x
    s = np.sin(PI * x)
    return PI * PI / (s * s) - side if mirrored else side


def polygamma(n, x):
    """The n-th derivative of digamma, n >= 1: (-1)^(n + 1) n! times the sum of (x + k)^-(n + 1).

    For x < 0 the sum over all integers k depends on the fraction of x only, and what it has too much is taken off.
    """
    s = n + 1.0
    even = np.floor(0.5 * s) * 2.0 == s
    if x <= 0.0 and np.floor(x) == x:
        return math.inf if even else -math.inf
    fraction = x - np.floor(x)
    mirrored = hurwitz_zeta(s, 1.0 - fraction) - hurwitz_zeta(s, 1.0 - x) if x < 0.0 else 0.0
    total = hurwitz_zeta(s, fraction if x < 0.0 else x) + (mirrored if even else -mirrored)
    factorial = exp(lgamma_positive(s))
    return factorial * total if even else -factorial * total
