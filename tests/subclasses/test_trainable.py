"""Trainable: attributes survive what a parameter goes through, and training is that of plain tensors."""

import copy
import io

import pytest

import redispatch as rd
from redispatch.serialization import add_safe_globals, clear_safe_globals
from redispatch.subclasses.trainable import Trainable
from redispatch.testing import assert_close

START = rd.tensor([[1.0, -2.0, 3.0]])


def parameter():
    return rd.nn.Parameter(Trainable(START.clone(), role="head", rate=0.5))


@pytest.mark.parametrize(
    "again",
    [
        copy.deepcopy,
        copy.copy,
        lambda w: w.clone(),
        lambda w: w.detach(),
        lambda w: w.data,
        lambda w: w.to(rd.float64),
        lambda w: rd.nn.Parameter(w.detach(), requires_grad=False),
        lambda w: w.detach().requires_grad_(),
    ],
)
def test_attributes_survive(again):
    w = again(parameter())
    assert type(w) is Trainable
    assert (w.role, w.rate, w.attributes) == ("head", 0.5, {"role": "head", "rate": 0.5})
    assert w.held.tolist() == START.tolist()


def test_a_parameter_is_one():
    w = parameter()
    assert isinstance(w, rd.nn.Parameter) and w.requires_grad and w.is_leaf
    assert not parameter().clone().is_leaf


@pytest.mark.parametrize("name, options", [("SGD", {"momentum": 0.9}), ("AdamW", {}), ("RMSprop", {})])
def test_optimizers_train_it_as_they_train_plain_tensors(name, options):
    results = []
    for w in (parameter(), rd.nn.Parameter(START.clone())):
        optimizer = getattr(rd.optim, name)([w], lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
        assert type(w.grad) is rd.Tensor
        results.append(w.held if isinstance(w, Trainable) else w.detach())
    assert_close(results[0], results[1])


def test_it_lives_in_a_module_through_a_file_and_back():
    linear = rd.nn.Linear(3, 1)
    linear.weight = parameter()
    linear(rd.ones(2, 3)).sum().backward()
    assert linear.weight.grad.tolist() == [[2.0, 2.0, 2.0]]

    file = io.BytesIO()
    rd.save(linear.state_dict(), file)
    file.seek(0)
    add_safe_globals([Trainable])
    try:
        state = rd.load(file)
    finally:
        clear_safe_globals()
    assert state["weight"].role == "head"

    other = rd.nn.Linear(3, 1)
    other.weight = rd.nn.Parameter(Trainable(rd.zeros(1, 3), role="other"))
    other.load_state_dict(state)
    assert other.weight.held.tolist() == START.tolist()
    assert other.weight.role == "other"  # a state_dict fills the parameters that are there


def test_other_results_are_plain_and_in_place_gives_the_object():
    w = parameter().detach()
    assert type(w + 1) is type(w.sum()) is type(w @ w.t()) is rd.Tensor
    assert w.mul_(2) is w and w.role == "head"
    assert w.held.tolist() == [[2.0, -4.0, 6.0]]


def test_a_deep_copy_has_attributes_and_memory_of_its_own():
    w = rd.nn.Parameter(Trainable(START.clone(), history=[1]))
    twin = copy.deepcopy(w)
    twin.attributes["history"].append(2)
    with rd.no_grad():
        twin.zero_()
    assert w.history == [1] and w.held.tolist() == START.tolist()
