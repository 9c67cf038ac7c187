"""Functions of neural networks, with PyTorch's names, arguments and errors: `functional.cross_entropy(input, target)`.

They are thin: each reads its arguments as PyTorch's does (names, deprecated switches, defaults) and calls operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Size, Tensor
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import (
    arithmetic,
    attention,
    convolution,
    convolution_forms,
    distances,
    linalg,
    normalization,
    scatter_gather,
    shuffles,
)
from redispatch.kernels.ops import batch_norm as batch_normalization
from redispatch.kernels.ops import bilinear as bilinear_forms
from redispatch.kernels.ops.scatter_gather import one_hot as one_hot

from . import activation, attention_functions, bags, dropouts, images, loss, pools

linear = linalg.linear
pad = images.pad
interpolate = images.interpolate
upsample, upsample_nearest, upsample_bilinear = images.upsample, images.upsample_nearest, images.upsample_bilinear
conv1d, conv2d, conv3d = convolution.conv1d, convolution.conv2d, convolution.conv3d
conv_tbc = convolution_forms.conv_tbc
conv_transpose1d, conv_transpose2d = convolution.conv_transpose1d, convolution.conv_transpose2d
conv_transpose3d = convolution.conv_transpose3d
scaled_dot_product_attention = attention.scaled_dot_product_attention
multi_head_attention_forward = attention_functions.multi_head_attention_forward
alpha_dropout, feature_alpha_dropout = dropouts.alpha_dropout, dropouts.feature_alpha_dropout
dropout, dropout1d, dropout2d, dropout3d = dropouts.dropout, dropouts.dropout1d, dropouts.dropout2d, dropouts.dropout3d
celu, celu_, elu, elu_ = activation.celu, activation.celu_, activation.elu, activation.elu_
gelu, glu, gumbel_softmax = activation.gelu, activation.glu, activation.gumbel_softmax
hardshrink, hardsigmoid, hardswish = activation.hardshrink, activation.hardsigmoid, activation.hardswish
hardtanh, hardtanh_ = activation.hardtanh, activation.hardtanh_
leaky_relu, leaky_relu_ = activation.leaky_relu, activation.leaky_relu_
log_softmax, logsigmoid = activation.log_softmax, activation.logsigmoid
mish, prelu = activation.mish, activation.prelu
relu, relu_, relu6 = activation.relu, activation.relu_, activation.relu6
rrelu, rrelu_, selu, selu_ = activation.rrelu, activation.rrelu_, activation.selu, activation.selu_
sigmoid, silu = activation.sigmoid, activation.silu
softmax, softmin, softplus = activation.softmax, activation.softmin, activation.softplus
softshrink, softsign = activation.softshrink, activation.softsign
tanh, tanhshrink = activation.tanh, activation.tanhshrink
threshold, threshold_ = activation.threshold, activation.threshold_
binary_cross_entropy = loss.binary_cross_entropy
binary_cross_entropy_with_logits = loss.binary_cross_entropy_with_logits
cosine_embedding_loss = loss.cosine_embedding_loss
cross_entropy = loss.cross_entropy
ctc_loss = loss.ctc_loss
gaussian_nll_loss = loss.gaussian_nll_loss
hinge_embedding_loss = loss.hinge_embedding_loss
huber_loss = loss.huber_loss
kl_div = loss.kl_div
l1_loss = loss.l1_loss
linear_cross_entropy = loss.linear_cross_entropy
margin_ranking_loss = loss.margin_ranking_loss
mse_loss = loss.mse_loss
multi_margin_loss = loss.multi_margin_loss
multilabel_margin_loss = loss.multilabel_margin_loss
multilabel_soft_margin_loss = loss.multilabel_soft_margin_loss
nll_loss = loss.nll_loss
poisson_nll_loss = loss.poisson_nll_loss
smooth_l1_loss = loss.smooth_l1_loss
soft_margin_loss = loss.soft_margin_loss
triplet_margin_loss = loss.triplet_margin_loss
triplet_margin_with_distance_loss = loss.triplet_margin_with_distance_loss
cosine_similarity = distances.cosine_similarity
pairwise_distance = distances.pairwise_distance
pdist = distances.pdist
bilinear = bilinear_forms.bilinear
embedding, embedding_bag = scatter_gather.functional_embedding, bags.embedding_bag
avg_pool1d, avg_pool2d, avg_pool3d = pools.avg_pool1d, pools.avg_pool2d, pools.avg_pool3d
max_pool1d, max_pool1d_with_indices = pools.max_pool1d, pools.max_pool1d_with_indices
max_pool2d, max_pool2d_with_indices = pools.max_pool2d, pools.max_pool2d_with_indices
max_pool3d, max_pool3d_with_indices = pools.max_pool3d, pools.max_pool3d_with_indices
max_unpool1d, max_unpool2d, max_unpool3d = pools.max_unpool1d, pools.max_unpool2d, pools.max_unpool3d
lp_pool1d, lp_pool2d, lp_pool3d = pools.lp_pool1d, pools.lp_pool2d, pools.lp_pool3d
adaptive_avg_pool1d = pools.adaptive_avg_pool1d
adaptive_avg_pool2d = pools.adaptive_avg_pool2d
adaptive_avg_pool3d = pools.adaptive_avg_pool3d
adaptive_max_pool1d = pools.adaptive_max_pool1d
adaptive_max_pool1d_with_indices = pools.adaptive_max_pool1d_with_indices
adaptive_max_pool2d = pools.adaptive_max_pool2d
adaptive_max_pool2d_with_indices = pools.adaptive_max_pool2d_with_indices
adaptive_max_pool3d = pools.adaptive_max_pool3d
adaptive_max_pool3d_with_indices = pools.adaptive_max_pool3d_with_indices
fractional_max_pool2d = pools.fractional_max_pool2d
fractional_max_pool2d_with_indices = pools.fractional_max_pool2d_with_indices
fractional_max_pool3d = pools.fractional_max_pool3d
fractional_max_pool3d_with_indices = pools.fractional_max_pool3d_with_indices
local_response_norm = pools.local_response_norm
fold, unfold = images.fold, images.unfold
grid_sample, affine_grid = images.grid_sample, images.affine_grid
pixel_shuffle, pixel_unshuffle = shuffles.pixel_shuffle, shuffles.pixel_unshuffle
channel_shuffle, native_channel_shuffle = shuffles.channel_shuffle, shuffles.native_channel_shuffle

# --- layers --------------------------------------------------------------------------------------------------------


@overridable_function
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, whose sizes are `normalized_shape`; then weight and bias."""
    return normalization.layer_norm(input, list(normalized_shape), weight, bias, eps)


@overridable_function
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over all but the second dimension; then weight and bias, a number for each channel.

    Without `training`, the running mean and variance are used; with it, they are moved by `momentum`.
    Errors: ValueError for training with one value per channel.
    """
    if training:
        _check_several(input.shape)
    return batch_normalization.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, False
    )


@overridable_function
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` for each image by itself.

    Errors: ValueError where an image has one value per channel.
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {Size(input.shape)}")
    return batch_normalization.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


@overridable_function
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Mean 0 and variance 1 over each of `num_groups` groups of channels; then weight and bias for each channel.

    Errors: RuntimeError for fewer than two dimensions; ValueError where a group has one value.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    batch, channels, *image = input.shape
    _check_several([batch * channels // num_groups, num_groups, *image])
    return batch_normalization.group_norm(input, num_groups, weight, bias, eps, False)


@overridable_function
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x over the root of the mean of its squares over the last dimensions, whose sizes are `normalized_shape`."""
    return batch_normalization.rms_norm(input, list(normalized_shape), weight, eps)


def _check_several(shape: Sequence[int]) -> None:
    """Raises ValueError where a channel has one value only: it has no variance."""
    if math.prod(shape) == shape[1]:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {Size(shape)}")


@overridable_function
def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(norm of x along `dim`, eps)."""
    size = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / size if out is None else arithmetic.div(input, size, out=out)
