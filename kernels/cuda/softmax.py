"""Softmax and log-softmax on a GPU, forward and backward: a block for each row, which it reads once from afar and then
from the cache.

Where the rows lie side by side (`inner` of them, as channels of an image do), a block takes 32, so that a warp reads
neighbours; `TOGETHER` says which. Operands are dense: an element of a row lies `inner` steps behind the one before.
Read next: losses.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES

from ..engine.primitives import maximum
from ..maths.vecmath import exp, log
from .compiler import CUDA as cuda
from .launch import Launch
from .templates import THREADS, WARP, Written, block_most, block_total, steps, strip_most, strip_total, threads_for

int64 = np.int64


def softmax_rows(out, x, rows, size, inner):
    """exp(x - max) / sum(exp(x - max))"""
    parts = cuda.shared.array(THREADS, compute)
    thread, each = int64(cuda.threadIdx.x), int64(cuda.blockDim.x) // TOGETHER
    index = int64(cuda.blockIdx.x) * TOGETHER + thread % TOGETHER
    outer = index // inner
    base = outer * size * inner + (index - outer * inner)
    end = size if index < rows else int64(0)
    most, total = lowest, zero
    for j in steps(thread // TOGETHER, end, each):
        most = maximum(most, load_x(x[base + j * inner]))
    most = combine_most(most, parts)
    for j in steps(thread // TOGETHER, end, each):
        total += exp(load_x(x[base + j * inner]) - most)
    total = combine_total(total, parts)
    scale, shift = one / total, log(total)
    for j in steps(thread // TOGETHER, end, each):
        value = load_x(x[base + j * inner]) - most
        out[base + j * inner] = store_out(value - shift if LOGARITHM else exp(value) * scale)


def softmax_backward_rows(out, grad, y, rows, size, inner):
    """y (grad - sum(grad y)) for y the softmax, grad - exp(y) sum(grad) for its logarithm."""
    parts = cuda.shared.array(THREADS, compute)
    thread, each = int64(cuda.threadIdx.x), int64(cuda.blockDim.x) // TOGETHER
    index = int64(cuda.blockIdx.x) * TOGETHER + thread % TOGETHER
    outer = index // inner
    base = outer * size * inner + (index - outer * inner)
    end = size if index < rows else int64(0)
    total = zero
    for j in steps(thread // TOGETHER, end, each):
        g = load_grad(grad[base + j * inner])
        total += g if LOGARITHM else g * load_y(y[base + j * inner])
    total = combine_total(total, parts)
    for j in steps(thread // TOGETHER, end, each):
        g, p = load_grad(grad[base + j * inner]), load_y(y[base + j * inner])
        out[base + j * inner] = store_out(g - exp(p) * total if LOGARITHM else p * (g - total))


def logsumexp_rows(out, x, rows, size, inner):
    """log(sum(exp(x))), relative to the largest element, unless that is infinite."""
    parts = cuda.shared.array(THREADS, compute)
    thread, each = int64(cuda.threadIdx.x), int64(cuda.blockDim.x) // TOGETHER
    index = int64(cuda.blockIdx.x) * TOGETHER + thread % TOGETHER
    outer = index // inner
    base = outer * size * inner + (index - outer * inner)
    end = size if index < rows else int64(0)
    most, total = lowest, zero
    for j in steps(thread // TOGETHER, end, each):
        most = maximum(most, load_x(x[base + j * inner]))
    most = combine_most(most, parts)
    if most == lowest or most == -lowest:
        most = zero
    for j in steps(thread // TOGETHER, end, each):
        total += exp(load_x(x[base + j * inner]) - most)
    total = combine_total(total, parts)
    if thread < TOGETHER and index < rows:
        out[index] = store_out(log(total) + most)


SOFTMAX = Written(softmax_rows, ("out", "x"))
SOFTMAX_BACKWARD = Written(softmax_backward_rows, ("out", "grad", "y"))
LOGSUMEXP = Written(logsumexp_rows, ("out", "x"))


def over_rows(
    written: Written, dtypes: tuple[str, ...], outer: int, size: int, inner: int, **given: object
) -> tuple[Launch, tuple[int, ...]]:
    """The launch for `outer * inner` rows of `size`, the inner of which lie side by side, and what it is told."""
    rows, together = outer * inner, WARP if inner >= WARP else 1
    compute = DTYPES[dtypes[-1]].compute
    combine: dict[str, Callable] = (
        {"combine_total": strip_total, "combine_most": strip_most}
        if together > 1
        else {"combine_total": block_total, "combine_most": block_most}
    )
    lowest = np.dtype(compute).type(-np.inf)
    kernel = written.kernel(compute, dtypes, TOGETHER=together, lowest=lowest, **combine, **given)
    threads = THREADS if together > 1 else threads_for(size)
    return Launch(kernel, (-(-rows // together), 1, 1), (threads, 1, 1)), (rows, size, inner)
