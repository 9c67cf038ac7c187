"""Vector functions: error in ulp against float64, and special values."""

import math

import numpy as np
import pytest

from redispatch.kernels import Elementwise, erf, exp, gelu, gelu_tanh, log, sigmoid, tanh

from .layouts import dense


def exp_of(x):
    return exp(x)


def log_of(x):
    return log(x)


def tanh_of(x):
    return tanh(x)


def erf_of(x):
    return erf(x)


SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-45,
    1e-38,
    3e38,
    -3e38,
    88.7,
    89.0,
    -87.5,
    -103.9,
    -104.5,
    1.0,
]
each_erf = np.vectorize(math.erf, otypes=[float])
CASES = [
    (exp_of, np.exp, (-104, 89), 1.5),
    (log_of, np.log, (0, 10), 2),
    (tanh_of, np.tanh, (-10, 10), 2.5),
    (erf_of, each_erf, (-5, 5), 2.5),
]


def apply(body, x):
    out = dense(np.zeros(len(x), x.dtype))
    Elementwise(body.__name__, body).run(out, dense(x))
    return out.array


@pytest.mark.parametrize("body,reference,span,bound", CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_float32_functions_stay_within_their_bound(body, reference, span, bound):
    rng = np.random.default_rng(0)
    tiny = np.exp(rng.uniform(-100, 88, 20_000)) * rng.choice([-1, 1], 20_000)
    x = np.concatenate([rng.uniform(*span, 80_000), tiny, SPECIAL]).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        nearest = exact.astype(np.float32)
        ulp = np.abs((apply(body, x) - exact) / np.spacing(np.abs(nearest)).astype(np.float64))
    result = apply(body, x)
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(result[~finite], nearest[~finite])
    assert np.isfinite(result[finite]).all()
    assert ulp[finite].max() <= bound
    np.testing.assert_array_equal(np.signbit(result[nearest == 0]), np.signbit(nearest[nearest == 0]))


@pytest.mark.parametrize("body", [sigmoid, gelu, gelu_tanh])
def test_activations_agree_with_float64(body):
    x = np.concatenate([np.linspace(-20, 20, 5001), [np.nan, 0, 100, -100]])
    wide = apply(body, x)
    np.testing.assert_allclose(apply(body, x.astype(np.float32)), wide, rtol=3e-6, atol=4e-7)
    assert np.isnan(wide[-4])


def test_plain_python_means_the_same():
    for body, reference, _, _ in CASES:
        for number in (0.5, np.float32(0.25), math.nan):
            np.testing.assert_allclose(body(number), reference(np.float64(number)), rtol=1e-6)
