"""Views against numpy: values, memory shared, gradients, errors."""

import numpy as np
import pytest

import redispatch.kernels.ops  # noqa: F401  # defines the operators
from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops import views
from redispatch.kernels.ops.from_data import tensor

X = np.arange(24.0).reshape(2, 3, 4)
M = X[:, :, 0]


def leaf(array):
    return tensor(array, dtype=dtypes.float64).requires_grad_()


# (what, of a tensor; the same of an array; the array)
VIEWS = [
    (lambda x: x.view(6, 4), lambda a: a.reshape(6, 4), X),
    (lambda x: x.view(2, -1), lambda a: a.reshape(2, -1), X),
    (lambda x: x.reshape(4, 6), lambda a: a.reshape(4, 6), X),
    (lambda x: x.flatten(1), lambda a: a.reshape(2, 12), X),
    (lambda x: x.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2), X),
    (lambda x: x.ravel(), lambda a: a.ravel(), X),
    (lambda x: x.t(), lambda a: a.T, M),
    (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, -1), X),
    (lambda x: x.permute(2, 0, -2), lambda a: a.transpose(2, 0, 1), X),
    (lambda x: x.T, lambda a: a.T, M),
    (lambda x: x.mT, lambda a: a.swapaxes(1, 2), X),
    (lambda x: x.movedim((0, 1), (1, 2)), lambda a: np.moveaxis(a, (0, 1), (1, 2)), X),
    (lambda x: x.swapaxes(0, 1), lambda a: a.swapaxes(0, 1), X),
    (lambda x: x.expand(2, 2, 3), lambda a: np.broadcast_to(a, (2, 2, 3)), M),
    (lambda x: views.broadcast_to(x, (5, 2, 3)), lambda a: np.broadcast_to(a, (5, 2, 3)), M),
    (lambda x: x.unsqueeze(-1), lambda a: a[..., None], X),
    (lambda x: x[:1].squeeze(), lambda a: a[:1].squeeze(), X),
    (lambda x: x[:, :1].squeeze(1), lambda a: a[:, 0], X),
    (lambda x: x[:1, :1].squeeze((0, 1)), lambda a: a[0, 0], X),
    (lambda x: x.squeeze(0), lambda a: a, X),
    (lambda x: x.select(1, -1), lambda a: a[:, -1], X),
    (lambda x: x.narrow(2, 1, 2), lambda a: a[:, :, 1:3], X),
    (lambda x: x.diagonal(1, 1, 2), lambda a: a.diagonal(1, 1, 2), X),
    (lambda x: x.diagonal(-1), lambda a: a.diagonal(-1), X),
    (lambda x: x.unfold(2, 2, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2), X),
    (lambda x: x.as_strided((2, 2), (1, 2), 1), lambda a: np.array([[1.0, 3.0], [2.0, 4.0]]), X),
    (lambda x: x.split(2, 1)[1], lambda a: a[:, 2:], X),
    (lambda x: x.split([1, 3], 2)[1], lambda a: a[:, :, 1:], X),
    (lambda x: x.chunk(3, 2)[1], lambda a: np.array_split(a, 2, 2)[1], X),
    (lambda x: x.tensor_split(3, 2)[0], lambda a: np.array_split(a, 3, 2)[0], X),
    (lambda x: x.unbind(1)[2], lambda a: a[:, 2], X),
    (lambda x: x.real, lambda a: a, X),
]


@pytest.mark.parametrize("view, reference, array", VIEWS)
def test_a_view_shows_what_numpy_shows_in_the_same_memory(view, reference, array):
    x = tensor(array)
    shown = view(x)
    assert np.array_equal(shown.numpy(), reference(array))
    assert shown.untyped_storage() is x.untyped_storage()


@pytest.mark.parametrize("view, reference, array", VIEWS)
def test_the_derivatives_of_a_view_are_right(view, reference, array):
    assert gradcheck(view, [leaf(array)])
    assert gradgradcheck(view, [leaf(array)])


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


def test_view_of_another_dtype_reads_the_same_bytes():
    x = tensor(np.ones((2, 4), np.float32))
    assert x.view(dtypes.int32).tolist() == [[0x3F800000] * 4] * 2
    assert x.view(dtypes.float64).shape == (2, 2)
    assert x.view(dtypes.uint8).shape == (2, 16)


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


@pytest.mark.parametrize(
    "scatter, write",
    [
        (lambda x, y: x.select_scatter(y[0], 0, 1), lambda a, b: a.__setitem__(1, b[0])),
        (
            lambda x, y: x.slice_scatter(y[:, :2], 1, 0, 3, 2),
            lambda a, b: a.__setitem__((slice(None), [0, 2]), b[:, :2]),
        ),
        (lambda x, y: x.diagonal_scatter(y[0, :2]), lambda a, b: a.__setitem__(([0, 1], [0, 1]), b[0, :2])),
        (lambda x, y: x.as_strided_scatter(y[0], (3,), (2,)), lambda a, b: a.reshape(-1).__setitem__([0, 2, 4], b[0])),
    ],
)
def test_scatter_is_writing_through_a_view_into_a_copy(scatter, write):
    expected = M.copy()
    write(expected, -X[:, :, 1])
    assert np.array_equal(scatter(tensor(M), tensor(-X[:, :, 1])).numpy(), expected)
    assert gradgradcheck(scatter, [leaf(M), leaf(X[:, :, 1])])
