"""Mathematical functions of the kernels, against mpmath and scipy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from redispatch.kernels import Elementwise, Operand, usually
from redispatch.kernels.maths import special, vecmath

from .. import drawing
from .layouts import dense

# Vector functions -----------------------------------------------------------------------------------------------------

# The error in ulp against wider arithmetic, over all finite arguments; special values; Python's way. An ulp is the
# distance from the exact result's nearest float to the next one. The reference is the C library's long double where
# there is one (64 bits of precision; 53 are asked for), and mpmath, on fewer arguments, where there is none.

LONG = np.longdouble
WIDE_ENOUGH = np.finfo(LONG).nmant >= 63
MP = mp.mp.clone()
MP.prec = 120


def long_double(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays: function(*(a.astype(LONG) for a in arrays))


def each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of mpmath's numbers, for arrays; NaN where mpmath knows no answer."""

    def one(*numbers: Any) -> Any:
        try:
            return LONG(MP.nstr(function(*(MP.mpf(float(x)) for x in numbers)), 25))
        except (ValueError, ZeroDivisionError, OverflowError, TypeError, NotImplementedError, MP.NoConvergence):
            return LONG(math.nan)

    return lambda *arrays: np.array([one(*numbers) for numbers in zip(*arrays, strict=True)], LONG)


def sigmoid(x: Any) -> Any:
    e = np.exp(-abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def fading(x: Any, factor: Any) -> Any:
    """x times a factor, which vanishes faster than x grows."""
    return np.where(np.isneginf(x), -0.0, x * factor)


def softplus(x: Any) -> Any:
    return np.logaddexp(x, LONG(0))


def logit(x: Any) -> Any:
    return np.where(abs(x - 0.5) < 0.25, 2 * np.arctanh(2 * x - 1), np.log(x) - np.log1p(-x))


# Of a result below all that a long double holds, the reference is 0.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in conversion from string:RuntimeWarning")


@dataclass(frozen=True)
class Case:
    """A function, its largest error in ulp, its reference, and where its arguments are densest."""

    name: str
    bound: float
    reference: Callable[..., Any]
    low: float = -20.0
    high: float = 20.0
    sampled: bool = False  # whether the reference is slow

    def __str__(self) -> str:
        return self.name


def case(name: str, bound: float, numpy_function: Callable[..., Any], *span: float) -> Case:
    return Case(name, bound, long_double(numpy_function), *span)


def sampled(name: str, bound: float, function: Callable[..., Any], *span: float) -> Case:
    return Case(name, bound, each(function), *span, sampled=True)


UNARY = [
    case("exp", 1, np.exp, -750, 712),
    case("exp2", 1.5, np.exp2, -1080, 1026),
    case("expm1", 2, np.expm1),
    case("log", 1, np.log, 0, 3),
    case("log2", 2, np.log2, 0, 3),
    case("log10", 2, np.log10, 0, 3),
    case("log1p", 2, np.log1p, -1, 3),
    case("sin", 1, np.sin),
    case("cos", 1, np.cos),
    case("tan", 3, np.tan),
    case("asin", 2, np.arcsin, -1, 1),
    case("acos", 2, np.arccos, -1, 1),
    case("atan", 2, np.arctan),
    case("sinh", 3, np.sinh),
    case("cosh", 2, np.cosh),
    case("tanh", 3, np.tanh, -10, 10),
    case("asinh", 3, np.arcsinh),
    case("acosh", 3, np.arccosh, 1, 3),
    case("atanh", 3, np.arctanh, -1, 1),
    case("sigmoid", 3, sigmoid),
    case("log_sigmoid", 3, lambda x: -softplus(-x)),
    case("softplus", 3, softplus),
    case("logit", 3, logit, 0, 1),
    case("silu", 4, lambda x: fading(x, sigmoid(x))),
    case("mish", 4, lambda x: fading(x, np.tanh(softplus(x)))),
    sampled("erf", 3, MP.erf, -6, 6),
    sampled("erfc", 4, MP.erfc, -6, 28),
    sampled("erfinv", 4, MP.erfinv, -1, 1),
    sampled("lgamma", 4, lambda x: MP.loggamma(x) if x > 0 else MP.nan, 0, 40),
    sampled("digamma", 4, lambda x: MP.digamma(x) if x > 0 else MP.nan, 0, 40),
    sampled("gelu", 4, lambda x: x * MP.erfc(-x / MP.sqrt(2)) / 2, -15, 5),
]
BINARY = [
    case("atan2", 2, np.arctan2),
    case("pow", 2, np.power, 0, 5),
]
TYPES = [np.float32, np.float64]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, 1e20, 5e-324, -5e-324, 1e-310, 1e-45, 1e-40]
SPECIAL += [3.4e38, -3.4e38, 1.7e308, -1.7e308, 88.7, 89, -87.5, -103.9, -104.5, 709.7, 709.8, -745, -746, 710.4, 2.5]


def apply(body: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    out = dense(np.zeros(len(arrays[0]), arrays[0].dtype))
    Elementwise(body.__name__, body).run(out, *map(dense, arrays))
    return out.array


def scalar_function(name: str) -> Callable[..., Any]:
    """The function as an operator is declared with it: one vectorised in its usual case only is looked at first."""
    function = getattr(vecmath, name)
    if name in ("atan2", "pow"):

        def binary(x, y):
            return function(x, y)

        return binary if name == "atan2" else usually(vecmath.pow_ordinary, when=vecmath.is_ordinary_power)(binary)

    def unary(x):
        return function(x)

    if name in ("sin", "cos", "tan"):
        return usually(getattr(vecmath, f"{name}_moderate"), when=vecmath.is_moderate)(unary)
    if name in ("lgamma", "digamma"):
        return usually(getattr(vecmath, f"{name}_positive"), when=vecmath.is_positive)(unary)
    return unary


def arguments(case: Case, kind: type, count: int, seed: int = 0) -> np.ndarray:
    """A dense grid where it matters, numbers close to 0 and to 1, any bit patterns, and special values."""
    rng = np.random.default_rng(seed)
    unsigned = {np.float32: np.uint32, np.float64: np.uint64}[kind]
    patterns = rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True).view(kind)
    parts = [np.linspace(case.low, case.high, count), rng.uniform(-100, 100, count // 4)]
    parts += [2 ** rng.uniform(-30, 3, count // 4) * rng.choice([-1, 1], count // 4)]
    parts += [1 + rng.uniform(-1, 1, count // 8) * 2 ** rng.uniform(-40, 0, count // 8)]
    with np.errstate(over="ignore"):
        return np.concatenate([*(part.astype(kind) for part in parts), patterns, np.array(SPECIAL).astype(kind)])


def pairs(case: Case, kind: type, count: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = (arguments(case, kind, count, seed) for seed in (0, 1))
    rng = np.random.default_rng(2)
    rng.shuffle(y)
    near_one = (1 + rng.uniform(-0.1, 0.1, count)).astype(kind)  # to large powers
    large = rng.uniform(-7000, 7000, count).astype(kind)
    with np.errstate(over="ignore"):
        special = np.array([*SPECIAL, -3, -2.5, 1e9 + 1]).astype(kind)
    both = np.meshgrid(special, special)
    x = np.concatenate([np.abs(x[:count]) + kind(0.5), x, near_one, both[0].ravel()])  # first what is all ordinary
    return x, np.concatenate([rng.uniform(-7, 7, count).astype(kind), y, large, both[1].ravel()])


def compare(case: Case, result: np.ndarray, numbers: tuple[np.ndarray, ...]) -> None:
    """The error is within the bound where the result is finite; elsewhere, and in the sign of zero, it is exact."""
    with np.errstate(all="ignore"):
        exact = case.reference(*numbers)
        nearest = exact.astype(result.dtype)
    known = ~np.isnan(nearest) if case.sampled else np.full(len(result), True)
    finite = known & np.isfinite(nearest)
    ulp = np.abs(result[finite] - exact[finite]) / np.spacing(np.abs(nearest[finite])).astype(LONG)
    worst = np.argmax(ulp)
    assert ulp[worst] <= case.bound, f"{ulp[worst]} ulp at {[x[finite][worst] for x in numbers]}"
    np.testing.assert_array_equal(result[known & ~finite], nearest[known & ~finite])
    zero = (nearest == 0) & (result == 0) & known & (numbers[0] != 0 if case.sampled else True)
    np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(nearest[zero]))


def check(case: Case, kind: type, count: int) -> None:
    if case.name == "gelu" and kind is np.float32:
        pytest.skip("its tail is bounded otherwise, by a test of its own")
    if not WIDE_ENOUGH and kind is np.float64 and not case.sampled:
        pytest.skip("this platform's long double is no wider than double")
    count = min(count, 600 if count < 100_000 else 30_000) if case.sampled else count
    numbers = pairs(case, kind, count) if case in BINARY else (arguments(case, kind, count),)
    compare(case, apply(scalar_function(case.name), *numbers), numbers)


EACH = [(case, kind) for case in UNARY + BINARY for kind in TYPES]


@pytest.mark.parametrize(
    "case, kind",
    drawing.draw(EACH, "bounds", count=len(EACH) // 3),
    ids=lambda one: one.name if isinstance(one, Case) else one.__name__,
)
def test_functions_stay_within_their_bound(case: Case, kind: type):
    check(case, kind, 3_000_000 if drawing.everything else 4_000)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_close_to_a_multiple_of_a_quarter_turn_keep_their_digits(name: str, kind: type):
    rng = np.random.default_rng(0)
    quarters = rng.integers(-60_000, 60_000, 6 * 1024) * np.pi / 2
    x = np.where(rng.integers(0, 2, len(quarters)), quarters, rng.uniform(-1e5, 1e5, len(quarters))).astype(kind)
    case = next(case for case in UNARY if case.name == name)
    sample = np.concatenate([x, np.nextafter(x, kind(1e9))])
    compare(case, apply(scalar_function(name), sample), (sample,))


def test_the_largest_angles_are_right():
    for kind, numbers in (
        (np.float32, [3.4028235e38, 1e30]),
        (np.float64, [1.7976931348623157e308, 6381956970095103e797]),
    ):
        x = np.array(numbers, kind)
        with MP.workprec(1300):
            exact = [float(MP.sin(MP.mpf(float(v)))) for v in x]
        np.testing.assert_allclose(apply(scalar_function("sin"), x), np.array(exact), rtol=np.finfo(kind).eps)


@pytest.mark.parametrize("name,function", [("lgamma", MP.loggamma), ("digamma", MP.digamma)])
def test_gamma_functions_below_zero_are_as_good_as_the_sides_of_the_reflection(name: str, function: Any):
    x = np.random.default_rng(0).uniform(-20, 0, 500)
    exact = [float(MP.re(function(MP.mpf(v)))) for v in x]
    np.testing.assert_allclose(apply(scalar_function(name), x), exact, rtol=2e-14, atol=2e-14)


def test_gamma_functions_at_their_poles():
    x = np.array([0.0, -0.0, -1, -2, np.inf, -np.inf, np.nan, -1e20])
    inf, nan = math.inf, math.nan
    np.testing.assert_array_equal(apply(scalar_function("lgamma"), x), [inf, inf, inf, inf, inf, inf, nan, inf])
    np.testing.assert_array_equal(apply(scalar_function("digamma"), x), [-inf, inf, nan, nan, inf, nan, nan, nan])


@pytest.mark.parametrize("case", UNARY + BINARY, ids=str)
def test_plain_python_means_the_same(case: Case):
    for number in (0.25, np.float32(0.75), np.float64(1.25), math.nan):
        numbers = (number,) * (2 if case in BINARY else 1)
        with np.errstate(all="ignore"):
            exact = case.reference(*(np.array([x], float) for x in numbers)).astype(float)[0]
            found = getattr(vecmath, case.name)(*numbers)
        if not (math.isnan(exact) and case.sampled):
            np.testing.assert_allclose(found, exact, rtol=1e-6)


def test_bodies_run_without_a_compiler():
    """Each compiled body is plain Python: numpy's scalars stand for the machine's."""
    for function, bodies in vecmath.define.BODIES.items():
        for name, body in bodies.items():
            if name == "complex" or (name == "float64" and "float32" in bodies and bodies["float32"] is body):
                continue
            kind = np.float32 if name == "float32" else np.float64
            numbers = [kind(v) for v in (0.7, 0.0 if function.__name__ == "times_exp" else 0.4, 0.5)]
            numbers = numbers[: body.__code__.co_argcount]
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(body(*numbers), function(*numbers), rtol=1e-5, equal_nan=True)


def test_complex_numbers_are_numpys():
    x = np.array([1 + 1j, -0.5 + 2j, 0.25 - 0.5j])
    for name, reference in (("exp", np.exp), ("log1p", np.log1p), ("sin", np.sin), ("asinh", np.arcsinh)):
        np.testing.assert_allclose(apply(scalar_function(name), x), reference(x))


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_both_parts_of_a_complex_tanh_are_exact(kind):
    x = np.array([11 + 0.3j, -9 + 2j, 0.1 - 1.5j, 21 - 7j, 3 - 1e-9j, 25 + 1j, complex(-0.0, 1)], kind)
    found, wanted = apply(scalar_function("tanh"), x), np.tanh(x.astype(np.complex128))
    for part in ("real", "imag"):
        rtol = 30 * np.finfo(kind).eps
        np.testing.assert_allclose(getattr(found, part), getattr(wanted, part), rtol=rtol)
        assert (np.signbit(getattr(found, part)) == np.signbit(getattr(wanted, part))).all()


def test_the_error_of_gelu_in_float32_is_small_beside_its_argument():
    x = np.concatenate([np.linspace(-12, 6, 4001), [-1e3, 1e3, -1e-40, 0]]).astype(np.float32)
    exact = np.array([v * math.erfc(-v / math.sqrt(2)) / 2 for v in x.astype(float)])
    error = np.abs(apply(scalar_function("gelu"), x) - exact)
    assert (error <= 2.0**-23 * np.abs(x)).all()
    right = x > -0.5
    assert (error[right] <= 4 * np.spacing(np.abs(exact[right]).astype(np.float32))).all()


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_the_tanh_form_of_gelu_agrees_with_its_formula(kind: type):
    x = np.linspace(-20, 20, 5001).astype(kind)
    wide = x.astype(LONG)
    exact = 0.5 * wide * (1 + np.tanh(LONG(0.7978845608028654) * (wide + LONG(0.044715) * wide**3)))
    result = apply(scalar_function("gelu_tanh"), x)
    np.testing.assert_allclose(result.astype(float), exact.astype(float), rtol=0, atol=30 * np.finfo(kind).eps)


# Special functions against mpmath, far from zero and near it, where one way to compute them gives over to the next ----

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
