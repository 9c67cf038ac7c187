"""Indices along one dimension, masks and embeddings against numpy."""

import numpy as np
import pytest

import redispatch.kernels.ops  # noqa: F401  # defines the operators
from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops import embedding, index_functions
from redispatch.kernels.ops.from_data import tensor

M = np.arange(6.0).reshape(2, 3)
G = np.array([[0, 2], [1, 1]])
MASK = np.array([[True, False, True], [False, True, True]])
I = np.array([1, 0, 1])  # noqa: E741  # the index of the examples


def put(base, index, source, how):
    """`scatter` along dimension 1, element by element."""
    result = base.copy()
    for (row, column), target in np.ndenumerate(index):
        value = source[row, column]
        result[row, target] = {"set": value, "add": result[row, target] + value, "mul": result[row, target] * value}[
            how
        ]
    return result


S = -np.arange(1.0, 7.0).reshape(2, 3)
CASES = [
    (lambda x, s: x.gather(1, tensor(G)), lambda a, b: np.take_along_axis(a, G, 1)),
    (lambda x, s: x.index_select(0, tensor(I)), lambda a, b: a[I]),
    (lambda x, s: x.index_select(-1, tensor(I).int()), lambda a, b: a[:, I]),
    (lambda x, s: x.scatter(1, tensor([[0, 2], [1, 0]]), s), lambda a, b: put(a, np.array([[0, 2], [1, 0]]), b, "set")),
    (lambda x, s: x.scatter(1, tensor(G), 9.0), lambda a, b: put(a, G, np.full((2, 3), 9.0), "set")),
    (lambda x, s: x.scatter_add(1, tensor(G), s), lambda a, b: put(a, G, b, "add")),
    (lambda x, s: (x * 1).scatter_add_(1, tensor(G), s), lambda a, b: put(a, G, b, "add")),
    (lambda x, s: x.index_add(0, tensor([1, 1]), s, alpha=2), lambda a, b: np.array([a[0], a[1] + 2 * b.sum(0)])),
    (lambda x, s: (x * 1).index_add_(1, tensor([1, 1, 0]), s), None),
    (lambda x, s: x.masked_fill(tensor(MASK), 5.0), lambda a, b: np.where(MASK, 5.0, a)),
    (lambda x, s: x.masked_fill(tensor(MASK), s.sum()), lambda a, b: np.where(MASK, b.sum(), a)),
    (lambda x, s: (x * 1).masked_fill_(tensor(MASK[0]), s[0, 0]), lambda a, b: np.where(MASK[0], b[0, 0], a)),
    (lambda x, s: x.masked_select(tensor(MASK)), lambda a, b: a[MASK]),
    (lambda x, s: x[0].masked_select(tensor(MASK)), lambda a, b: np.broadcast_to(a[0], (2, 3))[MASK]),
    (
        lambda x, s: x.take_along_dim(tensor([[0], [-1]]), 1),
        lambda a, b: np.take_along_axis(a, np.array([[0], [-1]]), 1),
    ),
    (lambda x, s: embedding.embedding(x, tensor(G % 2)), lambda a, b: a[G % 2]),
]


@pytest.mark.parametrize("function, reference", CASES)
def test_values_and_derivatives_are_right(function, reference):
    if reference is not None:
        assert np.array_equal(function(tensor(M), tensor(S)).numpy(), reference(M, S))
    inputs = [tensor(M).requires_grad_(), tensor(S).requires_grad_()]
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_scatter_reduces():
    x, i = tensor(M), tensor([[0, 0], [1, 1]])
    assert np.array_equal(x.scatter(1, i, tensor(S), reduce="add").numpy(), put(M, i.numpy(), S, "add"))
    assert np.array_equal(x.scatter(1, i, tensor(S), reduce="multiply").numpy(), put(M, i.numpy(), S, "mul"))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "int32", "uint8", "bool"])
def test_other_dtypes(name):
    x = tensor(M).to(getattr(dtypes, name))
    for function in (
        lambda x: x.gather(1, tensor(G)),
        lambda x: x.index_select(0, tensor(I)),
        lambda x: x.index_add(0, tensor([0, 1]), x),
        lambda x: x.masked_fill(tensor(MASK), 1),
        lambda x: x.scatter(1, tensor(G), x.clone()),
        lambda x: x.masked_select(tensor(MASK)),
    ):
        result = function(x)
        assert result.dtype is x.dtype
        if name != "bool":
            assert result.double().tolist() == function(tensor(M)).tolist()


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


def test_nonzero_lists_indices():
    x = tensor([[0, 3], [4, 0]])
    assert x.nonzero().tolist() == [[0, 1], [1, 0]] and x.argwhere().tolist() == [[0, 1], [1, 0]]
    assert [one.tolist() for one in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
    assert tensor(2).nonzero().shape == (1, 0) and tensor(0).nonzero().shape == (0, 0)


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


def test_taking_along_a_dimension_needs_dimensions():
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        index_functions.take_along_dim(tensor(3.0), tensor(0), 0)
