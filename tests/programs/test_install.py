"""`install()` answers for torch, and takes itself back; parts that are not here say so."""

import importlib.metadata
import pickle
import subprocess
import sys
from types import ModuleType

import pytest

import redispatch as rd


@pytest.fixture
def torch():
    with rd.installed() as library:
        yield library


def test_while_it_is_installed_the_library_bears_torchs_name_and_version(torch):
    import torch as imported
    import torch.nn.functional as functional
    from torch.library import custom_op

    assert imported is torch is rd and functional is rd.nn.functional and custom_op is rd.library.custom_op
    assert torch.__name__ == "torch" and torch.torch is torch and type(torch.ones(1)).__module__ == "torch"
    assert importlib.metadata.version("torch") == torch.__version__ == str(torch.version.__version__)
    assert torch.__version__ >= "2.4" and torch.__version__ > (2, 12) and not torch.__version__ < "2.13"
    assert torch.version.cuda is None and torch.ops.aten.add is rd.ops.aten.add
    x = torch.ones(2)
    assert b"torch" in pickle.dumps(type(x)) and torch.equal(pickle.loads(pickle.dumps(x)), x)


def test_what_is_imported_as_torchs_keeps_its_own_name(torch):
    import torch.optim.lr_scheduler as schedules

    assert schedules.__name__ == schedules.__spec__.name == "redispatch.optim.lr_scheduler"


def test_a_function_with_the_name_of_its_module_stays_one(torch):
    import torch.nn.parallel.data_parallel
    import torch.nn.utils.weight_norm
    from torch.nn.parallel.data_parallel import DataParallel

    assert DataParallel is torch.nn.DataParallel
    for name in ("parallel.data_parallel", "utils.weight_norm"):
        module, _, function = f"torch.nn.{name}".rpartition(".")
        assert callable(getattr(sys.modules[module], function)) and isinstance(
            sys.modules[f"torch.nn.{name}"], ModuleType
        )


def test_it_takes_itself_back():
    before = rd.__version__
    with pytest.raises(ZeroDivisionError), rd.installed():
        import torch.nn  # noqa: F401

        1 / 0
    assert rd.__version__ == before and rd.__name__ == "redispatch" and rd.Tensor.__module__ == "redispatch"
    assert not any(name.split(".")[0] == "torch" for name in sys.modules) and not hasattr(rd, "torch")
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("torch-that-nobody-installed")
    rd.uninstall()  # of nothing


def test_another_torch_is_refused_or_hidden_and_comes_back(monkeypatch):
    theirs, part = ModuleType("torch"), ModuleType("torch.nn")
    monkeypatch.setitem(sys.modules, "torch", theirs)
    monkeypatch.setitem(sys.modules, "torch.nn", part)
    with pytest.raises(RuntimeError, match="torch is loaded already"):
        rd.install()
    with rd.installed(shadow=True):
        import torch
        import torch.nn

        assert torch is rd and sys.modules["torch.nn"] is rd.nn
    assert sys.modules["torch"] is theirs and sys.modules["torch.nn"] is part


def test_a_module_that_is_not_here_is_an_import_error_with_both_names(torch):
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'torch.nothing' \(redispatch has no"):
        import torch.nothing  # noqa: F401


# Parts that are not here ----------------------------------------------------------------------------------------------


def test_absent_parts_answer_no_and_say_why():
    from redispatch.utils import cpp_extension

    assert not rd.distributed.is_available() and not rd.xpu.is_available() and rd.mps.device_count() == 0
    assert not isinstance(rd.ones(1), rd.distributed.ProcessGroup) and not rd.onnx.is_in_onnx_export()
    assert "fbgemm" not in rd.backends.quantized.supported_engines
    for refused, why in {
        rd.distributed.init_process_group: r"distributed.init_process_group\(\) is not here: processes are",
        rd.xpu.Stream: "there is no device of Intel's",
        cpp_extension.load: "operators are written in Python here",
        rd.sparse_coo_tensor: "tensors hold all their elements",
        rd.distributed.ProcessGroup: "processes are not coordinated",
    }.items():
        with pytest.raises(NotImplementedError, match=why):
            refused()
    with pytest.raises(AttributeError):
        rd.distributed.there_is_no_such_name


def test_every_absent_module_can_be_imported():
    for name in rd._absent.ABSENT:
        module = importlib.import_module(f"redispatch.{name}")
        assert "not here" in module.__doc__


def test_a_fake_of_an_operator_that_is_defined_later_is_kept():
    @rd.library.register_fake("late_fakes::f")
    def fake(x):
        return x.new_empty(7)

    with rd.library._scoped_library("late_fakes", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        assert rd.ops.late_fakes.f(rd.ones(2, device="meta")).shape == (7,)


@pytest.mark.parametrize(
    ("name", "error"), {"_check": RuntimeError, "_check_index": IndexError, "_check_value": ValueError}.items()
)
def test_checks_raise_what_they_are_named_after(name, error):
    check = getattr(rd, name)
    check(True, lambda: 1 / 0)
    with pytest.raises(error, match="^got 3$"):
        check(False, lambda: "got 3")
    with pytest.raises(TypeError, match="cond must be a bool"):
        check(1)
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "a text")
    with pytest.raises(error, match="Expected cond to be True, but got False"):
        rd._check_tensor_all_with(error, rd.tensor([True, False]))


def test_streams_of_the_cpu_have_done_all_work():
    stream, event = rd.Stream(), rd.Event("cpu")
    with stream:
        event.record(stream)
    stream.wait_event(event)
    assert (
        stream.query() and event.query() and stream.device == rd.device("cpu") and stream.record_event(event) is event
    )
    with pytest.raises(RuntimeError, match="there are no streams of the device meta"):
        rd.Stream("meta")


def test_packages_find_what_they_import_of_private_helpers(torch):
    import torch._dynamo
    from torch._utils import _get_available_device_type, _get_device_module
    from torch.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv, _precision_to_scale_tril
    from torch.distributions.transforms import __all__ as transforms
    from torch.nn.init import _calculate_correct_fan, _no_grad_uniform_
    from torch.optim.optimizer import (
        _default_to_fused_or_foreach,
        _get_capturable_supported_devices,
        _get_scalar_dtype,
        _get_value,
        _use_grad_for_differentiable,
        _view_as_real,
    )
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    assert "numba" in torch.__config__.show() and not isinstance(3, (torch.TensorType, torch._dynamo.OptimizedModule))
    assert {"ExpTransform", "identity_transform"} <= {*transforms} and "math" not in transforms
    assert _get_available_device_type() in (None, "cuda") and _get_device_module("cpu") is torch.backends.cpu
    weight = _no_grad_uniform_(torch.ones(2, 3, requires_grad=True), 0.0, 1.0, None)
    assert _calculate_correct_fan(weight, "FAN_OUT") == 2
    factor = torch.tensor([[2.0, 0.0], [1.0, 1.0]])
    assert torch.allclose(_precision_to_scale_tril(torch.eye(2) / 4), 2 * torch.eye(2))
    x = _batch_mv(factor, torch.tensor([3.0, 4.0]))
    assert _batch_mahalanobis(factor, x).item() == 25
    pairs = [[torch.ones(1), torch.ones(2, dtype=torch.float64), torch.ones(3)], [None, 1, 2], []]
    groups = _group_tensors_by_device_and_dtype(pairs, with_indices=True)
    lists, places = groups[torch.device("cpu"), torch.float32]
    assert [len(one) for one in lists[0]] == [1, 3] and lists[1:] == [[None, 2], []] and places == [0, 2]
    assert _default_to_fused_or_foreach([weight], False) == (False, False) and _get_value(torch.tensor(3)) == 3
    assert _default_to_fused_or_foreach([weight], False, use_fused=True)[0] and _get_scalar_dtype() == torch.float32
    assert "cuda" in _get_capturable_supported_devices()
    params, state = [torch.ones(1, dtype=torch.complex64)], [torch.ones(1, dtype=torch.complex64)]
    _view_as_real(params, state)
    assert params[0].shape == state[0].shape == (1, 2)

    class Mine(torch.optim.Optimizer):
        @_use_grad_for_differentiable
        def step(self, closure=None):
            self._cuda_graph_capture_health_check()
            return torch.is_grad_enabled()

    for differentiable in (False, True):
        assert Mine([weight], {"differentiable": differentiable}).step() is differentiable
    assert _BaseDataLoaderIter


def test_private_modules_are_attributes_of_their_packages_as_in_pytorch():
    paths = """
        _library.custom_ops.CustomOpDef _guards.detect_fake_mode _functorch.eager_transforms.grad _functorch.vmap.vmap
        _functorch.pyfunctorch _functorch.aot_autograd.aot_function _prims_common.wrappers.out_wrapper
        testing._internal.two_tensor.TwoTensor testing._internal.common_utils.TestCase
        nn.utils.stateless.functional_call fx.passes.shape_prop.ShapeProp
    """
    program = "import redispatch; redispatch.install(); import torch; " + "; ".join(
        f"torch.{path}" for path in paths.split()
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_references_are_the_operators_and_no_module_runs_twice(torch):
    import torch._refs.linalg
    import torch._refs.nn.functional as functional
    from torch._refs import add, special

    assert add is torch.add and functional is torch.nn.functional and special is torch.special
    assert torch._refs.linalg is torch.linalg and not hasattr(torch._refs, "__path__")
    with pytest.raises(ImportError):
        import torch._refs.optim  # which would be the library's own, once more


def test_parts_of_an_absent_part_are_attributes_of_it(torch):
    from torch.distributed._composable.fsdp import FSDPModule
    from torch.distributed.elastic.multiprocessing.errors import record

    assert not isinstance(3, torch.distributed.device_mesh.DeviceMesh | FSDPModule)
    assert not isinstance(3, torch.distributed.tensor.parallel.ColwiseParallel)
    assert record(len) is len and not torch.distributed.rpc.is_available()
    with pytest.raises(NotImplementedError, match="processes are not coordinated here"):
        torch.distributed.checkpoint.save({})
