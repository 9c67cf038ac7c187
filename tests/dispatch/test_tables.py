"""Who answers at a key: the precedence rule as data, its dependencies, and what is said where nobody answers."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch._dispatch.python import enable_python_dispatcher, no_python_dispatcher
from redispatch.dispatch import (
    FALLBACKS,
    OPERATORS,
    DispatchKey,
    Library,
    MissingKernelError,
    RegistrationError,
    backends_of_autograd,
    define,
    define_backend,
    define_key,
    dump_registrations,
    dump_table,
    fallthrough_kernel,
    impl,
    key_named,
    keyset,
    members,
    runtime_table_keys,
)
from redispatch.dispatch.config import config
from redispatch.dispatch.core.registry import add_fallback
from redispatch.dispatch.core.table import Kernel
from redispatch.utils._python_dispatch import TorchDispatchMode

from .fakes import CPU_KEYS, Fake, operator


def table(op):
    """{key: label}, as `_dispatch_dump_table` prints it."""
    lines = (line.split(": ", 1) for line in dump_table(op).splitlines())
    return {key: ("fallthrough " if text.startswith("fall") else "") + text[text.rindex("[") :] for key, text in lines}


def with_kernels(*keys):
    return operator("t::f(Tensor x) -> Tensor", **{key: lambda x: x for key in keys})


KERNEL, MATH, DEFAULT = "[kernel]", "[math kernel]", "[default backend kernel]"
NESTED, AUTOGRAD, BATCHED = "[nested kernel]", "[autograd kernel]", "[batched kernel]"
AMBIGUOUS, FALLBACK, SKIPPED, NOTHING = (
    *("[ambiguous autogradother]", "[backend fallback]", "fallthrough [backend fallback]"),
    None,
)
IMPLICIT, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
IMPLICIT_NESTED, NON_FUNCTIONAL = "CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutogradNonFunctional"

# The registered keys, and what PyTorch 2.13 prints for some of the runtime keys then. (It has no fallback at
# AutogradNestedTensor, and one at Batched that is no fallthrough.)
RULE = [
    # nothing registered: the fallbacks alone
    ("", {"CPU": NOTHING, "Undefined": NOTHING, "AutogradCPU": FALLBACK, "Meta": FALLBACK, "Python": FALLBACK}),
    ("", {"BackendSelect": SKIPPED, "ADInplaceOrView": SKIPPED, "AutocastCPU": SKIPPED, "VmapMode": SKIPPED}),
    # 1. a kernel of the key's own comes before every alias
    ("CPU", {"CPU": KERNEL, "CUDA": NOTHING, "SparseCPU": NOTHING, "AutogradCPU": FALLBACK, "Undefined": NOTHING}),
    (f"CPU {EXPLICIT} Autograd", {"CPU": KERNEL, "CUDA": DEFAULT, "AutogradCPU": AUTOGRAD, "AutogradOther": AUTOGRAD}),
    (f"AutogradCPU {IMPLICIT}", {"AutogradCPU": KERNEL, "AutogradCUDA": MATH}),
    # 2.1, 2.2
    (EXPLICIT, {"CPU": DEFAULT, "Meta": DEFAULT, "SparseCUDA": DEFAULT, "FPGA": DEFAULT, "Undefined": DEFAULT}),
    (EXPLICIT, {"NestedTensorCPU": NOTHING, "AutogradCPU": FALLBACK, "Python": FALLBACK}),
    (NON_FUNCTIONAL, {"CPU": DEFAULT, "QuantizedCPU": DEFAULT, "SparseCsrCPU": DEFAULT, "FPGA": DEFAULT}),
    (NON_FUNCTIONAL, {"XLA": NOTHING, "QuantizedLazy": NOTHING, "SparseCPU": NOTHING, "Undefined": DEFAULT}),
    # 2.3
    (IMPLICIT, {"CPU": MATH, "Meta": MATH, "SparseCPU": MATH, "NestedTensorCPU": MATH, "Undefined": MATH}),
    (IMPLICIT, {"AutogradCPU": MATH, "AutogradOther": MATH, "AutogradNestedTensor": MATH, "ADInplaceOrView": SKIPPED}),
    (f"CPU {IMPLICIT}", {"CPU": KERNEL, "AutogradCPU": FALLBACK, "CUDA": MATH, "AutogradCUDA": MATH}),
    (f"CPU {IMPLICIT} Autograd", {"AutogradCPU": AUTOGRAD, "AutogradCUDA": MATH}),
    (f"SparseCUDA {IMPLICIT}", {"SparseCUDA": KERNEL, "AutogradCUDA": MATH, "AutogradOther": AMBIGUOUS}),
    (f"FPGA {IMPLICIT}", {"FPGA": KERNEL, "Metal": MATH, "AutogradOther": AMBIGUOUS}),
    (f"FPGA {IMPLICIT} AutogradOther", {"AutogradOther": KERNEL}),
    (f"FPGA {IMPLICIT} {EXPLICIT}", {"AutogradOther": AMBIGUOUS}),
    ("FPGA Autograd", {"AutogradOther": AUTOGRAD}),
    (f"NestedTensorCPU {IMPLICIT}", {"AutogradNestedTensor": FALLBACK, "NestedTensorCUDA": MATH, "AutogradCPU": MATH}),
    (f"{EXPLICIT} {IMPLICIT}", {"CPU": DEFAULT, "AutogradCPU": FALLBACK, "NestedTensorCPU": NOTHING}),
    (f"{NON_FUNCTIONAL} {IMPLICIT}", {"CPU": DEFAULT, "XLA": MATH, "AutogradCPU": MATH}),
    (f"{IMPLICIT_NESTED} {IMPLICIT}", {"NestedTensorCPU": NESTED, "AutogradNestedTensor": NESTED, "CPU": MATH}),
    (f"{IMPLICIT_NESTED}", {"CPU": NOTHING, "Undefined": NOTHING, "AutogradCPU": FALLBACK}),
    # 2.4, 2.5
    ("Autograd", {"AutogradCPU": AUTOGRAD, "AutogradMeta": AUTOGRAD, "AutogradNestedTensor": AUTOGRAD, "CPU": NOTHING}),
    ("FuncTorchBatchedDecomposition", {"FuncTorchBatched": BATCHED, "Batched": SKIPPED, "CPU": NOTHING}),
    ("FuncTorchBatched FuncTorchBatchedDecomposition", {"FuncTorchBatched": KERNEL}),
]


@pytest.mark.parametrize(("registered", "expected"), RULE, ids=lambda value: value if isinstance(value, str) else "")
def test_the_precedence_rule(registered, expected):
    found = table(with_kernels(*registered.split()))
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("alias", "count"),
    [
        ("Autograd", 18),
        (IMPLICIT, 104),
        (EXPLICIT, 70),
        (NON_FUNCTIONAL, 48),
        (IMPLICIT_NESTED, 17),
        ("FuncTorchBatchedDecomposition", 1),
    ],
)
def test_an_alias_has_as_many_members_as_in_pytorch(alias, count):
    assert len(members(key_named(alias))) == count
    assert sum(key.bits == 0 for key in members(key_named(alias))) == (alias in (IMPLICIT, EXPLICIT, NON_FUNCTIONAL))


def test_the_backends_under_an_autograd_key():
    assert {key.name for key in backends_of_autograd(DispatchKey.AutogradCPU)} == {"CPU"}
    assert {key.functionality for key in backends_of_autograd(DispatchKey.AutogradNestedTensor)} == {"NestedTensor"}
    assert len(backends_of_autograd(DispatchKey.AutogradOther)) == 3 * 16 + 5
    assert not backends_of_autograd(DispatchKey.CPU)


def test_the_newest_kernel_answers_and_the_former_one_again_when_it_is_taken_back():
    op = with_kernels("CPU")
    undo = impl(op, "CPU", len, convention="python", place="second")
    assert op.entry_at(DispatchKey.CPU).kernel.function is len
    undo()
    assert op.entry_at(DispatchKey.CPU).kernel.place == "CPU of the test"
    undo()  # once is enough; twice does no harm
    assert op.entry_at(DispatchKey.CPU).rule == "kernel"


def test_a_backend_kernel_changes_the_autograd_key_above_it_too():
    op = with_kernels(IMPLICIT)
    assert op.entry(CPU_KEYS).rule == "math kernel"
    undo = impl(op, "CPU", len, convention="python", place="test")
    assert op.entry(CPU_KEYS).rule == "backend fallback"
    undo()
    assert op.entry(CPU_KEYS).rule == "math kernel"


def test_an_alias_kernel_changes_every_member():
    op = with_kernels()
    undo = impl(op, EXPLICIT, len, convention="python", place="test")
    assert {key for key in runtime_table_keys() if op.entry_at(key).rule == "default backend kernel"} == members(
        key_named(EXPLICIT)
    )
    undo()
    assert table(op) == table(operator("t::bare(Tensor x) -> Tensor"))


def test_a_fallback_changes_every_operator():
    op = with_kernels()
    assert op.entry_at(DispatchKey.CUDA).rule == op.entry(keyset("CUDA")).rule == "missing"
    undo = add_fallback(DispatchKey.CUDA, Kernel(len, len, "boxed", "test"))
    assert op.entry_at(DispatchKey.CUDA).rule == op.entry(keyset("CUDA")).rule == "backend fallback"
    undo()
    assert op.entry(keyset("CUDA")).rule == "missing"


def test_a_fallthrough_is_skipped_and_costs_the_call_nothing():
    op = with_kernels("CPU")
    impl(op, "AutogradCPU", fallthrough_kernel, convention="python", place="test")
    assert op.entry(CPU_KEYS).key.name == "CPU"
    assert {DispatchKey.AutogradCPU, DispatchKey.ADInplaceOrView} <= set(op.fallthrough_keys())
    assert table(op)["AutogradCPU"] == "fallthrough [kernel]"
    impl(op, "CPU", fallthrough_kernel, convention="python", place="test")
    assert op.entry(CPU_KEYS).key is DispatchKey.Undefined


def test_a_backend_of_ones_own_is_a_member_of_the_aliases_and_has_autograd():
    define_backend("NPU")
    op = with_kernels(EXPLICIT)
    assert {"NPU", "SparseNPU"} <= {key.name for key in members(key_named(EXPLICIT))}
    found = table(op)
    assert (found["NPU"], found["AutogradNPU"]) == (DEFAULT, FALLBACK)
    add_fallback(DispatchKey.AutogradNPU, Kernel(len, len, "boxed", "test"))
    assert op.entry_at(DispatchKey.AutogradNPU).kernel.function is len


def test_a_functionality_of_ones_own_needs_a_kernel_or_a_fallback():
    taint = define_key("Taint", above="Autograd")
    op = with_kernels("CPU")
    assert op.entry(CPU_KEYS | taint.bits).rule == "missing"
    add_fallback(taint, Kernel(len, len, "boxed", "test"))
    assert op.entry(CPU_KEYS | taint.bits).kernel.function is len


# What is said -----------------------------------------------------------------------------------------------------


def test_a_missing_kernel_is_an_error_with_the_facts():
    op = operator("t::f(Tensor x, int n=1) -> Tensor", CUDA=lambda x, n: x)
    with pytest.raises(MissingKernelError) as caught:
        op.redispatch(keyset("CPU"), Fake(name="x: f32[2]"))
    error = caught.value
    assert (error.op, error.key, error.keyset) == (op, DispatchKey.CPU, keyset("CPU"))
    assert isinstance(error, NotImplementedError)
    text = str(error)
    assert text.startswith(
        "Could not run 't::f' with arguments from the 'CPU' backend. This could be because the operator doesn't exist"
    )
    assert "'t::f' is only available for these backends: [CUDA, Meta, " in text
    assert text.endswith(
        "\n  you passed   x: f32[2], 1"
        "\n  keyset       DispatchKeySet(CPU)"
        "\n  registered   CUDA (CUDA of the test)"
        "\n  to fix       register a kernel: library.impl('t::f', 'CPU')(function)"
    )


def test_the_backends_that_would_do_are_listed_in_order():
    op = with_kernels("CUDA", "CPU", "SparseCPU")
    listed = r"backends: \[CPU, CUDA, Meta, SparseCPU, RareDtype, Python, .*AutogradCPU"
    with pytest.raises(MissingKernelError, match=listed):
        op.redispatch(keyset("XLA"), Fake())


def test_a_call_without_tensors_says_so():
    op = operator("t::f(Tensor[] xs) -> Tensor", CPU=lambda xs: xs)
    with pytest.raises(NotImplementedError, match="There were no tensor arguments to this function"):
        op([])


def test_an_ambiguous_autogradother_is_an_error_only_when_called():
    op = with_kernels(IMPLICIT, "FPGA")
    with pytest.raises(
        RuntimeError, match="t::f has kernels registered to both CompositeImplicitAutograd and a backend"
    ):
        op.redispatch(keyset("FPGA", "AutogradOther"), Fake())


def test_a_meta_tensor_without_meta_kernel_says_so():
    with pytest.raises(NotImplementedError, match="there was no fake impl or Meta kernel registered"):
        with_kernels("CPU").redispatch(keyset("Meta"), Fake())


def test_registrations_are_printed_as_pytorch_prints_them():
    op = with_kernels("CPU", "Autograd")
    impl(op, "CPU", len, convention="python", place="newer")
    impl(op, "CUDA", fallthrough_kernel, convention="python", place="skip")
    assert dump_registrations(op).splitlines() == [
        "name: t::f",
        "schema: t::f(Tensor x) -> Tensor",
        "debug: registered at test",
        "alias analysis kind: FROM_SCHEMA",
        "CPU: registered at newer :: (none) [ boxed ]",
        "CPU (inactive): registered at CPU of the test :: (none) [ boxed ]",
        "CUDA: registered at skip :: (none) [ fallthrough boxed ]",
        "Autograd[alias]: registered at Autograd of the test :: (none) [ boxed ]",
    ]


def test_a_fallback_of_an_alias_key_or_a_second_one_is_refused():
    with pytest.raises(RegistrationError, match="Autograd is an alias key"):
        add_fallback(DispatchKey.Autograd, Kernel(len, len, "boxed", "test"))
    add_fallback(DispatchKey.CUDA, Kernel(len, len, "boxed", "here"))
    with pytest.raises(
        RegistrationError,
        match="key CUDA; previous registration registered at here, new registration registered at there",
    ):
        add_fallback(DispatchKey.CUDA, Kernel(len, len, "boxed", "there"))
    assert len(FALLBACKS[DispatchKey.CUDA]) == 1


# Any sequence of registrations and removals -------------------------------------------------------------------------

KEYS = [
    "CPU",
    "CUDA",
    "SparseCPU",
    "AutogradCPU",
    "AutogradOther",
    "FPGA",
    "Autograd",
    IMPLICIT,
    EXPLICIT,
    NON_FUNCTIONAL,
]
ASKED = [key_named(name) for name in ("CPU", "CUDA", "SparseCPU", "AutogradCPU", "AutogradOther", "Meta", "Undefined")]
ALIAS_ORDER = [NON_FUNCTIONAL, EXPLICIT, IMPLICIT, "Autograd"]


class Model:
    """The rule again, the slow and simple way: all registrations in one list, each asked in turn."""

    def __init__(self):
        self.kernels = []  # (key, number), in the order of registration

    def newest(self, name):
        return next((number for key, number in reversed(self.kernels) if key == name), None)

    def answer(self, key):
        for name in [key.name, *(alias for alias in ALIAS_ORDER if key in members(key_named(alias)))]:
            number = self.newest(name)
            if number is None:
                continue
            if name == IMPLICIT:
                below = {backend.name for backend in backends_of_autograd(key)} & {name for name, _ in self.kernels}
                if below and key.name == "AutogradOther":
                    return "ambiguous"
                if below or self.newest(EXPLICIT) is not None:
                    continue
            return number
        return None


def answer(op, key):
    entry = op.entry_at(key)
    if entry.rule in ("missing", "backend fallback"):
        return None
    return "ambiguous" if entry.rule.startswith("ambiguous") else entry.kernel.function


@given(st.lists(st.one_of(st.sampled_from(KEYS), st.integers(0, 9)), max_size=25))
def test_any_sequence_of_registrations_and_removals_gives_the_table_of_the_model(steps):
    op, undo_define = define("t::random(Tensor x) -> Tensor", place="test")
    model, undo = Model(), []
    for number, step in enumerate(steps):
        if isinstance(step, str):
            undo.append((impl(op, step, number, convention="boxed", place=""), (step, number)))
            model.kernels.append((step, number))
        elif undo:  # remove one, whichever it is
            remove, entry = undo.pop(step % len(undo))
            remove()
            model.kernels.remove(entry)
        assert [answer(op, key) for key in ASKED] == [model.answer(key) for key in ASKED]
        assert [op.entry(key.bits).key for key in ASKED if key.bits and answer(op, key)] == [
            key for key in ASKED if key.bits and answer(op, key)
        ]
    for remove, _ in undo:
        remove()
    assert not op.registrations
    undo_define()


def test_threads_that_register_at_once_lose_nothing():
    op = with_kernels()
    start = threading.Barrier(8)

    def register(number):
        start.wait()
        for _ in range(50):
            impl(op, "CPU", len, convention="python", place=str(number))
            impl(op, "CUDA", len, convention="python", place=str(number))()
            op.entry(CPU_KEYS)
        with Library("t", "FRAGMENT") as library:
            library.define(f"g{number}(Tensor x) -> Tensor")

    threads = [threading.Thread(target=register, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(op.registrations[DispatchKey.CPU]) == 8 * 50
    assert DispatchKey.CUDA not in op.registrations
    assert not any(name.startswith("t::g") for name in OPERATORS)


# PyTorch's own names ------------------------------------------------------------------------------------------------


def test_pytorchs_names_answer_about_tables():
    from redispatch import _C, _ops

    op = with_kernels("CPU", EXPLICIT)
    assert _C._dispatch_dump_table("t::f") == dump_table(op)
    assert _C._dispatch_dump("t::f") == dump_registrations(op)
    assert _C._dispatch_dump_table("t::unknown") == _C._dispatch_dump("t::unknown") == ""
    assert _C._dispatch_has_kernel("t::f") and not _C._dispatch_has_kernel("t::unknown")
    assert _C._dispatch_has_kernel_for_dispatch_key("t::f", EXPLICIT)
    assert not _C._dispatch_has_kernel_for_dispatch_key("t::f", "CUDA")
    assert _C._dispatch_has_computed_kernel_for_dispatch_key("t::f", "CUDA")
    assert not _C._dispatch_has_computed_kernel_for_dispatch_key("t::f", "NestedTensorCPU")
    with pytest.raises(RuntimeError, match="operator t::unknown does not exist"):
        _C._dispatch_has_kernel_for_dispatch_key("t::unknown", "CPU")
    assert "t::f" in _C._dispatch_get_registrations_for_dispatch_key("CPU")
    assert "t::f" in _C._dispatch_get_all_op_names()
    assert _C._dispatch_has_backend_fallback(DispatchKey.Python)
    assert _C._dispatch_is_included_in_alias(DispatchKey.Meta, key_named(EXPLICIT))
    assert _C._dispatch_find_dangling_impls() == []
    op.entry(CPU_KEYS)
    assert _C._dispatch_check_all_invariants() is None
    op._entries[keyset("CPU")] = op.entry_at(DispatchKey.CUDA)  # as if a change had been missed
    with pytest.raises(RuntimeError, match="t::f remembers a kernel"):
        _C._dispatch_check_all_invariants()
    assert _ops.resolve_key(op, DispatchKey.CPU).name == "CPU"
    assert _ops.resolve_key(op, DispatchKey.CUDA).name == EXPLICIT
    assert _ops.resolve_key(op, DispatchKey.AutogradCPU).name == "AutogradCPU"
    with pytest.raises(
        NotImplementedError, match="could not find kernel for t.f.default at dispatch key DispatchKey.Nested"
    ):
        _ops.resolve_key(op, DispatchKey.NestedTensorCPU)
    with pytest.raises(RuntimeError, match="ambiguous autogradother kernel"):
        _ops.resolve_key(operator("t::g(Tensor x) -> Tensor", FPGA=len, **{IMPLICIT: len}), DispatchKey.AutogradOther)


# Python kernels -----------------------------------------------------------------------------------------------------


@pytest.fixture
def with_python_kernels():
    library = Library("py", "FRAGMENT")
    library.define("f(Tensor x, int n=2) -> Tensor")
    library.impl("f", lambda x, n=2: x * n, "CPU")
    return library, rd.ops.py.f.default


@pytest.mark.parametrize("specialize", [True, False])
def test_python_kernels_answer_while_the_python_dispatcher_is_on(with_python_kernels, specialize, monkeypatch):
    monkeypatch.setattr(config, "specialize", specialize)
    _, op = with_python_kernels
    x, wanted = rd.ones(1), rd.ones(1, requires_grad=True)
    assert op.py_kernels == {} and op(x).item() == 2
    op.py_impl(DispatchKey.CPU)(lambda x, n=2: x * 10 * n)
    with enable_python_dispatcher():
        assert (op(x).item(), op(x, n=3).item(), rd.ops.py.f(x).item()) == (20, 30, 20)
        assert op(wanted).grad_fn is not None  # below autograd, as the table's kernel is
        with no_python_dispatcher():
            assert op(x).item() == 2 and not rd._C._dispatch_tls_is_dispatch_key_included(DispatchKey.PythonDispatcher)
    op.py_impl(DispatchKey.Autograd)(lambda x, n=2: x * 100)
    op.py_impl(DispatchKey.Meta)(lambda x, n=2: x.new_empty(7))
    with enable_python_dispatcher():
        assert op(x).item() == 100 and op(rd.ones(1, device="meta")).shape == (1,)  # by the one at Autograd
        del op.py_kernels[DispatchKey.Autograd]
        assert op(x).item() == 20 and op(rd.ones(1, device="meta")).shape == (7,)
    assert op(x).item() == 2 and list(op.registrations) == [DispatchKey.CPU]
    assert op.has_kernel_for_dispatch_key("Meta") and not rd._C._dispatch_has_kernel_for_dispatch_key("py::f", "Meta")
    with pytest.raises(RuntimeError, match=r"^Trying to override a python impl for .* on operator py::f"):
        op.py_impl(DispatchKey.CPU)(len)
    with pytest.raises(TypeError, match="expected a DispatchKey or the class of a mode, got 'CPU'"):
        op.py_impl("CPU")


def test_a_python_kernel_of_a_composite_decomposes_it(with_python_kernels):
    library, op = with_python_kernels
    assert op.decompose(rd.ones(1)) is NotImplemented
    op.py_impl(DispatchKey.CompositeImplicitAutograd)(lambda x, n=2: x + n + 1)
    assert op.decompose(rd.ones(1)).item() == 4 and op(rd.ones(1)).item() == 2
    with enable_python_dispatcher():
        assert op(rd.ones(1)).item() == 2  # a kernel of the backend comes first, as in every table
    library.define("g(Tensor x) -> Tensor")
    library.impl("g", lambda x: x + 1, "CompositeImplicitAutograd")
    g = rd.ops.py.g.default
    g.py_impl(DispatchKey.CompositeImplicitAutograd)(lambda x: x + 5)
    with enable_python_dispatcher():
        assert g(rd.ones(1)).item() == 6


def test_a_mode_has_python_kernels_of_its_own(with_python_kernels):
    _, op = with_python_kernels

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) + 1000

    @op.py_impl(Mode)
    def of_mode(mode, x, n=2):
        assert type(mode) is Mode and not rd._C._len_torch_dispatch_stack()
        return x * 5

    with Mode() as mode:
        assert op(rd.ones(1)).sub(1000).item() == 2000 + 2 or mode
        with enable_python_dispatcher():
            one = op(rd.ones(1))
    assert one.item() == 5005
