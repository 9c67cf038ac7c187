"""Parameters and buffers: which object one is after a conversion, and those that get their shape later."""

import copy
import pickle
import warnings

import pytest

import redispatch as rd
from redispatch import __future__ as future
from redispatch import nn
from redispatch.nn import Buffer, Parameter
from redispatch.subclasses import TwoTensor

# Parameter and Buffer: tensors that modules recognise -----------------------------------------------------------------


class Tagged(rd.Tensor):
    """A tensor class of its own, without behaviour."""


def test_a_parameter_is_a_leaf_that_requires_grad_over_the_same_memory():
    data = rd.ones(2)
    parameter = Parameter(data)
    assert type(parameter) is Parameter and parameter.is_leaf and parameter.requires_grad
    assert parameter.data_ptr() == data.data_ptr()
    assert not Parameter(data, requires_grad=False).requires_grad


def test_a_parameter_requires_grad_when_it_is_made_in_no_grad():
    with rd.no_grad():
        assert Parameter(rd.ones(2)).requires_grad


def test_a_parameter_of_nothing_is_empty():
    assert Parameter().shape == (0,)


def test_an_integer_parameter_cannot_require_grad():
    with pytest.raises(RuntimeError, match="nly Tensors of floating point and complex dtype can require gradients"):
        Parameter(rd.ones(2, dtype=rd.int64))
    assert Parameter(rd.ones(2, dtype=rd.int64), requires_grad=False).dtype is rd.int64


def test_operators_on_a_parameter_give_plain_tensors():
    assert type(Parameter(rd.ones(2)) * 2) is rd.Tensor


def test_a_parameter_says_so_when_it_is_printed():
    assert repr(Parameter(rd.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"

    class Named(rd.Tensor):
        pass

    class Own(Parameter):
        pass

    named = Parameter(rd.ones(1).as_subclass(Named))
    assert repr(named) == "Parameter(Named([1.], requires_grad=True))" and repr(named.data) == "Named([1.])"
    assert repr(Own(rd.ones(1))) == "Parameter containing:\nParameter(Own([1.], requires_grad=True))"


def test_a_tensor_subclass_keeps_its_class_and_is_a_parameter_by_its_flag():
    parameter = Parameter(rd.ones(2).as_subclass(Tagged))
    assert type(parameter) is Tagged and isinstance(parameter, Parameter) and parameter.requires_grad
    assert not isinstance(rd.ones(2).as_subclass(Tagged), Parameter)

    class Special(Parameter):
        pass

    assert not isinstance(parameter, Special) and isinstance(Special(rd.ones(1)), Parameter)


def test_a_class_whose_detach_gives_another_class_stays_over_the_same_memory():
    class Forgetful(rd.Tensor):
        def detach(self):
            return rd.ones(2)

    given = rd.zeros(2).as_subclass(Forgetful)
    parameter = Parameter(given)
    assert type(parameter) is Forgetful and isinstance(parameter, Parameter) and parameter.requires_grad
    assert parameter.data_ptr() == given.data_ptr() and not given.requires_grad


def test_a_deep_copy_is_a_parameter_of_its_own_and_once_per_memo():
    parameter = Parameter(rd.ones(2), requires_grad=False)
    a, b = copy.deepcopy([parameter, parameter])
    assert a is b and type(a) is Parameter and not a.requires_grad
    assert a.data_ptr() != parameter.data_ptr()


def test_a_pickled_parameter_comes_back_with_its_attributes():
    parameter = Parameter(rd.arange(3.0))
    parameter.note = "first"
    back = pickle.loads(pickle.dumps(parameter))
    assert type(back) is Parameter and back.requires_grad and back.note == "first" and back.tolist() == [0, 1, 2]


def test_a_buffer_is_a_flagged_tensor():
    buffer = Buffer(rd.ones(2), persistent=False)
    assert type(buffer) is rd.Tensor and isinstance(buffer, Buffer) and not buffer.persistent
    assert not isinstance(rd.ones(2), Buffer)
    assert Buffer().shape == (0,)


# Which object a parameter is after its module was converted, and what redispatch.__future__ changes about it ----------


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


# Lazy modules ---------------------------------------------------------------------------------------------------------

# Shapes found in the first input, or brought by a checkpoint; and parameters without a shape.

SHAPES = {
    "Linear": (2, 3),
    "Conv1d": (2, 4, 6),
    "Conv2d": (2, 4, 6, 6),
    "Conv3d": (1, 4, 5, 5, 5),
    "ConvTranspose1d": (2, 4, 6),
    "ConvTranspose2d": (2, 4, 6, 6),
    "ConvTranspose3d": (1, 4, 5, 5, 5),
    "BatchNorm1d": (2, 3, 4),
    "BatchNorm2d": (2, 3, 4, 4),
    "BatchNorm3d": (2, 3, 4, 4, 4),
    "InstanceNorm1d": (2, 3, 4),
    "InstanceNorm2d": (2, 3, 4, 4),
    "InstanceNorm3d": (2, 3, 4, 4, 4),
}


def made(name):
    arguments = (5,) if name == "Linear" else (6, 3) if "Conv" in name else ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is drawn for a parameter without elements
        return getattr(nn, f"Lazy{name}")(*arguments)


@pytest.mark.parametrize("name", SHAPES)
def test_the_first_input_makes_a_lazy_module_a_usual_one(name):
    lazy, x = made(name), rd.randn(*SHAPES[name])
    assert lazy.has_uninitialized_params()
    result = lazy(x)
    assert type(lazy) is getattr(nn, name) and not lazy._forward_pre_hooks
    assert all(parameter.shape for parameter in lazy.parameters()) and result.shape[0] == len(x)


@pytest.mark.parametrize("name", SHAPES)
def test_a_checkpoint_brings_the_shapes(name):
    x = rd.randn(*SHAPES[name])
    known, lazy = made(name), made(name)
    known(x)
    lazy.load_state_dict(known.state_dict())
    assert rd.equal(lazy(x), known(x)) and repr(lazy) == repr(known)


def test_lazy_modules_are_copied_and_converted_before_they_have_a_shape():
    lazy = copy.deepcopy(made("Linear")).double()
    assert lazy(rd.ones(2, 3, dtype=rd.float64)).dtype is rd.float64
    assert str(made("Linear").state_dict()["weight"]) == "<UninitializedParameter>"


def test_an_optimizer_may_be_made_before_the_first_call():
    lazy = made("Linear")
    optimizer = rd.optim.SGD(lazy.parameters(), lr=1.0)
    lazy(rd.ones(2, 3)).sum().backward()
    before = lazy.weight.clone()
    optimizer.step()
    assert rd.equal(lazy.weight, before - 2)


def test_a_tensor_without_a_shape_refuses_to_be_computed_with():
    parameter = nn.UninitializedParameter()
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
        parameter + 1
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        parameter.shape
    parameter.materialize((2, 3))
    assert type(parameter) is nn.Parameter and parameter.shape == (2, 3) and parameter.requires_grad
    buffer = nn.UninitializedBuffer(dtype=rd.float64)
    buffer.materialize((2,))
    assert type(buffer) is rd.Tensor and buffer.dtype is rd.float64
