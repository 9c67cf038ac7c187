"""The table is complete: whoever adds an operator adds what is true of it."""

from collections import Counter

from redispatch.dispatch import OPERATORS, Tag
from redispatch.dispatch.layers.functionalize import FUNCTIONALIZATION, composite_kernel, functional_form, view_form
from redispatch.testing.op_db import NOT_COVERED, op_db
from redispatch.testing.op_info import out_form

from .driver import close

AT_MOST_NOT_COVERED = 0  # lower it when an operator leaves the list; never raise it


# The table's properties are those of plain tensors: what makes quantised ones, and asks them, is tried by itself.
ELSEWHERE = {"kernels/ops/quantized.py": "tests/ops/test_quantized.py"}


def registered():
    """The library's own operators that have a kernel, and not only an out= form that would call it."""
    own = {name: op for name, op in OPERATORS.items() if op.schema.namespace == "aten"}
    own = {name: op for name, op in own.items() if not any(f"{file}:" in op.place for file in ELSEWHERE)}
    found = {name: op for name, op in own.items() if any("Autocast" not in key.name for key in op.registrations)}
    idle = {out_form(op) for name, op in own.items() if name not in found}
    return {name: op for name, op in found.items() if op not in idle}


def test_every_operator_is_in_the_table_or_on_the_list_with_a_reason():
    covered = {op.qualified_name for info in op_db for op in info.covers}
    missing = registered().keys() - covered - NOT_COVERED.keys()
    assert not missing, f"write an OpInfo in frontend/testing/op_db/ for: {', '.join(sorted(missing))}"
    assert not NOT_COVERED.keys() & covered, "covered now: take them off the list NOT_COVERED"
    assert len(NOT_COVERED) <= AT_MOST_NOT_COVERED and all(NOT_COVERED.values())


def test_no_operator_is_in_the_table_twice():
    counts = Counter(op.qualified_name for info in op_db for op in info.covers)
    assert [name for name, count in counts.items() if count > 1] == []


def test_pointwise_operators_are_tried_without_dimensions_and_without_elements():
    for info in op_db:
        if "pointwise" in info.op.tags:
            samples = [sample.tensors() for sample in info.sample_inputs(info.main_dtype)]
            assert any(all(x.dim() == 0 for x in tensors) for tensors in samples), f"{info}: none without dimensions"
            assert any(any(x.numel() == 0 for x in tensors) for tensors in samples), f"{info}: none without elements"


def test_samples_are_the_same_each_time():
    for info in op_db:
        for one, other in zip(info.sample_inputs(info.main_dtype), info.sample_inputs(info.main_dtype), strict=True):
            for x, y in zip(one.tensors(), other.tensors(), strict=True):
                close(x, y, one, rtol=0, atol=0)


def test_every_operator_that_writes_has_a_functional_form():
    for op in list(OPERATORS.values()):
        if op.namespace != "aten" or not op.schema.is_mutable or composite_kernel(op) or op in FUNCTIONALIZATION:
            continue
        assert view_form(op) if Tag.inplace_view in op.tags else functional_form(op), op.schema
