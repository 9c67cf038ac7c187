"""Joining and rearranging: what cat makes of its inputs, and PyTorch's errors."""

import numpy as np

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
