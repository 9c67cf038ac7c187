"""The rest of autocast's lists: operators whose declarations say nothing of autocast, because a rule makes a family of
them (pooling, padding, resampling in so many dimensions) or because they have several overloads.

The lists are PyTorch's. All other operators on them say so where they are declared: `mm_op.autocast(cpu=...)`.
"""

from __future__ import annotations

from redispatch.dispatch import operator_named
from redispatch.dispatch.layers import autocast
from redispatch.dispatch.layers.autocast import WITH_DTYPE, Policy, register_policy

LISTS: dict[tuple[str, Policy], str] = {
    ("cpu", autocast.fp32): """
        adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d cdist fractional_max_pool2d fractional_max_pool3d
        grid_sampler grid_sampler_2d grid_sampler_3d max_pool3d max_unpool2d max_unpool3d
        multilabel_margin_loss_forward nanquantile nanquantile.scalar quantile quantile.scalar reflection_pad1d
        reflection_pad2d replication_pad1d replication_pad2d replication_pad3d trace
    """,
    ("cpu", autocast.promote): "index_copy",
    ("cuda", autocast.lower_precision_fp): "convolution einsum",
    ("cuda", autocast.fp32): """
        _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
        _upsample_nearest_exact3d rms_norm
        upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
        upsample_nearest3d upsample_trilinear3d
    """,
    ("cuda", autocast.fp32_append_dtype): "norm.Scalar norm.ScalarOpt_dim",
    ("cuda", autocast.promote): "bilinear grid_sampler tensordot",
}

for (device, policy), names in LISTS.items():
    for name in names.split():
        register_policy(operator_named(f"aten::{name}"), device, policy)

for name, with_dtype in [("norm.Scalar", "norm.ScalarOpt_dtype"), ("norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype")]:
    WITH_DTYPE.add(
        operator_named(f"aten::{name}"), operator_named(f"aten::{with_dtype}"), "kernels/ops/autocast_lists.py"
    )
