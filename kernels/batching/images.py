"""Operators on images, of which they take any number: a batch of batches of images is one long batch.

An example is one image, or already a batch of them. One image more is just that; of several, the batch dimension and
the images' are made one, and parted again in the results.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call, ops
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels.declare.describe import image_rank
from redispatch.kernels.ops.rearrange import channel_shuffle_op, native_channel_shuffle_op

from ...dispatch.transforms.batched import each, is_tensor, position_of, rank, ranks, whole
from .fallback import one_by_one

# Where the name does not say how many dimensions an image has: heads are channels, and col2im takes lists of columns
OTHER_RANKS = {"im2col": 3, "col2im": 2, "_scaled_dot_product_flash_attention_for_cpu": 3}


def rank_of_image(op: OpOverload) -> int:
    """The number of dimensions of one image, the channels' included, or 0 for an operator that is not on images."""
    return image_rank(op._opname) or OTHER_RANKS.get(op._opname.removesuffix("_backward"), 0)


def images_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """All images one after the other; the results in batches again."""
    count = max(ranks(op.schema, values, dims))
    image = rank_of_image(op)
    several = count > image
    if any(own is not None and rank(value, own) < image for value, own in tensors(values, dims)):
        return one_by_one(op, values, dims, size)

    def placed(value: Any, dim: int | None) -> Any:
        if rank(value, dim) < image:  # a mask that is the same for all
            return value
        moved = whole(value, dim, size)
        return moved.flatten(0, 1) if several else moved

    arguments = each(op.schema, values, dims, placed)
    sizes = position_of(op.schema, "input_size")
    if sizes is not None:  # of the images that a gradient is of
        arguments[sizes] = [size * values[sizes][0], *values[sizes][1:]]
    result = call(op, arguments)
    if several:
        result = parted(result, size)
    return result, [0] * len(result) if isinstance(result, tuple) else 0


def shuffle_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Batches of images with any number of dimensions."""
    result = call(op, [whole(values[0], dims[0], size).flatten(0, 1), *values[1:]])
    return result.unflatten(0, (size, -1)), 0


def fractional_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The numbers that say where windows lie have a batch dimension even for a single image."""
    x, kernel, output, samples = values
    several = rank(x, dims[0]) > rank_of_image(op)
    images = whole(x, dims[0], size)
    lies = whole(samples, dims[3], size).flatten(0, 1)
    result = call(op, [images.flatten(0, 1) if several else images, kernel, output, lies])
    return parted(result, size) if several else result, [0, 0]


for fractional in (ops.aten.fractional_max_pool2d.default, ops.aten.fractional_max_pool3d.default):
    BATCHING.add(fractional, fractional_rule, "kernels/batching/images.py")
for declared in (channel_shuffle_op, native_channel_shuffle_op):
    BATCHING.add(declared.functional, shuffle_rule, "kernels/batching/images.py")


def tensors(values: list[Any], dims: list[Any]) -> list[tuple[Any, Any]]:
    return [(value, dim) for value, dim in zip(values, dims, strict=True) if is_tensor(value)]


def parted(result: Any, size: int) -> Any:
    if isinstance(result, tuple):
        return tuple(parted(one, size) for one in result)
    return result.unflatten(0, (size, -1)) if is_tensor(result) and result.dim() else result
