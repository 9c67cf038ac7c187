"""The forms of an operator agree: functional, in-place, out=, and the meta device, which computes metadata alone."""

import redispatch as rd
from redispatch.dispatch import bind, call
from redispatch.dispatch.layers.ad_inplace_or_view import returned_arguments
from redispatch.dispatch.layers.functionalize import functional_form, written_positions
from redispatch.dispatch.symbolic import ShapeEnv, Symbolic, evaluate
from redispatch.dispatch.tensor import Tensor
from redispatch.modes.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    extract_tensor_metadata,
)

from ..driver import as_list, can_be_written, close, is_implicit, metadata, on_meta, run
from .table import holds


@holds("meta", unless=["meta"])
def the_meta_device_gives_the_same_shape_strides_and_dtype(info, sample):
    found, wanted = run(info, on_meta(info, sample)), run(info, sample.copy())
    assert metadata(found) == metadata(wanted)
    assert all(x.device.type == "meta" for x in as_list(found) if isinstance(x, Tensor))


@holds("symbolic", unless=["meta"], one_in=4)
def a_fake_with_symbols_for_sizes_looks_as_one_with_numbers(info, sample):
    """Checks shapes where the hints stand for the symbols; each guard that is left holds for them."""
    numbers, shapes = FakeTensorMode(), ShapeEnv()
    symbols = FakeTensorMode(shape_env=shapes)
    try:
        with numbers:
            wanted = run(info, sample.map(numbers.from_tensor))
    except (DynamicOutputShapeException, DataDependentOutputException, RuntimeError, TypeError):
        return False  # what it gives depends on elements, or it has no fake
    with symbols:
        found = run(info, sample.map(symbols.from_tensor))
    assert list(map(looks, as_list(found))) == list(map(looks, as_list(wanted)))
    assert all(evaluate(guard.expr, shapes.var_to_val) for guard in shapes.guards)
    return True


@holds("cached fakes", unless=["meta"], one_in=4)
def a_fake_from_the_cache_is_as_one_that_the_operator_gives(info, sample):
    """Compares metadata, and which memory each result shares, without a cache, at the first call and the second."""
    FakeTensorMode.cache_clear()
    found = []
    for cached in (False, True, True):
        mode = FakeTensorMode()
        mode.cache_enabled = cached
        given = sample.map(mode.from_tensor)
        try:
            with mode:
                results = [*as_list(run(info, given)), *as_list(given.input)]
        except Exception as problem:
            results = [type(problem).__name__]
        fakes = [one for one in results if isinstance(one, FakeTensor)]
        stores = [one._storage for one in fakes]
        found.append([(extract_tensor_metadata(one), stores.index(one._storage)) for one in fakes] or str(results))
    assert found == found[:1] * 3
    return FakeTensorMode.cache_info().hits > 0


def looks(value):
    """Returns the metadata of a fake, each size by its value now."""
    if not isinstance(value, Tensor):
        return value.node.hint if isinstance(value, Symbolic) else value
    numbers = [one.node.hint if isinstance(one, Symbolic) else one for one in (*value.shape, *value.stride())]
    return numbers if 0 not in numbers else numbers[: value.dim()], value.dtype


@holds("inplace", of=lambda info: info.inplace, unless=["inplace"], always=True)
def the_in_place_form_writes_what_the_functional_one_gives(info, sample):
    """It gives the very tensor back, if the result can be stored in it; its version has moved on, but for detach_."""
    wanted, target = run(info, sample.copy()), sample.copy()
    target = target.map(Tensor.detach)
    if "inplace_view" not in info.inplace.tags and not can_be_written(wanted, target.input):
        return False
    written = as_list(target.input)
    versions = [x._version for x in written]
    assert run(info, target, info.inplace) is (target.input if info.inplace.schema.returns else None)
    close(written, [x.to(y.dtype) for x, y in zip(as_list(wanted), written, strict=True)], sample)
    if not is_implicit(info.inplace):  # such a one counts what it calls, which may be nothing
        moved = info.inplace is not rd.ops.aten.detach_.default
        assert [x._version for x in written] == [version + moved for version in versions]
    return True


@holds("out", of=lambda info: info.out, unless=["out"])
def the_out_form_writes_what_the_functional_one_gives(info, sample):
    """Into a tensor of the right shape, which it gives back; and an empty one is given the shape."""
    wanted = as_list(run(info, sample.copy()))
    if any(x is None for x in wanted):
        return False  # what was not asked for has no memory to be written to
    sample = sample.map(Tensor.detach)
    right = [rd.full_like(x.detach(), 1) for x in wanted]
    empty = [rd.empty(0, dtype=x.dtype) for x in wanted]
    for targets in (right, empty):
        versions = [x._version for x in targets]
        found = run(info, info.writing_to(targets, sample), info.out)
        found = as_list(found) if info.out.schema.returns else targets  # a list that is written is not given back
        assert all(x is target for x, target in zip(found, targets, strict=True))
        close(targets, [x.detach() for x in wanted], sample)
        assert all(x._version > version for x, version in zip(targets, versions, strict=True))
        assert [tuple(x.shape) for x in targets] == [tuple(x.shape) for x in wanted]
    return True


@holds("made_functional", of=lambda info: info.made_functional)
def a_functional_form_gives_what_is_written_and_writes_nothing(info, sample):
    schema, form = info.op.schema, functional_form(info.op)
    assert form.op is info.made_functional
    behind = [position for position in written_positions(schema) if position not in returned_arguments(schema)]
    given, other = (sample.copy().map(Tensor.detach) for _ in range(2))
    stack = bind(schema, given.arguments, given.kwargs)
    rd.manual_seed(0)
    returned = call(info.op, stack)
    wanted = [*(as_list(returned) if schema.returns else []), *(stack[position] for position in behind)]
    versions = [x._version for x in other.tensors()]
    rd.manual_seed(0)
    found = form.run(bind(schema, other.arguments, other.kwargs))
    assert [x._version for x in other.tensors()] == versions
    for one, right in zip(found, wanted, strict=True):
        if schema.base_name == "resize_":  # new memory is as it is found
            assert metadata(one) == metadata(right)
        else:
            close(one, right, sample)


MAY_COPY = ("contiguous", "to")  # beside reshape and its like, of whose samples the strides allow a view


@holds("view", of=lambda info: info.op.schema.is_view)
def a_view_shares_memory_and_versions_with_its_base(info, sample):
    base = sample.input
    for view in as_list(run(info, sample)):
        if view is base:
            continue
        if view.untyped_storage() is not base.untyped_storage():
            assert info.op.schema.base_name in MAY_COPY
            continue
        version = base._version
        view.detach().zero_()
        assert base._version == version + 1


@holds("schemas")
def the_forms_have_the_schemas_that_follow_from_the_functional_one(info):
    returns = [str(argument.type) for argument in info.op.schema.returns]
    for form in info.covers:
        if form is info.made_functional:  # which returns what is written, too
            continue
        if form is not info.op and not form.schema.returns:  # the results are a list, which is written
            assert returns == ["List[Tensor]"]
            continue
        assert [str(argument.type) for argument in form.schema.returns] == returns
