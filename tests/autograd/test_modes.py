"""no_grad, enable_grad, set_grad_enabled, inference_mode; anomaly mode."""

import asyncio
import threading
import warnings

import pytest

import redispatch as rd
from redispatch import is_grad_enabled, is_inference_mode_enabled
from redispatch.dispatch import STATE


def leaf(*values):
    return rd.tensor(list(values), requires_grad=True)


def test_no_grad_and_enable_grad_nest():
    with rd.no_grad():
        assert not is_grad_enabled() and not (leaf(1.0) * 2).requires_grad
        with rd.enable_grad():
            assert (leaf(1.0) * 2).requires_grad
        assert not is_grad_enabled()
    assert is_grad_enabled()


@pytest.mark.parametrize("decorator", [rd.no_grad, rd.no_grad(), rd.inference_mode, rd.inference_mode()])
def test_they_decorate_functions(decorator):
    assert decorator(is_grad_enabled)() is False and is_grad_enabled()


def test_a_suspended_generator_leaves_no_trace():
    @rd.no_grad()
    def steps():
        yield is_grad_enabled()
        yield is_grad_enabled()

    running = steps()
    assert next(running) is False and is_grad_enabled()
    assert next(running) is False and is_grad_enabled()


def test_set_grad_enabled_holds_from_here_on_or_for_a_block():
    setting = rd.set_grad_enabled(False)
    assert not is_grad_enabled()
    with setting:
        assert not is_grad_enabled()
    assert is_grad_enabled()

    @rd.set_grad_enabled(False)
    def inside():
        return is_grad_enabled()

    assert is_grad_enabled() and not inside() and is_grad_enabled()
    with pytest.raises(TypeError, match="argument 'enabled' .* must be bool, not str"):
        rd.set_grad_enabled("no")
    assert is_grad_enabled()


@pytest.mark.parametrize("region", [rd.no_grad, rd.enable_grad, rd.inference_mode])
def test_a_region_gives_nothing_to_hold(region):
    with region() as nothing:
        assert nothing is None


def test_anomaly_mode_looks_for_nan_unless_told_otherwise():
    assert not rd.is_anomaly_enabled() and rd.is_anomaly_check_nan_enabled()


def test_turning_recording_on_and_off_makes_no_new_states():
    seen = []
    for _ in range(3):
        with rd.no_grad():
            seen.append(STATE.get())
            with rd.enable_grad():
                seen.append(STATE.get())
    assert all(state is seen[i % 2] for i, state in enumerate(seen)) and seen[1] is STATE.get()


def test_an_error_in_the_block_puts_the_state_back():
    with pytest.raises(ValueError), rd.no_grad():
        raise ValueError
    assert is_grad_enabled()


def test_each_thread_begins_with_recording_on():
    seen = []
    with rd.no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_tensors_have_no_version_and_no_gradient():
    with rd.inference_mode():
        assert is_inference_mode_enabled() and not is_grad_enabled()
        inference = rd.ones(2) * 2
        with rd.inference_mode(False):
            assert (is_inference_mode_enabled(), is_grad_enabled()) == (False, True)
            assert not rd.ones(1).is_inference()
    assert inference.is_inference() and inference.view(2).is_inference() and not inference.clone().is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter."):
        _ = inference._version
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        inference.requires_grad_()


def test_normal_tensors_stay_normal_in_inference_mode():
    x = rd.ones(2)
    with rd.inference_mode():
        x.add_(1)
        view = x.view(2)
    assert x._version == 1 and not view.is_inference() and view._base is x


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_shows_where_nan_comes_from():
    x = rd.tensor([0.0], requires_grad=True)
    with rd.autograd.detect_anomaly():
        y = (rd.sqrt(x) * 0).sum()
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0. Traceback of forward call"):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."):
                y.backward()
    assert not rd.autograd.is_anomaly_enabled()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_shows_who_wrote_what_was_saved():
    def the_culprit(tensor):
        with rd.no_grad():
            tensor.add_(1)

    with rd.autograd.detect_anomaly():
        for saved in (lambda x: x, lambda x: x.exp()):  # an argument, and a result
            x = leaf(1.0) * 1
            with rd.no_grad():
                x.mul_(1)
            y = saved(x)
            z = y * y
            the_culprit(y)
            with rd.no_grad():
                y.mul_(2)
            with (
                pytest.warns(UserWarning, match=r"Error detected in MulBackward0[\s\S]*z = y \* y"),
                pytest.raises(RuntimeError, match="modified by an inplace operation") as raised,
            ):
                z.backward()
            (note,) = raised.value.__notes__
            assert "in the_culprit" in note and "tensor.add_(1)" in note and "y.mul_(2)" not in note


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_mode_shows_the_backward_that_made_the_node():
    with rd.autograd.detect_anomaly():
        x = leaf(0.0)
        (slope,) = rd.autograd.grad(x**1.5, x, create_graph=True)
        with warnings.catch_warnings(record=True) as said, pytest.raises(RuntimeError, match="returned nan values"):
            warnings.simplefilter("always")
            (curve,) = rd.autograd.grad(slope, x, create_graph=True)
            (curve * 0).backward()
    assert any("Previous calculation was induced by PowBackward0" in str(one.message) for one in said)


def test_turning_anomaly_mode_on_says_that_it_costs_time():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        rd.autograd.detect_anomaly()
    with rd.autograd.set_detect_anomaly(True, check_nan=False):
        assert rd.is_anomaly_enabled() and not rd.is_anomaly_check_nan_enabled()
    assert not rd.is_anomaly_enabled()


def test_a_decorated_class_is_made_in_the_region_and_a_warning_says_so():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @rd.set_grad_enabled(False)
        class Made:
            def __init__(self):
                self.recorded = is_grad_enabled()

    assert not Made().recorded and is_grad_enabled()


def test_decorated_coroutines_and_asynchronous_generators_keep_the_state_to_themselves():
    @rd.no_grad()
    async def both():
        before = is_grad_enabled()
        await asyncio.sleep(0)
        return before, is_grad_enabled()

    @rd.no_grad()
    async def steps():
        try:
            sent = yield is_grad_enabled()
        except ValueError:
            sent = "caught"
        yield sent, is_grad_enabled()

    async def main():
        seen = [await both(), is_grad_enabled()]
        for resume in (lambda one: one.asend(5), lambda one: one.athrow(ValueError())):
            one = steps()
            seen += [await one.asend(None), is_grad_enabled(), await resume(one), is_grad_enabled()]
            await one.aclose()
        return seen

    inside = [False, True, (5, False), True, False, True, ("caught", False), True]
    assert asyncio.run(main()) == [(False, False), True, *inside]


def test_switches_of_the_engine_are_put_back():
    autograd = rd.autograd
    with autograd.set_multithreading_enabled(False):
        assert not autograd.is_multithreading_enabled()
    assert autograd.is_multithreading_enabled()
    for policy, strides in ((True, (1, 2)), (False, (3, 1))):
        p = rd.ones(3, 2).t().detach().requires_grad_()  # laid out by columns
        assert p.stride() == (1, 2)
        with autograd.enforce_grad_layout_policy(policy):
            (p + rd.zeros(2, 3)).backward(rd.ones(2, 3) * 1)
        assert p.grad.stride() in (strides, (1, 2)) and p.grad.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_writes_may_be_kept_from_the_count():
    x, y = rd.ones(2), rd.ones(2)
    with rd.autograd._unsafe_preserve_version_counter((x, y)):
        x.add_(1)
        y.view(1, 2).mul_(2)
    assert (x._version, y._version, x.tolist(), y.tolist()) == (0, 0, [2, 2], [2, 2])


def test_anomaly_mode_finds_nan_in_what_was_recorded_before():
    y = leaf(-1.0).sqrt()
    with pytest.warns(UserWarning, match="No forward pass information available"), rd.autograd.set_detect_anomaly(True):
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values"):
            y.sum().backward()


def test_anomaly_mode_explains_on_standard_error_where_warnings_are_errors(capsys):
    with rd.autograd.set_detect_anomaly(True):
        y = leaf(-1.0).sqrt()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with rd.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan values"):
            y.sum().backward()
    assert "Error detected in SqrtBackward0" in capsys.readouterr().err


def test_anomaly_mode_sees_through_transforms():
    with rd.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values"):
            rd.vmap(rd.func.grad(lambda x: x.sqrt().sum()))(rd.zeros(3) - 1)
