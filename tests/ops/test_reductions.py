"""Reductions agree with numpy on values, shapes and dtypes, and with PyTorch on errors and derivatives."""

# ruff: noqa: E501  (error texts stay whole, so that they can be searched for)

import math

import numpy as np
import pytest

import redispatch as rd

F32, F64, I64, B = rd.float32, rd.float64, rd.int64, rd.bool
RANDOM = np.random.RandomState(0)
ARRAYS = {
    "row": RANDOM.uniform(-2, 2, (2, 3, 4)),
    "transposed": RANDOM.uniform(-2, 2, (4, 3, 2)).T,
    "scalar": np.array(1.5),
    "one": np.array([[2.5]]),
}
DIMS = [None, 0, -1, (0, 1), (1, 0), (0, 1, 2)]


def each_case():
    for name, array in ARRAYS.items():
        for dim in DIMS:
            dims = dim if isinstance(dim, tuple) else (dim,) if dim is not None else ()
            if array.ndim and all(d < array.ndim for d in dims):
                yield pytest.param(array, dim, id=f"{name}-{dim}")
    yield pytest.param(ARRAYS["scalar"], None, id="scalar")


def named(dim):
    return {} if dim is None else {"dim": dim}


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(("array", "dim"), list(each_case()))
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
def test_floating_reductions_agree_with_numpy(name, array, dim, keepdim):
    if dim is None and name in ("sum", "mean"):
        keepdim = False
    options = named(dim) | ({"keepdim": True} if keepdim else {})
    result = getattr(rd.tensor(array), name)(**options)
    expected = getattr(np, name)(array, axis=dim, keepdims=keepdim)
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(("array", "dim"), list(each_case()))
def test_variances_agree_with_numpy(array, dim):
    with np.errstate(all="ignore"):
        count = array.size if dim is None else math.prod(array.shape[d] for d in np.atleast_1d(dim))
        if count < 2:
            return
        x = rd.tensor(array)
        np.testing.assert_allclose(x.var(**named(dim)).numpy(), array.var(axis=dim, ddof=1), rtol=1e-10)
        np.testing.assert_allclose(x.std(**named(dim), correction=0).numpy(), array.std(axis=dim), rtol=1e-10)


def test_a_float32_variance_survives_a_large_mean():
    x = rd.tensor([1e4 + i for i in range(100)], dtype=F32)
    assert x.var().item() == pytest.approx(np.var(np.arange(100.0), ddof=1), rel=1e-6)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, -1, math.inf, -math.inf])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_norms_agree_with_numpy(order, dim):
    array = ARRAYS["row"][0]
    expected = np.linalg.norm(array.ravel() if dim is None else array, order, axis=dim)
    np.testing.assert_allclose(rd.norm(rd.tensor(array), order, dim).numpy(), expected, rtol=1e-10)


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


def test_out():
    out = rd.zeros(3)
    assert rd.sum(rd.ones(2, 3), 0, out=out) is out and out.tolist() == [2, 2, 2]
    values, indices = rd.zeros(0), rd.zeros(0, dtype=I64)
    rd.max(rd.tensor([[1.0, 2.0]]), 1, out=(values, indices))
    assert values.tolist() == [2] and indices.tolist() == [1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: x[:0].max(), RuntimeError, "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."),
        (lambda x: x[:0].argmax(), IndexError, "argmax(): Expected reduction dim to be specified for input.numel() == 0."),
        (lambda x: x[:0].max(0), IndexError, "max(): Expected reduction dim 0 to have non-zero size."),
        (lambda x: x.sum(3), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 3)"),
        (lambda x: x.sum((0, -2)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda x: x.long().mean(), RuntimeError, "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long"),
        (lambda x: x.long().var(), RuntimeError, "std and var only support floating point and complex dtypes"),
        (lambda x: x.long().norm(), RuntimeError, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long"),
        (lambda x: x[:0].norm(math.inf), RuntimeError, "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation does not have an identity"),
        (lambda x: x.sum_to_size(4), RuntimeError, "size {[4]} is not expandable to size {[2, 3]}."),
        (lambda x: rd.max(x, 0, out=(rd.zeros(3), rd.zeros(3))), RuntimeError, "Expected out tensor to have dtype long int, but got float instead"),
        (lambda x: x.bool().argmax(), RuntimeError, "argmax(): does not support bool input"),
    ],
)  # fmt: skip
def test_errors_are_pytorchs(call, error, text):
    with pytest.raises(error) as caught:
        call(rd.ones(2, 3))
    assert str(caught.value) == text


def slope(function, array):
    """The gradient of the sum of `function` by central differences."""
    result = np.zeros_like(array)
    for index in np.ndindex(array.shape):
        step = np.zeros_like(array)
        step[index] = 1e-6
        up, down = (function(rd.tensor(array + s)).sum().item() for s in (step, -step))
        result[index] = (up - down) / 2e-6
    return result


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(1) ** 2,
        lambda x: x.mean((0, 1)),
        lambda x: x.prod(1),
        lambda x: x.prod(),
        lambda x: x.amax(0),
        lambda x: x.min(1).values ** 2,
        lambda x: x.var(0) * 3,
        lambda x: x.std(),
        lambda x: x.cumsum(1) ** 2,
        lambda x: x.norm(),
        lambda x: x.norm(3, 1),
        lambda x: x.logsumexp((0, 1)),
        lambda x: x.sum_to_size(1, 3) ** 2,
    ],
)
def test_gradients_agree_with_differences(function):
    array = RANDOM.uniform(0.3, 2, (2, 3)) * np.array([[1, -1, 1], [-1, 1, 1]])
    x = rd.tensor(array, requires_grad=True)
    function(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), slope(function, array), rtol=1e-5, atol=1e-6)


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
