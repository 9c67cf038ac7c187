"""Whatever a test registers is gone in the next one, though it undoes nothing itself (tests/conftest.py)."""

import pytest

import redispatch as rd
from redispatch.dispatch import (
    FALLBACKS,
    LISTENERS,
    NUMBER_FOR_TENSOR,
    OPERATORS,
    DispatchKey,
    Library,
    RuleTable,
    below,
    define_backend,
    define_key,
    impl,
    include,
    key_named,
    keyset,
    ops,
    own_namespace,
)
from redispatch.dispatch.config import config
from redispatch.dispatch.core.registry import add_fallback
from redispatch.dispatch.core.table import Kernel
from redispatch.dispatch.layers.autograd import DERIVATIVES

from ..registries import Snapshot
from .fakes import operator

OURS = operator("given_back::ours(Tensor x) -> Tensor", CPU=len)  # a module's own operator stays as it is
TABLE: RuleTable = RuleTable("rule")


@pytest.mark.parametrize("time", [1, 2])
def test_all_registries_are_given_back(time):
    assert list(OURS.registrations) == [DispatchKey.CPU] and len(OURS.registrations[DispatchKey.CPU]) == 1
    assert OURS.entry(key_named("CPU").bits).kernel.function is len
    assert not hasattr(ops.given_back, "f") and "given_back::f" not in OPERATORS
    assert "t" not in NUMBER_FOR_TENSOR and print not in LISTENERS and "op" not in DERIVATIVES and "op" not in TABLE
    assert DispatchKey.CUDA not in FALLBACKS

    operator("given_back::f(Tensor x) -> Tensor")
    impl(OURS, "CPU", print, convention="python", place="test")
    impl(OURS, "CUDA", print, convention="python", place="test")
    Library("given_back", "DEF")
    own_namespace("given_back_too")
    NUMBER_FOR_TENSOR.add("t")
    LISTENERS.append(print)
    DERIVATIVES.add("op", "rule", "here")
    TABLE.add("op", "rule", "here")
    add_fallback(DispatchKey.CUDA, Kernel(print, print, "boxed", "test"))
    define_key("Taint", above="Python")
    define_backend("NPU")


@pytest.mark.parametrize("time", [1, 2])
def test_a_replaced_kernel_is_noticed_though_the_numbers_are_the_same(time):
    assert OURS.registrations[DispatchKey.CPU][0].function is len
    kernel = OURS.registrations[DispatchKey.CPU][0]
    OURS.register("CPU", Kernel(print, print, "boxed", "test"))
    OURS.registrations[DispatchKey.CPU] = [k for k in OURS.registrations[DispatchKey.CPU] if k is not kernel]
    OURS.forget_entries()


# Code that was made ---------------------------------------------------------------------------------------------------


def replaced_kernel():
    impl(rd.ops.aten.relu.default, "CPU", lambda x: x.clone() + 7, convention="python", place="test")
    return 0


def kernel_of_a_key():
    key = define_key("Seven", above="Python")
    impl(rd.ops.aten.relu.default, "Seven", lambda x: x, convention="python", place="test")
    return key.bits


def fallback_of_a_key():
    """Its key gets the bit of the other test's key, whose code must not be met again."""
    key = define_key("Eight", above="Python")
    add_fallback(key, Kernel(first_of_stack, first_of_stack, "boxed", "test"))
    return key.bits


def first_of_stack(op, keyset, stack):
    return stack[0]


def rule_of_a_layer():
    DERIVATIVES.override(rd.ops.aten.relu.default, DERIVATIVES.get(rd.ops.aten.neg.default), "test")
    return 0


CHANGES = [replaced_kernel, kernel_of_a_key, fallback_of_a_key, rule_of_a_layer]


def outcome(keys=0):
    """relu's result, with these keys included, and its gradient."""
    x = rd.tensor([-1.0, 2.0], requires_grad=True)
    with include(keys):
        y = rd.relu(x)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


USUAL = ([0.0, 2.0], [0.0, 1.0])


@pytest.fixture
def strictly_specialised():
    """Set once and left so: to set it drops all code, and it is what is left of code that is looked at here."""
    if config.specialize != "strict":
        config.specialize = "strict"
    yield


@pytest.fixture(scope="module", autouse=True)
def specialised_as_before():
    former = config.specialize
    yield
    if config.specialize != former:
        config.specialize = former


@pytest.mark.parametrize("time", [1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_code_that_was_made_after_something_registered_is_gone(change, time, strictly_specialised):
    op = rd.ops.aten.relu.default
    assert [outcome() for _ in range(3)] == [USUAL] * 3
    keys = change()
    assert USUAL not in [outcome(keys) for _ in range(3)], "a change that does not show need not be undone"
    assert any(code.source for table in op.tables.values() for code in table.values())


@pytest.mark.parametrize("time", [1, 2])
def test_an_answer_that_a_fallback_gave_is_gone(time):
    op = rd.ops.aten.neg.default
    assert op.entry(keyset("HPU")).rule == "missing"
    add_fallback(DispatchKey.HPU, Kernel(first_of_stack, first_of_stack, "boxed", "test"))
    assert op.entry(keyset("HPU")).rule == "backend fallback"


@pytest.mark.parametrize("time", [1, 2])
def test_a_key_has_no_code_of_another_key_that_had_its_bit(time, strictly_specialised):
    name = "Nine" if time == 1 else "Ten"
    key = define_key(name, above="Python")
    seen = []
    lower = below(name)

    def layer(op, keyset, stack):
        seen.append(name)
        return rd.dispatch.run(op, keyset & lower, stack)

    add_fallback(key, Kernel(layer, layer, "boxed", "test"))
    with include(key.bits):
        rd.relu(rd.ones(2))
    assert name in seen and set(seen) == {name}


def test_the_code_of_what_a_test_has_left_alone_is_kept():
    """Else each test that registers anything has all operators make their code again, a second for forty of them."""
    kept, dropped = rd.ops.aten.neg.default, rd.ops.aten.relu.default
    before, generations = Snapshot(), (kept.generation, dropped.generation)
    impl(dropped, "CPU", print, convention="python", place="test")
    assert not before.holds()
    before.restore()
    assert kept.generation == generations[0] and dropped.generation > generations[1]
    assert rd.relu(rd.tensor([-1.0])).tolist() == [0.0]
