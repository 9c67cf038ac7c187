"""Layer and group normalisation on batches: the examples stand among the rows, and have weights of their own after it.

A layer is normalised row by row, so a batch is just more rows. What is learned differs between examples, or has a
gradient for each: so it is multiplied outside of the operator, and its gradients are sums over all but the batch.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels.ops.batch_norm import native_group_norm, native_group_norm_backward_op
from redispatch.kernels.ops.normalization import native_layer_norm, native_layer_norm_backward_op

from ...dispatch.transforms.batched import whole

PLACE = "kernels/batching/layer_norm.py"


def beside(learned: Any, dim: int | None, size: int, before: int, after: int) -> Any:
    """Returns a learned tensor as (batch, 1, ..., *its own shape, 1, ...): with dimensions before and after its own."""
    if dim is None:
        return learned.view((*learned.shape, *(1,) * after))
    rows = whole(learned, dim, size)
    return rows.reshape((size, *(1,) * before, *rows.shape[1:], *(1,) * after))


def times_and_plus(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def learned_gradients(grad: Any, normal: Any, over: list[int], mask: list[bool]) -> list[Any]:
    """The gradients of weight and bias, where they are wanted: sums over the dimensions `over`, maybe none."""
    scaled = grad * normal if mask[1] else None
    added = grad if mask[2] else None
    return [one if one is None or not over else one.sum(over) for one in (scaled, added)]


def with_dims(results: list[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    return tuple(results), [None if one is None else 0 for one in results]


def layer_norm_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    input, shape, weight, bias, eps = values
    x = whole(input, dims[0], size)
    before = x.dim() - 1 - len(shape)
    output, mean, rstd = call(op, [x, shape, None, None, eps])
    learned = [
        one if one is None else beside(one, dim, size, before, 0) for one, dim in ((weight, dims[2]), (bias, dims[3]))
    ]
    return with_dims([times_and_plus(output, *learned), mean, rstd])


def layer_norm_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    shape, weight, mask = values[2], values[5], values[7]
    grad, x, mean, rstd = (whole(values[i], dims[i], size) for i in (0, 1, 3, 4))
    before = x.dim() - 1 - len(shape)
    inner = grad if weight is None else grad * beside(weight, dims[5], size, before, 0)
    outer = call(op, [inner, x, shape, mean, rstd, None, None, [mask[0], False, False]])[0]
    over = list(range(1, 1 + before))
    return with_dims([outer, *learned_gradients(grad, (x - mean) * rstd, over, mask)])


def group_norm_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    input, weight, bias, n, *rest = values
    x = whole(input, dims[0], size)
    output, mean, rstd = call(op, [x.flatten(0, 1), None, None, size * n, *rest])
    after = x.dim() - 3
    learned = [
        one if one is None else beside(one, dim, size, 1, after) for one, dim in ((weight, dims[1]), (bias, dims[2]))
    ]
    output, mean, rstd = (one.unflatten(0, (size, n)) for one in (output, mean, rstd))
    return with_dims([times_and_plus(output, *learned), mean, rstd])


def group_norm_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    weight, n, c, area, group, mask = values[4:]
    grad, x, mean, rstd = (whole(values[i], dims[i], size) for i in range(4))
    inner = grad if weight is None else grad * beside(weight, dims[4], size, 1, x.dim() - 3)
    flat = [one.flatten(0, 1) for one in (inner, x, mean, rstd)]
    outer = call(op, [*flat, None, size * n, c, area, group, [mask[0], False, False]])[0]
    outer = outer if outer is None else outer.unflatten(0, (size, n))
    groups = x.reshape((size, n, group, -1))
    normal = ((groups - mean.unsqueeze(-1)) * rstd.unsqueeze(-1)).view(x.shape)
    over = [d for d in range(1, x.dim()) if d != 2]
    return with_dims([outer, *learned_gradients(grad, normal, over, mask)])


for form, rule in [
    (native_layer_norm.op.functional, layer_norm_rule),
    (native_layer_norm_backward_op.functional, layer_norm_backward_rule),
    (native_group_norm.op.functional, group_norm_rule),
    (native_group_norm_backward_op.functional, group_norm_backward_rule),
]:
    BATCHING.add(form, rule, PLACE)
