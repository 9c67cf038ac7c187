"""Softmax, log-softmax, their backwards and logsumexp on a GPU: a block for each row, which it reads once from afar and
then from the cache, or, where it is short, holds in registers.

Where the rows lie side by side (`inner` of them, as channels of an image do), a block takes 32, so that a warp reads
neighbours; `TOGETHER` says which. Operands are dense: an element of a row lies `inner` steps behind the one before.
Read next: losses.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.engine.primitives import maximum
from redispatch.kernels.engine.program import steps
from redispatch.kernels.maths.vecmath import exp, log
from redispatch.kernels.ops import moments, normalization
from redispatch.kernels.ops.reductions import reduced_dims

from ..compiler import CUDA as cuda
from ..runtime.structured import InParts, Task, around, define, dense, launched, work_of
from ..templates import (
    THREADS,
    WARP,
    Written,
    block_most,
    block_total,
    kept_by_thread,
    part,
    strip_most,
    strip_total,
    threads_for,
)

int64 = np.int64


@part
def row_of_thread(rows, size, inner):
    """The start of this thread's row; its first element there, the end of all, and the step to its next one."""
    thread = int64(cuda.threadIdx.x)
    index = int64(cuda.blockIdx.x) * TOGETHER + thread % TOGETHER
    outer = index // inner
    base = outer * size * inner + (index - outer * inner)
    return base, thread // TOGETHER, size if index < rows else int64(0), int64(cuda.blockDim.x) // TOGETHER


@part
def largest_of_row(x, base, first, end, each, inner, parts):
    most = lowest
    for j in steps(first, end, each):
        most = maximum(most, load_x(x[base + j * inner]))
    return combine_most(most, parts)


@part
def total_of_row(x, base, first, end, each, inner, most, parts):
    """The sum of exp(x - most)."""
    total = zero
    for j in steps(first, end, each):
        total += exp(load_x(x[base + j * inner]) - most)
    return combine_total(total, parts)


def softmax_rows(out, x, rows, size, inner):
    """exp(x - max) / sum(exp(x - max))"""
    parts = cuda.shared.array(THREADS, compute)
    base, first, end, each = row_of_thread(rows, size, inner)
    most = largest_of_row(x, base, first, end, each, inner, parts)
    total = total_of_row(x, base, first, end, each, inner, most, parts)
    scale, shift = one / total, log(total)
    for j in steps(first, end, each):
        value = load_x(x[base + j * inner]) - most
        out[base + j * inner] = store_out(value - shift if LOGARITHM else exp(value) * scale)


def softmax_short_rows(out, x, rows, size, inner):
    """The same, of rows whose elements are neighbours: a thread holds its KEPT elements, and reads each but once."""
    parts = cuda.shared.array(THREADS, compute)
    held = cuda.local.array(KEPT, compute)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    base = int64(cuda.blockIdx.x) * size
    most, total = lowest, zero
    for k in range(KEPT):
        j = thread + k * threads
        held[k] = load_x(x[base + j]) if j < size else lowest
        most = maximum(most, held[k])
    most = block_most(most, parts)
    for k in range(KEPT):
        value = held[k] - most
        power = exp(value)
        held[k] = value if LOGARITHM else power
        total += power
    total = block_total(total, parts)
    scale, shift = one / total, log(total)
    for k in range(KEPT):
        j = thread + k * threads
        if j < size:
            out[base + j] = store_out(held[k] - shift if LOGARITHM else held[k] * scale)


def softmax_backward_rows(out, grad, y, rows, size, inner):
    """y (grad - sum(grad y)) for y the softmax, grad - exp(y) sum(grad) for its logarithm."""
    parts = cuda.shared.array(THREADS, compute)
    base, first, end, each = row_of_thread(rows, size, inner)
    total = zero
    for j in steps(first, end, each):
        g = load_grad(grad[base + j * inner])
        total += g if LOGARITHM else g * load_y(y[base + j * inner])
    total = combine_total(total, parts)
    for j in steps(first, end, each):
        g, p = load_grad(grad[base + j * inner]), load_y(y[base + j * inner])
        out[base + j * inner] = store_out(g - exp(p) * total if LOGARITHM else p * (g - total))


def logsumexp_rows(out, x, rows, size, inner):
    """log(sum(exp(x))), relative to the largest element, unless that is infinite."""
    parts = cuda.shared.array(THREADS, compute)
    base, first, end, each = row_of_thread(rows, size, inner)
    most = largest_of_row(x, base, first, end, each, inner, parts)
    if most == lowest or most == -lowest:
        most = zero
    total = total_of_row(x, base, first, end, each, inner, most, parts)
    index = int64(cuda.blockIdx.x) * TOGETHER + int64(cuda.threadIdx.x)
    if int64(cuda.threadIdx.x) < TOGETHER and index < rows:
        out[index] = store_out(log(total) + most)


SOFTMAX, SOFTMAX_SHORT = Written(softmax_rows, ("out", "x")), Written(softmax_short_rows, ("out", "x"))
SOFTMAX_BACKWARD = Written(softmax_backward_rows, ("out", "grad", "y"))
LOGSUMEXP = Written(logsumexp_rows, ("out", "x"))
BY_BLOCK = {"combine_total": block_total, "combine_most": block_most}
BY_STRIP = {"combine_total": strip_total, "combine_most": strip_most}


def over_rows(written: Written, tensors: Sequence[Tensor], dim: int, **given: object) -> list[Task]:
    """A launch over all rows along `dim` of tensors that have one shape; the first is written."""
    outer, size, inner = around(tensors[-1]._shape, dim)
    if not tensors[0]._shape.numel():
        return []
    rows, together = outer * inner, WARP if inner >= WARP else 1
    dtypes = [x._dtype.name for x in tensors]
    compute = DTYPES[dtypes[-1]].compute
    given |= {"TOGETHER": together, "lowest": np.dtype(compute).type(-np.inf)}
    given |= BY_BLOCK if together == 1 else BY_STRIP
    threads = THREADS if together > 1 else threads_for(size)
    kept = kept_by_thread(size) if written is SOFTMAX and inner == 1 else 0
    if kept:
        written = SOFTMAX_SHORT
        given |= {"KEPT": kept}
    launch = written.launch(compute, dtypes, -(-rows // together), threads, **given)
    return [Task(launch, tuple(range(len(tensors))), (rows, size, inner))]


def work(written: Written, logarithm: bool) -> Any:
    def launches(out: Tensor, *args: Any) -> list[Task]:
        *tensors, dim, _ = args
        return over_rows(written, (out, *tensors), dim, LOGARITHM=logarithm)

    return launches


for _op, _written, _logarithm in (
    (normalization.softmax_data_op, SOFTMAX, False),
    (normalization.log_softmax_data_op, SOFTMAX, True),
    (normalization.softmax_backward_op, SOFTMAX_BACKWARD, False),
    (normalization.log_softmax_backward_op, SOFTMAX_BACKWARD, True),
):
    work_of(_op, dense=_op.names[:-2])(work(_written, _logarithm))


def logsumexp(self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """Over several dimensions, which are put in a row first."""
    meta = moments.logsumexp.op.meta_function(self, dim, keepdim)
    result = meta.allocate()
    dims = reduced_dims(dim, len(self._shape))
    if self._dtype is not meta.dtype:
        self = self.to(meta.dtype)
    if len(dims) != 1:
        kept = [d for d in range(len(self._shape)) if d not in dims]
        self = self.permute([*kept, *dims]).reshape([math.prod(self._shape[d] for d in kept), -1 if dims else 1])
        dims = (1,)
    tensors = [result, dense(self)]
    launched(over_rows(LOGSUMEXP, tensors, dims[0]), tensors)
    return result


define(InParts(moments.logsumexp.op, logsumexp))
