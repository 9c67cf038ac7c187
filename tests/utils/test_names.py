"""Names that programs written for PyTorch meet in passing."""

import subprocess
import sys
import time

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.utils import _pytree as pytree
from redispatch.utils import collect_env, dlpack
from redispatch.utils._python_dispatch import (
    AliasInfo,
    TensorWithFlatten,
    TorchDispatchMode,
    any_torch_dispatch_mode_on_stack,
    get_alias_info,
    is_traceable_wrapper_subclass_type,
)
from redispatch.utils.checkpoint import get_device_states, set_device_states


def test_what_a_report_says_of_its_surroundings():
    text = collect_env.get_pretty_env_info()
    assert rd.__version__ in text and "PyTorch version" in text and "[pip3] numpy==" in text
    done = subprocess.run(
        [sys.executable, "-m", "redispatch.utils.collect_env"], capture_output=True, text=True, timeout=60
    )
    assert "Python version" in done.stdout, done.stderr


def test_capsules_go_to_others_and_come_back():
    x = rd.arange(3.0)
    assert rd.to_dlpack is dlpack.to_dlpack and "dltensor" in repr(rd.to_dlpack(x))
    with pytest.raises(BufferError, match="require gradient"):
        rd.to_dlpack(x.requires_grad_())


def test_results_with_names_are_structures():
    found = rd.ones(2, 2).max(0)
    assert pytree.is_structseq(found) and pytree.is_structseq(type(found)) and pytree.is_structseq_class(type(found))
    assert pytree.is_structseq_instance(time.localtime()) and not pytree.is_structseq((1, 2))
    assert not pytree.is_structseq_class(tuple) and not pytree.is_structseq_instance(pytree.is_structseq)


def test_what_schemas_say_of_aliasing():
    add_, split = get_alias_info(rd.ops.aten.add_.Tensor), get_alias_info(rd.ops.aten.split.Tensor)
    assert add_.args[0] == AliasInfo({"a"}, True, "self") and add_.outs == [AliasInfo({"a"}, True, None)]
    assert add_.outs_write_aliases == ["a"] and add_.read_only_alias_match_indexes == []
    assert split.read_only_alias_match_indexes == [(0, 0)] and split.outs_write_aliases is None
    assert get_alias_info(rd.ops.aten.t_.default).is_inplace_view_op
    assert get_alias_info(rd.ops.aten.max.dim_max).outs_write_aliases == ["a", "b"]


def test_which_classes_can_be_taken_apart():
    from redispatch.subclasses import TwoTensor

    assert is_traceable_wrapper_subclass_type(TwoTensor) and not is_traceable_wrapper_subclass_type(rd.Tensor)
    assert isinstance(TwoTensor(rd.ones(1), rd.ones(1)), TensorWithFlatten)
    assert not isinstance(rd.ones(1), TensorWithFlatten)


def test_whether_a_mode_of_users_is_active():
    from redispatch.modes import FakeTensorMode

    with FakeTensorMode():
        assert not any_torch_dispatch_mode_on_stack()
        with TorchDispatchMode():
            assert any_torch_dispatch_mode_on_stack()
    assert not any_torch_dispatch_mode_on_stack()


def test_the_cpu_has_no_device_states():
    assert get_device_states(rd.ones(1), [3]) == ([], []) and set_device_states([], []) is None


def test_options_of_factories():
    options = nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": rd.float64}})
    assert options == {"device": "cpu", "dtype": rd.float64} and nn.factory_kwargs(None) == {}
    with pytest.raises(TypeError, match="unexpected kwargs {'size'}"):
        nn.factory_kwargs({"size": 1})
    with pytest.raises(TypeError, match="dtype specified twice"):
        nn.factory_kwargs({"dtype": rd.float64, "factory_kwargs": {"dtype": rd.float64}})


def test_former_names_warn_and_work():
    with pytest.warns(FutureWarning, match="Container"):
        assert list(nn.Container(a=nn.ReLU()).children())
    with pytest.warns(FutureWarning, match="NLLLoss2d"):
        assert nn.NLLLoss2d()(rd.zeros(1, 2, 1, 1), rd.zeros(1, 1, 1, dtype=rd.long)).item() == 0
    with pytest.warns(FutureWarning, match="assert_allclose"):
        rd.testing.assert_allclose([1.0, 2.0], rd.tensor([1.0, 2.0], dtype=rd.float64))
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
        rd.testing.assert_allclose(rd.ones(2), rd.zeros(2))
    assert rd.resize_as_(rd.ones(2), rd.ones(3, 3)).shape == (3, 3)
    assert issubclass(rd.OutOfMemoryError, RuntimeError) and issubclass(rd.AcceleratorError, RuntimeError)
