"""Views of views and in place, and PyTorch's errors; the values of each are the operator table's affair."""

import numpy as np
import pytest

import redispatch.kernels.ops  # noqa: F401  # defines the operators
from redispatch.autograd import gradcheck
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops.from_data import tensor

X = np.arange(24.0).reshape(2, 3, 4)
M = X[:, :, 0]


def leaf(array):
    return tensor(array, dtype=dtypes.float64).requires_grad_()


def test_overlapping_windows_add_their_gradients():
    x = leaf(np.arange(6.0))
    assert gradcheck(lambda x: x.as_strided((3, 2), (1, 1)), [x])
    assert gradcheck(lambda x: x.expand(2, 6).as_strided((3,), (1,)), [x])


def test_reshape_copies_only_where_strides_forbid_a_view():
    x = tensor(M)
    assert x.reshape(6).untyped_storage() is not x.t().reshape(6).untyped_storage()
    assert np.array_equal(x.t().reshape(6).numpy(), M.T.reshape(6))
    assert not x.t().reshape(6)._is_view()


def test_in_place_views_change_the_tensor_itself():
    x = tensor(M.copy())
    assert x.t_() is x and x.shape == (3, 2)
    assert x.transpose_(0, 1).shape == (2, 3)
    assert x.unsqueeze_(0).shape == (1, 2, 3)
    assert x.squeeze_().shape == (2, 3)
    assert np.array_equal(x.numpy(), M)
    assert gradcheck(lambda x: (x * 1).t_() * 2, [leaf(M)])
    assert gradcheck(lambda x: (x * 1).unsqueeze_(1).squeeze_(1), [leaf(M)])


def test_writing_a_view_writes_the_base_and_its_gradient():
    def written(a, b):
        a = a.clone()
        a.t()[1:].copy_(b)
        a[:, 0].mul_(2.0)
        return a

    x = tensor(np.zeros((2, 3)))
    x.t()[1].fill_(5)
    assert x.tolist() == [[0, 5, 0], [0, 5, 0]] and x._version == 1
    assert gradcheck(written, [leaf(M), leaf(np.ones((2, 2)))])


ERRORS = [
    (lambda x: x.view(4), RuntimeError, "shape '[4]' is invalid for input of size 6"),
    (lambda x: x.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda x: x.t().view(-1), RuntimeError, "view size is not compatible with input tensor's size and stride"),
    (lambda x: x[:0].view(-1, 0), RuntimeError, "cannot reshape tensor of 0 elements into shape [-1, 0]"),
    (lambda x: x[None].t(), RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    (lambda x: x.permute(0, 0), RuntimeError, "permute(): duplicate dims are not allowed."),
    (lambda x: x.expand(3, 3), RuntimeError, "The expanded size of the tensor (3) must match the existing size (2)"),
    (lambda x: x.expand(3), RuntimeError, "the number of sizes provided (1) must be greater or equal to the number"),
    (lambda x: x.select(0, 2), IndexError, "select(): index 2 out of range for tensor of size [2, 3] at dimension 0"),
    (lambda x: x.unsqueeze(3), IndexError, "Dimension out of range (expected to be in range of [-3, 2], but got 3)"),
    (lambda x: x.narrow(1, 2, 2), RuntimeError, "start (2) + length (2) exceeds dimension size (3)."),
    (lambda x: x.split(0, 1), RuntimeError, "split_size can only be 0 if dimension size is 0"),
    (lambda x: x.split([1, 1], 1), RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 3"),
    (lambda x: x.unfold(1, 4, 1), RuntimeError, "maximum size for tensor at dimension 1 is 3 but size is 4"),
    (lambda x: x.as_strided((20,), (1,)), RuntimeError, "are out of bounds for storage of size 48"),
    (lambda x: x.as_strided((2,), (-1,)), RuntimeError, "Negative strides are not supported at the moment"),
    (lambda x: x[0].mT, RuntimeError, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D"),
    (lambda x: x.diagonal(0, 0, 0), RuntimeError, "diagonal dimensions cannot be identical 0, 0"),
]


@pytest.mark.parametrize("wrong, kind, text", ERRORS)
def test_wrong_arguments_get_the_reference_error(wrong, kind, text):
    with pytest.raises(kind) as caught:
        wrong(tensor(M))
    assert text in str(caught.value)
