"""Python's operators on tensors, among themselves and with numpy's arrays."""

import operator

import numpy as np
import pytest

import redispatch as rd
from redispatch.testing import assert_close


class Declines(rd.Tensor):
    """A class that answers NotImplemented to everything."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Other(rd.Tensor):
    """A class with the default handler, which declines calls with unrelated classes."""


def test_operators_that_nobody_handles_are_unsupported():
    x = rd.ones(2).as_subclass(Declines)
    for attempt in (lambda: x + 1, lambda: 1 + x, lambda: x * rd.ones(2).as_subclass(Other)):
        with pytest.raises(TypeError, match="unsupported operand type"):
            attempt()


def test_functions_that_nobody_handles_say_who_was_asked():
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.add'"):
        rd.add(rd.ones(2).as_subclass(Declines), 1)


def test_an_error_of_the_handler_comes_through():
    class Fails(rd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        rd.ones(2).as_subclass(Fails) + 1


def test_iterating_over_a_subclass_gives_the_subclass():
    x = rd.ones(2, 3).as_subclass(Other)
    assert [type(row) for row in x] == [Other, Other]
    assert type(reversed(x)) is Other
    assert reversed(rd.tensor([1, 2])).tolist() == [2, 1]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow"])
def test_arithmetic_of_a_tensor_with_an_array_gives_a_tensor(name):
    function = getattr(operator, name)
    result = function(rd.full((2,), 3.0), np.full(2, 2.0))
    assert_close(result, rd.tensor([function(3.0, 2.0)] * 2, dtype=rd.float64))


def test_numpy_functions_of_a_tensor_give_a_tensor():
    assert_close(np.exp(rd.zeros(2)), rd.ones(2))
    assert_close(np.isnan(rd.zeros(2)), rd.zeros(2, dtype=rd.uint8))


def test_equality_with_an_array_is_by_element():
    assert (rd.ones(2) == np.ones(2)).tolist() == [True, True]
    assert (np.ones(2) == rd.ones(2)).tolist() == [True, True]
    assert (rd.ones(1) == np.array(["a"])) is False


def test_plus_is_the_tensor_itself_and_no_operation_on_truth_values():
    x = rd.ones(2)
    assert +x is x
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        +rd.tensor(True)


def test_a_number_may_come_first():
    x = rd.tensor([1.0, 2.0], requires_grad=True)
    assert rd.sub(3, x).tolist() == [2.0, 1.0]
    assert rd.autograd.grad(rd.mul(2, x).sum(), x)[0].tolist() == [2.0, 2.0]
