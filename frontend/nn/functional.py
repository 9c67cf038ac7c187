"""Functions of neural networks, with PyTorch's names, arguments and errors: `functional.cross_entropy(input, target)`.

They are thin: each reads its arguments as PyTorch's does (names, deprecated switches, defaults) and calls operators.
"""

from __future__ import annotations

from redispatch.kernels.ops import (
    attention,
    convolution,
    convolution_forms,
    distances,
    fused_layers,
    linalg,
)
from redispatch.kernels.ops import (
    embedding as embeddings,
)
from redispatch.kernels.ops.embedding import one_hot as one_hot

from . import activation, images, loss, normalization, pooling, sparse
from . import attention as attending
from . import dropout as dropping

linear = linalg.linear
pad = images.pad
interpolate = images.interpolate
upsample, upsample_nearest, upsample_bilinear = images.upsample, images.upsample_nearest, images.upsample_bilinear
conv1d, conv2d, conv3d = convolution.conv1d, convolution.conv2d, convolution.conv3d
conv_tbc = convolution_forms.conv_tbc
conv_transpose1d, conv_transpose2d = convolution.conv_transpose1d, convolution.conv_transpose2d
conv_transpose3d = convolution.conv_transpose3d
scaled_dot_product_attention = attention.scaled_dot_product_attention
multi_head_attention_forward = attending.multi_head_attention_forward
alpha_dropout, feature_alpha_dropout = dropping.alpha_dropout, dropping.feature_alpha_dropout
dropout, dropout1d, dropout2d, dropout3d = dropping.dropout, dropping.dropout1d, dropping.dropout2d, dropping.dropout3d
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
bilinear = fused_layers.bilinear
embedding, embedding_bag = embeddings.functional_embedding, sparse.embedding_bag
avg_pool1d, avg_pool2d, avg_pool3d = pooling.avg_pool1d, pooling.avg_pool2d, pooling.avg_pool3d
max_pool1d, max_pool1d_with_indices = pooling.max_pool1d, pooling.max_pool1d_with_indices
max_pool2d, max_pool2d_with_indices = pooling.max_pool2d, pooling.max_pool2d_with_indices
max_pool3d, max_pool3d_with_indices = pooling.max_pool3d, pooling.max_pool3d_with_indices
max_unpool1d, max_unpool2d, max_unpool3d = pooling.max_unpool1d, pooling.max_unpool2d, pooling.max_unpool3d
lp_pool1d, lp_pool2d, lp_pool3d = pooling.lp_pool1d, pooling.lp_pool2d, pooling.lp_pool3d
adaptive_avg_pool1d = pooling.adaptive_avg_pool1d
adaptive_avg_pool2d = pooling.adaptive_avg_pool2d
adaptive_avg_pool3d = pooling.adaptive_avg_pool3d
adaptive_max_pool1d = pooling.adaptive_max_pool1d
adaptive_max_pool1d_with_indices = pooling.adaptive_max_pool1d_with_indices
adaptive_max_pool2d = pooling.adaptive_max_pool2d
adaptive_max_pool2d_with_indices = pooling.adaptive_max_pool2d_with_indices
adaptive_max_pool3d = pooling.adaptive_max_pool3d
adaptive_max_pool3d_with_indices = pooling.adaptive_max_pool3d_with_indices
fractional_max_pool2d = pooling.fractional_max_pool2d
fractional_max_pool2d_with_indices = pooling.fractional_max_pool2d_with_indices
fractional_max_pool3d = pooling.fractional_max_pool3d
fractional_max_pool3d_with_indices = pooling.fractional_max_pool3d_with_indices
batch_norm, instance_norm = normalization.batch_norm, normalization.instance_norm
group_norm, layer_norm, rms_norm = normalization.group_norm, normalization.layer_norm, normalization.rms_norm
local_response_norm, normalize = normalization.local_response_norm, normalization.normalize
fold, unfold = images.fold, images.unfold
grid_sample, affine_grid = images.grid_sample, images.affine_grid
pixel_shuffle, pixel_unshuffle = images.pixel_shuffle, images.pixel_unshuffle
channel_shuffle, native_channel_shuffle = images.channel_shuffle, images.native_channel_shuffle
