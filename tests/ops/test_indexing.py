"""`x[...]` against numpy, what modes see of it, its gradients and errors; indices along one dimension, embeddings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops import embedding
from redispatch.kernels.ops.from_data import tensor

from ..seeing import seen

M = np.arange(6.0).reshape(2, 3)
X = np.arange(24.0).reshape(2, 3, 4)
I = np.array([1, 0, -1])  # noqa: E741  # the index of the examples
MASK = np.array([[True, False, True], [False, True, True]])

INDICES = [
    0,
    -1,
    (0, 1),
    ...,
    slice(None),
    (slice(None), slice(1, None, 2)),
    slice(-100, 100),
    slice(2, 1),
    None,
    (None, ..., 0),
    (..., 0, None),
    True,
    False,
    (),
    I,
    (I, I),
    (slice(None), I),
    (..., I),
    (I, slice(None), I),
    (I, None, I),
    (slice(None), I, 0),
    MASK,
    (MASK, 0),
    (slice(None), slice(None), np.array([True, False, True, True])),
    (np.array([[0, 1]]), I[:, None]),
    [0, 1],
    ([0, 1], [1, 2]),
    np.int64(1),
    (slice(0, 0), I),
]


def index_for(tensor_of, index):
    """The same index with tensors in place of arrays."""
    if isinstance(index, tuple):
        return tuple(index_for(tensor_of, item) for item in index)
    return tensor_of(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_reading_is_as_in_numpy(index):
    assert np.array_equal(tensor(X)[index_for(tensor, index)].numpy(), X[index])
    assert np.array_equal(tensor(X)[index].numpy(), X[index])


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_writing_is_as_in_numpy(index):
    for value in (7.0, np.arange(float(X[index].size)).reshape(X[index].shape)):
        expected, x = X.copy(), tensor(X)
        expected[index] = value
        x[index_for(tensor, index)] = value if isinstance(value, float) else tensor(value)
        assert np.array_equal(x.numpy(), expected)


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_the_derivative_of_reading_is_right(index):
    x = tensor(X).requires_grad_()
    assert gradcheck(lambda x: x[index_for(tensor, index)], [x])


@pytest.mark.parametrize("index", [0, (slice(None), 1), (I[:2],), (MASK,), (None, 0), (..., slice(0, 2))], ids=repr)
def test_the_derivative_of_writing_is_right(index):
    def written(x, value):
        x = x.clone()
        x[index_for(tensor, index)] = value
        return x

    x, value = tensor(X).requires_grad_(), tensor(2.5).double().requires_grad_()
    assert gradcheck(written, [x, value])
    assert gradgradcheck(written, [x, value])


@given(st.data())
def test_any_mix_of_indices_reads_what_numpy_reads(data):
    item = st.one_of(
        st.integers(-2, 1),
        st.slices(3).filter(lambda s: (s.step or 1) > 0),
        st.none(),
        st.lists(st.integers(-2, 1), min_size=1, max_size=3).map(np.array),
    )
    index = tuple(data.draw(st.lists(item, max_size=4)))
    try:
        expected = X[index]
    except IndexError:
        with pytest.raises(IndexError):
            tensor(X)[index_for(tensor, index)]
        return
    apart = [isinstance(item, int | np.ndarray) for item in index]
    if (
        any(isinstance(item, np.ndarray) for item in index)
        and any(isinstance(item, int) for item in index)
        and sum(apart)
    ):
        return  # an int beside index arrays is a view here and an index array in numpy: dimensions may end up elsewhere
    assert np.array_equal(tensor(X)[index_for(tensor, index)].numpy(), expected)


def test_a_mode_sees_the_parts_of_an_index():
    x, i = tensor(X), tensor(I)

    assert seen(lambda: x[0, :, None, i]) == "select.int unsqueeze index.Tensor"
    assert seen(lambda: x[:, :]) == "alias"
    assert seen(lambda: x[:]) == "slice.Tensor"
    assert seen(lambda: x[[0, 1]]) == "lift_fresh index.Tensor"
    assert seen(lambda: x.__setitem__(0, 1.0)) == "lift_fresh select.int fill_.Tensor"
    assert seen(lambda: x.__setitem__(slice(None), x)) == "copy_"
    assert seen(lambda: x.__setitem__(i, 1)) == "lift_fresh index_put_"
    assert seen(lambda: x[i[0]]) == "select.int _local_scalar_dense select.int"
    assert seen(lambda: 3 in x) == "eq.Scalar any _local_scalar_dense"


@pytest.mark.parametrize(
    "index, kind, text",
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
        ((0, 1, 2), IndexError, "too many indices for tensor of dimension 2"),
        (np.array([5]), IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((slice(None), np.array([-4])), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (1.0, IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid"),
        ("a", TypeError, "new(): invalid data type 'str'"),
        (np.array([1.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
        (np.array([True] * 3), IndexError, "The shape of the mask [3] at index 0 does not match the shape of the"),
        ((I, np.array([0, 1])), IndexError, "shape mismatch: indexing tensors could not be broadcast together"),
    ],
)
def test_wrong_indices_get_the_reference_error(index, kind, text):
    for act in (lambda x, i: x[i], lambda x, i: x.__setitem__(i, 1.0)):
        with pytest.raises(kind) as caught:
            act(tensor(M), index_for(tensor, index))
        assert text in str(caught.value)


def test_wrong_values_get_the_reference_error():
    x = tensor(M).float()
    for value, kind, text in (
        ([1, 2, 3], TypeError, "can't assign a list to a torch.FloatTensor"),
        (np.ones(3), TypeError, "can't assign a numpy.ndarray to a torch.FloatTensor"),
        (
            tensor(np.ones(2, np.float32)),
            RuntimeError,
            "The expanded size of the tensor (3) must match the existing size",
        ),
    ):
        with pytest.raises(kind) as caught:
            x[0] = value
        assert text in str(caught.value)
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match, got Float"):
        x[tensor([0])] = tensor([1, 2, 3])
    with pytest.raises(RuntimeError, match="value tensor of shape \\[5\\] cannot be broadcast to indexing result"):
        x[tensor([0, 1])] = tensor(np.ones(5, np.float32))
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        x[0, 0][0]
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]


def test_index_put_accumulates_and_the_last_value_wins():
    x, i = tensor(np.zeros(3, np.float32)), tensor([0, 0, 2])
    assert x.index_put((i,), tensor([1.0, 2.0, 3.0]), accumulate=True).tolist() == [3, 0, 3]
    assert x.index_put((i,), tensor([1.0, 2.0, 3.0])).tolist() == [2, 0, 3]
    assert x.tolist() == [0, 0, 0]
    y, z = tensor(np.zeros(3)).requires_grad_(), tensor([1.0, 2.0, 3.0]).double().requires_grad_()
    assert gradcheck(lambda y, z: y.index_put((i,), z, True), [y, z])
    assert gradgradcheck(lambda y, z: y.index_put((i,), z, True), [y, z])


def test_nothing_is_written_where_an_index_is_bad():
    x = tensor(M)
    with pytest.raises(IndexError):
        x[tensor([0, 7])] = 1.0
    assert np.array_equal(x.numpy(), M)


def test_an_indexed_copy_lies_as_its_source_does():
    p, i = tensor(X).permute(2, 0, 1), tensor([0, 1])
    strides = [p[i].stride(), p[:, i].stride(), p[:, :, i].stride(), p[i, i].stride()]
    assert strides == [(6, 3, 1), (1, 4, 8), (2, 8, 1), (3, 1)]


def test_meta_tensors_are_indexed_by_shape():
    x = tensor(X).to("meta")
    assert x[0, :, tensor([0, 1, 1])].shape == (3, 3)
    assert x[:, None, 1:].shape == (2, 1, 2, 4)
    x[tensor([0])] = 1.0
    assert x[tensor([0])].device.type == "meta" and x.dtype is dtypes.float64


# Embeddings, and the errors of indices along one dimension and of masks -----------------------------------------------


def test_embedding_gives_no_gradient_to_the_padding():
    weight = tensor(np.ones((3, 2))).requires_grad_()
    embedding.functional_embedding(tensor([0, 1, 1, -0]), weight, padding_idx=-2).sum().backward()
    assert weight.grad.tolist() == [[2, 2], [0, 0], [0, 0]]


def test_embedding_scales_gradients_by_frequency():
    weight = tensor(np.ones((3, 2))).requires_grad_()
    embedding.embedding(weight, tensor([0, 0, 2]), -1, True).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_embedding_shortens_long_rows():
    weight = tensor([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]])
    rows = embedding.functional_embedding(tensor([0, 1]), weight, max_norm=1.0)
    assert np.allclose(rows.numpy(), [[0.6, 0.8], [0.3, 0.4]]) and weight[2].tolist() == [30, 40]


def test_one_hot():
    assert embedding.one_hot(tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert embedding.one_hot(tensor([[1]]), 2).shape == (1, 1, 2)
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes."):
        embedding.one_hot(tensor([3]), 2)


LONG = [
    (lambda x: x.gather(1, tensor([[0, 5]])), RuntimeError, "index 5 is out of bounds for dimension 1 with size 3"),
    (lambda x: x.gather(1, tensor([[0, -1]])), RuntimeError, "index -1 is out of bounds for dimension 1 with size 3"),
    (lambda x: x.gather(1, tensor([0])), RuntimeError, "Index tensor must have the same number of dimensions as input"),
    (lambda x: x.gather(0, x), RuntimeError, "gather(): Expected dtype int32/int64 for index"),
    (lambda x: x.scatter(1, tensor([[9]]), x), RuntimeError, "index 9 is out of bounds for dimension 1 with size 3"),
    (lambda x: x.scatter(1, tensor([[0] * 4]), x), RuntimeError, "to be no larger size than src [2, 3]"),
    (lambda x: x.scatter_add(1, tensor([[0]]), x.int()), RuntimeError, "Expected self.dtype to be equal to src.dtype"),
    (lambda x: x.index_select(0, tensor([5])), IndexError, "index out of range in self"),
    (lambda x: x.index_select(0, tensor([[0]])), IndexError, "index_select(): Index is supposed to be a vector"),
    (lambda x: x.index_add(0, tensor([0, 5]), x), RuntimeError, "index 5 is out of bounds for dimension 0 with size 2"),
    (
        lambda x: x.index_add(0, tensor([0]), x),
        RuntimeError,
        "Number of indices (1) should be equal to source.size(dim)",
    ),
    (lambda x: x.masked_fill(x, 1), RuntimeError, "masked_fill_ only supports boolean masks, but got mask with dtype"),
    (lambda x: x.masked_select(x), RuntimeError, "masked_select: expected BoolTensor for mask"),
    (lambda x: embedding.embedding(x, tensor([2])), IndexError, "index out of range in self"),
    (lambda x: embedding.embedding(x[0], tensor([2])), RuntimeError, "'weight' must be 2-D"),
    (
        lambda x: x.scatter_(0, tensor([[0, 0, 0]]), x),
        RuntimeError,
        "some elements of the input tensor and the written-to",
    ),
]


@pytest.mark.parametrize("wrong, kind, text", LONG)
def test_wrong_arguments_get_the_reference_error(wrong, kind, text):
    x = tensor(M)
    with pytest.raises(kind) as caught:
        wrong(x)
    assert text in str(caught.value)
    assert np.array_equal(x.numpy(), M)


def test_what_is_written_must_not_hold_the_index():
    x, index = rd.arange(6), rd.tensor([2, 1, 0])
    for call in (
        lambda: x.put_(x[:2], rd.tensor([1, 2])),
        lambda: x.put_(index, x[:3]),
        lambda: x.index_fill_(0, x[:2], 1),
    ):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
            call()
    assert x.tolist() == list(range(6))
    with pytest.warns(UserWarning, match="index_fill_ on expanded tensors"):
        rd.rand(1).expand(6).index_fill_(0, index, 1.0)
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape .0. cannot be broadcast"):
        x[rd.tensor([0, 1])] = rd.tensor([])


def test_what_has_no_elements_has_none_to_select():
    for shape, dim, text in (((0, 3), 0, "self indexing axis dim should be positive"), ((0, 3), 1, "id=5 axis_dim=3")):
        with pytest.raises(RuntimeError, match=text):
            rd.empty(shape).index_select(dim, rd.tensor([0, 5]))
    with pytest.raises(TypeError, match="expected 'shape' to be int or sequence of ints"):
        rd.unravel_index(rd.tensor([1]), rd.tensor([2, 3]))
    assert rd.zeros(3).index_put_((), rd.tensor(1.0)).tolist() == [1, 1, 1]
