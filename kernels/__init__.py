"""Loops over raw arrays: elementwise, reductions, indexing, random numbers, matrix products. No tensors here.

A kernel takes `Operand`s (a storage's flat array, and how to walk it) and writes into one. It allocates no result and
promotes no dtype: callers decide both. From one scalar function per operator come its loops; they are compiled when
they are first used, and the machine code is kept on disk.

Read `operand.py`, `geometry.py`; then `program.py`, `compile.py`, `translate/`, `cache.py`, `pool.py`; then
`elementwise.py` and the families after it.
"""

from redispatch.dispatch.tensor.geometry import (
    broadcast_shapes,
    broadcast_strides,
    check_view,
    contiguous_strides,
    infer_view_strides,
    is_contiguous,
    is_dense,
    last_element,
    numel,
    output_strides,
)
from redispatch.dispatch.tensor.operand import (
    DTYPES,
    TARGET,
    DType,
    Operand,
    Target,
    as_ndarray,
    cached_by_target,
    do_not_cache,
    has_internal_overlap,
    memory,
    numbers,
    on_target,
    overlap,
)

from .cpu import lapack, pooling
from .cpu.adam import ADAM_LOOP
from .cpu.attention import Attention, blas_takes
from .cpu.blas import matmul, ready_addmm, ready_matmul
from .cpu.convolution import Depthwise, Product, Windows, add_to_channels
from .cpu.copy import arange, copy, fill, ready_cat, ready_copy, ready_fill
from .cpu.direct_convolution import direct
from .cpu.distances import distances, distances_of_pairs
from .cpu.indexing import (
    BadIndex,
    embedding_dense_backward,
    first_bad,
    gather,
    index,
    index_add,
    index_put,
    index_select,
    index_shape,
    ready_embedding,
    ready_index,
    ready_index_put,
    scatter,
)
from .cpu.losses import (
    CTC,
    CTC_BACKWARD,
    MULTI_LABEL,
    MULTI_LABEL_BACKWARD,
    MULTI_MARGIN,
    MULTI_MARGIN_BACKWARD,
    ready_nll_loss,
    ready_nll_loss_backward,
)
from .cpu.normalize import LOG_SOFTMAX, SOFTMAX, ready_layer_norm, ready_layer_norm_backward
from .cpu.parametric import chances, counts, normals, places
from .cpu.random import bernoulli, blocks, exponential, normal, permutation, randint, uniform
from .cpu.reduce import ALL, AMAX, AMIN, ANY, MEAN, NANSUM, PROD, SUM, Recipe, Reduction
from .cpu.scan import COMPLEX_LOGCUMSUMEXP, CUMPROD, CUMSUM, LOGCUMSUMEXP, ready_cumulative_extreme, ready_extreme
from .cpu.sort import ready_mode, ready_rank, ready_sort, ready_top
from .cpu.twister import FILLS, Twister
from .engine.compile import Kernel, busiest_loop
from .engine.elementwise import Elementwise, Loop, usually
from .engine.pool import get_num_threads, parallel_for, ready, serial_for, set_num_threads
from .engine.program import integral, primitive
from .maths import special
from .maths.vecmath import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cos_moderate,
    cosh,
    digamma,
    digamma_positive,
    erf,
    erfc,
    erfinv,
    exp,
    exp2,
    expm1,
    gelu,
    gelu_tanh,
    is_moderate,
    is_ordinary_power,
    is_positive,
    lgamma,
    lgamma_positive,
    log,
    log1p,
    log2,
    log10,
    log_sigmoid,
    logit,
    mish,
    polygamma,
    pow,
    pow_ordinary,
    quotient,
    sigmoid,
    silu,
    sin,
    sin_moderate,
    sinh,
    softplus,
    tan,
    tan_moderate,
    tanh,
    trigamma,
)
