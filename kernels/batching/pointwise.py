"""Pointwise operators on batches: shapes broadcast from the right, so examples need the same number of dimensions.

One thing changes with a batch: a tensor without dimensions, which has little say in the result's dtype, has one. So
dtypes are settled before, by what the examples are.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call
from redispatch.dispatch.tensor import channels_last, channels_last_3d, dtypes, memory_format, result_type

from ...dispatch.transforms.batched import each, front, is_tensor, padded, rank, ranks


def pointwise_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Each example's dimensions after the batch's, missing ones of size 1."""
    wanted = max(ranks(op.schema, values, dims))
    if any(value in (channels_last, channels_last_3d) for value in values if isinstance(value, memory_format)):
        return in_memory_format(op, values, dims, size)
    values = settled(op, values, dims, wanted)
    return call(op, each(op.schema, values, dims, lambda value, dim: padded(value, dim, wanted))), 0


def in_memory_format(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """A copy whose format is said for batches of images: the batch and that of the images as one."""
    first = front(values[0], dims[0])
    return call(op, [first.flatten(0, 1), *values[1:]]).unflatten(0, (size, -1)), 0


def settled(op: OpOverload, values: list[Any], dims: list[Any], wanted: int) -> list[Any]:
    """The arguments with examples that have no dimensions in the dtype that they are to be computed in."""
    given = [(p, values[p]) for p in op.schema.tensor_positions if is_tensor(values[p])]
    batched_scalars = [p for p, value in given if dims[p] is not None and rank(value, dims[p]) == 0]
    if not batched_scalars or len({value._dtype for _, value in given}) == 1:
        return values
    examples = [value.new_empty((1,) * bool(rank(value, dims[p])), device="meta") for p, value in given]
    common = result_type(*examples)
    settled = list(values)
    for (p, value), example in zip(given, examples, strict=True):
        if not example.dim() and value._dtype is not common and value._dtype is not dtypes.bool:
            settled[p] = value if p in op.schema.mutable_positions else value.to(common)
    return settled
