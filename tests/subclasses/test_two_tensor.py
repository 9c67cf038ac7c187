"""TwoTensor: both halves run, aliasing is what it is for plain tensors, and autograd sees the wrapper."""

import redispatch as rd
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing._internal import two_tensor
from redispatch.utils._python_dispatch import is_traceable_wrapper_subclass, transform_subclass


def pair(*shape):
    return TwoTensor(rd.ones(*shape), rd.zeros(*shape))


def values(x):
    return x.a.tolist(), x.b.tolist()


def test_every_operator_runs_on_both():
    assert values((pair(2) + 1) * 3) == ([6.0, 6.0], [3.0, 3.0])


def test_tensors_in_lists_are_found():
    assert values(rd.cat([pair(1), rd.ones(1)])) == ([1.0, 1.0], [0.0, 1.0])


def test_several_results_are_each_a_pair():
    first, second = pair(2, 2).unbind()
    assert type(first) is type(second) is TwoTensor
    assert values(second) == ([1.0, 1.0], [0.0, 0.0])


def test_an_in_place_operator_returns_the_wrapper_and_counts_the_write():
    x = pair(2)
    assert x.add_(1) is x
    assert x._version == 1
    assert values(x) == ([2.0, 2.0], [1.0, 1.0])


def test_out_is_written_and_returned():
    out = pair(2)
    assert rd.add(pair(2), pair(2), out=out) is out
    assert values(out) == ([2.0, 2.0], [0.0, 0.0])


def test_a_view_shares_the_wrappers_storage():
    x = pair(2, 2)
    view = x.view(4)
    assert view._is_view() and view._base is x
    assert view.untyped_storage() is x.untyped_storage()
    view.add_(1)
    assert values(x) == ([[2.0, 2.0], [2.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]])


def test_an_operator_that_changes_the_shape_changes_the_wrappers():
    x = pair(2, 3)
    assert x.t_() is x
    assert x.shape == x.a.shape == (3, 2)


def test_the_graph_is_the_wrappers():
    x = pair(2).requires_grad_()
    y = x.exp().sum()
    y.backward()
    assert type(x.grad) is TwoTensor
    assert x.grad.b.tolist() == [1.0, 1.0]
    assert not x.a.requires_grad


def test_a_number_is_the_first_ones():
    assert pair(2).sum().item() == 2.0


def test_it_comes_apart_and_together_again():
    x = pair(2)
    assert is_traceable_wrapper_subclass(x)
    doubled = transform_subclass(x, lambda name, inner: inner * 2)
    assert type(doubled) is TwoTensor and values(doubled) == ([2.0, 2.0], [0.0, 0.0])


def test_it_shows_both():
    assert repr(pair(1)) == "TwoTensor(tensor([1.]), tensor([0.]))"


def test_it_is_found_where_pytorch_keeps_it():
    assert two_tensor.TwoTensor is TwoTensor
