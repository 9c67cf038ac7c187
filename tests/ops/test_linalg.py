"""`matmul` and `linear` decompose as PyTorch's do; errors."""

# ruff: noqa: E501  (error texts stay whole, so that they can be searched for)

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


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda o: o(2, 3).mm(o(2, 3)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
        (lambda o: o(2, 3).mm(o(3)), RuntimeError, "mat2 must be a matrix"),
        (lambda o: o(2, 3).mm(o(3, 2).double()), RuntimeError, "expected m1 and m2 to have the same dtype, but got: float != double"),
        (lambda o: o(2, 2).bool().mm(o(2, 2).bool()), NotImplementedError, "\"addmm_impl_cpu_\" not implemented for 'Bool'"),
        (lambda o: o(2, 2, 3).bmm(o(2, 2, 3)), RuntimeError, "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2]."),
        (lambda o: rd.addmm(o(2), o(2, 3), o(3, 4)), RuntimeError, "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [2]"),
        (lambda o: rd.addmm(o(4), o(2, 3), o(3, 4).double()), RuntimeError, "self and mat2 must have the same dtype, but got Float and Double"),
        (lambda o: o(2, 3).mv(o(2)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (2)"),
        (lambda o: o(2).dot(o(3)), RuntimeError, "inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 and 3 elements respectively"),
        (lambda o: rd.matmul(o(()), o(2)), RuntimeError, "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
        (lambda o: rd.outer(o(2, 2), o(2)), RuntimeError, "outer: Expected 1-D argument self, but got 2-D"),
    ],
)  # fmt: skip
def test_errors_are_pytorchs(call, error, text):
    with pytest.raises(error) as caught:
        call(rd.ones)
    assert str(caught.value) == text
