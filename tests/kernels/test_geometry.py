"""Which elements a loop meets, where they lie, and which an index names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.kernels import (
    BadIndex,
    Operand,
    broadcast_shapes,
    check_view,
    contiguous_strides,
    embedding,
    embedding_dense_backward,
    gather,
    has_internal_overlap,
    index,
    index_add,
    index_put,
    index_select,
    index_shape,
    infer_view_strides,
    is_contiguous,
    is_dense,
    output_strides,
    overlap,
    ready_nll_loss,
    ready_nll_loss_backward,
    scatter,
)

from .layouts import dense, ends, filled, injective, layouts, values

# Shapes, strides and shared memory, against brute force and numpy -----------------------------------------------------


def cells(shape, strides, offset=0):
    """The storage position of every element, row-major."""
    position = np.full(shape, offset, np.int64)
    for grid, stride in zip(np.indices(shape), strides, strict=True):
        position += grid * stride
    return position.ravel()


free = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=4).map(
    lambda pairs: (tuple(n for n, _ in pairs), tuple(s for _, s in pairs))
)


@given(free)
def test_internal_overlap_is_exact(view):
    positions = cells(*view)
    assert has_internal_overlap(*view) == (len(np.unique(positions)) < len(positions))


@given(free, free, st.integers(0, 12), st.integers(0, 12), st.sampled_from([("int8", "int32"), ("int32", "int32")]))
def test_overlap_of_two_windows_is_exact(a, b, offset_a, offset_b, dtypes):
    memory = np.zeros(512, np.int8)
    first = Operand(memory.view(dtypes[0]), dtypes[0], *a, offset_a)
    second = Operand(memory.view(dtypes[1]), dtypes[1], *b, offset_b)

    def touched(x):
        return {int(c) * x.array.itemsize + k for c in cells(*x[2:]) for k in range(x.array.itemsize)}

    answer = overlap(first, second)
    assert (answer != "no") == bool(touched(first) & touched(second))
    if answer == "full":
        assert np.array_equal(cells(*first[2:]), cells(*second[2:]))


def test_operands_in_different_storages_do_not_overlap():
    x, y = (Operand(np.zeros(4), "float64", (4,), (1,)) for _ in range(2))
    assert overlap(x, y) == "no"
    assert overlap(x, x) == "full"
    assert overlap(x, x._replace(shape=(3,), offset=1)) == "partial"


def test_a_hopeless_overlap_question_is_answered_on_the_safe_side():
    assert has_internal_overlap((500,) * 6, (1_000_003, 999_983, 999_979, 999_961, 999_959, 999_953))


@given(layouts(), st.data())
def test_view_strides_name_the_same_cells_or_there_are_none(layout, data):
    shape, strides, _, _ = layout
    count = int(np.prod(shape))
    new_shape, left = [], count
    while left > 1 and len(new_shape) < 4:
        factor = data.draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
        new_shape.append(factor)
        left //= factor
    new_shape = (0,) if count == 0 else (*new_shape, left)
    found = infer_view_strides(shape, strides, new_shape)
    positions = cells(shape, strides)
    if found is not None:
        np.testing.assert_array_equal(cells(new_shape, found), positions)
        return
    memory = np.zeros(int(positions.max()) + 1)  # numpy agrees that a copy is needed
    view = np.lib.stride_tricks.as_strided(memory, shape, [s * 8 for s in strides])
    with pytest.raises(ValueError):
        view.reshape(new_shape, copy=False)


def test_results_lie_as_their_inputs_do():
    assert output_strides((2, 3), (((2, 3), (1, 2)), ((2, 3), (1, 2)))) == (1, 2)
    assert output_strides((2, 3), (((2, 3), (1, 2)), ((2, 1), (1, 1)))) == (1, 2)
    assert output_strides((2, 3), (((2, 3), (3, 1)), ((3,), (1,)))) == (3, 1)
    assert output_strides((2, 3, 4), (((2, 3, 4), (24, 1, 6)),)) == (12, 1, 3)
    assert output_strides((3, 3), (((3, 3), (0, 1)),)) == (3, 1)
    assert output_strides((2, 0, 3), (((2, 0, 3), (3, 3, 1)),)) == (3, 3, 1)
    assert output_strides((1, 2, 1, 2), (((1, 2, 1, 2), (1, 1, 2, 2)),)) == (4, 1, 4, 2)  # channels last


def test_contiguous_and_dense():
    assert contiguous_strides((2, 0, 3)) == (3, 3, 1)
    assert contiguous_strides(()) == ()
    assert is_contiguous((3, 1, 2), (2, 99, 1))
    assert not is_contiguous((2, 3), (1, 2))
    assert is_dense((2, 3), (1, 2))
    assert not is_dense((2, 3), (0, 1))


def test_shapes_that_do_not_broadcast_name_the_dimension():
    assert broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    assert broadcast_shapes((0, 1), (1, 5)) == (0, 5)
    with pytest.raises(RuntimeError) as error:
        broadcast_shapes((2, 3), (2,))
    assert str(error.value) == (
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1"
    )


NUMBERS = st.sampled_from([0, 1, -1, 2, 5, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63])


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3), NUMBERS, st.sampled_from([0, 1, 12, 2**40]))
def test_check_view_accepts_exactly_what_lies_inside_the_storage(dims, offset, size):
    shape, strides = tuple(n for n, _ in dims), tuple(s for _, s in dims)
    numbers = (*shape, *strides, offset)
    allowed = min(numbers) >= 0 and max(numbers) < 2**63 and int(np.prod([1, *shape], dtype=object)) < 2**63
    if allowed and 0 not in shape:
        allowed = offset + sum((n - 1) * s for n, s in dims) < size
    if allowed:
        check_view(shape, strides, offset, size)
    else:
        with pytest.raises(RuntimeError):
            check_view(shape, strides, offset, size)


# Indexing against numpy, and bounds: no index outside its dimension reaches memory ------------------------------------

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
