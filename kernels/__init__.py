"""Loops over raw arrays: elementwise, reductions, indexing, random numbers, matrix products. No tensors here.

A kernel takes `Operand`s (a storage's flat array, and how to walk it) and writes into one. It allocates no result and
promotes no dtype: callers decide both. From one scalar function per operator come its loops; numba compiles them when
they are first used, and the machine code is kept on disk.

Read `operand.py`, `geometry.py`, `overlap.py`; then `program.py`, `compile.py`, `cache.py`, `pool.py`; then
`elementwise.py` and the families after it.
"""

from .argreduce import extreme_with_indices, ready_extreme
from .blas import addmm, bmm, matmul, mm, ready_addmm, ready_matmul
from .compile import Kernel
from .copy import arange, copy, fill, ready_cat, ready_copy, ready_fill
from .elementwise import Elementwise, Loop
from .geometry import (
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
from .indexing import (
    BadIndex,
    embedding,
    embedding_dense_backward,
    first_bad,
    gather,
    index,
    index_add,
    index_put,
    index_select,
    index_shape,
    scatter,
)
from .loss import nll_loss, nll_loss_backward
from .operand import DTYPES, DType, Operand, as_ndarray
from .overlap import has_internal_overlap, overlap
from .pool import get_num_threads, parallel_for, ready, serial_for, set_num_threads
from .program import integral, primitive
from .random import bernoulli, normal, randint, uniform
from .reduce import ALL, AMAX, AMIN, ANY, MEAN, PROD, SUM, Recipe, Reduction
from .scan import CUMPROD, CUMSUM, ready_cumulative_extreme, ready_logcumsumexp
from .softmax import (
    log_softmax,
    log_softmax_backward,
    ready_log_softmax,
    ready_log_softmax_backward,
    ready_softmax,
    ready_softmax_backward,
    softmax,
    softmax_backward,
)
from .vecmath import erf, exp, gelu, gelu_tanh, log, sigmoid, tanh

__all__ = [
    "ALL",
    "AMAX",
    "AMIN",
    "ANY",
    "BadIndex",
    "CUMPROD",
    "CUMSUM",
    "DTYPES",
    "DType",
    "Elementwise",
    "Kernel",
    "Loop",
    "MEAN",
    "Operand",
    "PROD",
    "Recipe",
    "Reduction",
    "SUM",
    "addmm",
    "arange",
    "as_ndarray",
    "bernoulli",
    "bmm",
    "broadcast_shapes",
    "broadcast_strides",
    "check_view",
    "contiguous_strides",
    "copy",
    "embedding",
    "embedding_dense_backward",
    "erf",
    "exp",
    "extreme_with_indices",
    "fill",
    "first_bad",
    "gather",
    "gelu",
    "gelu_tanh",
    "get_num_threads",
    "has_internal_overlap",
    "index",
    "index_add",
    "index_put",
    "index_select",
    "index_shape",
    "infer_view_strides",
    "integral",
    "is_contiguous",
    "is_dense",
    "last_element",
    "log",
    "log_softmax",
    "log_softmax_backward",
    "matmul",
    "mm",
    "nll_loss",
    "nll_loss_backward",
    "normal",
    "numel",
    "output_strides",
    "overlap",
    "parallel_for",
    "primitive",
    "randint",
    "ready",
    "ready_addmm",
    "ready_cat",
    "ready_copy",
    "ready_cumulative_extreme",
    "ready_extreme",
    "ready_fill",
    "ready_log_softmax",
    "ready_log_softmax_backward",
    "ready_logcumsumexp",
    "ready_matmul",
    "ready_softmax",
    "ready_softmax_backward",
    "scatter",
    "serial_for",
    "set_num_threads",
    "sigmoid",
    "softmax",
    "softmax_backward",
    "tanh",
    "uniform",
]
