"""CheckedTensor: it names the operator that made the first NaN or infinity, forward, backward and in place."""

import pytest

import redispatch as rd
from redispatch.subclasses.checked_tensor import CheckedTensor, NonFiniteError


def checked(*numbers):
    return CheckedTensor(rd.tensor(numbers))


def test_results_are_checked_tensors_with_the_values_of_plain_ones():
    y = (checked(1.0, 2.0) * 3).sum()
    assert type(y) is CheckedTensor and y.item() == 9.0


def test_it_is_the_memory_that_it_was_made_of():
    plain = rd.ones(2)
    x = CheckedTensor(plain)
    assert x.add_(1) is x
    assert plain.tolist() == [2.0, 2.0]
    assert x.data_ptr() == plain.data_ptr()


def test_the_first_operator_is_named_with_what_it_made():
    with pytest.raises(NonFiniteError, match="aten.log.default made the first value that is not finite") as caught:
        (checked(1.0, 0.0).log() * 0).sum()
    assert caught.value.op is rd.ops.aten.log.default
    assert type(caught.value.value) is rd.Tensor
    assert caught.value.value.tolist() == [0.0, float("-inf")]


def test_what_is_born_in_backward_is_caught_there():
    x = checked(0.0).requires_grad_()
    y = x.sqrt().sum()
    assert y.item() == 0.0
    with pytest.raises(NonFiniteError, match="aten.div.Tensor"):
        y.backward()


def test_gradients_are_checked_tensors():
    x = checked(1.0, 2.0).requires_grad_()
    (x * x).sum().backward()
    assert type(x.grad) is CheckedTensor and x.grad.tolist() == [2.0, 4.0]


def test_fresh_memory_and_integers_are_not_looked_at():
    x = checked(1.0)
    rd.empty_like(x.expand(64, 64))
    assert (x.to(rd.int64) + 1).tolist() == [2]


def test_views_share_memory_and_base():
    x = checked(1.0, 2.0)
    view = x.view(2, 1)
    assert type(view) is CheckedTensor and view._base is x
    view.mul_(2)
    assert x.tolist() == [2.0, 4.0]
