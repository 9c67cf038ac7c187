"""Kernels for callers that remember them: what is made ready for some operands serves all that look alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.kernels import (
    SOFTMAX,
    SUM,
    Operand,
    contiguous_strides,
    ready_addmm,
    ready_cat,
    ready_copy,
    ready_extreme,
    ready_fill,
    ready_matmul,
)
from redispatch.kernels.cpu.blas import FEW

from .layouts import dense, ends, filled, layouts, values


def empty(shape, dtype):
    shape = tuple(shape)
    return Operand(np.full(max(int(np.prod(shape)), 1), 99, dtype), dtype, shape, contiguous_strides(shape))


@st.composite
def matrices(draw, batch, rows, columns):
    """A matrix, or a batch of them, that lies row by row, column by column, stepped or expanded."""
    shape = (*batch, rows, columns)
    return draw(layouts(shape))


@given(st.data(), st.sampled_from(["float32", "float64", "int64"]), st.integers(0, 99))
def test_products_of_matrices_follow_numpy_whatever_their_size_and_strides(data, dtype, seed):
    n, k, m = (data.draw(st.sampled_from([0, 1, 2, 3, 5, 8, 20])) for _ in range(3))
    batch = data.draw(st.sampled_from([(), (3,)]))
    rng = np.random.default_rng(seed)
    layout_a, layout_b = data.draw(matrices(batch, n, k)), data.draw(matrices(batch, k, m))
    a, b = filled(layout_a, dtype, rng), filled(layout_b, dtype, rng)
    out, bias = empty((*batch, n, m), dtype), filled(data.draw(matrices(batch, n, m)), dtype, rng)
    multiply, add = ready_matmul(out, a, b), ready_addmm(out, bias, a, b, alpha=2, beta=3)
    for x in (a, filled(layout_a, dtype, rng)):  # the second time with others that look alike
        product = np.matmul(values(x), values(b))
        multiply(*ends(out, x, b))
        np.testing.assert_array_equal(values(out), product)
        add(*ends(out, bias, x, b))
        np.testing.assert_array_equal(values(out), 2 * product + 3 * values(bias))


def test_a_bias_times_zero_is_not_read():
    a, bias = dense(np.ones((2, 2), np.float32)), dense(np.full((2, 2), np.nan, np.float32))
    out = empty((2, 2), "float32")
    ready_addmm(out, bias, a, a, beta=0)(*ends(out, bias, a, a))
    assert values(out).tolist() == [[2, 2], [2, 2]]


def test_a_small_product_and_a_large_one_agree_with_each_other():
    rng = np.random.default_rng(0)
    k = FEW // 8
    rows, columns = rng.random((2, k), dtype=np.float32), rng.random((k, 4), dtype=np.float32)
    small, large = empty((2, 4), "float32"), empty((40, 4), "float32")
    ready_matmul(small, dense(rows), dense(columns))(*ends(small, dense(rows), dense(columns)))
    many = dense(np.tile(rows, (20, 1)))
    ready_matmul(large, many, dense(columns))(*ends(large, many, dense(columns)))
    np.testing.assert_allclose(np.tile(values(small), (20, 1)), values(large), rtol=1e-5)


@given(st.data(), st.integers(0, 2), st.integers(0, 99), st.sampled_from([1, 3, 9]))
def test_parts_are_put_one_behind_the_other_as_numpy_does(data, axis, seed, count):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(count):
        shape = [2, 3, 2]
        shape[axis] = data.draw(st.integers(0, 3))
        even = data.draw(st.booleans())
        layout = (tuple(shape), contiguous_strides(tuple(shape)), 1, 19) if even else data.draw(layouts(tuple(shape)))
        parts.append(filled(layout, "float32", rng))
    expected = np.concatenate([values(x) for x in parts], axis)
    out = empty(expected.shape, "float32")
    ready_cat(out, parts, axis)(*ends(out, *parts))
    np.testing.assert_array_equal(values(out), expected)


def test_parts_of_another_dtype_are_converted_and_empty_vectors_left_out():
    parts = [dense(np.ones((1, 2), np.int64)), dense(np.zeros(0, np.float32)), dense(np.full((2, 2), 0.5, np.float32))]
    out = empty((3, 2), "float32")
    ready_cat(out, parts, 0)(*ends(out, *parts))
    assert values(out).tolist() == [[1, 1], [0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool"])
def test_a_copy_that_was_made_ready_serves_any_offset(dtype):
    source = dense(np.arange(6) % 2, dtype)
    x, out = source._replace(shape=(2,), strides=(2,)), dense(np.zeros(2), dtype)
    move = ready_copy(out, x)
    for offset in (0, 1, 3):
        move(out.array, 0, x.array, offset)
        np.testing.assert_array_equal(values(out), values(source)[offset : offset + 3 : 2])


def test_a_fill_that_was_made_ready_serves_any_number():
    x = dense(np.zeros((2, 3), np.float32))._replace(shape=(2, 2), strides=(3, 1))
    fill = ready_fill(x, 0.0)
    for number in (1.5, -2.0):
        fill(x.array, 1, number)
        assert x.array.tolist() == [0, number, number, 0, number, number]


def test_reductions_over_one_dimension_take_the_same_sum_whatever_loop_runs():
    rng = np.random.default_rng(0)
    for shape in [(5, 7), (40, 60), (3000, 4)]:
        x = dense(rng.integers(-9, 9, shape).astype(np.float32))
        for axis in (0, 1):
            expected = values(x).sum(axis)
            out = empty(expected.shape, "float32")
            SUM.ready(out, x, (axis,))(*ends(out, x))
            np.testing.assert_array_equal(values(out), expected)


def test_softmax_of_few_elements_is_that_of_many():
    rng = np.random.default_rng(0)
    for shape in [(3, 4), (30, 40)]:
        x = dense(rng.random(shape, dtype=np.float32))
        for axis in (0, 1):
            out, grown = empty(shape, "float32"), np.exp(values(x))
            SOFTMAX.ready(out, x, axis)(*ends(out, x))
            np.testing.assert_allclose(values(out), grown / grown.sum(axis, keepdims=True), rtol=1e-5)


def test_places_are_found_without_anyone_asking_for_values():
    x = dense(np.array([[3, 1, 2], [0, 5, 5]], np.float32))
    out = empty((2,), "int64")
    find = ready_extreme(None, out, x, (1,), largest=True)
    find(*ends(out, x))
    assert values(out).tolist() == [0, 1]
