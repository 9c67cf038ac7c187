"""Which operators refuse which dtypes: all that are not here are computed. `make parity` compares with PyTorch.

Where an operator says so itself (`refuses`, kernels/declare/declare.py), it is not listed. A letter stands for a dtype;
read next: OpInfo.refused, tests/op_db/test_dtypes.py.
"""

from redispatch.dispatch import OpOverload
from redispatch.kernels.declare.declare import DECLARED

LETTERS = {
    "b": "bool",
    "u": "uint8",
    "c": "int8",
    "s": "int16",
    "i": "int32",
    "l": "int64",
    "h": "float16",
    "g": "bfloat16",
    "f": "float32",
    "d": "float64",
    "F": "complex64",
    "D": "complex128",
}

REFUSED_BY = {
    "hgFD": """
        fft_rfft fft_ihfft fft_rfft2 fft_ihfft2 fft_rfftn fft_ihfftn
    """,
    "hg": """
        fft_fft fft_ifft fft_irfft fft_hfft fft_fft2 fft_ifft2 fft_irfft2 fft_hfft2 fft_fftn fft_ifftn
        fft_irfftn fft_hfftn
        binomial
    """,
    "bucsilhgfd": """
        istft _fft_c2r _fft_c2c
        _conj _conj_copy imag view_as_real view_as_real_copy
    """,
    "bucsilFD": """
        _grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward _native_multi_head_attention
        _scaled_dot_product_efficient_attention _scaled_dot_product_efficient_attention_backward mkldnn_rnn_layer
        native_batch_norm_backward native_group_norm_backward fft_fftfreq fft_rfftfreq adaptive_max_pool2d
        adaptive_max_pool2d_backward fractional_max_pool2d fractional_max_pool2d_backward adaptive_max_pool3d
        adaptive_max_pool3d_backward fractional_max_pool3d fractional_max_pool3d_backward max_unpool2d max_unpool3d
        adaptive_max_pool1d max_pool2d_with_indices_backward max_pool3d_with_indices_backward
        _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward bartlett_window bartlett_window.periodic
        blackman_window blackman_window.periodic cauchy_ hamming_window hamming_window.periodic
        hamming_window.periodic_alpha hamming_window.periodic_alpha_beta hann_window hann_window.periodic kaiser_window
        kaiser_window.beta kaiser_window.periodic log_normal_ multinomial poisson special_softmax special_log_softmax
        grid_sampler grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward _fused_adam_
        _fused_adamw_ native_layer_norm_backward _amp_foreach_non_finite_check_and_unscale_ alpha_dropout
        feature_dropout feature_alpha_dropout upsample_linear1d upsample_linear1d.vec upsample_trilinear3d
        upsample_trilinear3d.vec upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward
        _upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward
        upsample_linear1d_backward upsample_bilinear2d_backward upsample_trilinear3d_backward
        upsample_bicubic2d_backward cosine_similarity nanmean segment_reduce _segment_reduce_backward
        _embedding_bag_forward_only embedding_bag embedding_bag.padding_idx _adaptive_avg_pool2d _adaptive_avg_pool3d
        _embedding_bag _log_softmax _log_softmax_backward_data _native_batch_norm_legit
        _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training _scaled_dot_product_attention_math
        _softmax _softmax_backward_data adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d batch_norm bernoulli
        cross_entropy_loss dropout exponential_ group_norm histc instance_norm layer_norm log_softmax.int
        native_batch_norm native_group_norm native_layer_norm nll_loss nll_loss2d nll_loss2d_backward nll_loss2d_forward
        nll_loss_backward nll_loss_forward nll_loss_nd normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor
        scaled_dot_product_attention softmax.int
    """,
    "FD": """
        bernoulli_.Tensor nansum cosine_embedding_loss _unique _unique2 amax amin aminmax argsort argsort.stable
        bernoulli.p cummax cummin max max.dim max.other min min.dim min.other mode msort random_ sort sort.stable
        unique_consecutive unique_dim unique_dim_consecutive
    """,
    "bFD": """
        _addmm_activation rnn_relu.input rnn_relu.data rnn_relu_cell geometric_ range range.step divide.Tensor_mode
        hinge_embedding_loss margin_ranking_loss isin.Scalar_Tensor isin.Tensor_Scalar isin.Tensor_Tensor _safe_softmax
        _scaled_dot_product_flash_attention_for_cpu arange.start_step argmax argmin div.Tensor_mode kthvalue max_pool1d
        max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d max_pool3d_with_indices median median.dim
        nanmedian nanmedian.dim randint randint.generator randint_like random_.to randperm randperm.generator topk
    """,
    "b": """
        _convolution _convolution.deprecated _convolution_mode conv_tbc convolution conv1d conv1d.padding conv2d
        conv2d.padding conv3d conv3d.padding conv_transpose1d conv_transpose2d.input conv_transpose3d.input thnn_conv2d
        slow_conv3d rnn_tanh_cell triplet_margin_loss pairwise_distance linspace.Scalar_Tensor linspace.Tensor_Scalar
        linspace.Tensor_Tensor logspace logspace.Scalar_Tensor logspace.Tensor_Scalar logspace.Tensor_Tensor
        affine_grid_generator affine_grid_generator_backward _foreach_add_.Scalar vdot _pad_enum reflection_pad1d
        reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d trapezoid.x trapezoid.dx
        trapz.x trapz.dx cumulative_trapezoid.x cumulative_trapezoid.dx _trilinear bilinear inner addmm addmv baddbmm
        bmm bucketize.Tensor dot einsum linear linspace matmul mm mv searchsorted.Tensor tensordot trace addbmm
        chain_matmul cross linalg_cross linalg_matmul linalg_matrix_power linalg_multi_dot matrix_power
    """,
    "bucsil": """
        rms_norm norm_except_dim _weight_norm requires_grad_ lstm.input lstm.data lstm_cell gru.input gru.data gru_cell
        rnn_tanh.input rnn_tanh.data dist embedding_renorm_ frobenius_norm.dim linalg_matrix_norm
        linalg_matrix_norm.str_ord linalg_norm linalg_norm.ord_str linalg_vector_norm logcumsumexp mean mean.dim
        native_dropout norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype normal.float_float
        normal_ rand rand.generator rand_like randn randn.generator randn_like reflection_pad1d_backward
        reflection_pad2d_backward reflection_pad3d_backward renorm replication_pad1d_backward replication_pad2d_backward
        replication_pad3d_backward std std.correction std.dim std_mean std_mean.correction std_mean.dim uniform_ var
        var.correction var.dim var_mean var_mean.correction var_mean.dim linalg_matrix_exp linalg_vecdot matrix_exp
    """,
    "bucsilhg": """
        stft stft.center
        _cholesky_solve_helper _linalg_det _linalg_eigh _linalg_eigvals _linalg_slogdet _linalg_solve_ex
        _linalg_svd _lu_with_info cholesky cholesky_inverse cholesky_solve det geqrf inverse linalg_cholesky
        linalg_cholesky_ex linalg_det linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
        linalg_householder_product linalg_inv linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex
        linalg_ldl_solve linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_qr linalg_slogdet
        linalg_solve linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals logdet lu_solve
        nuclear_norm nuclear_norm.dim orgqr ormqr qr slogdet svd triangular_solve
        linalg_cond linalg_cond.p_str linalg_lstsq linalg_matrix_rank linalg_matrix_rank.atol_rtol_float
        linalg_matrix_rank.atol_rtol_tensor linalg_matrix_rank.tol_tensor linalg_pinv
        linalg_pinv.atol_rtol_float linalg_pinv.atol_rtol_tensor linalg_pinv.rcond_tensor linalg_tensorinv
        linalg_tensorsolve pinverse
    """,
    "bhgfdFD": """
        bincount
    """,
    "bcsilFD": """
        upsample_nearest1d upsample_nearest1d.vec upsample_nearest2d upsample_nearest2d.vec upsample_nearest3d
        upsample_nearest3d.vec _upsample_nearest_exact1d _upsample_nearest_exact1d.vec _upsample_nearest_exact2d
        _upsample_nearest_exact2d.vec _upsample_nearest_exact3d _upsample_nearest_exact3d.vec upsample_bilinear2d
        upsample_bilinear2d.vec upsample_bicubic2d upsample_bicubic2d.vec
    """,
    "bcsilhgFD": """
        _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa _upsample_bilinear2d_aa.vec
        _upsample_bicubic2d_aa.vec _upsample_lanczos2d_aa.vec
    """,
    "bucsiFD": """
        avg_pool1d avg_pool2d avg_pool2d_backward
    """,
    "bucsihgFD": """
        avg_pool3d avg_pool3d_backward
    """,
    "buFD": """
        hardtanh randint.low randint.low_generator randint_like.low_dtype random_.from
    """,
    "bucsilhgFD": """
        _standard_gamma _standard_gamma_grad
        _cdist_backward _pdist_backward
        _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa_backward
        _ctc_loss _ctc_loss.Tensor ctc_loss.IntList ctc_loss.Tensor multi_margin_loss multi_margin_loss_backward
        multilabel_margin_loss multilabel_margin_loss_backward multilabel_margin_loss_forward
        _cdist_forward _pdist_forward cdist pdist
        _fft_r2c quantile quantile.scalar nanquantile nanquantile.scalar histogram.bin_ct histogram.bins_tensor
        histogramdd histogramdd.int_bins histogramdd.TensorList_bins _histogramdd_bin_edges
        _histogramdd_from_bin_cts _histogramdd_from_bin_tensors
        complex polar view_as_complex view_as_complex_copy
    """,
    "bucsihgfdFD": """
        one_hot
    """,
    "bucshgfdFD": """
        repeat_interleave.Tensor
    """,
    "ucsil": """
        im2col col2im
    """,
    "bu": """
        gradient.scalarint gradient.scalararray gradient.array gradient.scalarrayint gradient.scalarrayarray
        gradient.tensorarrayint gradient.tensorarray
    """,
    "bhg": """
        linalg_vander
    """,
    "buc": """
        view.dtype view_copy.dtype
    """,
}

REFUSED = {
    name: frozenset(LETTERS[x] for x in letters) for letters, names in REFUSED_BY.items() for name in names.split()
}


def refused_by(op: OpOverload) -> frozenset[str]:
    """Returns the names of the dtypes that an operator refuses, by its declaration and by the list above."""
    declared = DECLARED.get(op)
    listed = REFUSED.get(op.qualified_name.removeprefix("aten::"), frozenset())
    return listed if declared is None else listed.union(declared.refuses)


# Their samples need numbers that these dtypes do not hold.
NOT_SAMPLED: dict[str, tuple[str, ...]] = {
    "_neg_view": ("bool",),
    "_neg_view_copy": ("bool",),
    "retain_grad": ("bool", "uint8", "int8", "int16", "int32", "int64"),
    "cov": ("bool",),
    "corrcoef": ("bool", "complex64", "complex128"),
    "binomial": ("bool", "uint8", "int8", "int16", "int32", "int64", "complex64", "complex128"),  # a ValueError
    "max_pool2d_with_indices_backward": ("bfloat16",),
    "max_pool3d_with_indices_backward": ("bfloat16",),
    "avg_pool2d_backward": ("bfloat16",),
    "avg_pool3d_backward": ("bfloat16",),
    "searchsorted.Tensor": ("complex64", "complex128"),
    "searchsorted.Scalar": ("complex64", "complex128"),
    "bucketize.Tensor": ("complex64", "complex128"),
    "bucketize.Scalar": ("complex64", "complex128"),
    "_pdist_forward": ("bool",),
    "_scaled_dot_product_flash_attention_for_cpu": ("uint8", "int8", "int16", "int32", "int64"),
    "_scaled_dot_product_efficient_attention": ("uint8", "int8", "int16", "int32", "int64"),
    "_scaled_dot_product_efficient_attention_backward": (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "complex64",
        "complex128",
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "complex64",
        "complex128",
    ),
    "_safe_softmax": ("uint8", "int8", "int16", "int32", "int64"),
    "_ctc_loss_backward": (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "complex64",
        "complex128",
    ),
    "_ctc_loss_backward.Tensor": (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "complex64",
        "complex128",
    ),
}
