"""checkpoint: gradients as without it, how often the function runs again, what it finds around it, and the errors."""

import contextlib
import gc
import weakref

import pytest

import redispatch as rd
from redispatch.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

from ..seeing import Seen

BOTH = pytest.mark.parametrize("use_reentrant", [False, True])


def leaf(*values):
    return rd.tensor(values, dtype=rd.float64, requires_grad=True)


class Counted:
    """A function of some steps that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, factor=1):
        self.calls += 1
        y = x.sin()
        return ((y * y).exp() * factor).cos()


def gradient(function, *args, **kwargs):
    x = leaf(0.1, 0.2)
    function(x * 1, *args, **kwargs).sum().backward()
    return x.grad.tolist()


@BOTH
def test_gradients_are_those_without_a_checkpoint_for_one_more_run(use_reentrant):
    function = Counted()
    expected = gradient(function)
    assert gradient(lambda x: checkpoint(function, x, use_reentrant=use_reentrant)) == pytest.approx(expected)
    assert function.calls == 3


def test_keyword_arguments_reach_the_function():
    factor = leaf(2.0)
    result = checkpoint(Counted(), leaf(0.1), factor=factor, use_reentrant=False)
    result.sum().backward()
    assert factor.grad.item() != 0


def test_nothing_is_saved_until_backward_and_nothing_after_it():
    held = []

    def function(x):
        y = x.exp()
        held.append(weakref.ref(y._storage))
        return y.sin().sum()

    x = leaf(0.1)
    loss = checkpoint(function, x, use_reentrant=False)
    assert held[0]() is None
    loss.backward(retain_graph=True)
    assert [storage() for storage in held] == [None, None]


def test_each_backward_pass_runs_the_function_once_again():
    function, x = Counted(), leaf(0.1)
    loss = checkpoint(function, x, use_reentrant=False).sum()
    for _ in range(3):
        loss.backward(retain_graph=True)
    assert function.calls == 4


def test_passes_in_one_group_share_the_run_and_may_not_overlap():
    calls = []

    def two(x):
        calls.append(1)
        y = x.sin()
        return y.exp() * y, x.cos() * x

    first, second = checkpoint(two, leaf(0.5), use_reentrant=False)
    with GraphExecGroup():
        first.sum().backward(retain_graph=True)
        second.sum().backward(retain_graph=True)
        assert len(calls) == 2
        with pytest.raises(CheckpointError, match="overlap"):
            second.sum().backward()


@pytest.mark.parametrize("depth", [2, 3])
def test_checkpoints_may_be_nested(depth):
    def function(x, level):
        x = x.sin() * x
        if level + 1 < depth:
            x = checkpoint(function, x, level + 1, use_reentrant=False) if nested else function(x, level + 1)
        return (x * x).cos()

    nested = False
    expected = gradient(function, 0)
    nested = True
    assert gradient(lambda x: checkpoint(function, x, 0, use_reentrant=False)) == pytest.approx(expected)


@pytest.mark.parametrize("early_stop", [True, False])
def test_backward_may_run_inside_the_function(early_stop):
    def function(x):
        (slope,) = rd.autograd.grad(x.sin().cos().sum(), x)
        return slope * x.exp()

    expected = gradient(function)
    with set_checkpoint_early_stop(early_stop):
        found = gradient(lambda x: checkpoint(function, x, use_reentrant=False))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("early_stop", "reached"), [(True, 1), (False, 2)])
def test_the_second_run_stops_when_nothing_more_will_be_saved(early_stop, reached):
    ends = []

    def function(x):
        y = x.sin()
        ends.append(1)
        return y

    checkpoint(function, leaf(0.1), use_reentrant=False, early_stop=early_stop).sum().backward()
    assert len(ends) == reached


def test_second_derivatives():
    x = leaf(0.3)
    (slope,) = rd.autograd.grad(checkpoint(lambda x: (x**3).sin(), x, use_reentrant=False).sum(), x, create_graph=True)
    (curvature,) = rd.autograd.grad(slope.sum(), x)
    (wanted,) = rd.autograd.grad((x**3).sin().sum(), x, create_graph=True)
    assert curvature.item() == pytest.approx(rd.autograd.grad(wanted.sum(), x)[0].item())


@BOTH
def test_the_same_random_numbers_are_drawn_and_others_go_on_as_before(use_reentrant):
    x = leaf(1.0, 2.0)
    result = checkpoint(lambda x: x * rd.rand(2, dtype=rd.float64) * x, x, use_reentrant=use_reentrant)
    rd.rand(3)
    before = rd.get_rng_state()
    result.sum().backward()
    assert rd.get_rng_state().tolist() == before.tolist()
    assert (x.grad * x / 2).tolist() == pytest.approx(result.tolist())


@BOTH
def test_autocast_is_as_it_was(use_reentrant):
    seen = []

    def function(x):
        seen.append((x @ x).dtype)
        return (x @ x).sum().float()

    with rd.autocast("cpu", dtype=rd.bfloat16):
        result = checkpoint(function, rd.ones(2, 2, requires_grad=True), use_reentrant=use_reentrant)
    result.backward()
    assert seen == [rd.bfloat16, rd.bfloat16]


def test_the_default_device_is_as_it_was():
    seen = []

    def function(x):
        seen.append(str(rd.empty(1).device))
        return x.sin().cos()

    with rd.device("meta"):
        result = checkpoint(function, leaf(0.1), use_reentrant=False)
    result.sum().backward()
    assert seen == ["meta", "meta"] and str(rd.empty(1).device) == "cpu"


def test_each_run_has_its_context():
    entered = []

    @contextlib.contextmanager
    def noting(name):
        entered.append(name)
        yield

    result = checkpoint(
        Counted(), leaf(0.1), use_reentrant=False, context_fn=lambda: (noting("first"), noting("second"))
    )
    result.sum().backward()
    assert entered == ["first", "second"]


def test_a_function_that_fails_leaves_everything_usable():
    def fails_again(x):
        if len(runs) == 1:
            runs.clear()
            raise ZeroDivisionError
        runs.append(1)
        return x.sin().cos()

    runs = []
    x = leaf(0.1)
    loss = checkpoint(fails_again, x, use_reentrant=False).sum()
    state = rd.get_rng_state().tolist()
    with pytest.raises(ZeroDivisionError):
        loss.backward(retain_graph=True)
    assert rd.is_grad_enabled() and rd.get_rng_state().tolist() == state
    loss.backward()
    assert x.grad.item() != 0 and (x * x).grad_fn._saved_self is x  # no hook is left


def test_without_recording_it_is_an_ordinary_call():
    function = Counted()
    with rd.no_grad():
        assert not checkpoint(function, leaf(0.1), use_reentrant=False).requires_grad
    assert function.calls == 1


def test_results_that_a_policy_names_are_kept():
    x = rd.ones(2, 2, requires_grad=True)
    keep_products = lambda: create_selective_checkpoint_contexts([rd.ops.aten.mm.default])
    loss = checkpoint(lambda x: ((x @ x).sin() @ x).cos(), x, use_reentrant=False, context_fn=keep_products).sum()
    with Seen() as mode:
        loss.backward(retain_graph=True)
    assert mode.names.count("mm") == 4 and mode.names.count("sin") == 2
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        loss.backward()


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3, 7])
def test_a_sequence_runs_all_but_its_last_segment_again(segments, use_reentrant):
    calls = []

    def step(x):
        calls.append(1)
        return x.sin() * x

    def plain(x):
        for _ in range(7):
            x = step(x)
        return x

    expected = gradient(plain)
    calls.clear()
    found = gradient(lambda x: checkpoint_sequential([step] * 7, segments, x, use_reentrant=use_reentrant))
    assert found == pytest.approx(expected)
    assert len(calls) == 7 + 7 // segments * (segments - 1)


def test_modules_keep_one_activation_per_segment():
    rd.manual_seed(0)
    model = rd.nn.Sequential(*(rd.nn.Linear(4, 4) for _ in range(4)))
    x = rd.rand(2, 4)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    checkpoint_sequential(model, 2, x, use_reentrant=False).sum().backward()
    assert all(rd.allclose(p.grad, g) for p, g in zip(model.parameters(), expected, strict=True))


def test_a_checkpoint_goes_without_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        x = leaf(0.1)
        middle = x * 1
        seen = weakref.ref(middle)
        loss = checkpoint(Counted(), middle, use_reentrant=False).sum()
        loss.backward()
        del middle, loss
        assert seen() is None
    finally:
        gc.enable()


# --- Errors -----------------------------------------------------------------------------------------------------------


def another_time(first, second):
    """A function that goes by `first`, and when it runs again by `second`."""
    runs = []

    def function(x):
        runs.append(1)
        return (first if len(runs) == 1 else second)(x)

    return function


LONG, SHORT = (lambda x: x.sin().exp().sin()), (lambda x: x.sin())


@pytest.mark.parametrize("everywhere", [False, True])
def test_debug_lists_the_operators_of_both_runs(everywhere):
    function = another_time(LONG, SHORT)
    with set_checkpoint_debug_enabled(True if everywhere else None):
        loss = checkpoint(function, leaf(0.1), use_reentrant=False, debug=not everywhere).sum()
    with pytest.raises(CheckpointError) as error:
        loss.backward()
    first, _, second = str(error.value).partition("Operations executed during recomputation")
    assert "aten.exp.default" in first and "aten.exp.default" not in second and __file__ in second


def test_to_leave_the_kind_open_or_ask_for_no_gradient_is_warned_of():
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(SHORT, leaf(1.0))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        checkpoint(SHORT, rd.ones(1), use_reentrant=True)
