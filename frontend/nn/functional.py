"""Functions of neural networks, with PyTorch's names, arguments and errors: `functional.cross_entropy(input, target)`.

They are thin: each reads its arguments as PyTorch's does (names, deprecated switches, defaults) and calls operators.
functional.pyi lists them with types.
"""

from redispatch import _absent, _names

__all__ = _names.take(
    globals(),
    {
        "redispatch.kernels.ops.attention": "scaled_dot_product_attention",
        "redispatch.kernels.ops.fused_layers": "bilinear",
        "redispatch.kernels.ops.grouped": "grouped_mm",
        "redispatch.kernels.ops.convolution": (
            "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d"
        ),
        "redispatch.kernels.ops.distances": "cosine_similarity pairwise_distance pdist",
        "redispatch.kernels.ops.linalg": "linear",
        "redispatch.kernels.ops.embedding": "one_hot",
        ".activation": """
            celu celu_ elu elu_ gelu glu gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hardtanh_ leaky_relu
            leaky_relu_ log_softmax logsigmoid mish prelu relu relu6 relu_ rrelu rrelu_ selu selu_ sigmoid silu softmax
            softmin softplus softshrink softsign tanh tanhshrink threshold threshold_ _threshold
        """,
        ".attention": "multi_head_attention_forward",
        ".dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
        ".images": """
            affine_grid channel_shuffle fold grid_sample interpolate native_channel_shuffle pad pixel_shuffle
            pixel_unshuffle unfold upsample upsample_bilinear upsample_nearest
        """,
        ".loss": """
            binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss
            gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss linear_cross_entropy margin_ranking_loss
            mse_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss nll_loss poisson_nll_loss
            smooth_l1_loss soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss
        """,
        ".normalization": "batch_norm group_norm instance_norm layer_norm local_response_norm normalize rms_norm",
        ".pooling": """
            adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
            adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d
            adaptive_max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d fractional_max_pool2d
            fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices lp_pool1d
            lp_pool2d lp_pool3d max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
            max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d
        """,
        ".sparse": "embedding embedding_bag",
        ".": "grad",
    },
)
for _row in _absent.FUNCTIONAL:
    globals().update(_absent.names_of("redispatch.nn.functional", _row))
del _row
