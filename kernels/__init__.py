"""Loops over raw arrays: elementwise, reductions, indexing, random numbers, matrix products. No tensors here.

A kernel takes `Operand`s (a storage's flat array, and how to walk it) and writes into one. It allocates no result and
promotes no dtype: callers decide both. From one scalar function per operator come its loops; numba compiles them when
they are first used, and the machine code is kept on disk.

Read `operand.py`, `geometry.py`, `overlap.py`; then `program.py`, `compile.py`, `cache.py`, `pool.py`; then
`elementwise.py` and the families after it.
"""

from .argreduce import extreme_with_indices
from .blas import addmm, bmm, matmul, mm
from .compile import Kernel
from .copy import arange, copy, fill
from .elementwise import Elementwise
from .geometry import (
    broadcast_shapes,
    broadcast_strides,
    check_view,
    contiguous_strides,
    infer_view_strides,
    is_contiguous,
    is_dense,
    numel,
    output_strides,
)
from .operand import DTYPES, DType, Operand, as_ndarray
from .overlap import has_internal_overlap, overlap
from .pool import get_num_threads, parallel_for, set_num_threads
from .program import integral, primitive
from .reduce import ALL, AMAX, AMIN, ANY, MEAN, PROD, SUM, Reduction
from .vecmath import erf, exp, gelu, gelu_tanh, log, sigmoid, tanh

__all__ = [
    "ALL",
    "AMAX",
    "AMIN",
    "ANY",
    "DTYPES",
    "DType",
    "Elementwise",
    "Kernel",
    "MEAN",
    "Operand",
    "PROD",
    "Reduction",
    "SUM",
    "addmm",
    "arange",
    "as_ndarray",
    "bmm",
    "broadcast_shapes",
    "broadcast_strides",
    "check_view",
    "contiguous_strides",
    "copy",
    "erf",
    "exp",
    "extreme_with_indices",
    "fill",
    "gelu",
    "gelu_tanh",
    "get_num_threads",
    "has_internal_overlap",
    "infer_view_strides",
    "integral",
    "is_contiguous",
    "is_dense",
    "log",
    "matmul",
    "mm",
    "numel",
    "output_strides",
    "overlap",
    "parallel_for",
    "primitive",
    "set_num_threads",
    "sigmoid",
    "tanh",
]
