"""ModuleTracker: which modules run, forward and backward, by the names that `state_dict` has."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.utils.module_tracker import ModuleTracker


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))

    def forward(self, x):
        return self.layers(x)


class Says(nn.Module):
    """Calls `say` forward and backward."""

    def __init__(self, say):
        super().__init__()
        self.say = say

    def forward(self, x):
        self.say()
        y = x * 2
        if y.requires_grad:
            y.grad_fn.register_prehook(lambda grads: self.say())
        return y


def test_names_are_those_of_the_state_dict_below_the_class():
    net, seen = Net(), []
    with ModuleTracker() as tracker:
        net.layers[1].register_forward_pre_hook(lambda *args: seen.append(set(tracker.parents)))
        net(rd.ones(1, 2))
        assert tracker.parents == {"Global"}
    assert seen == [{"Global", "Net", "Net.layers", "Net.layers.1"}]


def test_a_module_that_was_called_alone_is_named_after_the_one_around_it_later():
    net, seen = Net(), []
    with ModuleTracker() as tracker:
        net.layers[1].register_forward_pre_hook(lambda *args: seen.append(set(tracker.parents)))
        net.layers[1](rd.ones(1, 3))
        net(rd.ones(1, 2))
    assert seen == [{"Global", "Linear"}, {"Global", "Net", "Net.layers", "Net.layers.1"}]


def test_backward_enters_and_leaves_the_modules_in_turn():
    seen = []
    model = nn.Sequential(*(Says(lambda: seen.append((sorted(tracker.parents), tracker.is_bw))) for _ in range(2)))
    x = rd.ones(2, requires_grad=True)
    with ModuleTracker() as tracker:
        model(x).sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
    first, second = (["Global", "Sequential", f"Sequential.{number}"] for number in (0, 1))
    assert seen == [(first, False), (second, False), (second, True), (first, True)]


def test_a_module_whose_inputs_need_no_gradient_is_left_when_the_pass_ends():
    with ModuleTracker() as tracker:
        nn.Linear(2, 1)(rd.ones(1, 2)).sum().backward()
        assert tracker.parents == {"Global"}


def test_a_forward_that_raises_leaves_its_module():
    with ModuleTracker() as tracker:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            Net()(rd.ones(1, 7))
        assert tracker.parents == {"Global"}


def test_a_module_that_is_called_within_itself_is_left_when_its_outermost_call_ends():
    class Again(nn.Module):
        def forward(self, n):
            inside = self(n - 1) if n else set()
            return inside | set(tracker.parents)

    with ModuleTracker() as tracker:
        assert Again()(2) == {"Global", "Again"}
        assert tracker.parents == {"Global"}


def test_its_hooks_end_with_its_region():
    net = Net()
    with ModuleTracker() as tracker:
        loss = net(rd.ones(1, 2, requires_grad=True)).sum()
    loss.backward()
    net(rd.ones(1, 2))
    assert tracker.parents == {"Global"}
