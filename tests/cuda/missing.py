"""Operators that work on the CPU and have no CUDA kernel yet, by reason.

The list only shrinks: test_table.py fails for one that works."""

NO_KERNEL = {
    "matrix products have no kernel yet": """
        _linalg_check_errors _scaled_dot_product_flash_attention_for_cpu
        _scaled_dot_product_flash_attention_for_cpu_backward
    """,
    "factorisations are LAPACK's on the CPU; none is written for a GPU yet": """
        _cholesky_solve_helper _linalg_det _linalg_eigh _linalg_eigvals _linalg_slogdet _linalg_solve_ex
        _linalg_svd cholesky cholesky_inverse geqrf linalg_cholesky_ex linalg_cross linalg_eig
        linalg_householder_product linalg_inv_ex linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu
        linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp linalg_qr linalg_solve_triangular lu_unpack ormqr
        triangular_solve
    """,
    "transforms are pocketfft's on the CPU; none is written for a GPU yet": """
        _fft_c2c _fft_c2r _fft_r2c
    """,
    "convolutions, pooling, softmax and norms have no kernel yet": """
        col2im fractional_max_pool2d fractional_max_pool2d_backward fractional_max_pool3d
        fractional_max_pool3d_backward im2col max_unpool2d max_unpool3d renorm renorm_
    """,
    "losses have no kernel yet": """
        _ctc_loss _ctc_loss.Tensor _ctc_loss_backward _ctc_loss_backward.Tensor multi_margin_loss
        multi_margin_loss_backward multilabel_margin_loss_backward multilabel_margin_loss_forward
    """,
    "reading and writing at indices has no kernel yet": """
        _embedding_bag _embedding_bag_forward_only embedding_renorm_
    """,
    "random numbers have no kernel yet": """
        _standard_gamma _standard_gamma_grad multinomial poisson
    """,
    "scans, sorting and searching have no kernel yet": """
        _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _segment_reduce_backward
        histc histogram.bin_ct histogram.bins_tensor segment_reduce unique_dim unique_dim_consecutive
    """,
    "resampling has no kernel yet": """
        grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward
    """,
    "not written yet": """
        _amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _cdist_backward _cdist_forward
        _pdist_backward _pdist_forward copy_ linalg_vector_norm nonzero_static
    """,
}
MISSING = {name: reason for reason, names in NO_KERNEL.items() for name in names.split()}

UNDEFINED = "what lies in new memory is of undefined value"
LENGTHS = "lengths must be on the CPU, as PyTorch's"
NOT_ALIKE = {
    "empty.memory_format": UNDEFINED,
    "empty_strided": UNDEFINED,
    "empty_like": UNDEFINED,
    "new_empty": UNDEFINED,
    "new_empty_strided": UNDEFINED,
    "set_.source_Storage_storage_offset": "its storage stays on the CPU, and is refused",
    "get_device": "it tells where the tensor is",
    "_pack_padded_sequence": LENGTHS,
    "_pad_packed_sequence": LENGTHS,
    "_pack_padded_sequence_backward": LENGTHS,
    "lstm.data": LENGTHS,
    "gru.data": LENGTHS,
    "rnn_tanh.data": LENGTHS,
    "rnn_relu.data": LENGTHS,
}
