"""Reductions where the rule is easy to get wrong: large numbers, NaN, nothing, dtypes; and PyTorch's errors."""

# ruff: noqa: E501  (error texts stay whole, so that they can be searched for)

import math

import numpy as np
import pytest

import redispatch as rd

F32, F64, I64, B = rd.float32, rd.float64, rd.int64, rd.bool
RANDOM = np.random.RandomState(0)


def test_a_float32_variance_survives_a_large_mean():
    x = rd.tensor([1e4 + i for i in range(100)], dtype=F32)
    assert x.var().item() == pytest.approx(np.var(np.arange(100.0), ddof=1), rel=1e-6)


def test_logsumexp_cannot_overflow():
    assert rd.tensor([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000 + math.log(2))
    assert rd.tensor([-math.inf, -math.inf]).logsumexp(0).item() == -math.inf
    assert rd.zeros(0, 2).logsumexp(0).tolist() == [-math.inf, -math.inf]


@pytest.mark.parametrize(
    ("dtype", "summed"), [(F32, F32), (F64, F64), (I64, I64), (B, I64), (rd.int32, I64), (rd.bfloat16, rd.bfloat16)]
)
def test_integers_add_up_in_int64(dtype, summed):
    x = rd.ones(2, 3, dtype=dtype)
    assert x.sum().dtype is summed and x.sum(0).dtype is summed and x.prod().dtype is summed
    assert x.sum().item() == 6 and x.cumsum(1).tolist() == [[1, 2, 3]] * 2
    assert x.sum(dtype=F64).dtype is F64
    assert x.all().dtype is B and x.count_nonzero().item() == 6


def test_nan_wins():
    x = rd.tensor([[1.0, math.nan, 3.0]])
    assert math.isnan(x.max().item()) and math.isnan(x.amin().item())
    values, indices = x.max(1)
    assert indices.tolist() == [1] and x.argmin(1).tolist() == [1]


def test_results_with_names():
    result = rd.max(rd.tensor([[1, 5], [7, 2]]), 1)
    assert result.values.tolist() == [5, 7] and result.indices.tolist() == [1, 0]
    smallest, largest = rd.aminmax(rd.tensor([3, 1, 2]))
    assert (smallest.item(), largest.item()) == (1, 3)
    assert rd.max(rd.tensor([1, 4]), rd.tensor(3)).tolist() == [3, 4]


def test_empty_reductions():
    x = rd.zeros(0, 2)
    assert x.sum().item() == 0 and x.prod().item() == 1 and math.isnan(x.mean().item())
    assert x.sum(0).tolist() == [0, 0] and x.sum(1).shape == (0,)
    assert x.all().item() is True and x.any().item() is False
    assert x.amax(1).shape == (0,)


def test_the_gradient_of_a_product_with_zeros():
    x = rd.tensor([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0]], requires_grad=True)
    x.prod(1).sum().backward()
    assert x.grad.tolist() == [[0, 6, 0], [0, 0, 0]]


def test_equal_elements_share_the_gradient_of_amax():
    x = rd.tensor([1.0, 2.0, 2.0], requires_grad=True)
    x.amax().backward()
    assert x.grad.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("function", "node"),
    [(lambda x: x.sum(), "SumBackward0"), (lambda x: x.sum(0), "SumBackward1"), (lambda x: x.mean(0), "MeanBackward1"), (lambda x: x.max(), "MaxBackward1"), (lambda x: x.norm(), "LinalgVectorNormBackward0")],
)  # fmt: skip
def test_nodes_are_named_as_pytorchs(function, node):
    assert type(function(rd.ones(2, 3, requires_grad=True)).grad_fn).__name__ == node


# Of the elements that a mask chooses ----------------------------------------------------------------------------------

MASK = rd.tensor([[True, False, True], [False, False, False]])
NUMBERS = rd.tensor([[3.0, 7.0, -1.0], [4.0, 5.0, 6.0]], requires_grad=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "sum": [2, 0],
        "prod": [-3, 1],
        "amax": [3, -math.inf],
        "amin": [-1, math.inf],
        "mean": [1, math.nan],
        "norm": [math.sqrt(10), 0],
        "var": [8, math.nan],
        "median": [-1, math.nan],
        "logsumexp": [math.log(math.exp(3) + math.exp(-1)), -math.inf],
    }.items(),
)
def test_a_masked_reduction_sees_what_the_mask_chooses(name, expected):
    found = getattr(rd.masked, name)(NUMBERS, dim=1, mask=MASK)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6)
    (grad,) = rd.autograd.grad(found[0], NUMBERS)
    assert not grad[0][~MASK[0]].any() and grad[0][MASK[0]].any()


def test_masked_scans_and_normalisations_keep_the_shape():
    assert rd.masked.cumsum(NUMBERS, 1, mask=MASK)[0].tolist() == [3, 3, 2]
    assert rd.masked.cumprod(NUMBERS, 1, mask=MASK)[0].tolist() == [3, 3, -3]
    share = rd.masked.softmax(NUMBERS, 1, mask=MASK)
    assert share[0].sum().item() == pytest.approx(1) and share[0, 1].item() == 0 and share[1].isnan().all()
    assert rd.masked.normalize(NUMBERS, 2.0, 1, mask=MASK)[1].tolist() == [0, 0, 0]


def test_masked_functions_say_what_they_cannot_do():
    with pytest.raises(NotImplementedError, match="identity of amax on torch.bool input"):
        rd.masked.amax(MASK, mask=MASK)
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        rd.masked.mean(rd.arange(3))
    with pytest.raises(IndexError, match="expected broadcastable mask"):
        rd.masked.sum(rd.ones(3), mask=MASK)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        rd.masked.sum(NUMBERS, (0, 0))


def test_more_dimensions_than_pytorch_has_bits_for_are_refused():
    with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
        rd.ones([1] * 65).amax(0)


@pytest.mark.parametrize("dtype", [rd.float16, rd.bfloat16, rd.float32])
def test_histc_finds_the_bin_in_the_arithmetic_of_the_elements(dtype):
    x = rd.tensor([-2.3945, 2.2012, 3.4004, 9.9], dtype=dtype)
    exact = ((x - -10) * 100 / rd.tensor(20.0, dtype=dtype)).long()
    assert rd.histc(x, 100, -10, 10).nonzero().ravel().tolist() == exact.tolist()


def test_no_ways_to_choose_have_a_history_too():
    assert rd.combinations(rd.ones(1, requires_grad=True), 2).requires_grad
