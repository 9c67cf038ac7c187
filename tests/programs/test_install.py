"""`install()` answers for torch, and takes itself back; parts that are not here say so."""

import importlib.metadata
import pickle
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


def test_names_of_quantized_dtypes_have_no_tensors():
    with pytest.raises(NotImplementedError, match=r"there are no tensors of dtype torch.qint8 here"):
        rd.empty(2, dtype=rd.qint8)


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
