"""Libraries define, implement and fall back; a second registration is loud; all of it is undone, in any order."""

import dis
import gc
import importlib
import itertools
import pickle
import re
import sys
import threading

import pytest

import redispatch as rd
from redispatch import _C
from redispatch.dispatch import (
    FALLBACKS,
    LATE,
    LISTENERS,
    OPERATORS,
    DispatchKey,
    DispatchKeySet,
    Library,
    RegistrationError,
    RuleTable,
    SchemaError,
    Slot,
    _scoped_library,
    define_key,
    fallthrough_kernel,
    include,
    keyset,
    operator_named,
    operators,
    ops,
    own_namespace,
)
from redispatch.dispatch.core import registry
from redispatch.dispatch.core.registry import OVERLOADS
from redispatch.dispatch.errors import WARNED
from redispatch.dispatch.library import _DEFINING, _meet
from redispatch.library import register_fake

from ..drawing import draw
from .fakes import CPU_KEYS, Fake
from .interleavings import NAMES, RECORDED, digest, outcome

HERE = re.escape(__file__) + r":\d+"


def library(schema="f(Tensor x) -> Tensor", namespace="t"):
    lib = Library(namespace, "FRAGMENT")
    lib.define(schema)
    return lib


def below_autograd(op, *args):
    return op.redispatch(keyset("CPU"), *args)


def test_an_operator_is_defined_implemented_found_and_called():
    lib = Library("t", "DEF")
    assert lib.define("f(Tensor x, int n=1) -> Tensor", tags=("pointwise",)) == "f"
    assert lib.define("f.two(Tensor x, Tensor y) -> Tensor") == "f"
    lib.impl("f", lambda x, n=1: Fake(name=f"{x.name}+{n}"), "CPU")
    assert ops.t.f(Fake(), 2).name == "fake+2"
    assert ops.t.f.default is operator_named("t::f") is operator_named("t::f.default")
    assert ops.t.f.overloads() == ["default", "two"] == dir(ops.t.f)
    assert ops.t.f.default.tags == ["pointwise"]
    assert re.fullmatch(HERE, ops.t.f.default.place)
    assert dir(ops.t) == ["f"] and "t" in dir(ops)
    assert ops.t.f.default in operators()
    assert ops.t.f.two.overloadpacket is ops.t.f


def test_names_are_printed_as_pytorch_prints_them():
    lib = library("f.two(Tensor x) -> Tensor")
    op = ops.t.f.two
    assert (str(op), repr(op)) == ("t.f.two", "<OpOverload(op='t.f', overload='two')>")
    assert (str(ops.t.f), repr(ops.t.f)) == ("t.f", "<OpOverloadPacket(op='t.f')>")
    assert (op.name(), op.namespace, op.__name__, op.__module__) == ("t::f.two", "t", "f.two", "torch._ops.t")
    assert pickle.loads(pickle.dumps(op)) is op
    lib._destroy()
    with pytest.raises(AttributeError, match="'_OpNamespace' 't' object has no attribute 'f'"):
        ops.t.f


def test_a_missing_overload_or_operator_says_so():
    lib = library("f.two(Tensor x) -> Tensor")
    with pytest.raises(AttributeError, match="The underlying op of 't.f' has no overload name 'three'"):
        ops.t.f.three
    with pytest.raises(RegistrationError, match="there is no operator 't::f'; there are t::f.two"):
        operator_named("t::f")
    assert lib


def test_a_packet_runs_the_first_overload_that_fits():
    lib = library("f(Tensor x, int n) -> str")
    lib.define("f.two(Tensor x, Tensor y) -> str")
    lib.impl("f", lambda x, n: "number", "CPU")
    lib.impl("f.two", lambda x, y: "tensor", "CPU")
    assert (ops.t.f(Fake(), 1), ops.t.f(Fake(), Fake())) == ("number", "tensor")
    with pytest.raises(
        RuntimeError, match=r"(?s)failed to match any schema:\nt::f\(\) Expected.*t::f\(\) Expected.*two"
    ):
        ops.t.f(Fake(), "neither")


# What is refused ----------------------------------------------------------------------------------------------------


def test_a_namespace_has_one_def_library():
    lib = Library("t", "DEF")
    with pytest.raises(RegistrationError, match=f"(?s)Only a single TORCH_LIBRARY .* t;.*at {HERE}; .* at {HERE}$"):
        Library("t", "DEF")
    lib._destroy()
    Library("t", "DEF")
    own_namespace("mine")
    with pytest.raises(
        RegistrationError, match="Only a single TORCH_LIBRARY can be used to register the namespace mine"
    ):
        Library("mine", "DEF")


def test_fragments_are_many():
    first, second = library("f(Tensor x) -> Tensor"), library("g(Tensor x) -> Tensor")
    assert dir(ops.t) == ["f", "g"]
    first._destroy()
    assert dir(ops.t) == ["g"] and second


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: Library("prim", "DEF"), ValueError, "prim is a reserved namespace"),
        (lambda: Library("t", "IMPORT"), ValueError, "Unsupported kind: IMPORT"),
        (
            lambda: Library("t", "IMPL").define("f(Tensor x) -> Tensor"),
            RegistrationError,
            "inside of a TORCH_LIBRARY_IMPL",
        ),
        (
            lambda: Library("t", "DEF").define("u::f(Tensor x) -> Tensor"),
            RegistrationError,
            r"namespace \(u\) in schema",
        ),
        (
            lambda: library().impl("u::f", len, "CPU"),
            RegistrationError,
            r'impl\("u::f", ...\): .* namespace \(u\) in op',
        ),
        (lambda: library().impl("f.default", len, "CPU"), RegistrationError, "default is not a legal overload name"),
        (lambda: library().impl("g", len, "Meta"), RegistrationError, "operator t::g does not exist"),
        (lambda: Library("_", "IMPL").impl("f", len, "CPU"), RegistrationError, "the namespace _ has no operators"),
        (lambda: Library("t", "FRAGMENT", "CPU"), RegistrationError, "a dispatch key is for kind 'IMPL'"),
        (lambda: Library("t", "IMPL", "CPUU"), ValueError, "could not parse dispatch key: CPUU"),
        (lambda: Library("t", "DEF").define("f(Tensor x -> Tensor"), SchemaError, "expected"),
        (lambda: Library("t", "DEF").define("f(Tensor x) -> ()", "GUESS"), RuntimeError, "alias_analysis type GUESS"),
        (lambda: library().impl("f", 3, "CPU"), TypeError, "required to be a callable but found type <class 'int'>"),
        (lambda: library().impl("f", len, "CPUU"), ValueError, "could not parse dispatch key: CPUU"),
        (lambda: library().impl(3, len, "CPU"), RuntimeError, "either a name or an OpOverload .* got <class 'int'>"),
        (lambda: Library("t", "IMPL", "CPU").impl("f", len, "CUDA"), RegistrationError, r"key \(CUDA\) is incons"),
        (lambda: library().fallback(len, "CPU"), RuntimeError, 'global namespace "_" but it is t'),
        (lambda: Library("_", "IMPL").fallback(len), ValueError, "a fallback needs a dispatch key"),
        (lambda: Library("_", "IMPL").fallback(len, "Autograd"), RegistrationError, "Autograd is an alias key"),
    ],
)
def test_what_cannot_be_is_refused(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


def test_a_second_definition_names_both_places():
    first = library()
    with pytest.raises(
        RegistrationError, match=f"same name and overload name multiple .* at {HERE}. Original .* at {HERE}$"
    ):
        library()
    assert first and dir(ops.t) == ["f"]


def test_a_second_kernel_holds_and_names_both_places(monkeypatch):
    lib = library("f(Tensor x) -> int")
    lib.impl("f", lambda x: 1, "CPU")
    other = Library("t", "IMPL")
    with pytest.raises(
        RegistrationError, match=f"(?s)overriding f's behavior for CPU .*one is at {HERE}, .* at {HERE};"
    ):
        other.impl("f", lambda x: 2, "CPU", allow_override=False)
    assert below_autograd(ops.t.f.default, Fake()) == 1
    monkeypatch.setattr(WARNED, "of_overriding", False)
    with pytest.warns(
        UserWarning, match=f"(?s)^Warning only once.*Overriding a .*: t::f.*CPU.*previous .*{HERE}.*new .* at {HERE}$"
    ) as told:
        other.impl("f", lambda x: 2, "CPU")
        other.impl("f", lambda x: 3, "CPU")
    assert len(told) == 1 and below_autograd(ops.t.f.default, Fake()) == 3
    rd.set_warn_always(True)
    with pytest.warns(UserWarning, match="Overriding a previously registered kernel"):
        other.impl("f", lambda x: 4, "CPU")
    rd.set_warn_always(False)


def test_the_same_definition_may_run_again_as_a_notebooks_cell_does():
    lib = library("f(Tensor x) -> int")
    for result in (1, 2):

        def kernel(x, result=result):
            return result

        lib.impl("f", kernel, "CPU")
    assert below_autograd(ops.t.f.default, Fake()) == 2


def test_a_meta_kernel_is_refused_where_the_operator_decomposes():
    lib = library()
    lib.impl("f", lambda x: x, "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="We should not register a meta kernel directly to the operator 'f'"):
        lib.impl("f", lambda x: x, "Meta")


# How it is undone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_overrides_are_undone_in_any_order(order):
    base = library("f(Tensor x) -> int")
    base.impl("f", lambda x: 0, "CPU")
    overriding = []
    for result in (1, 2):
        overriding.append(Library("t", "IMPL"))
        overriding[-1].impl("f", lambda x, result=result: result, "CPU", allow_override=True)
    seen = [below_autograd(ops.t.f.default, Fake())]
    for index in order:
        overriding[index]._destroy()
        seen.append(below_autograd(ops.t.f.default, Fake()))
    assert seen == [2, 2 if order[0] == 0 else 1, 0]


def test_what_is_registered_does_not_depend_on_the_order_nor_does_what_is_left():
    said = {}
    steps = [
        lambda m: m.def_("f(Tensor x) -> Tensor"),
        lambda m: m.impl_t_t("f"),
        lambda m: m.impl_t_t("f", "CPU", debug="mine"),
        lambda m: m.impl("f", "Autograd", len),
    ]
    for there in itertools.permutations(range(4)):
        for gone in [there, there[::-1], (2, 0, 3, 1)]:
            held, active = {}, set()
            for step in there:
                held[step] = _C._dispatch_library("FRAGMENT", "t", "")
                steps[step](held[step])
                active.add(step)
                now = _C._dispatch_dump("t::f"), _C._dispatch_dump_table("t::f")
                assert said.setdefault(frozenset(active), now) == now
            assert ops.t.f(rd.ones(2)).tolist() == [1, 1] if 3 not in active else True
            for step in gone:
                del held[step]
                active.remove(step)
                now = _C._dispatch_dump("t::f"), _C._dispatch_dump_table("t::f")
                assert said.setdefault(frozenset(active), now) == now
    assert said[frozenset()] == ("", "")
    assert said[frozenset({0, 1, 2})][0].splitlines()[1:] == [
        "schema: t::f(Tensor x) -> Tensor",
        "debug: registered at /dev/null:0",
        "alias analysis kind: FROM_SCHEMA",
        "CPU: mine :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]",
        "CompositeImplicitAutograd[alias]: impl_t_t :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]",
    ]


def test_a_kernel_waits_for_its_operator_and_outlives_it():
    early = Library("t", "IMPL")
    early.impl("f", lambda x: 1, "CPU")
    assert _C._dispatch_has_kernel("t::f") and not hasattr(ops.t, "f")
    assert _C._dispatch_has_kernel_for_dispatch_key("t::f", "CPU")
    assert [dump.splitlines()[:2] for dump in _C._dispatch_find_dangling_impls()] == [["name: t::f", "schema: (none)"]]
    with pytest.raises(RuntimeError, match=r"for t::f\. but we found an implementation; did you forget to def"):
        _C._dispatch_find_schema_or_throw("t::f", "")
    for _ in range(2):
        lib = library("f(Tensor x) -> int")
        assert ops.t.f(Fake()) == 1
        lib._destroy()
    early._destroy()
    lib = library("f(Tensor x) -> int")
    assert lib and ops.t.f.default.registrations == {} and _C._dispatch_find_dangling_impls() == []


def test_a_kernel_that_says_its_schema_is_held_to_it():
    module = _C._dispatch_library("FRAGMENT", "t", "")
    module.impl_t_t("f")
    for schema, reason in [
        ("f(Tensor x, Tensor y) -> Tensor", "The number of arguments is different. 2 vs 1."),
        ("f(Tensor x) -> ()", "The number of returns is different. 0 vs 1."),
        ("f(int x) -> Tensor", "Type mismatch in argument 1: int vs Tensor."),
    ]:
        with pytest.raises(
            RuntimeError, match=f"(?s)Inferred operator schema .*impl_t_t\n  reason: {re.escape(reason)}"
        ):
            module.def_(schema)
        assert "t::f" not in OPERATORS
    module.def_name_t_t("g")
    assert ops.t.g(rd.ones(1)).tolist() == [1] and "alias analysis kind: CONSERVATIVE" in _C._dispatch_dump("t::g")


def test_the_module_of_a_library_refuses_in_pytorchs_words():
    with pytest.raises(RuntimeError, match="could not parse NOPE"):
        _C._dispatch_library("NOPE", "t", "")
    with pytest.raises(RuntimeError, match=r"inside of a TORCH_LIBRARY_FRAGMENT block.  Did.* block at here:3\)"):
        _C._dispatch_library("FRAGMENT", "t", "", "here", 3).fallback_fallthrough("XLA")
    with pytest.raises(RuntimeError, match=r"\(you specified t\).*\n\n    TORCH_LIBRARY_IMPL\(_, XLA, m\)"):
        _C._dispatch_library("IMPL", "t", "XLA").fallback_fallthrough()
    everywhere = _C._dispatch_library("IMPL", "_", "XLA")
    everywhere.fallback_fallthrough()
    with pytest.raises(RuntimeError, match="for the same dispatch key XLA; previous registration registered at /dev/n"):
        everywhere.fallback_fallthrough()
    everywhere.reset()
    assert not _C._dispatch_has_backend_fallback(DispatchKey.XLA)


def test_pytorchs_python_dispatcher_shows_tables():
    from redispatch._python_dispatcher import PythonDispatcher

    dispatcher = PythonDispatcher()
    dispatcher.register(["CPU", "FPGA", "CompositeImplicitAutograd"])
    assert dispatcher.dispatchTable().splitlines()[4:9] == [
        "CPU             fn_CPU [kernel]",
        "XLA             fn_CompositeImplicitAutograd [math kernel]",
        "Lazy            fn_CompositeImplicitAutograd [math kernel]",
        "FPGA            fn_FPGA [kernel]",
        "AutogradOther   ambiguous_autogradother [ambiguous autogradother]",
    ]
    assert "CompositeImplicitAutograd[alias] fn_CompositeImplicitAutograd" in dispatcher.registrations()
    with pytest.raises(RuntimeError, match="Overridden is not allowed"):
        dispatcher.register(["Lazy", "Lazy"])
    with pytest.raises(RuntimeError, match="Meta is not supported, please select"):
        dispatcher.register(["Meta"])


@pytest.mark.parametrize("kind", ["DEF", "FRAGMENT"])
def test_a_library_that_nobody_holds_is_destroyed(kind):
    gc.disable()  # no cycle may keep it
    try:
        lib = Library("t", kind)
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x, "CPU")
        op = ops.t.f.default
        del lib
        assert "t::f" not in OPERATORS and "t" not in _DEFINING
        assert op.registrations == {}
    finally:
        gc.enable()


def test_a_scope_or_a_with_block_destroys_its_library_also_after_an_exception():
    with _scoped_library("t", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        assert hasattr(ops.t, "f")
    assert not hasattr(ops.t, "f")
    with pytest.raises(KeyboardInterrupt), Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        raise KeyboardInterrupt
    assert not hasattr(ops.t, "f")
    lib._destroy()  # once is enough; twice does no harm


# Behind these instructions the interpreter looks for signals. Elsewhere nobody is interrupted: between the end of a
# `with` and its `__exit__`, say, where a lock would stay locked.
INTERRUPTIBLE = {"RESUME", "CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD"}


def interrupted(action, behind):
    """Whether `action` ended before so many places; else a KeyboardInterrupt was raised at the one of that number."""
    left, last = [behind], {}

    def trace(frame, event, argument):
        frame.f_trace_opcodes = True
        if event == "opcode":
            left[0] -= last.get(frame) in INTERRUPTIBLE
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if left[0] == 0:
                left[0] = -1
                raise KeyboardInterrupt
        return trace

    gc.disable()  # whoever listens to the collector would be interrupted, too, where nobody catches it
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
        gc.enable()
    return left[0] <= 0


def is_free(lock):
    """Whether another thread can take a lock."""
    found = []
    thread = threading.Thread(target=lambda: found.append(lock.acquire(timeout=5) and (lock.release() or True)))
    thread.start()
    thread.join()
    return found == [True]


CPU = DispatchKey.CPU
REGISTRATIONS = {
    "define": lambda lib: lib.define("g(Tensor x) -> Tensor"),
    "impl": lambda lib: lib.impl("f", lambda x: x, "CPU"),
    "override": lambda lib: lib.impl("f", lambda x: x, "CPU"),
    "fake": lambda lib: register_fake("t::f", lambda x: x, lib=lib),
    "destroy": lambda lib: lib._destroy(),
}


@pytest.mark.parametrize("name", REGISTRATIONS)
def test_an_interrupt_anywhere_leaves_nothing_that_its_library_does_not_remove(name):
    kept = library(namespace="kept")
    kept.impl("f", lambda x: x + 1, "CPU")
    op = operator_named("kept::f")
    kernel = op.entry_at(CPU).kernel

    def fresh():
        return Library("kept", "IMPL") if name == "override" else library()

    with fresh() as first:  # what is imported or made at first may not be interrupted
        REGISTRATIONS[name](first)
    before, behind, more = set(OPERATORS), 1, True
    while more:
        lib = fresh()
        more = interrupted(lambda lib=lib: REGISTRATIONS[name](lib), behind)
        lib._destroy()
        assert set(OPERATORS) == before and "g" not in OVERLOADS.get("t::g", {}), behind
        assert op.registrations == {CPU: [kernel]} and op.entry_at(CPU).kernel is kernel, behind
        behind += 1
    assert behind > 20 and is_free(registry.LOCK)


def test_an_interrupt_anywhere_in_fallback_leaves_nothing_either(monkeypatch):
    define_key("Rare", above="AutogradFunctionality")
    rare = DispatchKey.Rare
    monkeypatch.setattr(registry, "OPERATORS", {})  # each of which has to forget what it remembers: that takes long
    behind, more = 1, True
    while more:
        lib = Library("_", "IMPL")
        more = interrupted(lambda lib=lib: lib.fallback(lambda op, *args: None, "Rare"), behind)
        lib._destroy()
        assert rare not in FALLBACKS, behind
        behind += 1
    assert behind > 20 and is_free(registry.LOCK)


def test_a_late_undo_takes_nothing_from_a_new_owner():
    first = Library("t", "DEF")
    first.define("f(Tensor x) -> Tensor")
    undo = list(first._undo)
    first._destroy()
    second = Library("t", "DEF")
    second.define("f(Tensor x) -> Tensor")
    for step in undo:
        step()
    assert "t::f" in OPERATORS and "t" in _DEFINING


def test_listeners_hear_of_operators_that_come_and_go():
    heard = []
    LISTENERS.append(lambda event, op: heard.append((event, op.name())))
    library()._destroy()
    assert heard == [("defined", "t::f"), ("removed", "t::f")]


# Kernels' conventions and fallbacks ----------------------------------------------------------------------------------


def test_a_kernel_may_ask_for_its_keyset_and_redispatch():
    lib = library("f(Tensor x, int n=1) -> str")
    op = ops.t.f.default

    def record(keys, x, n=1):
        assert isinstance(keys, DispatchKeySet)
        return f"autograd, then {op.redispatch(keys & keyset('CPU'), x, n)}"

    lib.impl("f", record, "Autograd", with_keyset=True)
    lib.impl("f", lambda x, n=1: f"cpu {n}", "CPU")
    assert op(Fake(), 3) == "autograd, then cpu 3"


def test_a_library_has_a_key_for_kernels_that_name_none():
    defining = library("f(Tensor x) -> Tensor")
    defining.define("g(Tensor x) -> Tensor")
    lib = Library("t", "IMPL", "CPU")
    lib.impl("f", len)
    lib.impl(ops.t.g.default, len, DispatchKey.CPU)
    with pytest.raises(RuntimeError, match="CUDA.* is inconsistent with the dispatch key of the enclosing"):
        lib.impl("g", len, "CUDA")
    assert list(ops.t.f.default.registrations) == list(ops.t.g.default.registrations) == [DispatchKey.CPU]
    bare = library("h(Tensor x) -> Tensor")
    bare.impl("h", len)
    assert list(ops.t.h.default.registrations) == [DispatchKey.CompositeImplicitAutograd]


def test_decompose_runs_the_composite_kernel_and_nothing_else():
    lib = library("f(Tensor x) -> str")
    assert ops.t.f.default.decompose(Fake()) is NotImplemented
    lib.impl("f", lambda x: "composite", "CompositeImplicitAutograd")
    lib.impl("f", lambda x: "cpu", "CPU")
    assert ops.t.f.default.decompose(Fake()) == "composite"


def test_a_fallback_answers_for_all_operators_and_is_undone():
    taint = define_key("Taint", above="Autograd")
    seen = []

    def watch(keys, op, *args, **kwargs):
        seen.append((op.name(), args[1:], kwargs))
        return op.redispatch(keys - taint.bits, *args, **kwargs)

    lib = library("f(Tensor x, int n=1, *, bool b=False) -> str")
    lib.impl("f", lambda x, n=1, *, b=False: "cpu", "CPU")
    everywhere = Library("_", "IMPL")
    everywhere.fallback(watch, "Taint", with_keyset=True)
    assert ops.t.f(Fake(CPU_KEYS | taint.bits), 2, b=True) == "cpu"
    assert ops.t.f(Fake(CPU_KEYS | taint.bits)) == "cpu"
    assert seen == [("t::f", (2,), {"b": True}), ("t::f", (), {})]
    with pytest.raises(
        RegistrationError, match=f"multiple backend fallbacks .* Taint; previous registration registered at {HERE}, new"
    ):
        Library("_", "IMPL").fallback(watch, "Taint")
    everywhere._destroy()
    with pytest.raises(NotImplementedError, match="Could not run 't::f' with arguments from the 'Taint' backend"):
        ops.t.f(Fake(CPU_KEYS | taint.bits))
    other = Library("_", "IMPL", "Taint")
    other.fallback(fallthrough_kernel)
    assert ops.t.f(Fake(CPU_KEYS | taint.bits)) == "cpu"
    other._destroy()
    other = Library("_", "IMPL", "Taint")
    other.fallback(lambda op, *args, **kwargs: f"fallback of {op}")
    assert ops.t.f(Fake(CPU_KEYS | taint.bits)) == "fallback of t.f.default"
    other._destroy()
    assert taint not in FALLBACKS


def test_the_fallthrough_kernel_is_never_called():
    lib = library("f(Tensor x) -> str")
    lib.impl("f", fallthrough_kernel, "AutogradCPU")
    lib.impl("f", lambda x: "cpu", "CPU")
    assert ops.t.f(Fake()) == "cpu"
    with pytest.raises(NotImplementedError, match="should never be called"):
        fallthrough_kernel()


# Rules and slots ----------------------------------------------------------------------------------------------------


def test_a_rule_table_refuses_a_second_rule_and_takes_one_back():
    table = RuleTable("derivative")
    undo = table.add("op", "rule", "here")
    assert (table.get("op"), table.place("op"), "op" in table, len(table)) == ("rule", "here", True, 1)
    with pytest.raises(RegistrationError, match="op has a derivative already: here; the second one is at there"):
        table.add("op", "another", "there")
    undo()
    assert (table.get("op"), table.place("op"), "op" in table, len(table)) == (None, None, False, 0)
    table.add("op", "another", "there")
    undo()  # takes its own rule only
    assert table.get("op") == "another"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_rules_that_override_each_other_are_taken_back_in_any_order(order):
    table = RuleTable("derivative")
    table.add("op", "own", "here")
    undo = [table.override("op", "first", "there"), table.override("op", "second", "elsewhere")]
    seen = [(table.get("op"), table.place("op"))]
    for index in order:
        undo[index]()
        seen.append(table.get("op"))
    assert seen == [("second", "elsewhere"), "second" if order[0] == 0 else "first", "own"]
    undo[0]()  # a second time, which takes nothing
    assert table.get("op") == "own"


def test_an_empty_slot_says_what_is_missing():
    slot = Slot("how a tensor becomes a view of another")
    with pytest.raises(RuntimeError, match="nothing has been provided for: how a tensor becomes a view"):
        slot()
    assert slot.fill(len) is len is slot()


def test_an_operator_says_whether_it_is_a_view():
    assert rd.ops.aten.view.default.is_view and not rd.ops.aten.add_.Tensor.is_view


def test_a_kernel_that_meets_its_operator_twice_is_registered_once():
    with rd.library._scoped_library("meeting", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        op = rd.ops.meeting.f.default
        lib.impl("f", lambda x: x, "CPU")
        _meet("defined", op)  # as of a thread that defines it while another registers the kernel
        assert len(op.registrations[rd.DispatchKey.CPU]) == 1
    assert not op.registrations


# Random programs ----------------------------------------------------------------------------------------------------


def test_random_programs_of_six_libraries_end_as_pytorchs_do():
    recorded = RECORDED.read_text().split()
    assert len(recorded) >= 1000
    for seed in draw(range(len(recorded)), "registrations", count=60):
        found = outcome(rd, seed)
        assert recorded[seed] in ("-", digest(found)), f"{seed}: see tests/parity/registrations.py for how it differs"
        assert not [name for name in NAMES if found["end"][name]["holds"] or found["after"][name]["is known"]], seed


# Loaded anew --------------------------------------------------------------------------------------------------------

BODY = """
import redispatch as rd
from redispatch import library
from redispatch.dispatch import STATE, below, define_key, keyset, run, within
from redispatch.dispatch.layers.layer import layer
from redispatch.kernels.declare.operator import unary

owner = library.Library("anew", "DEF")
owner.define("f(Tensor x) -> Tensor")
owner.impl("f", lambda x: x + TIME, "CPU")
library.define("anew::kept", "(Tensor x) -> Tensor")
library.impl("anew::kept", "cpu", lambda x: x * TIME)
library.register_autograd("anew::kept", lambda ctx, grad: grad * TIME)
library.Library("aten", "IMPL").impl("trunc", lambda x: x, "CPU")  # nobody keeps it
overrides = [library.Library("aten", "IMPL")]
overrides[0].impl("floor", lambda x: x * 0 + TIME, "CPU")

@library.custom_op(f"anew::custom{TIME}", mutates_args=())
def custom(x: rd.Tensor) -> rd.Tensor:
    return x + TIME

@library.elementwise("anew::each(Tensor x) -> Tensor")
def each(x):
    return x * x

@unary("declared", "float", namespace="anew")
def declared(self):
    return self + 1.0

define_key("Anew", above="AutogradFunctionality")
seen = []

@layer("Anew")
def noted(op, keys, stack):
    seen.append(str(op))
    with within(STATE.get().excluding(keyset("Anew"))):
        return run(op, keys & below("Anew"), stack)
"""


def test_a_module_that_is_loaded_anew_leaves_no_ghosts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    path, before, floor = tmp_path / "loaded_anew.py", set(OPERATORS), operator_named("aten::floor").registrations
    there = len(floor[CPU])
    for time in (1, 2, 3):
        path.write_text(f"TIME = {time}\n" + "\n" * time + BODY)
        importlib.invalidate_caches()
        module = importlib.import_module("loaded_anew") if time == 1 else importlib.reload(sys.modules["loaded_anew"])
        x = rd.ones(1, requires_grad=True)
        ops.anew.kept(x).backward()
        assert (ops.anew.f(rd.ones(1)).item(), module.custom(rd.ones(1)).item(), x.grad.item()) == (time + 1,) * 2 + (
            time,
        )
        assert rd.floor(rd.ones(1)).item() == time and len(floor[CPU]) == there + 1
        with include(keyset("Anew")):
            module.each(rd.ones(1)), module.declared(rd.ones(1))
        assert module.seen == ["aten.ones.default", "anew.each.default", "aten.ones.default", "anew.declared.default"]
        assert [name for name in dir(ops.anew) if "custom" in name] == [f"custom{time}"]
        names = {name for name in OPERATORS if name not in before}
        assert re.fullmatch(rf"{re.escape(str(path))}:\d+", operator_named("anew::kept").place)
    monkeypatch.delitem(sys.modules, "loaded_anew")
    path.write_text("from redispatch.library import Library\nLibrary('anew', 'FRAGMENT')")
    importlib.invalidate_caches()
    importlib.import_module("loaded_anew")  # a new module of the same file takes the place of the former one, too
    assert names and not dir(ops.anew) and rd.floor(rd.ones(1)).item() == 1 and len(floor[CPU]) == there


# Listings -----------------------------------------------------------------------------------------------------------


LOOKS = {
    "all names": lambda name: _C._dispatch_get_all_op_names(),
    "all schemas": lambda name: [f"{one.name}.{one.overload_name}" for one in _C._jit_get_all_schemas()],
    "at a key": lambda name: _C._dispatch_get_registrations_for_dispatch_key("CPU"),
    "operators": lambda name: [op.name() for op in operators()],
    "dir": lambda name: [f"{name.split('::')[0]}::{one}.late" for one in dir(getattr(ops, name.split("::")[0]))],
    "has": lambda name: _C._dispatch_has_kernel(name) and [name],
    "has at a key": lambda name: _C._dispatch_has_kernel_for_dispatch_key(name, "CPU") and [name],
    "dump": lambda name: name in _C._dispatch_dump(name) and [name],
    "table": lambda name: "CPU: registered at" in _C._dispatch_dump_table(name) and [name],
    "schemas": lambda name: _C._jit_get_schemas_for_operator(name.split(".")[0]) and [name],
    "schema": lambda name: _C._get_schema(*name.split(".")) and [name],
    "handle": lambda name: [_C._dispatch_find_schema_or_throw(*name.split(".")).name()],
    "impl": lambda name: Library(name.split("::")[0], "IMPL").impl(name, lambda x: x, "Meta") or [name],
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_listing_counts_the_operators_that_nobody_has_looked_for(look, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = "late_" + look.replace(" ", "_")
    (tmp_path / f"{module}.py").write_text(
        "from redispatch.library import Library\n"
        f"lib = Library('{module}', 'FRAGMENT')\nlib.define('f.late(Tensor x) -> Tensor')\n"
        "lib.impl('f.late', lambda x: x, 'CPU')\n"
    )
    monkeypatch.setitem(LATE, f"{module}::", module)
    assert f"{module}::f.late" not in OPERATORS
    assert f"{module}::f.late" in LOOKS[look](f"{module}::f.late")
    monkeypatch.delitem(sys.modules, module)


def test_a_librarys_kernels_are_among_those_of_all_libraries_while_it_lives():
    lib = rd.library.Library("t", "FRAGMENT")
    lib.define("listed(Tensor x) -> Tensor")
    lib.impl("listed", lambda x: x.clone(), "CPU")
    assert lib._op_impls == {"t/listed/CPU"} <= rd.library._impls
    assert rd.ops.t.listed.default._overloadpacket is rd.ops.t.listed
    lib._destroy()
    assert "t/listed/CPU" not in rd.library._impls
