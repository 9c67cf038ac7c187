"""Pointwise operators on batches: shapes broadcast from the right, so examples need the same number of dimensions.

One thing changes with a batch: a tensor without dimensions, which has little say in the result's dtype, has one. So
dtypes are settled before, by what the examples are.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, Tag, call, ops
from redispatch.dispatch.tensor import channels_last, channels_last_3d, dtypes, memory_format, result_type
from redispatch.kernels.ops.copying import copy_op, fill_inplace_tensor_op, fill_tensor_op
from redispatch.kernels.ops.masking import masked_fill_tensor_op

from ...dispatch.transforms.batched import each, front, is_tensor, padded, rank, ranks, whole
from .fallback import batches


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
    wanted = next(value for value in values if value in (channels_last, channels_last_3d))
    if first.dim() != (5 if wanted is channels_last else 6):
        raise RuntimeError(
            f"NYI: Tensor.{op._opname}(memory_format) inside vmap is only supported with memory_format "
            "torch.preserve_format or torch.contiguous_format (got "
            f"{'ChannelsLast' if wanted is channels_last else 'ChannelsLast3d'})"
        )
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


# One tensor written over another: where only the other is batched, the result is, too ---------------------------------

aten = ops.aten


def check_writes(op: OpOverload, values: list[Any], dims: list[Any]) -> None:
    """Raises RuntimeError where each example would write the same tensor."""
    if any(is_tensor(values[position]) and dims[position] is None for position in op.schema.mutable_positions):
        name = "inplace arithmetic" if Tag.pointwise in op.tags or op._opname in BROADCAST else op._opname
        raise RuntimeError(
            f"vmap: {name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that "
            "has more elements than `self`. This happened due to `other` being vmapped over but `self` not being "
            f"vmapped over in a vmap. Please try to use out-of-place operators instead of {name}, or make the tensor "
            "that is written from an input (`x.new_zeros(...)`)."
        )


BROADCAST = ("copy_", "masked_fill_")


@batches("pointwise", copy_op)
def copy_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    self, source, *rest = values
    return call(op, [whole(self, dims[0], size), padded(source, dims[1], rank(self, dims[0])), *rest]), 0


@batches("pointwise", fill_tensor_op, fill_inplace_tensor_op)
def fill_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Each example filled with its own number."""
    (self, value), (own, other) = values, dims
    if other is None:
        return call(op, [front(self, own), value]), 0
    check_scalar(value, other, "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.")
    numbers = padded(value, other, rank(self, own))
    if op.schema.mutable_positions:
        return front(self, own).copy_(numbers), 0
    return aten.copy.default(whole(self, own, size), numbers), 0


@batches("pointwise", masked_fill_tensor_op, masked_fill_tensor_op.inplace)
def masked_fill_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    (self, mask, value), (own, of_mask, other) = values, dims
    count = max(rank(self, own), rank(mask, of_mask))
    if other is None:
        return call(op, [padded(self, own, count), padded(mask, of_mask, count), value]), 0
    check_scalar(
        value, other, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s)."
    )
    x = padded(self, own, count)
    filled = aten.where.self(padded(mask, of_mask, count), padded(value, other, count).to(self.dtype), x)
    return (x.copy_(filled) if op.schema.mutable_positions else filled), 0


def check_scalar(value: Any, dim: int, text: str) -> None:
    if is_tensor(value) and rank(value, dim):
        raise RuntimeError(text.format(rank(value, dim)))
