"""Core ATen: the overloads that PyTorch calls the core of its operator library. Here they get the tag `core`.

Everything else can be decomposed into them, so a backend that has these has everything. The list is a designation, not
something that could be derived; which of its members exist here yet is asked by `missing()`.

Source: `torch.Tag.core` of PyTorch 2.13.
"""

from redispatch.dispatch import OPERATORS

CORE = frozenset(
    """
    _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _cdist_forward _embedding_bag _fft_c2r
    _fft_r2c _local_scalar_dense _log_softmax _native_batch_norm_legit _native_batch_norm_legit.no_stats
    _native_batch_norm_legit_no_training _pdist_forward _softmax _to_copy adaptive_avg_pool1d addmm alias amax amin any
    any.dim any.dims arange.start_step argmax argmin as_strided atan2.out avg_pool1d avg_pool2d avg_pool2d_backward
    avg_pool3d bmm cat clone col2im constant_pad_nd convolution convolution_backward copy cumsum diagonal embedding
    embedding_dense_backward empty.memory_format empty_strided expand fill.Scalar flip full full_like gather
    grid_sampler_2d index.Tensor index_put index_select masked_scatter max.dim max_pool2d_with_indices
    max_pool2d_with_indices_backward max_pool3d_with_indices mean mean.dim min.dim mm native_dropout native_group_norm
    native_group_norm_backward native_layer_norm native_layer_norm_backward nonzero permute prod prod.dim_int rand randn
    randperm reflection_pad1d reflection_pad2d reflection_pad3d repeat replication_pad2d replication_pad3d resize_
    scalar_tensor scatter.src scatter.value scatter_add scatter_reduce.two select.int select_scatter slice.Tensor
    slice_scatter sort split_with_sizes squeeze.dim squeeze.dims sum.dim_IntList sym_is_contiguous sym_numel
    sym_size.int sym_storage_offset sym_stride.int topk unsqueeze upsample_bilinear2d.vec upsample_nearest2d.vec
    var.correction var.dim view
    """.split()
)


def missing() -> list[str]:
    """The members of Core ATen that are not defined here, in alphabetical order."""
    return sorted(name for name in CORE if f"aten::{name}" not in OPERATORS)
