"""swap_tensors: two tensors change places."""

import weakref

import pytest

import redispatch as rd
from redispatch.subclasses import TwoTensor
from redispatch.utils import swap_tensors


def test_whoever_holds_the_one_has_the_other():
    a, b = rd.ones(2), rd.zeros(3, requires_grad=True)
    a.tag = "a"
    held = [a]
    swap_tensors(a, b)
    assert held[0] is a and a.tolist() == [0, 0, 0] and a.requires_grad and a.is_leaf
    assert b.tolist() == [1, 1] and not b.requires_grad and b.tag == "a" and not hasattr(a, "tag")
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


def test_classes_change_places_too():
    plain, two = rd.nn.Parameter(rd.ones(2)), rd.nn.Parameter(TwoTensor(rd.zeros(2), rd.ones(2)))
    swap_tensors(plain, two)
    assert type(plain) is TwoTensor and isinstance(plain, rd.nn.Parameter) and type(two) is rd.nn.Parameter
    assert (plain + 1).a.tolist() == [1, 1] and two.tolist() == [1, 1]


def test_a_result_takes_its_history_along():
    x = rd.ones(2, requires_grad=True)
    y, z = x * 2, rd.zeros(2)
    swap_tensors(y, z)
    assert y.grad_fn is None and z.grad_fn is not None
    z.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_graph_that_was_recorded_before_is_not_run_with_the_wrong_tensor():
    x = rd.ones(2, requires_grad=True)
    y = x * 2
    swap_tensors(x, rd.zeros(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        y.sum().backward()
    a, b = rd.ones(2), rd.ones(2, requires_grad=True)
    y = a * b
    swap_tensors(a, rd.zeros(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_what_cannot_be_swapped_is_refused_and_left_as_it_was():
    a, b = rd.ones(2), rd.zeros(2)
    ref = weakref.ref(b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref associated with it"):
        swap_tensors(a, b)
    assert ref() is b and a.tolist() == [1, 1]

    class Slotted(rd.Tensor):
        __slots__ = ("more",)

    with pytest.raises(RuntimeError, match="Cannot swap t1 and t2 if they have different slots"):
        swap_tensors(a, rd.ones(2).as_subclass(Slotted))
    with pytest.raises(TypeError, match="expected t2 to be a Tensor, but got int"):
        swap_tensors(a, 1)
