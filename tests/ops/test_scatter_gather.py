"""Embeddings, and the errors of indices along one dimension and of masks."""

import numpy as np
import pytest

import redispatch.kernels.ops  # noqa: F401  # defines the operators
from redispatch.kernels.ops import embedding
from redispatch.kernels.ops.from_data import tensor

M = np.arange(6.0).reshape(2, 3)


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
