"""Hooks around forward and backward."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn import hooks


class Double(nn.Module):
    def forward(self, x, plus=0.0):
        return x * 2 + plus


def test_hooks_run_in_order_and_may_replace_arguments_and_result():
    module, seen = Double(), []
    module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    module.register_forward_hook(lambda m, args, result: seen.append(args[0].item()) or result * 10)
    module.register_forward_hook(lambda m, args, result: seen.append("first"), prepend=True)
    assert module(rd.tensor(1.0)).item() == 40
    assert seen == ["first", 2.0]


def test_a_hook_sees_keywords_where_it_asks_to():
    module = Double()
    module.register_forward_pre_hook(lambda m, args, kwargs: (args, {"plus": 5.0}), with_kwargs=True)
    module.register_forward_hook(lambda m, args, kwargs, result: result + kwargs["plus"], with_kwargs=True)
    assert module(rd.tensor(1.0)).item() == 12
    bad = Double()
    bad.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple of"):
        bad(rd.tensor(1.0))


def test_a_handle_takes_its_hook_off():
    module, seen = Double(), []
    with module.register_forward_hook(lambda m, args, result: seen.append(1)):
        module(rd.tensor(1.0))
    module(rd.tensor(1.0))
    assert seen == [1]


def test_a_hook_that_is_always_called_is_called_after_an_exception():
    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    module, seen = Failing(), []
    module.register_forward_hook(lambda m, args, result: seen.append("usual"))
    module.register_forward_hook(lambda m, args, result: seen.append(result), always_call=True)

    def raising(m, args, result):
        raise KeyError("hidden")

    module.register_forward_hook(raising, always_call=True)
    with pytest.warns(UserWarning, match="was silenced"), pytest.raises(ValueError, match="no"):
        module(1)
    assert seen == [None]


def test_backward_hooks_see_the_gradients_of_inputs_and_outputs():
    module, seen = Double(), []
    module.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
    x = rd.ones(2, requires_grad=True)
    (module(x) * 3).sum().backward()
    ((grad_input,), (grad_output,)) = seen[0]
    assert grad_output.tolist() == [3, 3] and grad_input.tolist() == [6, 6] == x.grad.tolist()


def test_backward_hooks_may_replace_the_gradients():
    module = Double()
    module.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 10,))
    module.register_full_backward_hook(lambda m, grad_input, grad_output: (grad_input[0] + 1,))
    x = rd.ones(2, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.tolist() == [21, 21]


def test_a_module_without_differentiable_inputs_gets_its_backward_hook_with_none():
    module, seen = nn.Linear(2, 1), []
    module.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, len(grad_output))))
    module(rd.ones(3, 2)).sum().backward()
    assert seen == [((None,), 1)]


def test_several_inputs_and_outputs_keep_their_places():
    class Pair(nn.Module):
        def forward(self, a, flag, b):
            return a * 2, b * 3

    module, seen = Pair(), []
    module.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append(grad_input))
    a, b = rd.ones(1, requires_grad=True), rd.ones(1, requires_grad=True)
    x, y = module(a, True, b)
    (x + y).sum().backward()
    assert [g if g is None else g.item() for g in seen[0]] == [2, None, 3]


def test_a_backward_hook_must_keep_the_number_of_gradients():
    module = Double()
    module.register_full_backward_hook(lambda m, grad_input, grad_output: (None, None))
    x = rd.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match="Backward hook returned an invalid number of grad_input, got 2, but expected 1"
    ):
        module(x).sum().backward()


def test_hooks_of_all_modules_come_before_a_modules_own():
    seen = []
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net[1].register_forward_hook(lambda module, args, result: seen.append("own"))
    handles = [
        hooks.register_module_forward_pre_hook(lambda module, args: seen.append(("before", type(module).__name__))),
        hooks.register_module_forward_hook(lambda module, args, result: seen.append(("after", type(module).__name__))),
        hooks.register_module_full_backward_pre_hook(lambda module, grads: seen.append("in")),
        hooks.register_module_full_backward_hook(lambda module, grads, others: seen.append("out")),
    ]
    try:
        net(rd.ones(1, 2, requires_grad=True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    assert seen[:3] == [("before", "Sequential"), ("before", "Linear"), ("after", "Linear")]
    assert seen[3:7] == [("before", "ReLU"), ("after", "ReLU"), "own", ("after", "Sequential")]
    assert sorted(seen[7:]) == ["in"] * 3 + ["out"] * 3
    net(rd.ones(1, 2))
    assert seen[13:] == ["own"]  # the others are gone


def test_the_tables_hold_the_hooks_as_they_were_given():
    def before(module, args, kwargs):
        return None

    def after(module, args, kwargs, result):
        return None

    module = Double()
    handles = [
        module.register_forward_pre_hook(before, with_kwargs=True),
        module.register_forward_hook(after, with_kwargs=True, always_call=True),
    ]
    assert list(module._forward_pre_hooks.values()) == [before]
    assert list(module._forward_hooks.values()) == [after]
    tables = (
        module._forward_pre_hooks_with_kwargs,
        module._forward_hooks_with_kwargs,
        module._forward_hooks_always_called,
    )
    assert [list(table) for table in tables] == [[handles[0].id], [handles[1].id], [handles[1].id]]
    for handle in handles:
        handle.remove()
    assert not any((module._forward_pre_hooks, module._forward_hooks, *tables))


def test_hooks_of_all_modules_see_and_change_what_is_filed():
    seen = []

    def note(kind):
        return lambda module, name, value: seen.append((kind, name))

    handles = [
        hooks.register_module_parameter_registration_hook(note("parameter")),
        hooks.register_module_module_registration_hook(note("module")),
        hooks.register_module_buffer_registration_hook(lambda module, name, value: value + 1),
    ]
    try:
        model = nn.Sequential(nn.Linear(1, 1))
        model.register_buffer("b", rd.zeros(1))
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("parameter", "weight"), ("parameter", "bias"), ("module", "0")] and model.b.item() == 1
    nn.Linear(1, 1)
    assert len(seen) == 3


def test_backward_hooks_of_all_modules_are_of_one_kind():
    seen = []
    old = hooks.register_module_backward_hook(lambda module, grad_in, grad_out: seen.append(type(module)))
    try:
        with pytest.raises(RuntimeError, match="as a global Module hook"):
            hooks.register_module_full_backward_hook(lambda *_: None)
        nn.Linear(1, 1)(rd.ones(1)).sum().backward()
    finally:
        old.remove()
    assert seen == [nn.Linear]
