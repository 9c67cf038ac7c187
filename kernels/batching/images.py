"""Operators on images, of which they take any number: a batch of batches of images is one long batch.

An example is one image, or already a batch of them. One image more is just that; of several, the batch dimension and
the images' are made one, and parted again in the results. The heads of attention are such a batch, too.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call, ops
from redispatch.kernels.declare.describe import image_rank
from redispatch.kernels.ops.fused_attention import efficient_backward_op, efficient_op
from redispatch.kernels.ops.rearrange import channel_shuffle_op, native_channel_shuffle_op

from ...dispatch.transforms.batched import each, is_tensor, position_of, rank, ranks, whole
from .fallback import batches, one_by_one

# Where the name does not say how many dimensions an image has: heads are channels, and col2im takes lists of columns
OTHER_RANKS = {"im2col": 3, "col2im": 2, "_scaled_dot_product_flash_attention_for_cpu": 3}


def rank_of_image(op: OpOverload) -> int:
    """The number of dimensions of one image, the channels' included, or 0 for an operator that is not on images."""
    return image_rank(op._opname) or OTHER_RANKS.get(op._opname.removesuffix("_backward"), 0)


def one_long_batch(value: Any, dim: int | None, size: int) -> Any:
    """A batch of batches [size, N, ...] as [size * N, ...]."""
    return whole(value, dim, size).flatten(0, 1)


def in_batches(result: Any, size: int, several: bool = True) -> Any:
    """The results in batches again, if they are of `several` examples in a long one, and their dimensions."""
    if isinstance(result, tuple):
        parts = tuple(in_batches(one, size, several) for one in result)
        return tuple(one for one, _ in parts), [dim for _, dim in parts]
    if not is_tensor(result) or not result.dim():
        return result, (None if several else 0)
    return (result.unflatten(0, (size, -1)) if several else result), 0


def images_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """All images one after the other; the results in batches again."""
    count = max(ranks(op.schema, values, dims))
    image = rank_of_image(op)
    several = count > image
    tensors = ((value, dim) for value, dim in zip(values, dims, strict=True) if is_tensor(value))
    if any(dim is not None and rank(value, dim) < image for value, dim in tensors):
        return one_by_one(op, values, dims, size)

    def placed(value: Any, dim: int | None) -> Any:
        if rank(value, dim) < image:  # a mask that is the same for all
            return value
        return (one_long_batch if several else whole)(value, dim, size)

    arguments = each(op.schema, values, dims, placed)
    sizes = position_of(op.schema, "input_size")
    if sizes is not None:  # of the images that a gradient is of
        arguments[sizes] = [size * values[sizes][0], *values[sizes][1:]]
    return in_batches(call(op, arguments), size, several)


@batches("images", channel_shuffle_op, native_channel_shuffle_op)
def shuffle_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Batches of images with any number of dimensions."""
    return in_batches(call(op, [one_long_batch(values[0], dims[0], size), *values[1:]]), size)


@batches("images", ops.aten.fractional_max_pool2d.default, ops.aten.fractional_max_pool3d.default)
def fractional_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The numbers that say where windows lie have a batch dimension even for a single image."""
    x, kernel, output, samples = values
    several = rank(x, dims[0]) > rank_of_image(op)
    images = (one_long_batch if several else whole)(x, dims[0], size)
    return in_batches(call(op, [images, kernel, output, one_long_batch(samples, dims[3], size)]), size, several)


# Attention with a bias ------------------------------------------------------------------------------------------------

# The bias may be the same for all examples, or broadcast; it then gets the dimensions that it lacks. Dropout's choices
# follow from a place in the long batch, so backward finds those of forward where it is batched in the same way.

HEADS = "grad_out_ query key value out logsumexp".split()


@batches("other", efficient_op, efficient_backward_op)
def attention_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """All heads of all examples; the results in batches again, but for seed and offset, which are one for all."""
    arguments = list(values)
    for name in HEADS:
        at = position_of(op.schema, name)
        if at is not None:
            arguments[at] = one_long_batch(values[at], dims[at], size)
    query, bias = position_of(op.schema, "query"), position_of(op.schema, "attn_bias")
    assert query is not None and bias is not None
    if values[bias] is not None:
        batch = arguments[query].shape[0] // max(size, 1)
        arguments[bias] = biases(values[bias], dims[bias], size, batch)
    return in_batches(call(op, arguments), size)


def biases(bias: Any, dim: int | None, size: int, batch: int) -> Any:
    """The bias of each example of the long batch; one that is the same for all its examples stays as it is."""
    own = rank(bias, dim)
    if dim is None and (own < 4 or bias.shape[0] == 1):
        return bias
    if own == 1 and not bias.numel():  # of shape [0] for each example, which stands for none
        return bias.new_empty([0])
    x = whole(bias, dim, size)
    x = x.reshape([size, *[1] * (4 - own), *x.shape[1:]])
    return x.expand(size, batch, *x.shape[2:]).flatten(0, 1)
