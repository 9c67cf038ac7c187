"""Names met in passing: numbers that may be symbols, hooks of tensors, the accelerator. Values: PyTorch's."""

import warnings

import pytest

import redispatch as rd
from redispatch.utils import hooks


def test_functions_of_symbols_are_those_of_numbers():
    found = [
        rd.sym_int(-2.7),
        rd.sym_float(2),
        rd.sym_max(1, 2.0),
        rd.sym_max(2, 1.0),
        rd.sym_min(1, 2.0),
        rd.sym_not(3),
        rd.sym_sqrt(4),
        rd.sym_sum([1, 2]),
        rd.sym_sum(1, 2),
        rd.sym_ite(True, 1, 2),
    ]
    assert [(type(each), each) for each in found] == [
        (int, -2), (float, 2.0), (float, 2.0), (float, 2.0), (float, 1.0), (bool, False), (float, 2.0), (int, 3),
        (int, 3), (int, 1),
    ]  # fmt: skip
    assert not isinstance(3, rd.SymInt) and not isinstance(3.0, rd.SymFloat | rd.SymBool)
    with pytest.raises(AssertionError, match="expected SymBool or bool"):
        rd.sym_ite(1, 2, 3)
    with pytest.raises(AssertionError, match="type mismatch"):
        rd.sym_ite(True, 2, 3.0)
    with pytest.raises(TypeError, match="a SymInt cannot be made"):
        rd.SymInt(3)


def test_hooks_that_would_be_lost_are_warned_of():
    x = rd.ones(2, requires_grad=True)
    handle = x.register_hook(hooks.unserializable_hook(lambda grad: grad))
    assert isinstance(handle, hooks.RemovableHandle)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hooks.warn_if_has_hooks(x)
        hooks.warn_if_has_hooks(rd.ones(2))
    x.register_hook(lambda grad: None)
    with pytest.warns(UserWarning, match="on tensor will not be serialized"):
        hooks.warn_if_has_hooks(x)


def test_anomaly_mode_is_switched_at_the_root():
    try:
        rd.set_anomaly_enabled(True, False)
        assert rd.is_anomaly_enabled() and not rd.is_anomaly_check_nan_enabled()
    finally:
        rd.set_anomaly_enabled(False)
    assert not rd.is_anomaly_enabled() and rd.is_anomaly_check_nan_enabled()


def test_without_an_accelerator_there_is_the_cpu():
    assert not rd.accelerator.is_available() and rd.accelerator.device_count() == 0
    assert rd.accelerator.current_accelerator() is None
    for function in (rd.accelerator.current_device_index, rd.accelerator.synchronize):
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            function()


def test_a_registered_backend_is_the_accelerator():
    with rd.backend.register("speedy", count=2, fallback="cpu"):
        assert rd.accelerator.current_accelerator() == rd.device("speedy") and rd.accelerator.device_count() == 2
        with rd.accelerator.device_index(1):
            assert rd.accelerator.current_device_index() == 1
        assert rd.accelerator.current_device_index() == 0
        with pytest.warns(FutureWarning, match="Use `current_device_index` instead"):
            assert rd.accelerator.current_device_idx() == 0
        rd.accelerator.synchronize()


def test_batch_norms_lose_their_statistics():
    model = rd.nn.Sequential(rd.nn.BatchNorm1d(2), rd.nn.InstanceNorm1d(2, track_running_stats=True))
    assert rd.func.replace_all_batch_norm_modules_(model) is model
    assert model[0].running_mean is None and not model[0].track_running_stats and model[1].running_mean is not None
    assert list(model[0].state_dict()) == ["weight", "bias"]
