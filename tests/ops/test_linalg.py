"""`matmul` and `linear` decompose as PyTorch's do; errors."""

import numpy as np
import pytest

import redispatch as rd

from ..seeing import seen


@pytest.mark.parametrize(
    ("a", "b", "operators"),
    [
        ((3,), (3,), "dot"),
        ((2, 3), (3,), "mv"),
        ((2, 0), (0, 3), "mm"),
        ((3,), (3, 4), "unsqueeze mm squeeze_.dim"),
        ((5, 2, 3), (3,), "view mv _unsafe_view"),
        ((5, 2, 3), (3, 4), "view mm _unsafe_view"),
        ((0, 2, 3), (3, 4), "view mm _unsafe_view"),
        ((2, 3), (5, 3, 4), "transpose.int expand view expand view bmm _unsafe_view"),
        ((5, 2, 3), (5, 3, 4), "expand view expand view bmm _unsafe_view"),
        ((1, 2, 3), (5, 3, 4), "squeeze.dim transpose.int expand view expand view bmm _unsafe_view"),
        ((6, 5, 2, 3), (6, 1, 3, 4), "expand view expand clone _unsafe_view bmm _unsafe_view"),
        ((5, 2, 3), (1, 3, 4), "squeeze.dim view mm _unsafe_view"),
        ((5, 2, 3), (6, 1, 3, 4), "transpose.int expand clone _unsafe_view expand clone _unsafe_view bmm _unsafe_view"),
        ((3,), (5, 3, 4), "transpose.int expand view expand view bmm _unsafe_view"),
    ],
)
def test_matmul_decomposes_as_pytorchs_and_gives_what_numpys_gives(a, b, operators):
    x, y = (np.arange(float(np.prod(shape))).reshape(shape) for shape in (a, b))
    first, second = rd.tensor(x), rd.tensor(y)
    assert seen(lambda: np.testing.assert_array_equal(rd.matmul(first, second).numpy(), np.matmul(x, y))) == operators


def test_linear_decomposes_as_pytorchs():
    weight, bias = rd.ones(4, 3), rd.ones(4)
    linear = rd.nn.functional.linear
    for shape, with_bias, without in [
        ((2, 3), "t addmm", "t mm"),
        ((5, 2, 3), "view t addmm view", "t view mm _unsafe_view"),
        ((3,), "view t addmm view", "t unsqueeze mm squeeze_.dim"),
    ]:
        x = rd.ones(shape)
        assert seen(lambda x=x: linear(x, weight, bias)) == with_bias
        assert seen(lambda x=x: linear(x, weight)) == without
