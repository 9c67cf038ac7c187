"""Scans against numpy, on awkward layouts and special values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.kernels import CUMPROD, CUMSUM, LOGCUMSUMEXP, ready_cumulative_extreme

from .layouts import dense, filled, injective, layouts, values

SHAPES = st.sampled_from([(5,), (9, 3), (2, 13), (3, 6, 2), (0, 2), (2, 0)])


@st.composite
def scans(draw):
    """Layouts of an input and an output, and a dimension."""
    shape = draw(SHAPES)
    return draw(layouts(shape)), injective(draw(layouts(shape))), draw(st.integers(0, len(shape) - 1))


def run(ready, x, out, *more):
    arrays = [part for one in (out, *more, x) for part in (one.array, one.offset)]
    ready(*arrays)


@given(scans(), st.sampled_from(["float32", "float64", "bfloat16", "int64", "uint8", "complex64"]), st.integers(0, 99))
def test_running_sums_and_products_follow_numpy(scan, dtype, seed):
    x_layout, out_layout, dim = scan
    x = filled(x_layout, dtype, np.random.default_rng(seed))
    kept = "int64" if dtype == "uint8" else dtype
    out = filled(out_layout, kept, np.random.default_rng(seed))
    for scan, function in ((CUMSUM, np.cumsum), (CUMPROD, np.cumprod)):
        run(scan.ready(out, x, dim), x, out)
        wide = values(x).astype("int64" if dtype in ("int64", "uint8") else "complex128")
        expected = function(wide, dim)
        expected = expected if kept == "complex64" else expected.real
        np.testing.assert_array_equal(values(out), values(dense(expected, kept)))


@given(scans(), st.booleans(), st.sampled_from(["float32", "bfloat16", "int64"]), st.integers(0, 99))
def test_running_extremes_say_where_the_last_of_them_stands(scan, largest, dtype, seed):
    x_layout, out_layout, dim = scan
    x = filled(x_layout, dtype, np.random.default_rng(seed))
    if dtype == "float32" and seed % 2:
        x.array[seed % len(x.array)] = np.nan
    best, places = filled(out_layout, dtype, np.random.default_rng(0)), dense(np.zeros(x.shape, np.int64))
    run(ready_cumulative_extreme(best, places, x, dim, largest=largest), x, best, places)
    numbers = values(x)
    expected = (np.maximum if largest else np.minimum).accumulate(numbers, dim)
    np.testing.assert_array_equal(values(best), expected)
    same = (numbers == expected) | np.isnan(numbers.astype(float))
    steps = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(x.shape))])
    np.testing.assert_array_equal(values(places), np.maximum.accumulate(np.where(same, steps, 0), dim))


@given(scans(), st.integers(0, 99))
def test_running_log_sum_exps_follow_their_definition(scan, seed):
    x_layout, out_layout, dim = scan
    x, out = (filled(layout, "float32", np.random.default_rng(seed)) for layout in (x_layout, out_layout))
    run(LOGCUMSUMEXP.ready(out, x, dim), x, out)
    expected = np.log(np.cumsum(np.exp(values(x).astype(float)), dim))
    np.testing.assert_allclose(values(out), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "numbers,expected",
    [
        ([-np.inf, -np.inf, 0], [-np.inf, -np.inf, 0]),
        ([0, np.inf, 1, np.inf, -np.inf], [0, np.inf, np.inf, np.inf, np.inf]),
        ([1, np.nan, 2], [1, np.nan, np.nan]),
        ([1000, 1000 + np.log(3)], [1000, 1000 + np.log(4)]),
    ],
)
def test_log_sum_exps_of_infinities_nan_and_large_numbers(numbers, expected):
    x, out = dense(np.array(numbers, np.float32)), dense(np.zeros(len(numbers), np.float32))
    run(LOGCUMSUMEXP.ready(out, x, 0), x, out)
    np.testing.assert_allclose(out.array, expected, rtol=1e-6)


def test_a_running_sum_of_a_million_tenths_does_not_drift():
    x, out = dense(np.full(10**6, 0.1, np.float32)), dense(np.zeros(10**6, np.float32))
    run(CUMSUM.ready(out, x, 0), x, out)
    np.testing.assert_allclose(out.array, np.arange(1, 10**6 + 1) * float(np.float32(0.1)), rtol=1e-7)


def test_a_float64_product_that_leaves_the_range_in_another_order_stays_finite():
    x, out = dense(np.array([1e-300, 1.0, 1e-8, 1e300, 1e300])), dense(np.zeros(5))
    run(CUMPROD.ready(out, x, 0), x, out)
    np.testing.assert_allclose(out.array, [1e-300, 1e-300, 1e-308, 1e-8, 1e292])
