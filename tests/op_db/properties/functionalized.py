"""Functionalized, every operator gives what it gives, its forms write what they write, and nothing below writes."""

import redispatch as rd
from redispatch.dispatch import Tag
from redispatch.dispatch.tensor import Tensor
from redispatch.func import functionalize
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode

from ..driver import as_list, can_be_written, close, metadata, run
from .table import holds

FEW = 20  # for one operator, so many are not drawn: what is tried here follows from the schema, and not from the family


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
        assert metadata(found) == metadata(wanted)
    close(found, wanted, sample)
    before, after = ([one for one in pytree.tree_leaves((s.arguments, dict(s.kwargs)))] for s in (eager, functional))
    close(after, before, sample)
    for x, y in zip(as_list(found), as_list(wanted), strict=True):
        if isinstance(x, Tensor):
            assert [x is one for one in after] == [y is one for one in before]


@holds("functionalized", unless=["functionalized"], one_in=FEW)
def a_functionalized_operator_gives_the_same(info, sample):
    same(info, sample, info.op)


@holds("functionalized_inplace", of=lambda info: info.inplace, unless=["inplace"], one_in=FEW)
def a_functionalized_in_place_form_writes_the_same(info, sample):
    wanted = run(info, sample.copy())
    turns = Tag.inplace_view in info.inplace.tags
    if turns or can_be_written(wanted, sample.input):
        same(info, sample, info.inplace)
        return True
    return False


@holds("functionalized_out", of=lambda info: info.out, unless=["out"], one_in=FEW)
def a_functionalized_out_form_writes_the_same(info, sample):
    wanted = as_list(run(info, sample.copy()))
    if any(x is None for x in wanted):
        return False  # what was not asked for has no memory to be written to
    right = [rd.full_like(x.detach(), 1) for x in wanted]
    empty = [rd.empty(0, dtype=x.dtype) for x in wanted]
    for targets in (right, empty):
        same(info, info.writing_to(targets, sample), info.out, strides=targets is right)
    return True
