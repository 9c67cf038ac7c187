"""The backward pass of layer_norm over more rows than one block of its kernel takes; op_db has the small cases."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.testing import assert_close

rng = np.random.default_rng(0)


@pytest.mark.parametrize("rows", [1, 32, 33, 100])
@pytest.mark.parametrize("mask", [[True, True, True], [True, False, False], [False, True, False], [False, False, True]])
def test_the_gradients_of_many_rows_are_the_formulas(rows, mask):
    x, grad = rng.standard_normal((2, rows, 5)) + 3
    weight = rng.standard_normal(5)
    mean, rstd = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    y, g = (x - mean) * rstd, grad * weight
    wanted = (
        rstd * (g - g.mean(1, keepdims=True) - y * (g * y).mean(1, keepdims=True)),
        (grad * y).sum(0),
        grad.sum(0),
    )
    tensors = [rd.from_numpy(array) for array in (grad, x, mean, rstd, weight)]
    grad, x, mean, rstd, weight = tensors
    found = rd.ops.aten.native_layer_norm_backward.default(grad, x, [5], mean, rstd, weight, weight, mask)
    assert [one is not None for one in found] == mask
    for one, value in zip(found, wanted, strict=True):
        if one is not None:
            assert_close(one, rd.from_numpy(value))
