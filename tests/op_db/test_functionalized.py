"""Functionalized, every operator gives what it gives, its forms write what they write, and nothing below writes."""

import zlib

import redispatch as rd
from redispatch.dispatch import OPERATORS, Tag
from redispatch.dispatch.layers.functionalize import FUNCTIONALIZATION, composite_kernel, functional_form, view_form
from redispatch.dispatch.tensor import Tensor
from redispatch.func import functionalize
from redispatch.testing import SampleInput
from redispatch.testing.op_db import op_db
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode

from .driver import as_list, close, each, looks, run, skip_where_it_does_not_hold, without_factory_options


class NobodyWrites(TorchDispatchMode):
    """Refuses operators that write, while the function runs that is watched."""

    watching = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not (self.watching and func._schema.is_mutable), f"{func} writes"
        return func(*args, **(kwargs or {}))


def functionalized(info, sample, op):
    """The call of an operator on a sample, functionalized."""
    mode = NobodyWrites()

    def call(args, kwargs):
        mode.watching = True
        try:
            return op(*args, **kwargs)
        finally:
            mode.watching = False

    if info.random:
        rd.manual_seed(0)
    with mode:
        return functionalize(call)(sample.arguments, dict(sample.kwargs))


def same(info, sample, op, strides=True):
    """Whether both runs of an operator give the same, and leave the same in their arguments.

    strides: whether they must agree, too; those of an `out=` that is resized are the operator's own affair.
    """
    eager, functional = sample.copy().map(Tensor.detach), sample.copy().map(Tensor.detach)
    wanted = run(info, eager, op)
    found = functionalized(info, functional, op)
    if strides:
        assert looks(found) == looks(wanted), sample
    close(found, wanted, sample)
    before, after = ([one for one in pytree.tree_leaves((s.arguments, dict(s.kwargs)))] for s in (eager, functional))
    close(after, before, sample)
    for x, y in zip(as_list(found), as_list(wanted), strict=True):
        if isinstance(x, Tensor):
            assert [x is one for one in after] == [y is one for one in before], sample


def all_but_some(info, dtype):
    """Which operators are left to the long run: what is tried here follows from the schema, and not from the family."""
    return zlib.crc32(str(info).encode()) % 40 != 0


@each(op_db, long=all_but_some)
def test_a_functionalized_operator_gives_the_same(info, dtype):
    skip_where_it_does_not_hold(info, "functionalized")
    for sample in info.sample_inputs(dtype):
        same(info, sample, info.op)


@each([info for info in op_db if info.inplace is not None], long=all_but_some)
def test_a_functionalized_in_place_form_writes_the_same(info, dtype):
    skip_where_it_does_not_hold(info, "inplace")
    for sample in info.sample_inputs(dtype):
        wanted = run(info, sample.copy())
        turns = Tag.inplace_view in info.inplace.tags
        if turns or wanted.shape == sample.input.shape and rd.can_cast(wanted.dtype, sample.input.dtype):
            same(info, sample, info.inplace)


@each([info for info in op_db if info.out is not None], long=all_but_some)
def test_a_functionalized_out_form_writes_the_same(info, dtype):
    skip_where_it_does_not_hold(info, "out")
    keywords = [info.out.schema.arguments[i].name for i in info.out.schema.out_positions]
    for sample in info.sample_inputs(dtype):
        wanted = as_list(run(info, sample.copy()))
        if any(x is None for x in wanted):
            continue  # what was not asked for has no memory to be written to
        sample = without_factory_options(info, sample)
        right = [rd.full_like(x.detach(), 1) for x in wanted]
        empty = [rd.empty(0, dtype=x.dtype) for x in wanted]
        for targets in (right, empty):
            out = dict(zip(keywords, targets, strict=True))
            call = SampleInput(sample.input, sample.args, {**sample.kwargs, **out})
            same(info, call, info.out, strides=targets is right)


def test_every_operator_that_writes_has_a_functional_form():
    for op in list(OPERATORS.values()):
        if op.namespace != "aten" or not op.schema.is_mutable or composite_kernel(op) or op in FUNCTIONALIZATION:
            continue
        assert view_form(op) if Tag.inplace_view in op.tags else functional_form(op), op.schema
