"""Shapes, strides and shared memory, against brute force and numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.kernels import (
    Operand,
    broadcast_shapes,
    check_view,
    contiguous_strides,
    has_internal_overlap,
    infer_view_strides,
    is_contiguous,
    is_dense,
    output_strides,
    overlap,
)

from .layouts import layouts


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
