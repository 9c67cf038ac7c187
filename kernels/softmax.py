"""Softmax and log-softmax along one dimension, forward and backward.

Each row is gathered once into a dense scratch row of the compute type (float32 for 16-bit floats), where the passes
over it run as vectors whatever the strides are, and written back once. The largest element is subtracted first, so that
exp cannot overflow; a row with NaN, or of nothing but -inf, becomes NaN, as in PyTorch. Read next: `indexing.py`.
"""

from collections.abc import Callable

import numpy as np

from .compile import Entry, Kernel
from .convert import array_type, load, real_type, store
from .elementwise import offset_of
from .operand import DTYPES, Operand
from .order import keys
from .pool import parallel_for
from .reduce import REASSOCIATE, larger, reduce_plan
from .vecmath import exp, log

uint64 = np.uint64


def load_one(x):
    return x


def store_one(x):
    return x


def to_key(x):
    return x


def from_key(key):
    return key


lowest = np.int64(0)
zero = np.float64(0)


def softmax_loop(lo, hi, kept, to, from_, size, step_to, step_from, out, out_at, x, x_at, row):
    """out = exp(x - max) / sum(exp(x - max)) for rows lo <= i < hi."""
    for i in range(lo, hi):
        base = x_at + offset_of(i, len(kept), kept, from_, 0)
        target = out_at + offset_of(i, len(kept), kept, to, 0)
        best = lowest
        for j in range(size):
            row[uint64(j)] = load_one(x[uint64(base + j * step_from)])
        for j in range(size):
            best = larger(best, to_key(row[uint64(j)]))
        top, total = from_key(best), zero
        for j in range(size):
            row[uint64(j)] = exp(row[uint64(j)] - top)
        for j in range(size):
            total += row[uint64(j)]
        for j in range(size):
            out[uint64(target + j * step_to)] = store_one(row[uint64(j)] / total)


def log_softmax_loop(lo, hi, kept, to, from_, size, step_to, step_from, out, out_at, x, x_at, row):
    """out = x - max - log(sum(exp(x - max))) for rows lo <= i < hi."""
    for i in range(lo, hi):
        base = x_at + offset_of(i, len(kept), kept, from_, 0)
        target = out_at + offset_of(i, len(kept), kept, to, 0)
        best = lowest
        for j in range(size):
            row[uint64(j)] = load_one(x[uint64(base + j * step_from)])
        for j in range(size):
            best = larger(best, to_key(row[uint64(j)]))
        top, total = from_key(best), zero
        for j in range(size):
            total += exp(row[uint64(j)] - top)
        shift = log(total)
        for j in range(size):
            out[uint64(target + j * step_to)] = store_one((row[uint64(j)] - top) - shift)


def softmax_backward_loop(
    lo, hi, kept, to, from_, saved, size, step_to, step_from, step_saved, out, out_at, grad, grad_at, y, y_at
):
    """out = y * (grad - sum(grad * y)), where y is the softmax."""
    for i in range(lo, hi):
        base = grad_at + offset_of(i, len(kept), kept, from_, 0)
        y_base = y_at + offset_of(i, len(kept), kept, saved, 0)
        target = out_at + offset_of(i, len(kept), kept, to, 0)
        total = zero
        for j in range(size):
            total += load_one(grad[uint64(base + j * step_from)]) * load_one(y[uint64(y_base + j * step_saved)])
        for j in range(size):
            g, p = load_one(grad[uint64(base + j * step_from)]), load_one(y[uint64(y_base + j * step_saved)])
            out[uint64(target + j * step_to)] = store_one(p * (g - total))


def log_softmax_backward_loop(
    lo, hi, kept, to, from_, saved, size, step_to, step_from, step_saved, out, out_at, grad, grad_at, y, y_at
):
    """out = grad - exp(y) * sum(grad), where y is the log-softmax."""
    for i in range(lo, hi):
        base = grad_at + offset_of(i, len(kept), kept, from_, 0)
        y_base = y_at + offset_of(i, len(kept), kept, saved, 0)
        target = out_at + offset_of(i, len(kept), kept, to, 0)
        total = zero
        for j in range(size):
            total += load_one(grad[uint64(base + j * step_from)])
        for j in range(size):
            g, p = load_one(grad[uint64(base + j * step_from)]), load_one(y[uint64(y_base + j * step_saved)])
            out[uint64(target + j * step_to)] = store_one(g - exp(p) * total)


_ENTRIES: dict[tuple[Callable, str, str], Entry] = {}


def _entry(loop: Callable, dtype: str, out_dtype: str, saved: bool) -> Entry:
    entry = _ENTRIES.get((loop, dtype, out_dtype))
    if entry is None:
        compute = DTYPES[dtype].compute
        key, back, start = keys(dtype, True)
        given: dict[str, object] = {
            "load_one": load(dtype),
            "store_one": store(out_dtype),
            "to_key": key,
            "from_key": back,
        }
        given |= {"lowest": start, "zero": np.dtype(compute).type(0)}
        # "reassoc" for the sums over a row, see `reduce.py`; the subtraction of the maximum is not affected
        kernel = Kernel(loop, given=given, real=real_type(dtype), fastmath=REASSOCIATE)
        arrays = [array_type(out_dtype), "int64", array_type(dtype), "int64"]
        if saved:
            signature = ["int64[]"] * 4 + ["int64"] * 4 + arrays + [array_type(dtype), "int64"]
        else:
            signature = ["int64[]"] * 3 + ["int64"] * 3 + arrays + [f"{compute}[]"]
        entry = _ENTRIES[loop, dtype, out_dtype] = kernel.entry("int64", "int64", *signature)
    return entry


def _with_dim(x: Operand) -> Operand:
    return x if x.shape else x._replace(shape=(1,), strides=(1,))


def _forward(loop: Callable, out: Operand, x: Operand, dim: int) -> None:
    out, x = _with_dim(out), _with_dim(x)
    walk = reduce_plan(x.shape, x.strides, (dim,), (out.strides,), True)
    if walk.results == 0 or walk.elements == 0:
        return
    entry = _entry(loop, x.dtype, out.dtype, False)
    args = (walk.kept, *walk.kept_outs, walk.kept_in, walk.elements, out.strides[dim], x.strides[dim])
    args += (out.array, out.offset, x.array, x.offset)
    scratch = np.dtype(DTYPES[x.dtype].compute)

    def rows(lo: int, hi: int) -> None:
        entry(lo, hi, *args, np.empty(walk.elements, scratch))

    parallel_for(rows, walk.results, (), 8 * walk.elements)


def _backward(loop: Callable, out: Operand, grad: Operand, y: Operand, dim: int) -> None:
    out, grad, y = _with_dim(out), _with_dim(grad), _with_dim(y)
    walk = reduce_plan(grad.shape, grad.strides, (dim,), (out.strides, y.strides), True)
    if walk.results == 0 or walk.elements == 0:
        return
    to, saved = walk.kept_outs
    args = (walk.kept, to, walk.kept_in, saved, walk.elements, out.strides[dim], grad.strides[dim], y.strides[dim])
    ends = (out.array, out.offset, grad.array, grad.offset, y.array, y.offset)
    parallel_for(_entry(loop, grad.dtype, out.dtype, True), walk.results, args + ends, 8 * walk.elements)


def softmax(out: Operand, x: Operand, dim: int) -> None:
    """Softmax of `x` along `dim` into `out`, of the same shape. Floating dtypes; they may differ."""
    _forward(softmax_loop, out, x, dim)


def log_softmax(out: Operand, x: Operand, dim: int) -> None:
    """The logarithm of the softmax, without leaving the range of the dtype in between."""
    _forward(log_softmax_loop, out, x, dim)


def softmax_backward(out: Operand, grad: Operand, y: Operand, dim: int) -> None:
    """The gradient of `softmax`, from that of its result `y`. `grad` and `y` have one dtype."""
    _backward(softmax_backward_loop, out, grad, y, dim)


def log_softmax_backward(out: Operand, grad: Operand, y: Operand, dim: int) -> None:
    """The gradient of `log_softmax`, from that of its result `y`. `grad` and `y` have one dtype."""
    _backward(log_softmax_backward_loop, out, grad, y, dim)
