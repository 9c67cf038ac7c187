"""Parameter and Buffer: tensors that modules recognise."""

import copy
import pickle

import pytest

import redispatch as rd
from redispatch.nn import Buffer, Parameter


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


def test_a_tensor_subclass_keeps_its_class_and_is_a_parameter_by_its_flag():
    parameter = Parameter(rd.ones(2).as_subclass(Tagged))
    assert type(parameter) is Tagged and isinstance(parameter, Parameter) and parameter.requires_grad
    assert not isinstance(rd.ones(2).as_subclass(Tagged), Parameter)

    class Special(Parameter):
        pass

    assert not isinstance(parameter, Special) and isinstance(Special(rd.ones(1)), Parameter)


def test_a_class_whose_detach_gives_another_class_cannot_be_a_parameter():
    class Forgetful(rd.Tensor):
        def detach(self):
            return rd.ones(2)

    with pytest.raises(
        RuntimeError, match="Creating a Parameter from an instance of type Forgetful requires that detach"
    ):
        Parameter(rd.ones(2).as_subclass(Forgetful))


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
