"""Special functions against mpmath, far from zero and near it, where one way to compute them gives over to the next."""

import math

import mpmath as mp
import numpy as np
import pytest

from redispatch.kernels import Elementwise, Operand
from redispatch.kernels.maths import special

from .. import drawing

MANY = np.concatenate([[1e-12, 1e-10, 1e-6, 0.01], np.linspace(0.1, 3, 30), np.linspace(3.1, 60, 90), [1e3, 1e5]])
MODERATE = MANY[MANY < 600]


def computed(function, *arrays):
    """The compiled function of float64 arrays."""
    operands = [Operand(np.ascontiguousarray(x, float), "float64", (len(x),), (1,)) for x in arrays]
    out = Operand(np.empty(len(arrays[0])), "float64", (len(arrays[0]),), (1,))
    Elementwise(function.__name__, function).run(out, *operands, dtype="float64")
    return out.array


def exactly(function, *arrays):
    with mp.workdps(30):
        return np.array([float(function(*map(mp.mpf, map(float, numbers)))) for numbers in zip(*arrays, strict=True)])


BESSEL = {
    special.bessel_j0: lambda x: mp.besselj(0, x),
    special.bessel_j1: lambda x: mp.besselj(1, x),
    special.bessel_y0: lambda x: mp.bessely(0, x),
    special.bessel_y1: lambda x: mp.bessely(1, x),
    special.spherical_bessel_j0: lambda x: mp.sinc(x),
}
MODIFIED = {
    special.modified_bessel_i0: lambda x: mp.besseli(0, x),
    special.modified_bessel_i1: lambda x: mp.besseli(1, x),
    special.modified_bessel_k0: lambda x: mp.besselk(0, x),
    special.modified_bessel_k1: lambda x: mp.besselk(1, x),
    special.scaled_modified_bessel_i0: lambda x: mp.besseli(0, x) * mp.exp(-x),
    special.scaled_modified_bessel_i1: lambda x: mp.besseli(1, x) * mp.exp(-x),
    special.scaled_modified_bessel_k0: lambda x: mp.besselk(0, x) * mp.exp(x),
    special.scaled_modified_bessel_k1: lambda x: mp.besselk(1, x) * mp.exp(x),
}


def some_of(functions, count):
    """Parametrizes a test by functions that are drawn, and what they are exactly."""
    drawn = drawing.draw(functions.items(), "bessel", count=count)
    return pytest.mark.parametrize("function, exact", drawn, ids=lambda value: value.__name__)


@some_of(BESSEL, 2)
def test_bessel_functions_are_exact_to_the_last_digits_of_their_envelope(function, exact):
    np.testing.assert_allclose(computed(function, MANY), exactly(exact, MANY), rtol=1e-15, atol=4e-16)


@some_of(MODIFIED, 3)
def test_modified_bessel_functions_are_exact_to_the_last_digits(function, exact):
    np.testing.assert_allclose(computed(function, MODERATE), exactly(exact, MODERATE), rtol=3e-15)


def test_airy_falls_on_one_side_and_swings_on_the_other():
    x = np.linspace(1, 30, 60)
    np.testing.assert_allclose(computed(special.airy_ai, x), exactly(mp.airyai, x), rtol=4e-14)
    x = np.linspace(-40, 1, 200)
    np.testing.assert_allclose(computed(special.airy_ai, x), exactly(mp.airyai, x), rtol=1e-14, atol=1e-14)


def test_the_normal_distribution_is_exact_in_its_tails():
    x = np.linspace(-26, 60, 100)
    exact = exactly(lambda x: mp.exp(x * x) * mp.erfc(x), x)
    np.testing.assert_allclose(computed(special.erfcx, x), exact, rtol=2e-15)
    x = np.linspace(-50, 8, 100)
    exact = exactly(lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), x[x < 5])
    np.testing.assert_allclose(computed(special.log_ndtr, x)[x < 5], exact, rtol=4e-15)


def test_ndtri_is_the_inverse_of_the_distribution_function():
    p = np.concatenate([10.0 ** -np.arange(1, 300, 20), np.linspace(0.01, 0.99, 50)])
    x = computed(special.ndtri, p)
    np.testing.assert_allclose(exactly(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, x), p, rtol=2e-13)


def test_the_two_incomplete_gamma_functions_are_exact_and_sum_to_one():
    a, x = map(np.ravel, np.meshgrid([0.01, 0.5, 1, 3.7, 9.5, 25, 120], [0.001, 0.4, 1, 2.5, 9, 24, 30, 110, 150]))
    lower, upper = computed(special.lower_gamma, a, x), computed(special.upper_gamma, a, x)
    exact = exactly(lambda a, x: mp.gammainc(a, 0, x, regularized=True), a, x)
    np.testing.assert_allclose(lower, exact, rtol=3e-13, atol=1e-300)
    exact = exactly(lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), a, x)
    np.testing.assert_allclose(upper, exact, rtol=3e-13, atol=1e-300)
    a = np.array([1e4, 1e6, 1e8])
    half = computed(special.lower_gamma, a, a) + computed(special.upper_gamma, a, a)
    np.testing.assert_allclose(half, 1.0, rtol=1e-12)


def test_zeta_is_exact_and_mirrors_at_zero():
    s, q = map(np.ravel, np.meshgrid([1.05, 2, 3, 9.6, 12], [0.01, 0.5, 1, 7, 47.8, 100]))
    np.testing.assert_allclose(computed(special.zeta, s, q), exactly(mp.zeta, s, q), rtol=2e-14)
    s, q = np.array([3.0, 4.0]), np.array([-1.5, -2.25])
    exact = [sum((-1.5 + k) ** -3 for k in range(2)), sum((-2.25 + k) ** -4 for k in range(3))]
    rest = exactly(mp.zeta, s, q + [2, 3])
    np.testing.assert_allclose(computed(special.zeta, s, q), exact + rest, rtol=1e-13)


def test_what_stands_at_the_borders():
    borders = np.array([0.0, math.inf, -1.0, math.nan])
    expected = {
        special.bessel_j0: [1, 0, 0.7651976865579666, math.nan],
        special.bessel_y0: [-math.inf, 0, math.nan, math.nan],
        special.modified_bessel_k1: [math.inf, 0, math.nan, math.nan],
        special.scaled_modified_bessel_k0: [math.inf, 0, math.nan, math.nan],
        special.spherical_bessel_j0: [1, 0, math.sin(1), math.nan],
        special.airy_ai: [0.3550280538878172, 0, 0.5355608832923521, math.nan],
        special.erfcx: [1, 0, 5.008980080762283, math.nan],
        special.ndtri: [-math.inf, math.nan, math.nan, math.nan],
    }
    for function, values in expected.items():
        np.testing.assert_allclose(computed(function, borders), values, rtol=1e-14)


def test_polynomials_of_high_degree_swing_between_minus_one_and_one():
    x = np.linspace(-0.99, 0.99, 41)
    n = np.full(41, 300.0)
    np.testing.assert_allclose(computed(special.chebyshev_t, x, n), np.cos(300 * np.arccos(x)), atol=1e-12)
    assert np.abs(computed(special.legendre_p, x, n)).max() < 0.2
    assert (computed(special.hermite_h, x, -np.ones(41)) == 0).all()
