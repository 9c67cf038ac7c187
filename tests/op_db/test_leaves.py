"""Kernels that are marked as leaves call no operator, and ask the dispatch state nothing but whether it is inference.

The specialiser leaves out, around a leaf, what layers set in the state; so a leaf must not be able to tell. Here each
runs in a state that notes which of its fields are read: calling an operator reads several.
"""

import pytest

import redispatch as rd
from redispatch.dispatch import STATE, Setting, within
from redispatch.dispatch.core.state import State
from redispatch.dispatch.tensor import Tensor
from redispatch.testing import SampleInput
from redispatch.testing.op_db import op_db

from .driver import as_list, each, on_meta, run, without_factory_options, writing_into


class Watched(State):
    """A dispatch state that notes who reads what of it."""

    def __getattribute__(self, name):
        if name != "inference" and not name.startswith("__"):
            object.__getattribute__(self, "__dict__")["asked"].add(name)
        return object.__getattribute__(self, name)


class LeafWatch:
    """In the place of a tracer: runs every leaf in a watched state. `faults` is (operator, key) -> what was asked."""

    def __init__(self):
        self.faults = {}
        self.leaves = 0

    def hop(self, op, entry, keyset, stack):
        if not getattr(entry.kernel.function, "__leaf__", False):
            return entry.kernel.boxed(op, keyset, stack)
        asked = set()
        state = object.__new__(Watched)
        object.__getattribute__(state, "__dict__").update(vars(STATE.get()) | {"asked": asked})
        self.leaves += 1
        with within(state):
            result = entry.kernel.boxed(op, keyset, stack)
        if asked:
            self.faults.setdefault((str(op), entry.key.name), set()).update(asked)
        return result


def watched(info, sample, op=None):
    """What leaves asked while an operator ran on a sample."""
    watch = LeafWatch()
    with Setting(tracer=watch):
        run(info, sample, op)
    return watch.faults


@each(op_db)
def test_leaves_ask_for_inference_mode_alone(info, dtype):
    for sample in info.sample_inputs(dtype):
        assert watched(info, sample.copy()) == {}, sample


@each([info for info in op_db if "meta" not in info.skips])
def test_leaves_on_the_meta_device_ask_for_inference_mode_alone(info, dtype):
    for sample in info.sample_inputs(dtype):
        if "meta" not in sample.skips:
            assert watched(info, on_meta(info, sample)) == {}, sample


@each([info for info in op_db if info.inplace is not None])
def test_in_place_leaves_ask_for_inference_mode_alone(info, dtype):
    for sample in info.sample_inputs(dtype):
        wanted, target = run(info, sample.copy()), sample.copy().map(Tensor.detach)
        if "inplace_view" in info.inplace.tags or wanted.shape == target.input.shape:
            if rd.can_cast(wanted.dtype, target.input.dtype):
                assert watched(info, target, info.inplace) == {}, sample


@each([info for info in op_db if info.out is not None])
def test_out_leaves_ask_for_inference_mode_alone(info, dtype):
    for sample in info.sample_inputs(dtype):
        results = as_list(run(info, sample.copy()))
        if any(x is None for x in results):
            continue  # what was not asked for has no memory to be written to
        out = [rd.empty_like(x.detach()) for x in results]
        given = without_factory_options(info, sample.map(Tensor.detach))
        kwargs = {**given.kwargs, **writing_into(info, out)}
        assert watched(info, SampleInput(given.input, given.args, kwargs), info.out) == {}, sample


@pytest.mark.parametrize(
    "name", ["add.Tensor", "add_.Tensor", "add.out", "relu.default", "where.self", "empty.memory_format"]
)
def test_kernels_on_the_cpu_and_the_meta_device_are_leaves(name):
    op = rd.ops.aten
    for part in name.split("."):
        op = getattr(op, part)
    for key in ("CPU", "Meta"):
        (kernel,) = (kernels[-1] for found, kernels in op.registrations.items() if found.name == key)
        assert kernel.function.__leaf__


def test_a_kernel_that_calls_operators_is_none():
    op = rd.ops.aten.index_put_.default
    (kernel,) = (kernels[-1] for found, kernels in op.registrations.items() if found.name == "CPU")
    assert not hasattr(kernel.function, "__leaf__")


def test_the_watch_sees_an_operator_that_a_leaf_calls():
    x = rd.ones(2)

    def claims_to_be_a_leaf(op, keyset, stack):
        return x + x

    claims_to_be_a_leaf.__leaf__ = True
    op = rd.ops.aten.relu.default
    watch = LeafWatch()
    undo = rd.dispatch.impl(op, "CPU", claims_to_be_a_leaf, convention="boxed", place="here")
    try:
        with Setting(tracer=watch):
            op(x)
    finally:
        undo()
    assert "tracer" in watch.faults["aten.relu.default", "CPU"]
