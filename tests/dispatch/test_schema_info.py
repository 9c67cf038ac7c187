"""`_C._SchemaInfo`: what is written and what shares memory in a call of which some arguments are known."""

import pytest

import redispatch as rd
from redispatch import _C

INPUT, OUTPUT = _C._SchemaArgType.input, _C._SchemaArgType.output


def info(op, **values):
    made = _C._SchemaInfo(op._schema)
    for name, value in values.items():
        made.add_argument_value(name, value)
    return made


def at(index, kind=INPUT):
    return _C._SchemaArgument(kind, index)


def test_the_schema_says_what_is_written():
    add = info(rd.ops.aten.add_.Tensor)
    assert add.is_mutable() and add.is_mutable("self") and add.is_mutable(at(0)) and add.is_mutable(at(0, OUTPUT))
    assert not add.is_mutable("other") and not info(rd.ops.aten.add.Tensor).is_mutable()
    assert add.has_argument("alpha") and not add.has_argument("out")


def test_arguments_that_are_one_tensor_are_written_together():
    x = rd.ones(4)
    assert info(rd.ops.aten.add_.Tensor, self=x, other=x[1:]).is_mutable("other")
    assert not info(rd.ops.aten.add_.Tensor, self=x, other=x.clone()).is_mutable("other")
    added = info(rd.ops.aten.add_.Tensor)
    added.add_argument_values({"self": x, "other": x, "none": 1})
    assert added.may_alias(at(1), at(0, OUTPUT))


@pytest.mark.parametrize(("name", "flag"), [("batch_norm", "training"), ("instance_norm", "use_input_stats")])
def test_statistics_are_written_unless_the_call_does_not_train(name, flag):
    op = getattr(rd.ops.aten, name).default
    assert info(op).is_mutable("running_mean") and not info(op).is_mutable("input")
    assert not info(op, **{flag: False}).is_mutable()


def test_results_share_memory_by_letters_and_by_arguments_that_are_one():
    op, x = rd.ops.aten.aminmax.out, rd.ones(2)
    assert not info(op).may_alias(at(0, OUTPUT), at(1, OUTPUT))
    assert info(op, min=x, max=x).may_alias(at(0, OUTPUT), at(1, OUTPUT))
    assert info(rd.ops.aten.view.default).may_alias(at(0), at(0, OUTPUT))


def test_lists_hold_what_they_may_share():
    split, cat, meshgrid = rd.ops.aten.split.Tensor, rd.ops.aten.cat.default, rd.ops.aten.meshgrid.default
    assert not info(split).may_alias(at(0), at(0, OUTPUT)) and info(split).may_contain_alias(at(0), at(0, OUTPUT))
    assert not info(cat).may_contain_alias(at(0), at(0, OUTPUT))
    assert info(meshgrid).may_contain_alias(at(0), at(0, OUTPUT))
    by_indices, x = rd.ops.aten.tensor_split.tensor_indices_or_sections, rd.ones(2)
    assert info(by_indices, self=x, tensor_indices_or_sections=x).may_contain_alias(at(1), at(0, OUTPUT))


def test_places_that_a_schema_has_not_are_refused():
    for refused in (
        lambda: info(rd.ops.aten.neg.default, other=1),
        lambda: info(rd.ops.aten.neg.default).is_mutable("other"),
        lambda: info(rd.ops.aten.neg.default).is_mutable(at(3)),
        lambda: info(rd.ops.aten.neg.default).may_alias(at(0), at(1, OUTPUT)),
    ):
        with pytest.raises(RuntimeError, match="Schema has no argument named other|Invalid index for schema"):
            refused()
