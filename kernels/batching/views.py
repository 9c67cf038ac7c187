"""Views, and copies that are laid out as views could be, whose arguments say more than which dimension is meant."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call, ops
from redispatch.dispatch.tensor import contiguous_format
from redispatch.kernels.ops.creation import new_empty_strided_op, new_zeros_with_same_feature_meta_op
from redispatch.kernels.ops.rearrange import roll_op
from redispatch.kernels.ops.scattering import as_strided_scatter_op
from redispatch.kernels.ops.shape import cat_op, repeat_op
from redispatch.kernels.ops.view_copies import as_strided_copy_op, reshape_alias_copy_op
from redispatch.kernels.ops.views import (
    as_strided_op,
    expand_op,
    permute_op,
    reshape_alias_op,
    squeeze_dim_op,
    squeeze_dims_op,
    squeeze_op,
    t_op,
    transpose_op,
)

from ...dispatch.transforms.batched import front, padded, rank, shifted, whole
from .by_dims import dims_rule
from .fallback import batches

aten = ops.aten


@batches("dims", expand_op)
def expand_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """New dimensions of an example stand behind the batch's."""
    self, sizes, *rest = values
    return call(op, [padded(self, dims[0], len(sizes)), [size, *sizes], *rest]), 0


@batches("dims", reshape_alias_op, reshape_alias_copy_op)
def reshape_alias_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Strides of an example are those that its new shape has, and so are the batch's."""
    form = aten.view_copy if op._opname.endswith("_copy") else aten.view
    return form.default(front(values[0], dims[0]), [size, *values[1]]), 0


@batches("dims", repeat_op)
def repeat_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    self, repeats = values
    return call(op, [padded(self, dims[0], len(repeats)), [1, *repeats]]), 0


@batches("dims", permute_op)
def permute_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    self, order = values
    count = rank(self, dims[0])
    if len(order) != count:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {count} is not equal to len(dims) = {len(order)}"
        )
    return call(op, [front(self, dims[0]), [0, *(shifted(dim, count) for dim in order)]]), 0


@batches("dims", t_op)
def transpose_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    x = front(values[0], dims[0])
    if x.dim() > 3:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.dim() - 1}D")
    return (aten.transpose.int(x, 1, 2) if x.dim() == 3 else aten.alias.default(x)), 0


@batches("dims", squeeze_op)
def squeeze_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """All dimensions of size 1 but the batch's."""
    x = front(values[0], dims[0])
    return aten.squeeze.dims(x, [dim for dim in range(1, x.dim()) if x.shape[dim] == 1]), 0


@batches("dims", squeeze_dim_op, squeeze_dims_op, transpose_op)
def lonely_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """For examples without dimensions, which have one that may be named all the same: what was given."""
    if rank(values[0], dims[0]):
        return dims_rule(op, values, dims, size)
    if op._opname == "squeeze":
        named = values[1] if isinstance(values[1], list | tuple) else [values[1]]
        if not {-1, 0}.issuperset(named):
            raise RuntimeError(
                f"Dimension is out of range (expected to be in range of [-1, 0], but got [{', '.join(map(str, named))}]"
            )
        return aten.alias.default(values[0]), dims[0]
    shifted(values[1:], 0)
    return values[0], dims[0]


@batches("dims", as_strided_op, as_strided_copy_op)
def as_strided_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Returns the same part of each example's memory: examples lie one batch stride apart."""
    self, sizes, strides, offset = values
    if len(sizes) != len(strides):
        raise RuntimeError(
            "Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size "
            f"{list(sizes)} and stride {list(strides)}"
        )
    x = front(self, dims[0])
    base = x.storage_offset()
    start = base if offset is None else offset
    end, own_end = end_of(sizes, strides, start), end_of(x.shape[1:], x.stride()[1:], base)
    if end is not None and (own_end is None or end > own_end or start < base):
        raise RuntimeError(
            f"result = tensor.as_strided({list(sizes)}, {list(strides)}, {start}) can access memory outside of "
            f"`tensor`. `result` can access some memory in range [{start}, {end}], but `tensor` can only access some "
            f"memory in range [{base}, {own_end or base}]. This is not supported inside of vmap, please try to rewrite "
            "the `as_strided` call as a sequence of PyTorch view operations"
        )
    return call(op, [x, [size, *sizes], [x.stride(0), *strides], start]), 0


@batches("dims", new_zeros_with_same_feature_meta_op)
def new_zeros_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """A batch is one more of the dimensions that come before; examples of `other` lie alike."""
    self, other, count = values
    example = other if dims[1] is None else other.select(dims[1], 0)
    if dims[0] is None:
        return call(op, [self, example, count]), None
    return call(op, [front(self, dims[0]), example, count + 1]), 0


def end_of(sizes: Any, strides: Any, start: int) -> int | None:
    """The place behind the last element; None where there is none."""
    last = start + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return None if 0 in sizes else last + 1


@batches("dims", new_empty_strided_op)
def new_empty_strided_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Each example's memory behind that of the one before."""
    self, sizes, strides, *options = values
    if len(sizes) != len(strides):
        raise RuntimeError(
            f"new_empty_strided(sizes, strides): dimensionality of sizes ({len(sizes)}) must match dimensionality of "
            f"strides ({len(strides)})"
        )
    extent = 0 if 0 in sizes else 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    return call(op, [front(self, dims[0]), [size, *sizes], [extent, *strides], *options]), 0


@batches("dims", as_strided_scatter_op)
def as_strided_scatter_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The part of a copy's memory that `as_strided_rule` would show, written."""
    self, source, sizes, strides, offset = values
    copy = whole(self, dims[0], size).clone(memory_format=contiguous_format)
    start = 0 if offset is None else offset
    part = aten.as_strided.default(copy, [size, *sizes], [copy.stride(0), *strides], start)
    part.copy_(whole(source, dims[1], size))
    return copy, 0


@batches("dims", roll_op)
def roll_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    self, shifts, along = values
    x = front(self, dims[0])
    if along or x.dim() == 1:
        return aten.roll.default(x, shifts, shifted(list(along), x.dim() - 1)) if x.dim() > 1 else x.clone(), 0
    return aten.roll.default(x.reshape(size, -1), shifts, [1]).view(x.shape), 0


@batches("dims", cat_op)
def cat_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Examples without elements and of one dimension stand for nothing, as they do outside."""
    tensors, dim = values
    ranked = [(x, own, rank(x, own)) for x, own in zip(tensors, dims[0], strict=True)]
    count = max(n for *_, n in ranked)
    told = [(x, own) for x, own, n in ranked if not (n == 1 and count != 1 and x.numel() == 0)]
    return aten.cat.default([whole(x, own, size) for x, own in told], shifted(dim, count)), 0
