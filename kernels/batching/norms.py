"""Normalisation on batches.

Layers and groups: the examples stand among the rows, and have weights of their own after it. A layer is normalised row
by row, so a batch is just more rows. What is learned differs between examples, or has a gradient for each: so it is
multiplied outside of the operator, and its gradients are sums over all but the batch.

Batches: each example has channels of its own, so all of them stand side by side. An input (batch, images, channels,
...) is one of (images, batch * channels, ...), whose statistics are those of each example. Running statistics that all
examples share cannot be written by each of them.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call
from redispatch.kernels.ops.batch_norm import (
    batch_norm_legit_op,
    native_batch_norm,
    native_batch_norm_backward_op,
    native_group_norm,
    native_group_norm_backward_op,
)
from redispatch.kernels.ops.normalization import native_layer_norm, native_layer_norm_backward_op

from ...dispatch.transforms.batched import is_tensor, whole
from .fallback import batches, one_by_one

# Layers, groups -------------------------------------------------------------------------------------------------------


def beside(learned: Any, dim: int | None, size: int, before: int, after: int) -> Any:
    """Returns a learned tensor as (batch, 1, ..., *its own shape, 1, ...): with dimensions before and after its own."""
    if learned is None:
        return None
    if dim is None:
        return learned.view((*learned.shape, *(1,) * after))
    rows = whole(learned, dim, size)
    return rows.reshape((size, *(1,) * before, *rows.shape[1:], *(1,) * after))


def times_and_plus(x: Any, weight: Any, bias: Any = None) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def learned_gradients(grad: Any, normal: Any, over: list[int], mask: list[bool]) -> list[Any]:
    """The gradients of weight and bias, where they are wanted: sums over the dimensions `over`, maybe none."""
    scaled = grad * normal if mask[1] else None
    added = grad if mask[2] else None
    return [one if one is None or not over else one.sum(over) for one in (scaled, added)]


def with_dims(results: list[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    return tuple(results), [None if one is None else 0 for one in results]


@batches("dims", native_layer_norm.op)
def layer_norm_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    input, shape, *_, eps = values
    x = whole(input, dims[0], size)
    before = x.dim() - 1 - len(shape)
    output, mean, rstd = call(op, [x, shape, None, None, eps])
    scale, shift = (beside(values[i], dims[i], size, before, 0) for i in (2, 3))
    return with_dims([times_and_plus(output, scale, shift), mean, rstd])


@batches("dims", native_layer_norm_backward_op)
def layer_norm_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    shape, weight, mask = values[2], values[5], values[7]
    grad, x, mean, rstd = (whole(values[i], dims[i], size) for i in (0, 1, 3, 4))
    before = x.dim() - 1 - len(shape)
    inner = times_and_plus(grad, beside(weight, dims[5], size, before, 0))
    outer = call(op, [inner, x, shape, mean, rstd, None, None, [mask[0], False, False]])[0]
    over = list(range(1, 1 + before))
    return with_dims([outer, *learned_gradients(grad, (x - mean) * rstd, over, mask)])


@batches("dims", native_group_norm.op)
def group_norm_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    input, _, _, n, *rest = values
    x = whole(input, dims[0], size)
    output, mean, rstd = call(op, [x.flatten(0, 1), None, None, size * n, *rest])
    after = x.dim() - 3
    scale, shift = (beside(values[i], dims[i], size, 1, after) for i in (1, 2))
    output, mean, rstd = (one.unflatten(0, (size, n)) for one in (output, mean, rstd))
    return with_dims([times_and_plus(output, scale, shift), mean, rstd])


@batches("dims", native_group_norm_backward_op)
def group_norm_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    weight, n, c, area, group, mask = values[4:]
    grad, x, mean, rstd = (whole(values[i], dims[i], size) for i in range(4))
    inner = times_and_plus(grad, beside(weight, dims[4], size, 1, x.dim() - 3))
    flat = [one.flatten(0, 1) for one in (inner, x, mean, rstd)]
    outer = call(op, [*flat, None, size * n, c, area, group, [mask[0], False, False]])[0]
    outer = outer if outer is None else outer.unflatten(0, (size, n))
    groups = x.reshape((size, n, group, -1))
    normal = ((groups - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)).view(x.shape)
    over = [d for d in range(1, x.dim()) if d != 2]
    return with_dims([outer, *learned_gradients(grad, normal, over, mask)])


# Batches --------------------------------------------------------------------------------------------------------------


def side_by_side(x: Any, dim: int | None, size: int) -> Any:
    """(images, batch * channels, ...) of an input; (batch * channels,) of one number for each channel."""
    batch = whole(x, dim, size)
    return batch.flatten(0, 1) if batch.dim() == 2 else batch.movedim(0, 1).flatten(1, 2)


def parted(x: Any, size: int) -> Any:
    """The batch in front again."""
    return x.unflatten(0, (size, -1)) if x.dim() == 1 else x.unflatten(1, (size, -1)).movedim(1, 0)


@batches("images", native_batch_norm.op, batch_norm_legit_op)
def batch_norm_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """RuntimeError where examples would write running statistics that are not batched."""
    running, training = (3, 4), values[5]
    if training and dims[0] is not None and any(is_tensor(values[i]) and dims[i] is None for i in running):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
            "`track_running_stats` to be False: func.replace_all_batch_norm_modules_(module) does."
        )
    if training and any(map(is_tensor, (values[i] for i in running))) or size == 0:
        return one_by_one(op, values, dims, size)  # each writes its own
    arguments = [side_by_side(v, d, size) if is_tensor(v) else v for v, d in zip(values, dims, strict=True)]
    output, mean, deviation = call(op, arguments)
    if not training:  # no statistics were taken
        return (parted(output, size), mean, deviation), [0, None, None]
    return (parted(output, size), parted(mean, size), parted(deviation, size)), [0, 0, 0]


@batches("images", native_batch_norm_backward_op)
def batch_norm_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    arguments = [
        side_by_side(v, d, size) if is_tensor(v) and v.numel() else v for v, d in zip(values, dims, strict=True)
    ]
    found = tuple(parted(one, size) if is_tensor(one) else one for one in call(op, arguments))
    return found, [0 if is_tensor(one) else None for one in found]
