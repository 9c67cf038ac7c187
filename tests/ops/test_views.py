"""Views, joining and copies; the values of each are the operator table's affair."""

import numpy as np
import pytest

import redispatch as rd
import redispatch.kernels.ops  # defines the operators
from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import META, channels_last, contiguous_format, dtypes, empty
from redispatch.kernels.ops import copying, shape
from redispatch.kernels.ops.from_data import tensor

from ..seeing import Seen

# Views of views and in place, and PyTorch's errors --------------------------------------------------------------------

# The values of each are the operator table's affair.

X = np.arange(24.0).reshape(2, 3, 4)
M = X[:, :, 0]
SIX = np.arange(6.0).reshape(2, 3)


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


# Joining and rearranging: what cat makes of its inputs, and PyTorch's errors ------------------------------------------


def test_cat_promotes_skips_old_style_empties_and_fills_out():
    x = tensor(SIX)
    assert shape.cat([x.float(), tensor([[1, 2, 3]])]).dtype is dtypes.float32
    assert shape.cat([x, tensor([])]).shape == (2, 3)
    out = tensor(np.zeros((4, 3)))
    assert shape.cat([x, x], out=out) is out and out.tolist() == [*SIX.tolist(), *SIX.tolist()]


# Copies, conversions, filling, detaching ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert, seen",
    [
        (lambda x: x.to(dtypes.float64), []),
        (lambda x: x.to("cpu"), []),
        (lambda x: x.double(), []),
        (lambda x: x.contiguous(), []),
        (lambda x: x.float(), [("aten._to_copy.default", {"dtype": "torch.float32"})]),
        (lambda x: x.to(dtypes.float64, copy=True), [("aten._to_copy.default", {"dtype": "torch.float64"})]),
        (
            lambda x: x.to("cpu", dtypes.int64),
            [("aten._to_copy.default", {"dtype": "torch.int64", "device": "cpu"})],
        ),
        (
            lambda x: x.to("meta"),
            [("aten._to_copy.default", {"dtype": "torch.float64", "layout": "torch.strided", "device": "meta"})],
        ),
    ],
)
def test_a_mode_sees_a_conversion_only_where_something_changes(convert, seen):
    x = tensor(SIX)
    with Seen() as mode:
        convert(x)
    assert [(str(func), {k: str(v) for k, v in (kwargs or {}).items()}) for func, _, _, kwargs in mode.calls] == seen


def test_a_copy_lies_as_its_source_does():
    x = tensor(SIX)
    assert x.t().clone().stride() == (1, 3)
    assert x.t().clone(memory_format=contiguous_format).stride() == (2, 1)
    assert x.expand(4, 2, 3).clone().stride() == (6, 3, 1)
    assert x.t().float().stride() == (1, 3)
    assert x.reshape(1, 2, 3, 1).contiguous(memory_format=channels_last).stride() == (6, 1, 2, 2)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool"])
def test_values_survive_the_way_through_another_dtype(name):
    x = tensor([[0.0, 1.0], [2.0, 3.0]], dtype=dtypes.float64)
    there = x.to(getattr(dtypes, name))
    assert there.dtype.name == name
    assert there.double().tolist() == ([[0, 1], [1, 1]] if name == "bool" else x.tolist())


def test_copy_broadcasts_converts_and_counts():
    x = tensor(np.zeros((2, 3), np.int64))
    assert x.copy_(tensor([1.9, 2.0, -3.7])) is x
    assert x.tolist() == [[1, 2, -3]] * 2 and x._version == 1
    y = tensor([1.0, 2.0, 3.0])
    y[1:].copy_(y[:-1].clone())
    assert y.tolist() == [1, 1, 2]


def test_gradients_flow_through_copies():
    a, b = leaf(SIX), leaf(np.array([1.0, 2.0, 3.0]))
    for function in (
        lambda a, b: a.clone().copy_(b) + a,
        lambda a, b: a.clone().fill_(b.sum()),
        lambda a, b: a.clone().fill_(2.0) * b,
        lambda a, b: a.clone().zero_() + b,
        lambda a, b: a.t().contiguous() * a.to(dtypes.float64, copy=True).t(),
    ):
        assert gradcheck(function, [a, b])
        assert gradgradcheck(function, [a, b])
    (a.float().sum() + a.float()[0].sum()).backward()
    assert a.grad.dtype is dtypes.float64 and a.grad.tolist() == [[2, 2, 2], [1, 1, 1]]


@pytest.mark.parametrize(
    "node, make",
    [
        ("CloneBackward0", lambda x: x.clone()),
        ("ToCopyBackward0", lambda x: x.float()),
        ("CopyBackwards", lambda x: x.clone().copy_(x)),
        ("FillBackward2", lambda x: x.clone().fill_(1)),
        ("FillBackward3", lambda x: x.clone().fill_(x.sum())),
        ("ZeroBackward0", lambda x: x.clone().zero_()),
        ("AliasBackward0", lambda x: ops.aten.alias(x)),
    ],
)
def test_nodes_have_the_names_of_the_reference(node, make):
    assert type(make(leaf(SIX)).grad_fn).__name__ == node


def test_detach_shares_memory_and_version_and_data_only_memory():
    x = leaf(SIX)
    detached, data = x.detach(), x.data
    assert not detached.requires_grad and not detached._is_view() and not data.requires_grad
    detached.add_(1)
    assert (x._version, detached._version, data._version) == (1, 1, 0)
    assert data.tolist() == (SIX + 1).tolist()


def test_data_can_be_replaced():
    x = leaf(SIX)
    x.data = tensor([1.0, 2.0])
    assert x.tolist() == [1, 2] and x.requires_grad
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = tensor([1])
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 3


def test_numbers_that_do_not_fit_are_refused():
    for kind, value in (("uint8", 300), ("float32", 1j), ("float16", 1e6), ("int16", float("nan")), ("float32", 1e300)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
            empty((2,), getattr(dtypes, kind)).fill_(value)
    assert empty((1,), dtypes.uint8).fill_(-1).tolist() == [255]
    assert empty((1,), dtypes.bool).fill_(2).tolist() == [True]


def test_meta_tensors_have_no_values():
    meta = empty((2,), dtypes.float32, META)
    assert meta.copy_(tensor([1.0, 2.0])) is meta and meta.fill_(1) is meta
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        meta.to("cpu")
    with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
        empty((), dtypes.float32, META).item()


def test_comparisons_to_a_number():
    x = tensor([1.0, float("nan"), float("inf")])
    assert copying.equal(tensor(SIX), tensor(SIX)) and not copying.equal(x, x)
    assert copying.isclose(x, x, equal_nan=True).tolist() == [True, True, True]
    assert copying.allclose(tensor([1.0]), tensor([1.0 + 1e-7]))
    with pytest.raises(RuntimeError, match="Float did not match Double"):
        copying.isclose(tensor(SIX).float(), tensor(SIX))
    with pytest.raises(RuntimeError, match="a Tensor with 3 elements cannot be converted to Scalar"):
        x.item()


def test_resize_grows_the_memory_and_refuses_gradients():
    x = tensor([1.0, 2.0])
    assert x.resize_(2, 3).shape == (2, 3) and x.tolist()[0][:2] == [1, 2]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        leaf(SIX).resize_(2)


def test_type_names():
    x = tensor(SIX).float()
    assert x.type() == "torch.FloatTensor" and x.type("torch.IntTensor").dtype is dtypes.int32
    with pytest.raises(ValueError, match="invalid type: 'foo'"):
        x.type("foo")


def test_resize_to_the_same_shape_keeps_strides_and_values():
    x = rd.arange(6).view(2, 3).t()
    assert x.resize_(3, 2).stride() == (1, 3) and x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.resize_as_(rd.ones(3, 2)).stride() == (1, 3)
    assert x.resize_(3, 2, memory_format=rd.contiguous_format).stride() == (2, 1)
    out = rd.empty_strided((1, 3, 1), (1, 1, 1))
    assert rd.linalg.matrix_norm(rd.ones(2, 3, 4), 2, (0, 2), True, out=out).stride() == (1, 1, 1)


@pytest.mark.parametrize("name", ["int64", "bool", "float32", "complex64"])
def test_a_view_of_any_dtype_knows_its_base(name):
    x = rd.ones(4, 4, dtype=getattr(rd, name))
    views = [
        x[0],
        x.t(),
        x.view(16),
        x.expand(2, 4, 4),
        *x.unbind(),
        *x.split(3),
        *x.tensor_split(3),
        x[0][1:],
        x.diagonal(),
    ]
    assert all(view._is_view() and view._base is x for view in views)
    assert rd.tensor(1).flatten()._is_view() and not x.clone()._is_view()
    floats = rd.ones(4, requires_grad=True)
    bits = floats.view(rd.int32)
    assert not bits._is_view() and not bits.requires_grad and not bits[1:].requires_grad


def test_sizes_that_overflow_are_refused():
    x = rd.empty(())
    for size, text in (([2, 4, 2**29, 2**29], "Storage size calculation"), ([0, 4, 2**61], "Stride calculation")):
        with pytest.raises(RuntimeError, match=f"{text} overflowed"):
            x.resize_(size)
        with pytest.raises(RuntimeError, match=f"{text} overflowed"):
            rd.zeros(size)
    with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
        rd.rand(1).expand(2**62, 8)


def test_differences_want_what_lies_before_and_behind_to_fit():
    with pytest.raises(RuntimeError, match=r"input.size\(0\) = 3, but got tensor.size\(0\) = 2"):
        rd.rand(3, 3).diff(prepend=rd.rand(2, 2))
    assert rd.rand(3, 3).diff(append=rd.rand(3, 2)).shape == (3, 4)
