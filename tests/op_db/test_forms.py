"""The forms of an operator agree: functional, in-place, out=, and the meta device, which computes looks alone."""

import pytest

import redispatch as rd
from redispatch.dispatch import bind, call
from redispatch.dispatch.layers.ad_inplace_or_view import returned_arguments
from redispatch.dispatch.layers.functionalize import functional_form, written_positions
from redispatch.dispatch.tensor import Tensor
from redispatch.testing import SampleInput
from redispatch.testing.op_db import op_db

from .driver import (
    as_list,
    close,
    each,
    is_implicit,
    looks,
    on_meta,
    run,
    skip_where_it_does_not_hold,
    without_factory_options,
    writing_into,
)


@each(op_db)
def test_the_meta_device_gives_the_same_shape_strides_and_dtype(info, dtype):
    skip_where_it_does_not_hold(info, "meta")
    for sample in info.sample_inputs(dtype):
        if "meta" in sample.skips:
            continue
        found, wanted = run(info, on_meta(info, sample)), run(info, sample.copy())
        assert looks(found) == looks(wanted), sample
        assert all(x.device.type == "meta" for x in as_list(found) if isinstance(x, Tensor)), sample


@each([info for info in op_db if info.inplace is not None])
def test_the_in_place_form_writes_what_the_functional_one_gives(info, dtype):
    """It gives the very tensor back, if the result can be stored in it; its version has moved on, but for detach_."""
    skip_where_it_does_not_hold(info, "inplace")
    fits = 0
    for sample in info.sample_inputs(dtype):
        wanted, target = run(info, sample.copy()), sample.copy()
        target = target.map(Tensor.detach)
        if "inplace_view" not in info.inplace.tags and (
            wanted.shape != target.input.shape or not rd.can_cast(wanted.dtype, target.input.dtype)
        ):
            continue
        version, fits = target.input._version, fits + 1
        assert run(info, target, info.inplace) is target.input, sample
        close(target.input, wanted.to(target.input.dtype), sample)
        if not is_implicit(info.inplace):  # such a one counts what it calls, which may be nothing
            assert target.input._version == version + (info.inplace is not rd.ops.aten.detach_.default), sample
    assert fits, f"{info}: no sample's result can be stored in its first argument"


@each([info for info in op_db if info.out is not None])
def test_the_out_form_writes_what_the_functional_one_gives(info, dtype):
    """Into a tensor of the right shape, which it gives back; and an empty one is given the shape."""
    skip_where_it_does_not_hold(info, "out")
    for sample in info.sample_inputs(dtype):
        wanted = as_list(run(info, sample.copy()))
        if any(x is None for x in wanted):
            continue  # what was not asked for has no memory to be written to
        sample = without_factory_options(info, sample.map(Tensor.detach))
        right = [rd.full_like(x.detach(), 1) for x in wanted]
        empty = [rd.empty(0, dtype=x.dtype) for x in wanted]
        for targets in (right, empty):
            versions = [x._version for x in targets]
            out = writing_into(info, targets)
            found = run(info, SampleInput(sample.input, sample.args, {**sample.kwargs, **out}), info.out)
            found = as_list(found) if info.out.schema.returns else targets  # a list that is written is not given back
            assert all(x is target for x, target in zip(found, targets, strict=True)), sample
            close(targets, [x.detach() for x in wanted], sample)
            assert all(x._version > version for x, version in zip(targets, versions, strict=True)), sample
            assert [tuple(x.shape) for x in targets] == [tuple(x.shape) for x in wanted], sample


@each([info for info in op_db if info.made_functional is not None])
def test_a_functional_form_gives_what_is_written_and_writes_nothing(info, dtype):
    schema, form = info.op.schema, functional_form(info.op)
    assert form.op is info.made_functional
    behind = [position for position in written_positions(schema) if position not in returned_arguments(schema)]
    for sample in info.sample_inputs(dtype):
        given, other = (sample.copy().map(Tensor.detach) for _ in range(2))
        stack = bind(schema, given.arguments, given.kwargs)
        rd.manual_seed(0)
        returned = call(info.op, stack)
        wanted = [*(as_list(returned) if schema.returns else []), *(stack[position] for position in behind)]
        versions = [x._version for x in other.tensors()]
        rd.manual_seed(0)
        found = form.run(bind(schema, other.arguments, other.kwargs))
        assert [x._version for x in other.tensors()] == versions, sample
        for one, right in zip(found, wanted, strict=True):
            if schema.base_name == "resize_":  # new memory is as it is found
                assert looks(one) == looks(right), sample
            else:
                close(one, right, sample)


@each([info for info in op_db if info.op.schema.is_view])
def test_a_view_shares_memory_and_versions_with_its_base(info, dtype):
    for sample in info.sample_inputs(dtype):
        base = sample.input
        for view in as_list(run(info, sample)):
            if view is base or view.untyped_storage() is not base.untyped_storage():
                continue  # what may be a view is a copy where the strides do not allow one
            version = base._version
            view.detach().zero_()
            assert base._version == version + 1, sample


@pytest.mark.parametrize("info", op_db, ids=str)
def test_the_forms_have_the_schemas_that_follow_from_the_functional_one(info):
    returns = [str(argument.type) for argument in info.op.schema.returns]
    for form in info.covers:
        if form is info.made_functional:  # which returns what is written, too
            continue
        if form is info.out and not form.schema.returns:  # the results are a list, which is written
            assert returns == ["List[Tensor]"]
            continue
        assert [str(argument.type) for argument in form.schema.returns] == returns
