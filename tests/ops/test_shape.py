"""Joining and rearranging: what cat makes of its inputs, and PyTorch's errors."""

import numpy as np
import pytest

import redispatch.kernels.ops  # noqa: F401  # defines the operators
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops import shape
from redispatch.kernels.ops.from_data import tensor

M = np.arange(6.0).reshape(2, 3)
X = np.arange(24.0).reshape(2, 3, 4)


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
