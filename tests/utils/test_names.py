"""Names of `redispatch.utils`: those that PyTorch has beside its tools, types, weak references, tables of text."""

import copy
import subprocess
import sys
import threading
import time
import typing
import warnings

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch import nn
from redispatch.utils import _pytree as pytree
from redispatch.utils import collect_env, dlpack, hooks
from redispatch.utils._python_dispatch import (
    AliasInfo,
    TensorWithFlatten,
    TorchDispatchMode,
    any_torch_dispatch_mode_on_stack,
    get_alias_info,
    is_traceable_wrapper_subclass_type,
)
from redispatch.utils.checkpoint import get_device_states, set_device_states
from redispatch.utils.text import spoken_bytes, spoken_seconds, text_table
from redispatch.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary

# Names that programs written for PyTorch meet in passing --------------------------------------------------------------


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


# Names met in passing -------------------------------------------------------------------------------------------------

# Numbers that may be symbols, hooks of tensors, the accelerator. Values: PyTorch's.


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


# The names for annotations, which are found by both kinds of import ---------------------------------------------------


def test_the_module_of_type_names_is_found_by_both_kinds_of_import():
    from redispatch.types import Device, Number, _size

    assert rd.types.Device is Device and set(typing.get_args(Number)) == {int, float, bool}
    assert rd.Size in typing.get_args(_size)


def test_annotations_of_custom_operators_may_use_them():
    def f(x: rd.Tensor, n: rd.types.Number, d: rd.dtype = rd.float32) -> rd.Tensor:
        return x.to(d) * n

    assert rd.library.infer_schema(f, mutates_args=()) == "(Tensor x, Scalar n, ScalarType d=float32) -> Tensor"
    op = rd.library.custom_op("test_type_names::f", f, mutates_args=())
    assert op(rd.ones(1, dtype=rd.int64), 2).dtype == rd.float32


# Dictionaries that know tensors by what they are ----------------------------------------------------------------------


def test_tensors_are_keys_by_identity_and_go_when_nobody_holds_them():
    x, y = rd.ones(2), rd.ones(2)
    notes = WeakTensorKeyDictionary([(x, "x"), (y, "y")])
    assert notes[x] == "x" and notes[y] == "y" and rd.ones(2) not in notes and 3 not in notes
    assert [key is x for key in notes] == [True, False] and len(notes.keyrefs()) == 2
    del y
    assert len(notes) == 1 and notes.pop(x) == "x" and x not in notes
    with pytest.raises(KeyError):
        notes[x]
    with pytest.raises(TypeError, match="weak reference"):
        notes["x"] = 1


def test_copies_and_comparisons_look_at_the_same_keys():
    x = rd.ones(2)
    notes = WeakIdKeyDictionary([(x, 1)])
    other = copy.copy(notes)
    assert other == notes and other is not notes
    other[x] = 2
    assert notes[x] == 1 and other != notes


def test_an_entry_that_goes_during_a_loop_does_not_stop_it():
    held = [rd.ones(1) for _ in range(3)]
    notes = WeakIdKeyDictionary((x, i) for i, x in enumerate(held))
    seen = []
    for _, value in notes.items():
        held.clear()
        seen.append(value)
    assert seen == [0, 1, 2] or seen == [0]


def test_references_to_one_tensor_are_equal_while_it_lives():
    x = rd.ones(2)
    reference = WeakIdRef(x)
    assert reference == WeakIdRef(x) and hash(reference) == id(x) and reference != WeakIdRef(rd.ones(2))
    weak = TensorWeakRef(x)
    assert weak() is x
    del x
    assert weak() is None and reference() is None and reference == reference
    with pytest.raises(AssertionError, match="expected Tensor, got int"):
        TensorWeakRef(1)


# Tables as text: columns, and quantities as people say them -----------------------------------------------------------


def test_names_stand_left_and_numbers_right():
    assert_expected_inline(
        text_table([("name", "n"), ("a", "10"), ("total", "10")]),
        """\
name    n
---------
a      10
---------
total  10""",
    )


@pytest.mark.parametrize(
    "count, said",
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (-2048, "-2.0 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5.0 TiB")],
)
def test_bytes(count, said):
    assert spoken_bytes(count) == said


@pytest.mark.parametrize(
    "seconds, said", [(0, "0.0 µs"), (2e-6, "2.0 µs"), (0.003 - 0.002, "1.0 ms"), (0.0034, "3.4 ms"), (75, "75.0 s")]
)
def test_seconds(seconds, said):
    assert spoken_seconds(seconds) == said


# Futures, and the modules of devices ----------------------------------------------------------------------------------


def test_a_future_has_its_value_later():
    future = rd.futures.Future()
    doubled = future.then(lambda one: one.value() * 2)
    assert not future.done() and not doubled.done()
    threading.Timer(0.01, future.set_result, [21]).start()
    assert doubled.wait() == 42 and future.wait() == 21 and rd.futures.wait_all([future, doubled]) == [21, 42]
    assert rd.futures.collect_all([future]).wait() == [future] and rd.futures.collect_all([]).done()
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        future.set_result(1)


def test_an_error_in_a_future_is_raised_by_whoever_waits():
    future = rd.futures.Future()
    with pytest.raises(RuntimeError, match="not completed"):
        future.value()
    later = future.then(lambda one: one.value())
    future.set_exception(KeyError("gone"))
    with pytest.raises(KeyError, match="gone"):
        future.wait()
    with pytest.raises(RuntimeError, match="error when running the callback: KeyError: 'gone'"):
        later.wait()
    with pytest.raises(AssertionError, match="not an Exception"):
        rd.futures.Future().set_exception(3)


def test_a_fork_has_run():
    assert rd.jit._wait(rd.jit.fork(lambda a, b: a + b, 1, b=2)) == 3 and isinstance(rd.fork(int), rd.Future)
    assert not isinstance(nn.Linear(1, 1), rd.jit.ScriptModule)


def test_what_jit_traces_runs_on_its_examples():
    seen, layer = [], nn.Linear(2, 1)
    layer.register_forward_hook(lambda module, args, out: seen.append(out))
    x = rd.ones(1, 2)
    for traced in (rd.jit.trace(layer, x), rd.jit.trace(layer, example_kwarg_inputs={"input": x})):
        assert rd.equal(traced(x), layer(x)) and "aten::linear" in str(traced.graph)
    assert seen
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        rd.jit.trace(layer, rd.ones(1, 3))


def test_the_cpu_answers_as_a_device():
    assert rd.cpu.current_device() == "cpu" and rd.cpu.is_initialized() and rd.cpu.device_count() == 1
    other = rd.cpu.Stream()
    with rd.cpu.stream(other), rd.cpu.stream(None):
        assert rd.cpu.current_stream() is other
    assert rd.cpu.current_stream() is not other and rd.cpu.Event().query()
    found = rd.cpu.get_capabilities()
    assert found["architecture"] and {type(value) for value in found.values()} == {str, bool}


def test_where_there_is_no_accelerator_nothing_is_allocated():
    if rd.accelerator.is_available():
        pytest.skip("there is one")
    assert rd.accelerator.memory_allocated() == 0 and rd.accelerator.memory_stats() == {}
    rd.accelerator.empty_cache()
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        rd.accelerator.get_memory_info()


def test_dtypes_in_which_nothing_computes_are_held_viewed_and_copied():
    assert rd.bit is rd.uint1 and copy.copy(rd.int4) is rd.int4 and rd.float8_e8m0fnu.is_floating_point
    bits = rd.tensor([1, 2, 3, 4], dtype=rd.uint8).view(rd.bits8)
    assert bits.type() == "torch.Bits8Tensor" and bits[::2].clone().view(rd.uint8).tolist() == [1, 3]
    assert rd.zeros(3, dtype=rd.bits16).view(rd.int16).tolist() == [0, 0, 0]
    refusals = {
        "_local_scalar_dense_cpu": lambda: repr(bits),
        "fill_cpu": lambda: rd.ones(2, dtype=rd.int4),
        "copy_": lambda: bits.float(),
    }
    for kernel, refused in refusals.items():
        with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for '(Bits8|Int4)'"):
            refused()
    with pytest.raises(RuntimeError, match="Bits types are undefined"):
        _ = rd.bits8.is_signed


def test_exponents_alone_round_to_the_nearest_power_of_two():
    numbers = rd.tensor([1.0, 1.25, 1.5, 3.0, 0.75, -2.0, 0.0, 2.0**-127, 1.5 * 2.0**-127, float("inf")])
    codes = [127, 127, 128, 129, 127, 128, 0, 0, 1, 255]
    assert numbers.to(rd.float8_e8m0fnu).view(rd.uint8).tolist() == codes


def test_results_in_given_tensors_are_of_a_class_of_their_own():
    found = rd.max(rd.ones(2, 2), 0, out=(rd.empty(2), rd.empty(2, dtype=rd.int64)))
    assert type(found) is rd.return_types.max_out
    assert {rd.return_types.max, type(found)} <= {*rd.return_types.all_return_types}


@pytest.mark.parametrize("name", ["eig", "lstsq", "solve", "symeig"])
def test_what_pytorch_has_removed_says_so(name):
    for function in (getattr(rd, name), getattr(rd.Tensor, name)):
        with pytest.raises(RuntimeError, match="was deprecated since version 1.9 and is now removed"):
            function(rd.eye(2))


def test_functions_in_c_have_the_names_of_two_modules():
    x = rd.tensor([2, 1, 2])
    for module in (rd._VF, rd._C._VariableFunctions):
        assert module.lstm is rd.lstm and module.add is rd.add
        assert [part.tolist() for part in module.unique_dim(x, 0)] == [[1, 2], [1, 0, 1], [1, 2]]
        assert module.norm(x.float(), 2).item() == 3 and module.norm is not rd.norm
        assert not hasattr(module, "linear")


def test_operators_that_programs_test_by():
    dummy, probes = rd.ones(2, requires_grad=True), rd._C._nn
    for call in (probes._test_string_default, probes._test_ambiguous_defaults):
        assert call(dummy) is dummy
    assert probes._test_ambiguous_defaults(dummy, 2, "2") is dummy
    with pytest.raises(RuntimeError, match="expected 1 and 1"):
        probes._test_ambiguous_defaults(dummy, 1, 2)
    assert probes._test_optional_filled_intlist(rd.tensor([1, 2]), 3).tolist() == [4, 5]
    with pytest.raises(RuntimeError, match="expected 1 values in one dimension"):
        probes._test_optional_intlist(rd.tensor([1, 2]), [3])
    with pytest.warns(UserWarning, match="Warn from backward"):
        probes._test_warn_in_autograd(dummy).sum().backward()
    assert rd.autograd.grad(rd._test_autograd_multiple_dispatch(dummy).sum(), dummy)[0].tolist() == [2, 2]
    assert rd._test_autograd_multiple_dispatch_view(dummy.view(2, 1))._base is dummy


def test_the_numbers_of_reductions_are_in_a_module_of_their_own():
    from redispatch.nn import _reduction

    assert [_reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert _reduction.legacy_get_enum(False, None) == 2
    assert _reduction.legacy_get_string(None, False, emit_warning=False) == "none"
    with pytest.raises(ValueError, match="all is not a valid value for reduction"):
        _reduction.get_enum("all")


def test_the_librarys_names_are_listed_for_those_who_take_all():
    assert {"Tensor", "ones", "float32", "no_grad", "vmap"} <= set(rd.__all__) and "nn" not in rd.__all__
    assert all(hasattr(rd, name) for name in rd.__all__)
