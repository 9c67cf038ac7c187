"""Which object a parameter is after its module was converted, and what redispatch.__future__ changes about it."""

import pytest

import redispatch as rd
from redispatch import __future__ as future
from redispatch.subclasses import TwoTensor


@pytest.fixture
def swapping():
    future.set_swap_module_params_on_conversion(True)
    yield
    future.set_swap_module_params_on_conversion(False)


def linear():
    return rd.nn.Linear(2, 2, bias=False)


def test_a_parameter_that_is_a_wrapper_stays_the_same_object():
    layer = linear()
    layer.weight = weight = rd.nn.Parameter(TwoTensor(rd.ones(2, 2), rd.ones(2, 2)))
    layer.to(rd.float64)
    assert layer.weight is weight and weight.a.dtype is rd.float64 and type(weight) is TwoTensor
    assert isinstance(weight, rd.nn.Parameter) and weight.requires_grad and weight.is_leaf
    layer(rd.ones(1, 2).double()).sum().backward()
    gradient = weight.grad
    layer.float()
    assert weight.grad is gradient and gradient.a.dtype is rd.float32
    rd.optim.SGD([weight], lr=1.0).step()
    assert layer.weight.a.tolist() == [[0, 0], [0, 0]]


def test_by_default_it_stays_the_same_object_and_on_demand_there_is_a_new_one():
    layer = linear()
    weight = layer.weight
    assert layer.double().weight is weight and weight.dtype is rd.float64
    future.set_overwrite_module_params_on_conversion(True)
    try:
        assert layer.float().weight is not weight and weight.dtype is rd.float64
    finally:
        future.set_overwrite_module_params_on_conversion(False)
    assert not future.get_overwrite_module_params_on_conversion()


def test_swapping_is_refused_between_forward_and_backward(swapping):
    layer = linear()
    weight = layer.weight
    assert layer.double().weight is weight and weight.dtype is rd.float64
    loss = layer(rd.ones(1, 2).double()).sum()
    layer.float()
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        loss.backward()
    layer(rd.ones(1, 2)).sum().backward()
    assert weight.grad.dtype is rd.float32


def test_a_state_dict_is_swapped_in_too(swapping):
    layer = linear()
    weight = layer.weight
    layer.load_state_dict({"weight": rd.zeros(2, 2)})
    assert layer.weight is weight and weight.tolist() == [[0, 0], [0, 0]] and weight.requires_grad
    layer.load_state_dict({"weight": TwoTensor(rd.ones(2, 2), rd.ones(2, 2))}, assign=True)
    assert layer.weight is weight and type(weight) is TwoTensor
