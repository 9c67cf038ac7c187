"""Keys stand in the reference's order and leave room between them; keysets are counted and printed as sets."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch import _C
from redispatch.dispatch import (
    FALLBACKS,
    DispatchKey,
    DispatchKeySet,
    RegistrationError,
    above,
    as_keyset,
    backends,
    below,
    define_backend,
    define_key,
    describe,
    functionalities,
    has,
    highest,
    key_named,
    keyset,
    runtime_keys,
    undefine,
    without,
)
from redispatch.dispatch.core.key import BACKEND_BITS, KEYSET_BITS, PER_BACKEND
from redispatch.dispatch.core.keyset import BACKEND_MASK, FUNCTIONALITY_MASK

from .fakes import CPU_KEYS, Fake, operator

# The order that PyTorch prints, from the highest down; [b] marks what exists once per backend.
REFERENCE = """
PythonDispatcher > PreDispatch > TESTING_ONLY_GenericMode > TESTING_ONLY_GenericWrapper >
FuncTorchDynamicLayerFrontMode > PythonTLSSnapshot > DeferredInit > FuncTorchGradWrapper > VmapMode > Batched >
FuncTorchVmapMode > BatchedNestedTensor > FuncTorchBatched > AutocastPrivateUse1 > AutocastCUDA > AutocastMPS >
AutocastXLA > AutocastHPU > AutocastIPU > AutocastXPU > AutocastMAIA > AutocastMTIA > AutocastCPU > Tracer >
AutogradNestedTensor > AutogradFunctionality[b] > AutogradOther > ADInplaceOrView > ZeroTensor > Negative > Conjugate >
Functionalize > FuncTorchDynamicLayerBackMode > Python > Fake > BackendSelect > NestedTensor[b] > SparseCsr[b] >
Sparse[b] > MkldnnCPU > CustomRNGKeyId > Quantized[b] > Metal > Vulkan > FPGA > Dense[b]
"""
ORDER = [name.strip() for name in REFERENCE.split(">")]
REFERENCE_BACKENDS = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
)
RUNTIME = [key for key in DispatchKey if key.bits]
some_keys = st.lists(st.sampled_from(RUNTIME), max_size=8)


def test_functionalities_stand_in_the_reference_order():
    names = [f"{name}[b]" if name in PER_BACKEND else name for name in reversed(functionalities())]
    names.remove("ForwardAD")  # keys of our own, between two of the reference's: dispatch/autograd/forward_ad.py,
    names.remove("RareDtype")  # dispatch/layers/rare_dtypes.py
    assert names == ORDER


def test_backends_stand_in_the_reference_order_with_meta_last():
    assert backends() == REFERENCE_BACKENDS


def test_of_two_keys_the_one_that_the_reference_puts_first_is_the_highest():
    runtime = [
        f"{PER_BACKEND[name]}CPU" if (name := entry.removesuffix("[b]")) in PER_BACKEND else name for entry in ORDER
    ]
    for place, name in enumerate(runtime):
        for lower in runtime[place + 1 :]:
            assert highest(keyset(name, lower)).name == name


def test_the_highest_backend_runs():
    assert highest(keyset("CPU", "CUDA")).name == "CUDA"
    assert highest(keyset("Meta", "PrivateUse3", "CPU")).name == "Meta"
    assert [key.name for key in runtime_keys(keyset("CPU", "AutogradCUDA"))] == ["AutogradCUDA", "CUDA"]


def test_runtime_keys_go_down_and_know_one_backend():
    assert [key.name for key in runtime_keys(CPU_KEYS)] == ["AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU"]
    assert list(runtime_keys(0)) == []
    assert highest(0) is DispatchKey.Undefined
    assert list(runtime_keys(keyset("CPU") & FUNCTIONALITY_MASK)) == []  # Dense, but on no backend
    assert list(runtime_keys(keyset("CPU") & BACKEND_MASK)) == []


def test_a_keyset_prints_as_pytorch_prints_it():
    assert describe(CPU_KEYS) == "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert str(DispatchKeySet(keyset("CPU", "CUDA", "Python"))) == "DispatchKeySet(CPU, CUDA, Python)"
    assert repr(DispatchKeySet()) == "DispatchKeySet()"
    assert str(DispatchKey.AutogradCPU) == "DispatchKey.AutogradCPU"


def test_removing_a_key_leaves_the_backend():
    left = DispatchKeySet(CPU_KEYS) - keyset("AutogradCPU")
    assert str(left) == "DispatchKeySet(CPU, ADInplaceOrView, AutocastCPU)"
    assert left.add(DispatchKey.AutogradCPU) == CPU_KEYS
    assert not left.remove(DispatchKey.CPU).has(DispatchKey.CPU)
    assert left.remove(DispatchKey.CPU).add(DispatchKey.SparseCUDA).has(DispatchKey.SparseCPU)


@given(some_keys, some_keys)
def test_keysets_behave_as_sets_of_functionalities_and_backends(left, right):
    a, b = DispatchKeySet(left), DispatchKeySet(right)

    def parts(keys):
        return {k.functionality for k in keys}, {k.backend for k in keys} - {None}

    def of(bits):
        return {
            f
            for f in functionalities()
            if any(k.functionality == f and k.bits & FUNCTIONALITY_MASK & bits for k in RUNTIME)
        }

    assert of(a) == parts(left)[0]
    assert of(a | b) == of(a) | of(b)
    assert of(a & b) == of(a) & of(b)
    assert of(a - b) == of(a) - of(b)
    assert (a - b) & BACKEND_MASK == a & BACKEND_MASK
    assert {k.backend for k in a} - {None} <= parts(left)[1]
    assert all(key in a for key in left)
    assert set(a) >= set(left)
    assert DispatchKeySet(iter(a)) == a
    assert all(isinstance(c, DispatchKeySet) for c in (a | b, a & b, a - b))
    assert DispatchKeySet.from_raw_repr(a.raw_repr()) == a


@given(st.sampled_from(RUNTIME), st.sampled_from(RUNTIME))
def test_below_and_above_part_the_functionalities(key, other):
    mine, its = (k.bits & FUNCTIONALITY_MASK for k in (key, other))
    assert bool(above(key) & its) == (its > mine)
    assert bool(below(key) & its) == (its < mine)
    assert below(key) & BACKEND_MASK == BACKEND_MASK
    assert above(key) & BACKEND_MASK == 0
    assert max(above(key), below(key)).bit_length() <= KEYSET_BITS


def test_iteration_goes_up_and_counts_a_functionality_once_per_backend():
    assert [key.name for key in DispatchKeySet(keyset("CPU", "CUDA", "Python", "AutogradMeta"))] == [
        *("CPU", "CUDA", "Meta", "Python", "AutogradCPU", "AutogradCUDA", "AutogradMeta")
    ]


def test_an_alias_key_is_in_no_keyset():
    with pytest.raises(ValueError, match="Autograd is an alias key: it stands for several keys"):
        keyset("CPU", "Autograd")
    with pytest.raises(ValueError, match="CompositeImplicitAutograd has no place in the order"):
        below("CompositeImplicitAutograd")
    assert not has(CPU_KEYS, DispatchKey.Autograd)
    assert not has(CPU_KEYS, DispatchKey.Undefined)


def test_a_key_is_found_by_name_and_a_wrong_name_is_answered_with_those_that_come_close():
    assert key_named("AutogradCPU") is DispatchKey.AutogradCPU is key_named(DispatchKey.AutogradCPU)
    with pytest.raises(ValueError, match=r"could not parse dispatch key: autogradcpu \(did you mean AutogradCPU\?\)"):
        key_named("autogradcpu")
    with pytest.raises(AttributeError, match="there is no dispatch key 'Nothing'"):
        DispatchKey.Nothing


def test_keys_keep_their_identity_through_copy_and_pickle():
    assert pickle.loads(pickle.dumps(DispatchKey.SparseCUDA)) is DispatchKey.SparseCUDA
    assert copy.deepcopy(DispatchKey.CPU) is DispatchKey.CPU


def test_as_keyset_takes_whatever_stands_for_a_keyset():
    assert as_keyset("CPU") == as_keyset(DispatchKey.CPU) == as_keyset(["CPU"]) == keyset("CPU")
    assert as_keyset(Fake()) == as_keyset(CPU_KEYS) == CPU_KEYS


# Users' keys ------------------------------------------------------------------------------------------------------


def test_a_users_key_stands_between_its_neighbours_and_old_keysets_stay_valid():
    before = {key: key.bits for key in RUNTIME}
    taint = define_key("Taint", above="Autograd")
    assert highest(keyset("Taint", "AutogradCPU")) is taint is DispatchKey.Taint
    assert highest(keyset("Taint", "AutogradNestedTensor")).name == "AutogradNestedTensor"
    assert describe(keyset("Taint", "CPU")) == "DispatchKeySet(CPU, Taint)"
    assert all(key.bits == bits for key, bits in before.items())
    assert functionalities().index("Taint") == functionalities().index("AutogradFunctionality") + 1


@pytest.mark.parametrize("name", ["CPU", "Python", "Dense", "PythonDispatcher", "ZeroTensor"])
def test_at_least_two_keys_fit_into_each_gap_whichever_comes_first(name):
    first = define_key("First", above=name)
    define_key("Second", above=name)
    undefine(DispatchKey.Second)
    second = define_key("Second", above="First")
    assert highest(first.bits | second.bits) is second


def test_a_full_gap_says_so():
    for number in range(2):
        define_key(f"Mine{number}", above="Python")
    with pytest.raises(
        RegistrationError, match="no bit is left between Python and Mine1; put the key above another one"
    ):
        define_key("Mine2", above="Python")


def test_above_the_highest_key_there_is_room_up_to_the_limit():
    top = "PythonDispatcher"
    with pytest.raises(RegistrationError, match=f"all {KEYSET_BITS} bits are in use"):
        for number in range(KEYSET_BITS):
            top = define_key(f"Top{number}", above=top).name
    assert key_named(top).bits.bit_length() <= KEYSET_BITS


@pytest.mark.parametrize("name", ["CPU", "Python", "Autograd", "Dense", "Undefined", "bits", "not a name"])
def test_a_name_that_is_taken_or_none_is_refused(name):
    with pytest.raises(RegistrationError):
        define_key(name, above="Python")
    with pytest.raises(RegistrationError):
        define_backend(name)


def test_a_backend_brings_its_runtime_keys_and_stays_below_meta():
    npu = define_backend("NPU")
    assert npu.bits.bit_length() > BACKEND_BITS
    assert highest(keyset("NPU", "CPU", "PrivateUse3")) is npu
    assert highest(keyset("NPU", "Meta")).name == "Meta"
    names = [prefix + "NPU" for prefix in PER_BACKEND.values()]
    assert all(key_named(name).backend == "NPU" for name in names)
    with pytest.raises(RegistrationError, match="there is a dispatch key of the name 'NPU' already"):
        define_backend("NPU")


def test_a_backend_is_refused_where_one_of_its_keys_would_take_a_name():
    define_key("SparseNPU", above="Python")
    with pytest.raises(RegistrationError, match="'SparseNPU'"):
        define_backend("NPU")
    assert "NPU" not in backends()


def test_backend_bits_end():
    with pytest.raises(RegistrationError, match=f"all {BACKEND_BITS} backend bits are in use"):
        for number in range(BACKEND_BITS):
            define_backend(f"NPU{number}")
    assert len(backends()) == BACKEND_BITS


def test_undefine_takes_a_backend_back_with_all_its_keys_and_registrations():
    before = dict(DispatchKey.__members__)
    op = operator("t::f(Tensor x) -> Tensor")
    for _ in range(2):  # the second backend of the same name is another one
        npu = define_backend("NPU")
        op.register("NPU", operator(f"t::g{_}(Tensor x) -> Tensor", CPU=len).registrations[DispatchKey.CPU][0])
        assert op.entry(npu.bits).kernel.function is len
        undefine(npu)
        assert DispatchKey.__members__ == before
        assert op.registrations == {}
        assert op.entry(npu.bits).key is DispatchKey.Undefined  # a tensor of that backend is on none now


def test_undefine_takes_a_functionality_back_and_its_bit_may_mean_another_key():
    op = operator("t::f(Tensor x) -> Tensor", CPU=len)
    old = define_key("Old", above="Python")
    assert op.entry(keyset("CPU") | old.bits).key is old
    undefine(old)
    new = define_key("New", above="Python")
    assert new.bits == old.bits
    assert op.entry(keyset("CPU") | new.bits).key is new
    assert describe(old.bits) == "DispatchKeySet(New)"
    assert old not in FALLBACKS


@pytest.mark.parametrize("name", ["CPU", "AutogradMeta", "Python", "Autograd", "Undefined"])
def test_a_built_in_key_cannot_be_undefined(name):
    with pytest.raises(RegistrationError, match=f"{name} is built in"):
        undefine(key_named(name))


def test_without_takes_no_backend_away():
    assert without(CPU_KEYS, keyset("CPU", "AutogradCPU")) & BACKEND_MASK == keyset("CPU") & BACKEND_MASK


# PyTorch's own names, as far as they need no tensor with data -------------------------------------------------------


def test_pytorchs_names_find_the_same_keys():
    from redispatch import _C

    key, keys = _C.DispatchKey, _C.DispatchKeySet
    assert (keys(key.AutogradCPU) | keys(key.CPU)).highestPriorityTypeId() == key.AutogradCPU
    assert (keys(key.Python) | keys(key.Functionalize)).highestPriorityTypeId() == key.Functionalize
    assert str(_C._dispatch_keys(Fake())) == "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert _C._dispatch_key_parse("CPU") is key.CPU
    assert _C._dispatch_key_name(key.CPU) == "CPU"
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Foo"):
        _C._dispatch_key_parse("Foo")
    after = _C._after_autograd_keyset
    assert [
        n for n in ("AutogradOther", "AutogradCPU", "ADInplaceOrView", "CPU", "Python") if after.has(key_named(n))
    ] == [*("ADInplaceOrView", "CPU", "Python")]
    assert not _C._after_ADInplaceOrView_keyset.has(key.ADInplaceOrView)
    assert _C._dispatch_keyset_full().has(key.SparseCsrMeta)


def test_a_key_may_be_given_by_its_name():
    assert rd.DispatchKeySet(rd.DispatchKey.CPU).has("CPU") and not rd.DispatchKeySet("Meta").has("CPU")
    with _C._IncludeDispatchKeyGuard("Negative"):
        assert _C._dispatch_tls_is_dispatch_key_included("Negative")
    _C._dispatch_tls_set_dispatch_key_excluded("Negative", True)
    try:
        assert _C._dispatch_tls_is_dispatch_key_excluded("Negative")
    finally:
        _C._dispatch_tls_set_dispatch_key_excluded("Negative", False)
    _C._dispatch_tls_set_dispatch_key_included("Negative", False)
    assert not _C._dispatch_tls_is_dispatch_key_excluded("Negative") and _C._dispatch_key_name("CPU") == "CPU"
    assert _C._dispatch_get_backend_keyset_from_autograd("AutogradCPU") == rd.DispatchKeySet("CPU")
    assert _C._dispatch_is_alias_key("Autograd") and _C._dispatch_is_included_in_alias("AutogradCPU", "Autograd")
    assert _C._dispatch_has_backend_fallback("AutogradCPU") and rd.ops.loaded_libraries == set()
