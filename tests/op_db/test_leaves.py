"""Which kernels are leaves; and the watch under which the operators' leaves run (properties/leaves.py) sees a fault."""

import pytest

import redispatch as rd
from redispatch.dispatch import Setting

from .properties.leaves import LeafWatch


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
