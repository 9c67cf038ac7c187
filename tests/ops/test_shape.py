"""Joining and rearranging against numpy."""

import numpy as np
import pytest

import redispatch.kernels.ops  # noqa: F401  # defines the operators
from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops import shape
from redispatch.kernels.ops.from_data import tensor

M = np.arange(6.0).reshape(2, 3)
X = np.arange(24.0).reshape(2, 3, 4)

CASES = [
    (lambda x: shape.cat([x, x], 1), lambda a: np.concatenate([a, a], 1), M),
    (lambda x: shape.cat([x.t(), x.t()[:1]]), lambda a: np.concatenate([a.T, a.T[:1]]), M),
    (lambda x: shape.stack([x, x * 2], -1), lambda a: np.stack([a, a * 2], -1), M),
    (lambda x: shape.hstack([x[0], x[1]]), lambda a: np.hstack([a[0], a[1]]), M),
    (lambda x: shape.vstack([x[0], x[1]]), lambda a: np.vstack([a[0], a[1]]), M),
    (lambda x: shape.dstack([x, x]), lambda a: np.dstack([a, a]), M),
    (lambda x: shape.column_stack([x[0], x[1]]), lambda a: np.column_stack([a[0], a[1]]), M),
    (lambda x: x.repeat(2, 1, 3), lambda a: np.tile(a, (2, 1, 3)), M),
    (lambda x: x.t().repeat(1, 2), lambda a: np.tile(a.T, (1, 2)), M),
    (lambda x: x.tile(2), lambda a: np.tile(a, (1, 2)), M),
    (lambda x: x.flip(0, -1), lambda a: np.flip(a, (0, -1)), X),
    (lambda x: x.fliplr(), np.fliplr, M),
    (lambda x: x.roll((1, -2), (0, 2)), lambda a: np.roll(a, (1, -2), (0, 2)), X),
    (lambda x: x.roll(4), lambda a: np.roll(a, 4), X),
    (lambda x: x.tril(-1), lambda a: np.tril(a, -1), X),
    (lambda x: x.triu(1), lambda a: np.triu(a, 1), X),
    (lambda x: (x * 1).triu_(), np.triu, X),
    (lambda x: x.repeat_interleave(2, 1), lambda a: np.repeat(a, 2, 1), X),
    (lambda x: x.repeat_interleave(3), lambda a: np.repeat(a, 3), M),
    (lambda x: x.repeat_interleave(tensor([2, 0]), 0), lambda a: np.repeat(a, [2, 0], 0), M),
    (lambda x: shape.broadcast_tensors(x, x[0])[1], lambda a: np.broadcast_to(a[0], (2, 3)), M),
    (lambda x: shape.meshgrid(x[0], x[1])[1], lambda a: np.meshgrid(a[0], a[1], indexing="ij")[1], M),
    (lambda x: shape.meshgrid(x[0], x[1], indexing="xy")[1], lambda a: np.meshgrid(a[0], a[1])[1], M),
    (lambda x: shape.atleast_3d(x), np.atleast_3d, M),
]


@pytest.mark.parametrize("function, reference, array", CASES)
def test_values_are_those_of_numpy(function, reference, array):
    assert np.array_equal(function(tensor(array)).numpy(), reference(array))
    assert np.array_equal(function(tensor(array.astype(np.int64))).numpy(), reference(array.astype(np.int64)))


@pytest.mark.parametrize("function, reference, array", CASES)
def test_derivatives_are_right(function, reference, array):
    x = tensor(array).requires_grad_()
    assert gradcheck(function, [x])
    assert gradgradcheck(function, [x])


def test_cat_promotes_skips_old_style_empties_and_fills_out():
    x = tensor(M)
    assert shape.cat([x.float(), tensor([[1, 2, 3]])]).dtype is dtypes.float32
    assert shape.cat([x, tensor([])]).shape == (2, 3)
    out = tensor(np.zeros((4, 3)))
    assert shape.cat([x, x], out=out) is out and out.tolist() == [*M.tolist(), *M.tolist()]


@pytest.mark.parametrize(
    "wrong, kind, text",
    [
        (lambda x: shape.cat([]), ValueError, "torch.cat(): expected a non-empty list of Tensors"),
        (lambda x: shape.cat([x, x[0]]), RuntimeError, "Tensors must have same number of dimensions: got 2 and 1"),
        (lambda x: shape.cat([x, x[:, :2]]), RuntimeError, "Sizes of tensors must match except in dimension 0."),
        (
            lambda x: shape.cat([x[0, 0]]),
            RuntimeError,
            "zero-dimensional tensor (at position 0) cannot be concatenated",
        ),
        (lambda x: shape.cat([x, x], 5), IndexError, "Dimension out of range (expected to be in range of [-2, 1]"),
        (lambda x: shape.stack([x, x[0]]), RuntimeError, "stack expects each tensor to be equal size, but got [2, 3]"),
        (lambda x: x.repeat(2), RuntimeError, "Number of dimensions of repeat dims can not be smaller than number"),
        (lambda x: x.flip(0, 0), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda x: x.roll((1, 2), 0), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
        (lambda x: x[0].tril(), RuntimeError, "tril: input tensor must have at least 2 dimensions"),
        (lambda x: shape.meshgrid(x[0], indexing="a"), RuntimeError, 'indexing must be one of "xy" or "ij"'),
    ],
)
def test_wrong_arguments_get_the_reference_error(wrong, kind, text):
    with pytest.raises(kind) as caught:
        wrong(tensor(M))
    assert text in str(caught.value)


def test_meta_tensors_get_shapes_only():
    x = tensor(M).to("meta")
    made = [shape.cat([x, x]), shape.stack([x, x]), x.repeat(2, 2), x.flip(0), x.roll(1), x.tril()]
    assert [tuple(one.shape) for one in made] == [(4, 3), (2, 2, 3), (4, 6), (2, 3), (2, 3), (2, 3)]
    assert all(one.device.type == "meta" for one in made)
