"""Operators that write one tensor over another: where only the other is batched, the result is, too."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, Tag, call, ops
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels.ops.copying import copy_op, fill_inplace_tensor_op, fill_tensor_op
from redispatch.kernels.ops.masking import masked_fill_tensor_op

from ...dispatch.transforms.batched import front, is_tensor, padded, rank, whole

aten = ops.aten
PLACE = "kernels/batching/writes.py"


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


def copy_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    self, source, *rest = values
    return call(op, [whole(self, dims[0], size), padded(source, dims[1], rank(self, dims[0])), *rest]), 0


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


for form, rule in [
    (copy_op.functional, copy_rule),
    (fill_tensor_op.functional, fill_rule),
    (fill_inplace_tensor_op.functional, fill_rule),
    (masked_fill_tensor_op.functional, masked_fill_rule),
    (masked_fill_tensor_op.inplace, masked_fill_rule),
]:
    BATCHING.add(form, rule, PLACE)
