"""No index outside its dimension reaches memory, nor a shape that does not fit: calls raise and write nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd

EXTREME = [-(2**63), -(2**31) - 1, -9, -5, 5, 9, 2**31, 2**63 - 1]


@st.composite
def indexed(draw):
    """A tensor's shape, a dimension, that many indices in range, and perhaps one that is not."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    dim = draw(st.integers(0, len(shape) - 1))
    index = draw(st.lists(st.integers(0, shape[dim] - 1), min_size=1, max_size=5))
    bad = draw(st.none() | st.sampled_from(EXTREME))
    if bad is not None:
        index[draw(st.integers(0, len(index) - 1))] = bad
    return shape, dim, index, bad


def filled(shape):
    return rd.arange(float(np.prod(shape))).view(*shape)


def along(index, shape, dim):
    """The index repeated over the other dimensions."""
    wide = [len(index) if d == dim else n for d, n in enumerate(shape)]
    return rd.tensor(index).view([-1 if d == dim else 1 for d in range(len(shape))]).expand(wide).contiguous()


def whole(dim, index):
    return (slice(None),) * dim + (index,)


def gather(x, dim, index, source):
    return x.gather(dim, along(index, x.shape, dim))


def index_select(x, dim, index, source):
    return x.index_select(dim, rd.tensor(index))


def advanced(x, dim, index, source):
    return x[whole(dim, rd.tensor(index))]


def scatter(x, dim, index, source):
    return x.scatter_(dim, along(index, x.shape, dim), source)


def scatter_add(x, dim, index, source):
    return x.scatter_add_(dim, along(index, x.shape, dim), source)


def index_add(x, dim, index, source):
    return x.index_add_(dim, rd.tensor(index), source)


def index_put(x, dim, index, source):
    x[whole(dim, rd.tensor(index))] = source
    return x


def written(x, dim, index, source):
    x[whole(dim, index)] = source
    return x


def added(x, dim, index, source):
    np.add.at(x, whole(dim, index), source)
    return x


def taken(x, dim, index, source):
    return x.take(index, axis=dim)


CASES = [
    (gather, taken),
    (index_select, taken),
    (advanced, taken),
    (scatter, written),
    (scatter_add, added),
    (index_add, added),
    (index_put, written),
]


@pytest.mark.parametrize("function,reference", CASES, ids=lambda f: f.__name__)
@given(case=indexed())
def test_an_index_is_used_or_refused(function, reference, case):
    shape, dim, index, bad = case
    x = filled(shape)
    before = x.numpy().copy()
    source = filled([len(index) if d == dim else n for d, n in enumerate(shape)]) * 10
    if bad is None:
        expected = reference(before.copy(), dim, np.array(index), source.numpy())
        np.testing.assert_array_equal(function(x, dim, index, source).numpy(), expected)
        return
    with pytest.raises((IndexError, RuntimeError), match=f"index {bad} is out of bounds for dimension|out of range in"):
        function(x, dim, index, source)
    np.testing.assert_array_equal(x.numpy(), before)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(0, 8), st.none() | st.sampled_from(EXTREME))
def test_an_embedding_is_looked_up_or_refused(index, place, bad):
    weight = filled((4, 3))
    if bad is None:
        np.testing.assert_array_equal(
            rd.nn.functional.embedding(rd.tensor(index), weight).numpy(), weight.numpy()[index]
        )
        return
    index[place % len(index)] = bad
    with pytest.raises(IndexError, match="index out of range in self"):
        rd.nn.functional.embedding(rd.tensor(index), weight)


@given(
    st.permutations(range(3)),
    st.lists(st.integers(-3, 2), min_size=3, max_size=3),
    st.none() | st.sampled_from(EXTREME),
)
def test_of_several_indices_each_is_checked_against_its_own_dimension(order, index, bad):
    x = filled((3, 3, 3))
    if bad is not None:
        index[order[0]] = bad
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dimension {order[0]} with size 3"):
            x[tuple(rd.tensor([i]) for i in index)]
        return
    assert x[tuple(rd.tensor([i]) for i in index)].item() == x.numpy()[tuple(index)]


# Operators called directly, with tensors that do not belong together --------------------------------------------------

# Errors, and no read beyond the memory.


def test_a_view_of_nothing_behind_the_end_of_the_memory():
    empty = rd.ones(3).narrow(0, 3, 0)
    assert empty.masked_select(empty > 0).tolist() == []
    assert rd.as_strided(rd.ones(3), (0,), (1,), 1000).tolist() == []
