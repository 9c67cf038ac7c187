"""Kernels along a dimension: reductions, scans, sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.kernels import (
    ALL,
    AMAX,
    AMIN,
    ANY,
    CUMPROD,
    CUMSUM,
    LOG_SOFTMAX,
    LOGCUMSUMEXP,
    MEAN,
    PROD,
    SOFTMAX,
    SUM,
    Operand,
    addmm,
    extreme_with_indices,
    get_num_threads,
    matmul,
    ready_cumulative_extreme,
    ready_rank,
    ready_sort,
    ready_top,
    set_num_threads,
)

from .. import drawing
from .layouts import dense, ends, filled, injective, layouts, values

# Reductions, softmax and matrix products against numpy, on awkward layouts and special values -------------------------


@given(layouts(), st.sets(st.integers(0, 2)), st.booleans(), st.integers(0, 99))
def test_sums_over_any_dimensions_follow_numpy(layout, dims, keepdim, seed):
    dims = tuple(sorted(d for d in dims if d < len(layout[0])))
    x = filled(layout, "float32", np.random.default_rng(seed))
    expected = values(x).sum(dims, keepdims=keepdim)
    out = dense(np.full(expected.shape, 9, np.float32))
    SUM.run(out, x, dims)
    np.testing.assert_array_equal(values(out), expected)


@pytest.mark.parametrize(
    "shape,dims", [((21, 40), (0,)), ((3, 17, 1100), (0, 1)), ((2, 9, 30), (1,)), ((4, 9, 30), (0, 2))]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool", "complex64"])
def test_sums_and_extremes_of_columns_follow_numpy(shape, dims, dtype):
    layout = (shape, tuple(int(np.prod(shape[d + 1 :])) for d in range(len(shape))), 0, int(np.prod(shape)))
    x = filled(layout, dtype, np.random.default_rng(0))
    kept = "int64" if dtype in ("int32", "bool") else dtype
    wide = values(x).astype("int64" if kept == "int64" else "complex128")
    exact = wide.sum(dims) if dtype == "complex64" else wide.real.sum(dims)
    out = dense(np.zeros(exact.shape), kept)
    SUM.run(out, x, dims)
    np.testing.assert_array_equal(values(out), values(dense(exact, kept)))
    if dtype != "complex64":
        out = dense(np.zeros(exact.shape), dtype)
        AMIN.run(out, x, dims)
        np.testing.assert_array_equal(values(out), values(x).min(dims))


@given(layouts((3, 4, 2)), st.sampled_from([(0,), (1,), (0, 2), (0, 1, 2)]), st.booleans(), st.integers(0, 99))
def test_extremes_and_their_places_follow_numpy(layout, dims, largest, seed):
    x = filled(layout, "float32", np.random.default_rng(seed))
    spots = x.array[np.random.default_rng(seed).random(len(x.array)) < 0.1]
    x.array[: len(spots)] = np.nan
    rest = [d for d in range(3) if d not in dims]
    rows = values(x).transpose(*rest, *dims).reshape(*(x.shape[d] for d in rest), -1)
    expected = rows.max(-1) if largest else rows.min(-1)
    place = rows.argmax(-1) if largest else rows.argmin(-1)
    out, where = dense(np.zeros(expected.shape, np.float32)), dense(np.zeros(expected.shape, np.int64))
    (AMAX if largest else AMIN).run(out, x, dims)
    np.testing.assert_array_equal(values(out), expected)
    out.array[:] = 9
    extreme_with_indices(out, where, x, dims, largest=largest)
    np.testing.assert_array_equal(values(out), expected)
    np.testing.assert_array_equal(values(where), place)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16"])
def test_every_kind_of_number_is_reduced_in_its_accumulator(dtype):
    x = dense(np.array([[0, 1, 1], [3, 200, 100]]), dtype)
    integral = dtype != "bfloat16"
    for reduction, function in ((SUM, np.sum), (PROD, np.prod), (AMAX, np.max)):
        kept = dtype if reduction is AMAX else "int64" if integral else dtype
        out = dense(np.zeros(2), kept)
        reduction.run(out, x, (1,))
        expected = values(x).max(1) if reduction is AMAX else function(values(x).astype(float), 1)
        np.testing.assert_array_equal(values(out), values(dense(expected, kept)))
    for reduction, expected in ((ANY, [True, True]), (ALL, [False, True])):
        out = dense(np.zeros(2, bool))
        reduction.run(out, x, (1,))
        assert out.array.tolist() == expected


def test_ten_million_float32_tenths_add_up_and_threads_do_not_matter():
    x, out = dense(np.full(10**7 + 3, 0.1, np.float32)), dense(np.zeros((), np.float32))
    exact = (10**7 + 3) * float(np.float32(0.1))
    SUM.run(out, x, (0,))
    assert abs(float(out.array[0]) - exact) / exact < 3e-7
    MEAN.run(out, x, (0,))
    assert abs(float(out.array[0]) - 0.1) < 3e-8
    x.array[-1] = 5
    AMAX.run(out, x, (0,))
    assert out.array[0] == 5


@pytest.mark.parametrize("where", [0, 3, 700, 1023, 1024, 2999])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_an_extreme_is_found_in_whichever_block_it_stands(where, dtype):
    x = dense(np.full(3000, 5), dtype)
    x.array[where] = 9
    x.array[where:][1:2] = 9
    out, place = dense(np.zeros(()), dtype), dense(np.zeros((), np.int64))
    extreme_with_indices(out, place, x, (0,), largest=True)
    assert (out.array[0], place.array[0]) == (9, where)
    extreme_with_indices(out, place, x, (0,), largest=False)
    assert (out.array[0], place.array[0]) == (5, 0 if where else 2)


def test_of_zeros_of_either_sign_and_of_nans_the_first_wins():
    out, place = dense(np.zeros((), np.float32)), dense(np.zeros((), np.int64))
    for numbers, largest, first in (
        ([-1, -0.0, 0.0], True, 1),
        ([1, 0.0, -0.0], False, 1),
        ([1, np.nan, -np.nan], True, 1),
        ([-np.inf, -np.inf], True, 0),
    ):
        extreme_with_indices(out, place, dense(np.array(numbers, np.float32)), (0,), largest=largest)
        assert place.array[0] == first


def test_nan_and_infinities_go_through_a_reassociated_sum():
    x = np.zeros((3, 5000), np.float32)
    x[0, 4321], x[1, 7], x[2, 3], x[2, 4999] = np.nan, -np.inf, np.inf, -np.inf
    out = dense(np.zeros(3, np.float32))
    SUM.run(out, dense(x), (1,))
    np.testing.assert_array_equal(out.array, np.array([np.nan, -np.inf, np.nan], np.float32))
    columns = dense(np.zeros(3, np.float32))
    SUM.run(columns, dense(np.ascontiguousarray(x.T)), (0,))
    np.testing.assert_array_equal(columns.array, out.array)


def test_an_empty_reduction_is_the_identity():
    for reduction, identity in ((SUM, 0), (PROD, 1)):
        out = dense(np.full(2, 9, np.float32))
        reduction.run(out, dense(np.zeros((2, 0), np.float32)), (1,))
        assert out.array.tolist() == [identity] * 2


@given(layouts((3, 4)), st.integers(0, 1), st.sampled_from(["float32", "bfloat16"]), st.integers(0, 99))
def test_softmax_and_its_gradients_follow_their_definition(layout, dim, dtype, seed):
    x = filled(layout, dtype, np.random.default_rng(seed))
    tolerance = 1e-6 if dtype == "float32" else 2e-2
    exact = np.exp(values(x).astype(float))
    exact /= exact.sum(dim, keepdims=True)
    out = dense(np.zeros((3, 4)), dtype)
    SOFTMAX.ready(out, x, dim)(*ends(out, x))
    np.testing.assert_allclose(values(out), exact, atol=tolerance)
    y, grad, result = values(out).astype(float), values(x).astype(float), dense(np.zeros((3, 4), np.float32))
    SOFTMAX.ready_backward(result, x, out, dim)(*ends(result, x, out))
    np.testing.assert_allclose(values(result), y * (grad - (grad * y).sum(dim, keepdims=True)), atol=1e-5)
    LOG_SOFTMAX.ready(out, x, dim)(*ends(out, x))
    np.testing.assert_allclose(values(out), np.log(exact), atol=tolerance * 20, rtol=tolerance)
    y = np.exp(values(out).astype(float))
    LOG_SOFTMAX.ready_backward(result, x, out, dim)(*ends(result, x, out))
    np.testing.assert_allclose(values(result), grad - y * grad.sum(dim, keepdims=True), atol=3e-5)


@pytest.mark.parametrize("shape,dim", [((5, 20), 0), ((2, 3, 300), 1), ((3, 2, 9), 0)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_softmax_of_columns_side_by_side_is_that_of_rows(shape, dim, dtype):
    x = dense(np.random.default_rng(0).normal(size=shape) * 9, dtype)
    x.array[1] = 0x7FC0 if dtype == "bfloat16" else np.nan
    last = len(shape) - 1
    rows = dense(np.ascontiguousarray(values(x).swapaxes(dim, last)), dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-12 if dtype == "float64" else 1e-2
    for kernel in (SOFTMAX, LOG_SOFTMAX):
        for ready, inputs in ((kernel.ready, 1), (kernel.ready_backward, 2)):
            out, expected = dense(np.zeros(shape), dtype), dense(np.zeros(rows.shape), dtype)
            ready(out, *[x] * inputs, dim)(*ends(out, *[x] * inputs))
            ready(expected, *[rows] * inputs, last)(*ends(expected, *[rows] * inputs))
            found = values(expected).swapaxes(dim, last)
            np.testing.assert_allclose(values(out), found, rtol=3 * tolerance, atol=tolerance)


def test_softmax_of_large_nan_and_infinite_rows():
    x = np.array([[1000, 1000], [np.nan, 0], [-np.inf, -np.inf], [-np.inf, 3]], np.float32)
    out = dense(np.zeros((4, 2), np.float32))
    SOFTMAX.ready(out, dense(x), 1)(*ends(out, dense(x)))
    np.testing.assert_array_equal(values(out), [[0.5, 0.5], [np.nan] * 2, [np.nan] * 2, [0, 1]])


@given(st.tuples(*[st.integers(0, 4)] * 3), st.data(), st.sampled_from(["float32", "bfloat16", "int64"]))
def test_matrix_products_follow_numpy_on_any_layout(sizes, data, dtype):
    n, k, m = sizes
    rng = np.random.default_rng(n + 5 * k + 25 * m)
    a = filled(data.draw(layouts((n, k))), dtype, rng)
    b = filled(data.draw(layouts((k, m))), dtype, rng)
    out, bias = dense(np.zeros((n, m)), dtype), filled(data.draw(layouts((m,))), dtype, rng)
    matmul(out, a, b)
    np.testing.assert_array_equal(values(out), values(dense(values(a) @ values(b), dtype)))
    addmm(out, bias, a, b, alpha=2, beta=3)
    np.testing.assert_array_equal(values(out), values(dense(2 * (values(a) @ values(b)) + 3 * values(bias), dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_a_large_sum_is_the_same_on_one_thread_and_on_many(dtype):
    before = get_num_threads()
    x, sums = dense(np.random.default_rng(0).normal(size=3 * 10**6) * 100, dtype), []
    try:
        for threads in (1, 2, 3):
            set_num_threads(threads)
            out = dense(np.zeros(()), dtype)
            SUM.run(out, x, (0,))
            sums.append(out.array[0])
    finally:
        set_num_threads(before)
    assert sums[0] == sums[1] == sums[2]


# Scans against numpy, on awkward layouts and special values -----------------------------------------------------------

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


# Sorting and selecting along a line -----------------------------------------------------------------------------------

# Stable, NaN behind all, and right in every way that a length may take.

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")
DRAWN = drawing.draw(DTYPES, "sorted", count=2)


def operand(x):
    return Operand(x.reshape(-1), x.dtype.name, x.shape, tuple(step // x.itemsize for step in x.strides))


def sorted_by(ready, x, shape, *args, **options):
    values, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    run = ready(operand(values), operand(places), operand(x), x.ndim - 1, *args, **options)
    run(values.reshape(-1), 0, places.reshape(-1), 0, x.reshape(-1), 0)
    return values, places


def numbers(dtype, *shape):
    random = np.random.default_rng(len(shape))
    x = random.random(shape) > 0.5 if dtype == "bool" else (random.standard_normal(shape) * 100).astype(dtype)
    if dtype.startswith("float"):
        x.flat[:4] = 1.0, np.nan, 0.0, -0.0
    return x


@pytest.mark.parametrize("dtype", DRAWN)
@pytest.mark.parametrize("shape", [(5,), (3, 30), (3, 300), (20000,)], ids=str)
def test_lines_are_sorted_stably_with_nan_behind_all(dtype, shape):
    x = numbers(dtype, *shape)
    values, places = sorted_by(ready_sort, x, shape, descending=False)
    assert np.array_equal(places, np.argsort(x, axis=-1, kind="stable"))
    assert np.array_equal(values, np.take_along_axis(x, places, -1), equal_nan=True)


@pytest.mark.parametrize("dtype", DRAWN)
@pytest.mark.parametrize("shape", [(5,), (3, 300), (20000,)], ids=str)
@pytest.mark.parametrize("largest", [True, False])
def test_the_first_elements_are_those_of_the_sorted_line(dtype, shape, largest):
    x = numbers(dtype, *shape)
    values, places = sorted_by(ready_sort, x, shape, descending=largest)
    for k in (1, 4, shape[-1] // 2, shape[-1]):
        found, where = sorted_by(ready_top, x, (*shape[:-1], k), largest=largest, in_order=True)
        assert np.array_equal(where, places[..., :k])
        assert np.array_equal(found, values[..., :k], equal_nan=True)


@pytest.mark.parametrize("dtype", [dtype for dtype in DRAWN if dtype != "bool"])
@pytest.mark.parametrize("size", [1, 2, 300, 20000])
def test_an_element_of_a_rank_is_found_among_the_smallest_and_the_largest_there_are(dtype, size):
    ends = [-np.inf, np.inf] if dtype.startswith("float") else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    for x in (numbers("int32", size).astype(dtype), np.full(size, 7, dtype), np.array(ends * size, dtype)):
        for rank in (0, len(x) // 2, len(x) - 1):
            value, place = sorted_by(ready_rank, x, (1,), rank)
            assert value == np.sort(x)[rank] and x[place] == value
