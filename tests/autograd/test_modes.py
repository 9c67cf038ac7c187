"""no_grad, enable_grad, set_grad_enabled, inference_mode; anomaly mode."""

import threading

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


def test_anomaly_mode_shows_where_nan_comes_from():
    x = rd.tensor([0.0], requires_grad=True)
    with rd.autograd.detect_anomaly():
        y = (rd.sqrt(x) * 0).sum()
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0. Traceback of forward call"):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output."):
                y.backward()
    assert not rd.autograd.is_anomaly_enabled()
