"""Whatever a test registers is gone in the next one, though it undoes nothing itself (tests/conftest.py)."""

import pytest

from redispatch.dispatch import (
    FALLBACKS,
    LISTENERS,
    NUMBER_FOR_TENSOR,
    OPERATORS,
    DispatchKey,
    Library,
    RuleTable,
    define_backend,
    define_key,
    impl,
    key_named,
    ops,
    own_namespace,
)
from redispatch.dispatch.core.registry import add_fallback
from redispatch.dispatch.core.table import Kernel
from redispatch.dispatch.layers.autograd import DERIVATIVES

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
