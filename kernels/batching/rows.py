"""The usual case of batching, for which code is made: each tensor of a call holds one example per row, all of as many
dimensions.

Then a pointwise operator is that operator on the whole, and a sum is one along all other dimensions: no dimension has
to be moved, none to be counted. The rules of this file say the same as those in the table, in fewer words; they are
worked out in the place of the call (vmap_level.py, `process`).

Read next: pointwise.py and reductions.py, for every other case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import OpOverload, Tag, call, ops
from redispatch.dispatch.autograd.forward import composite_kernel
from redispatch.dispatch.layers.transforms import BATCHING, ByUser, gives_one_new_tensor
from redispatch.dispatch.specialiser.annotations import inline, pure
from redispatch.dispatch.tensor import Tensor

from ...dispatch.transforms.batched import shifted
from .random import is_random

RowRule = Callable[[OpOverload, list[Any]], Any]


@inline
def whole_rule(op: OpOverload, values: list[Any]) -> Any:
    """Pointwise operators: the same for all elements, whosever they are."""
    return call(op, values)


def reduced_rule(op: OpOverload, values: list[Any]) -> Tensor:
    """Sums and means of everything: along all dimensions but that of the batch."""
    rows, dtype = values
    rows = rows if len(rows._shape) > 1 else rows.unsqueeze(1)
    return ALONG[op._opname](rows, list(range(1, len(rows._shape))), dtype=dtype)


ALONG = {"sum": ops.aten.sum.dim_IntList, "mean": ops.aten.mean.dim}


def viewed_rule(op: OpOverload, values: list[Any]) -> Any:
    """Each example in another shape."""
    rows, sizes = values
    return call(op, [rows, [rows._shape[0], *sizes]])


def unsqueezed_rule(op: OpOverload, values: list[Any]) -> Any:
    """One more dimension in each example."""
    rows, dim = values
    return call(op, [rows, shifted(dim, len(rows._shape))])


def expanded_rule(op: OpOverload, values: list[Any]) -> Any:
    """Each example repeated; new dimensions of it stand behind the batch's."""
    rows, sizes, *rest = values
    shape = rows._shape
    if len(sizes) >= len(shape):
        rows = rows.view(shape[0], *[1] * (len(sizes) - len(shape) + 1), *shape[1:])
    return call(op, [rows, [shape[0], *sizes], *rest])


VIEWS = {"view": viewed_rule, "unsqueeze": unsqueezed_rule, "expand": expanded_rule}


@pure
def row_rule(op: OpOverload) -> RowRule | None:
    """Returns the rule for an operator on rows; None for one that has none."""
    if not gives_one_new_tensor(op.schema) or op.schema.tensor_list_positions or isinstance(BATCHING.get(op), ByUser):
        return None
    if op.schema.is_view:
        return VIEWS.get(op._opname) if op.namespace == "aten" and op._overloadname == "default" else None
    if BATCHING.get(op) is not None or composite_kernel(op) is not None or is_random(op):
        return None
    if op.namespace == "aten" and op._opname in ALONG and op._overloadname == "default":
        return reduced_rule
    named = {argument.name for argument in op.schema.arguments}
    if Tag.pointwise in op.tags and "memory_format" not in named:
        return whole_rule
    return None
