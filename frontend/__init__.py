"""redispatch: PyTorch's dispatcher, small enough to read in an evening and open enough to change at run time.

    import redispatch as rd
    x = rd.ones(2, 3, requires_grad=True)
    with rd.trace() as hops:
        y = (x * 2).sum()
    print(hops)

This file is the public face: every name of `redispatch.X`, by the room that it comes from. Read the rooms in the order
dispatch, tensor, kernels, ops, autograd; docs/architecture.md draws them.
"""

from ._collector import resume as _resume  # isort: split

from importlib import import_module as _import_module
from math import e, inf, nan, pi
from sys import modules as _modules
from typing import TYPE_CHECKING
from typing import Any as _Any

from redispatch.dispatch import (
    AcceleratorError,
    DispatchKey,
    DispatchKeySet,
    Hop,
    OutOfMemoryError,
    Tag,
    breakpoint,
    define_backend,
    define_key,
    ops,
)
from redispatch.dispatch.config import config
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    UntypedStorage,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    dtype,
    dtypes,
    finfo,
    get_default_dtype,
    iinfo,
    jagged,
    layout,
    memory_format,
    preserve_format,
    set_default_dtype,
    set_printoptions,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from redispatch.dispatch.tensor.dtypes import (
    bfloat16,
    bool,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    float,
    float16,
    float32,
    float64,
    half,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    short,
    uint8,
)
from redispatch.dispatch.transforms.regions import (
    _disable_functionalization,
    _enable_functionalization,
    _from_functional_tensor,
    _functionalize_commit_update,
    _functionalize_has_data_mutation,
    _functionalize_has_metadata_mutation,
    _functionalize_mutation_counter,
    _functionalize_replace,
    _functionalize_sync,
    _is_functional_tensor,
    _is_functional_tensor_base,
    _sync,
    _to_functional_tensor,
)
from redispatch.kernels import get_num_threads, set_num_threads
from redispatch.kernels.declare import return_types
from redispatch.kernels.ops import random
from redispatch.kernels.ops.activations import celu, hardshrink, logit, prelu, relu, selu, sigmoid, threshold
from redispatch.kernels.ops.added_products import addbmm, addr
from redispatch.kernels.ops.aliases import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    clip,
    divide,
    fix,
    greater,
    greater_equal,
    less,
    less_equal,
    multiply,
    negative,
    not_equal,
    positive,
    subtract,
    true_divide,
)
from redispatch.kernels.ops.arithmetic import (
    add,
    div,
    floor_divide,
    fmod,
    maximum,
    minimum,
    mul,
    pow,
    remainder,
    rsub,
    square,
    sub,
)
from redispatch.kernels.ops.arrangements import (
    block_diag,
    broadcast_shapes,
    cartesian_prod,
    combinations,
    dsplit,
    hsplit,
    nonzero_static,
    rot90,
    slice_inverse,
    unravel_index,
    unsafe_chunk,
    unsafe_split,
    unsafe_split_with_sizes,
    vsplit,
)
from redispatch.kernels.ops.batch_norm import (
    batch_norm,
    group_norm,
    instance_norm,
    native_batch_norm,
    native_group_norm,
    rms_norm,
)
from redispatch.kernels.ops.bilinear import bilinear
from redispatch.kernels.ops.binary import (
    bitwise_left_shift,
    bitwise_right_shift,
    copysign,
    float_power,
    fmax,
    fmin,
    gcd,
    heaviside,
    hypot,
    lcm,
    logaddexp,
    logaddexp2,
    xlogy,
)
from redispatch.kernels.ops.cholesky import cholesky, cholesky_inverse, cholesky_solve
from redispatch.kernels.ops.comparison import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    eq,
    ge,
    gt,
    isfinite,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    ne,
    where,
)
from redispatch.kernels.ops.complex_numbers import (
    _conj,
    _conj_physical,
    _neg_view,
    conj,
    conj_physical,
    conj_physical_,
    imag,
    real,
    resolve_conj,
    resolve_neg,
    view_as_complex,
    view_as_real,
)
from redispatch.kernels.ops.constant_pad import constant_pad_nd
from redispatch.kernels.ops.contractions import inner, kron, tensordot, trace
from redispatch.kernels.ops.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    convolution,
)
from redispatch.kernels.ops.convolution_forms import conv_tbc
from redispatch.kernels.ops.copying import (
    allclose,
    clone,
    detach,
    detach_,
    equal,
    fill,
    fill_,
    is_nonzero,
    isclose,
    resize_as_,
    zero_,
)
from redispatch.kernels.ops.creation import (
    arange,
    empty,
    empty_like,
    empty_strided,
    eye,
    full,
    full_like,
    ones,
    ones_like,
    scalar_tensor,
    zeros,
    zeros_like,
)
from redispatch.kernels.ops.ctc import ctc_loss
from redispatch.kernels.ops.determinants import det, logdet, slogdet
from redispatch.kernels.ops.diagonals import diag, diag_embed, diagflat, diff
from redispatch.kernels.ops.distances import cdist, cosine_similarity, pairwise_distance, pdist
from redispatch.kernels.ops.distributions import binomial, multinomial, poisson
from redispatch.kernels.ops.dropout import (
    alpha_dropout,
    alpha_dropout_,
    dropout,
    dropout_,
    feature_alpha_dropout,
    feature_alpha_dropout_,
    feature_dropout,
    feature_dropout_,
    native_dropout,
)
from redispatch.kernels.ops.dtype_questions import can_cast, promote_types, result_type
from redispatch.kernels.ops.einsum import einsum
from redispatch.kernels.ops.elementary import (
    abs,
    ceil,
    exp,
    exp2,
    expm1,
    floor,
    log,
    log1p,
    log2,
    log10,
    neg,
    reciprocal,
    rsqrt,
    sgn,
    sign,
    sqrt,
    trunc,
)
from redispatch.kernels.ops.embedding_bag import embedding_bag
from redispatch.kernels.ops.extremes import amax, amin, aminmax, argmax, argmin, max, min
from redispatch.kernels.ops.fake_quantize import fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine
from redispatch.kernels.ops.float_parts import (
    deg2rad,
    frac,
    frexp,
    isneginf,
    isposinf,
    isreal,
    ldexp,
    nan_to_num,
    nextafter,
    rad2deg,
    round,
    signbit,
    sinc,
)
from redispatch.kernels.ops.from_data import (
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    frombuffer,
    is_complex,
    is_floating_point,
    is_tensor,
    numel,
    tensor,
)
from redispatch.kernels.ops.gamma_draws import _standard_gamma, _standard_gamma_grad
from redispatch.kernels.ops.grid_sampling import affine_grid_generator, grid_sampler, grid_sampler_2d, grid_sampler_3d
from redispatch.kernels.ops.histograms import histogram, histogramdd
from redispatch.kernels.ops.indexing import index_put
from redispatch.kernels.ops.inquiries import (
    get_device,
    is_conj,
    is_distributed,
    is_inference,
    is_neg,
    is_same_size,
    is_signed,
)
from redispatch.kernels.ops.integrals import cumulative_trapezoid, gradient, trapezoid, trapz
from redispatch.kernels.ops.legacy import TYPES as _LEGACY_TYPES
from redispatch.kernels.ops.legacy import Storage, TypedStorage
from redispatch.kernels.ops.linalg import addmm, addmv, baddbmm, bmm, dot, ger, matmul, mm, mv, outer, vdot
from redispatch.kernels.ops.loss_scaling import _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_
from redispatch.kernels.ops.low_rank import pca_lowrank, svd_lowrank
from redispatch.kernels.ops.lu import lu, lu_solve, lu_unpack
from redispatch.kernels.ops.margin_losses import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    triplet_margin_loss,
)
from redispatch.kernels.ops.matrix_functions import chain_matmul, cross, matrix_exp, matrix_power, vander
from redispatch.kernels.ops.max_pooling import (
    adaptive_max_pool1d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool3d,
)
from redispatch.kernels.ops.mean_pooling import adaptive_avg_pool1d, avg_pool1d
from redispatch.kernels.ops.moments import logsumexp, std, var
from redispatch.kernels.ops.normalization import layer_norm, native_layer_norm
from redispatch.kernels.ops.norms import dist, frobenius_norm, norm, nuclear_norm, renorm
from redispatch.kernels.ops.number_forms import clamp, clamp_max, clamp_min
from redispatch.kernels.ops.older_forms import norm_except_dim
from redispatch.kernels.ops.orthogonal import geqrf, orgqr, ormqr, qr
from redispatch.kernels.ops.pair_losses import binary_cross_entropy_with_logits, kl_div, poisson_nll_loss
from redispatch.kernels.ops.polar import angle, polar
from redispatch.kernels.ops.polar import complex_ as complex
from redispatch.kernels.ops.pseudo_inverse import pinverse
from redispatch.kernels.ops.random import (
    Generator,
    bernoulli,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)
from redispatch.kernels.ops.ranges import empty_permuted, linspace, logspace, range, tril_indices, triu_indices
from redispatch.kernels.ops.recurrent import (
    gru,
    gru_cell,
    lstm,
    lstm_cell,
    rnn_relu,
    rnn_relu_cell,
    rnn_tanh,
    rnn_tanh_cell,
)
from redispatch.kernels.ops.reductions import all, any, count_nonzero, mean, prod, sum
from redispatch.kernels.ops.replacing import index_copy, index_fill, masked_scatter, put, take
from redispatch.kernels.ops.rrelu import rrelu, rrelu_
from redispatch.kernels.ops.scans import cummax, cummin, cumprod, cumsum, logcumsumexp
from redispatch.kernels.ops.scatter_gather import (
    argwhere,
    embedding,
    embedding_renorm_,
    gather,
    index_add,
    index_select,
    masked_fill,
    masked_select,
    nonzero,
    scatter,
    scatter_add,
    take_along_dim,
)
from redispatch.kernels.ops.scatter_reduce import index_reduce, scatter_reduce
from redispatch.kernels.ops.scattering import as_strided_scatter, diagonal_scatter, select_scatter, slice_scatter
from redispatch.kernels.ops.searching import bincount, bucketize, histc, isin, searchsorted, unique, unique_consecutive
from redispatch.kernels.ops.segments import segment_reduce
from redispatch.kernels.ops.shape import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_tensors,
    cat,
    column_stack,
    concat,
    concatenate,
    dstack,
    flip,
    fliplr,
    flipud,
    hstack,
    meshgrid,
    repeat_interleave,
    roll,
    row_stack,
    stack,
    tile,
    tril,
    triu,
    vstack,
)
from redispatch.kernels.ops.shuffles import channel_shuffle, native_channel_shuffle, pixel_shuffle, pixel_unshuffle
from redispatch.kernels.ops.softmax import log_softmax, softmax
from redispatch.kernels.ops.solving import inverse, triangular_solve
from redispatch.kernels.ops.sorting import argsort, kthvalue, median, mode, msort, nanmedian, sort, topk
from redispatch.kernels.ops.special import digamma, erf, erfc, erfinv, i0, igamma, igammac, lgamma, mvlgamma, polygamma
from redispatch.kernels.ops.spectra import svd
from redispatch.kernels.ops.statistics import corrcoef, cov, nanmean, nanquantile, nansum, quantile, std_mean, var_mean
from redispatch.kernels.ops.stft import istft, stft
from redispatch.kernels.ops.ternary import addcdiv, addcmul, lerp
from redispatch.kernels.ops.trigonometry import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
from redispatch.kernels.ops.view_copies import (
    _conj_copy,
    _neg_view_copy,
    alias_copy,
    as_strided_copy,
    detach_copy,
    diagonal_copy,
    expand_copy,
    narrow_copy,
    permute_copy,
    select_copy,
    slice_copy,
    split_copy,
    split_with_sizes_copy,
    squeeze_copy,
    t_copy,
    transpose_copy,
    unbind_copy,
    unfold_copy,
    unsqueeze_copy,
    view_as_complex_copy,
    view_as_real_copy,
    view_copy,
)
from redispatch.kernels.ops.views import (
    adjoint,
    as_strided,
    as_strided_,
    broadcast_to,
    chunk,
    diagonal,
    flatten,
    moveaxis,
    movedim,
    narrow,
    permute,
    ravel,
    reshape,
    select,
    split,
    split_with_sizes,
    squeeze,
    swapaxes,
    swapdims,
    t,
    tensor_split,
    transpose,
    unbind,
    unflatten,
    unsqueeze,
)
from redispatch.kernels.ops.windows import bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window
from redispatch.kernels.ops.written_over import (
    abs_,
    acos_,
    acosh_,
    addmv_,
    arccos_,
    arccosh_,
    arcsin_,
    arcsinh_,
    arctan_,
    arctanh_,
    asin_,
    asinh_,
    atan_,
    atanh_,
    ceil_,
    celu_,
    clamp_,
    clamp_max_,
    clamp_min_,
    clip_,
    cos_,
    cosh_,
    deg2rad_,
    erf_,
    erfc_,
    exp2_,
    exp_,
    expm1_,
    fix_,
    floor_,
    frac_,
    gcd_,
    index_put_,
    lcm_,
    ldexp_,
    log1p_,
    log2_,
    log10_,
    log_,
    logit_,
    nan_to_num_,
    neg_,
    negative_,
    rad2deg_,
    reciprocal_,
    relu_,
    round_,
    rsqrt_,
    selu_,
    sigmoid_,
    sin_,
    sinc_,
    sinh_,
    sqrt_,
    square_,
    tan_,
    tanh_,
    threshold_,
    trunc_,
    xlogy_,
)
from redispatch.kernels.ops.zero_tensors import _efficientzerotensor

from . import _C, _ops, amp, autograd, backends, cuda, fft, func, library, linalg, overrides, utils
from . import _future as __future__
from . import ops as _operators
from ._C import DisableTorchFunction, DisableTorchFunctionSubclass
from ._higher_order_ops import cond, while_loop
from ._moved import enter as _enter_former_paths
from .amp import autocast, is_autocast_available
from .amp.by_device import (
    cpu,
    get_autocast_cpu_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cpu_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_gpu_dtype,
)
from .amp.functions import (
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .autograd import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_anomaly_enabled,
    set_grad_enabled,
)
from .func import vmap
from .utils import type_names as types
from .utils._device import get_default_device, set_default_device
from .utils.install import install
from .utils.settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    get_num_interop_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_storage,
    is_vulkan_available,
    is_warn_always_enabled,
    set_default_tensor_type,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_warn_always,
    typename,
    use_deterministic_algorithms,
)
from .utils.symbolic import (
    SymBool,
    SymFloat,
    SymInt,
    sym_float,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    sym_sqrt,
    sym_sum,
)
from .viz import explain

__version__ = "0.1.0"
newaxis = None  # as an index, a dimension of size 1

globals().update(_LEGACY_TYPES)  # FloatTensor, LongStorage and so on


if TYPE_CHECKING:
    from . import (
        accelerator,
        array_api,
        backend,
        compiler,
        distributions,
        functional,
        nn,
        optim,
        profiler,
        serialization,
        special,
        testing,
        viz,
    )
    from .backend import get_device_module
    from .compiler import compile
    from .serialization import load, save
    from .utils.dlpack import to_dlpack

# Imported when first asked for: what not every program uses, and would be a third of the time of `import redispatch`.
_LATE = (
    "_subclasses",
    "accelerator",
    "array_api",
    "backend",
    "compiler",
    "distributions",
    "functional",
    "fx",
    "nn",
    "optim",
    "profiler",
    "serialization",
    "special",
    "testing",
)
_LATE_NAMES = {
    "compile": "compiler",
    "to_dlpack": "utils.dlpack",
    "load": "serialization",
    "save": "serialization",
    "get_device_module": "backend",
    "_register_device_module": "utils.backend_registration",
}


def __getattr__(name: str) -> _Any:
    """A part of the library that is imported late."""
    if name in _LATE:
        return _import_module(f"{__name__}.{name}")
    if name in _LATE_NAMES:
        return getattr(_import_module(f"{__name__}.{_LATE_NAMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, *_LATE_NAMES})


# So that `from redispatch.types import Number` finds them. Files of these names in the root would hide Python's own.
_modules[f"{__name__}.types"] = types
_modules[f"{__name__}.random"] = random
_modules[f"{__name__}.return_types"] = return_types
_modules[f"{__name__}.__future__"] = __future__
_enter_former_paths()
_resume()
