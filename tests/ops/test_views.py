"""Views of views and in place, and PyTorch's errors; the values of each are the operator table's affair."""

import numpy as np

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
