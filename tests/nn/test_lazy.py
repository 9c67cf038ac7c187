"""Lazy modules: shapes found in the first input, or brought by a checkpoint; and parameters without a shape."""

import copy
import warnings

import pytest

import redispatch as rd
from redispatch import nn

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
