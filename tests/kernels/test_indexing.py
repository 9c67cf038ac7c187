"""Indexing against numpy, and bounds: no index outside its dimension reaches memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.kernels import (
    BadIndex,
    Operand,
    embedding,
    embedding_dense_backward,
    gather,
    index,
    index_add,
    index_put,
    index_select,
    index_shape,
    ready_nll_loss,
    ready_nll_loss_backward,
    scatter,
)

from .layouts import dense, ends, filled, injective, layouts, values

EXTREME = [-(2**63), -(2**31) - 1, -4, -1, 3, 4, 2**31, 2**63 - 1]


@given(layouts((3, 4)), layouts((3, 4)), st.integers(0, 1), st.integers(0, 99))
def test_gather_and_scatter_follow_numpy_on_any_layout(x_layout, out_layout, dim, seed):
    rng = np.random.default_rng(seed)
    x = filled(injective(x_layout), "float32", rng)
    out = filled(injective(out_layout), "float32", rng)
    positions = rng.integers(0, x.shape[dim], (3, 4))
    assert gather(out, x, dim, dense(positions)) is None
    np.testing.assert_array_equal(values(out), np.take_along_axis(values(x), positions, dim))

    expected = values(x).copy()
    where = list(np.indices((3, 4)))
    where[dim] = positions
    np.add.at(expected, tuple(where), values(out))
    assert scatter(x, dim, dense(positions), out, "sum") is None
    np.testing.assert_array_equal(values(x), expected)


@pytest.mark.parametrize("bad", EXTREME)
def test_an_index_out_of_range_is_reported_and_what_is_changed_in_place_stays_as_it_was(bad):
    x = dense(np.arange(9, dtype=np.float32).reshape(3, 3))
    out, fresh = (dense(np.full((3, 3), 7, np.float32)) for _ in range(2))
    square = np.zeros((3, 3), np.int64)
    square[1, 2] = bad
    line = dense(np.array([0, bad, 0]))
    expected = BadIndex(bad, 1, 3)
    assert gather(fresh, x, 1, dense(square)) == expected
    assert scatter(out, 1, dense(square), x) == expected
    assert index_select(fresh, x, 1, line) == expected
    assert index_add(out, 1, line, x) == expected
    assert embedding(fresh, x, line) == expected._replace(dim=0)
    assert embedding_dense_backward(out, x, line) == expected._replace(dim=0)
    if bad != -1:  # which counts from the end here
        assert index(fresh, x, [None, line]) == expected
        assert index_put(out, [None, line], x) == expected
    assert (out.array == 7).all()


def test_a_bad_index_in_a_strided_index_is_found():
    steps = Operand(np.array([0, 99, 1, 99, 5, 99]), "int64", (3,), (2,))
    assert index_select(dense(np.zeros(3)), dense(np.zeros(3)), 0, steps) == BadIndex(5, 0, 3)
    assert index_select(dense(np.zeros(2)), dense(np.zeros(3)), 0, steps._replace(shape=(2,))) is None


@given(st.sampled_from([(0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]), st.booleans(), st.integers(0, 99))
def test_several_indices_follow_numpy(dims, accumulate, seed):
    rng = np.random.default_rng(seed)
    x = filled(((3, 4, 2), (1, 6, 3), 2, 30), "float32", rng)
    shapes = [(2, 1), (3,), (2, 3)]
    chosen = [rng.integers(-x.shape[d], x.shape[d], shapes[d]) if d in dims else None for d in range(3)]
    indices = [None if one is None else dense(one) for one in chosen]
    numpy_indices = tuple(slice(None) if one is None else one for one in chosen)
    expected = values(x)[numpy_indices]
    shape, _ = index_shape(x.shape, [None if one is None else one.shape for one in chosen])
    assert shape == expected.shape
    out = dense(np.zeros(shape, np.float32))
    assert index(out, x, indices) is None
    np.testing.assert_array_equal(values(out), expected)

    source = rng.integers(0, 9, shape).astype(np.float32)
    after = values(x).copy()
    if accumulate:
        np.add.at(after, numpy_indices, source)
    else:
        after[numpy_indices] = source
    assert index_put(x, indices, dense(source), accumulate=accumulate) is None
    np.testing.assert_array_equal(values(x), after)


def test_a_target_that_is_no_class_is_reported():
    x, target = dense(np.zeros((1, 4, 1), np.float32)), dense(np.array([[4]]))
    loss, total = dense(np.zeros((), np.float32)), dense(np.zeros((), np.float32))
    assert ready_nll_loss(loss, x, target)(*ends(loss, total, x, target)) == BadIndex(4, 1, 4)
    for label in (4, -1):
        bad = dense(np.array([[label]]))
        spread = ready_nll_loss_backward(x, loss, bad)
        assert spread(*ends(x, loss, total, bad)) == BadIndex(label, 1, 4)
