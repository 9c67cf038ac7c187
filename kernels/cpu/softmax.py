"""Softmax and log-softmax along one dimension, forward and backward.

The largest element of a row is subtracted first, so that exp cannot overflow; a row with NaN, or of nothing but -inf,
becomes NaN, as in PyTorch. Rows that are dense, or few, are worked out in place. Where columns
lie side by side, many are worked out at once. Any other row is gathered once into a dense scratch row of the compute
type (float32 for 16-bit floats), where the passes over it run as vectors, and written back once.
Read next: `indexing.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand
from redispatch.dispatch.tensor.target import ByTarget

from ..engine.compile import Entry, Kernel
from ..engine.convert import array_type, load, real_type, store
from ..engine.elementwise import offset_of
from ..engine.pool import ready
from ..engine.primitives import maximum
from ..maths.vecmath import exp, log
from .reduce import REASSOCIATE, ReducePlan, reduce_plan

STRIP = 128  # columns that are worked out together
FEW_COLUMNS = 8  # fewer are gathered one by one
FEW = 128  # so many elements are read with any stride in less time than a scratch row takes to be allocated
uint64 = np.uint64

# --- the loops. The names right below stand for what `_entry` passes to `Kernel(given=...)`. --------------------------


def load_one(x):
    return x


def store_one(x):
    return x


lowest = np.float64(0)
zero, one = np.float64(0), np.float64(1)


def softmax_in_place(lo, hi, rows, out, out_at, x, x_at):
    """`softmax_loop` for an `out` of the compute type and rows one step apart: they are worked out where they will be.

    rows: the steps from row to row of `out` and `x`, the size of one, the steps within it.
    """
    to, from_, size, step_to, step_from = rows[0], rows[1], rows[2], rows[3], rows[4]
    for i in range(lo, hi):
        base, target = x_at + i * from_, out_at + i * to
        top, total = lowest, zero
        for j in range(size):
            top = maximum(top, load_one(x[uint64(base + j * step_from)]))
        for j in range(size):
            part = exp(load_one(x[uint64(base + j * step_from)]) - top)
            out[uint64(target + j * step_to)] = part
            total += part
        scale = one / total
        for j in range(size):
            out[uint64(target + j * step_to)] = out[uint64(target + j * step_to)] * scale


def log_softmax_in_place(lo, hi, rows, out, out_at, x, x_at):
    """`log_softmax_loop` without a scratch row."""
    to, from_, size, step_to, step_from = rows[0], rows[1], rows[2], rows[3], rows[4]
    for i in range(lo, hi):
        base, target = x_at + i * from_, out_at + i * to
        top, total = lowest, zero
        for j in range(size):
            top = maximum(top, load_one(x[uint64(base + j * step_from)]))
        for j in range(size):
            total += exp(load_one(x[uint64(base + j * step_from)]) - top)
        shift = log(total)
        for j in range(size):
            out[uint64(target + j * step_to)] = store_one((load_one(x[uint64(base + j * step_from)]) - top) - shift)


def softmax_loop(lo, hi, kept, to, from_, size, step_to, step_from, out, out_at, x, x_at, row):
    """out = exp(x - max) / sum(exp(x - max)) for rows lo <= i < hi."""
    for i in range(lo, hi):
        base = x_at + offset_of(i, len(kept), kept, from_, 0)
        target = out_at + offset_of(i, len(kept), kept, to, 0)
        top, total = lowest, zero
        for j in range(size):
            row[uint64(j)] = load_one(x[uint64(base + j * step_from)])
        for j in range(size):
            top = maximum(top, row[uint64(j)])
        for j in range(size):
            part = exp(row[uint64(j)] - top)
            row[uint64(j)] = part
            total += part
        scale = one / total
        for j in range(size):
            out[uint64(target + j * step_to)] = store_one(row[uint64(j)] * scale)


def log_softmax_loop(lo, hi, kept, to, from_, size, step_to, step_from, out, out_at, x, x_at, row):
    """out = x - max - log(sum(exp(x - max))) for rows lo <= i < hi."""
    for i in range(lo, hi):
        base = x_at + offset_of(i, len(kept), kept, from_, 0)
        target = out_at + offset_of(i, len(kept), kept, to, 0)
        top, total = lowest, zero
        for j in range(size):
            row[uint64(j)] = load_one(x[uint64(base + j * step_from)])
        for j in range(size):
            top = maximum(top, row[uint64(j)])
        for j in range(size):
            total += exp(row[uint64(j)] - top)
        shift = log(total)
        for j in range(size):
            out[uint64(target + j * step_to)] = store_one((row[uint64(j)] - top) - shift)


def softmax_columns(lo, hi, kept, to, from_, size, step_to, step_from, out, out_at, x, x_at, tops, totals):
    """`softmax_in_place` for strips lo <= s < hi of neighbouring columns, whose elements lie side by side."""
    dims = len(kept) - 1
    strips = (kept[dims] + STRIP - 1) // STRIP
    for s in range(lo, hi):
        group = s // strips
        first = (s - group * strips) * STRIP
        width = min(STRIP, kept[dims] - first)
        base = x_at + first + offset_of(group, dims, kept, from_, 0)
        target = out_at + first + offset_of(group, dims, kept, to, 0)
        for k in range(width):
            tops[uint64(k)], totals[uint64(k)] = lowest, zero
        for j in range(size):
            at = base + j * step_from
            for k in range(width):
                tops[uint64(k)] = maximum(tops[uint64(k)], load_one(x[uint64(at + k)]))
        for j in range(size):
            at, put = base + j * step_from, target + j * step_to
            for k in range(width):
                part = exp(load_one(x[uint64(at + k)]) - tops[uint64(k)])
                out[uint64(put + k)] = part
                totals[uint64(k)] += part
        for k in range(width):
            totals[uint64(k)] = one / totals[uint64(k)]
        for j in range(size):
            put = target + j * step_to
            for k in range(width):
                out[uint64(put + k)] = out[uint64(put + k)] * totals[uint64(k)]


def log_softmax_columns(lo, hi, kept, to, from_, size, step_to, step_from, out, out_at, x, x_at, tops, totals):
    """`log_softmax_loop` for strips of neighbouring columns."""
    dims = len(kept) - 1
    strips = (kept[dims] + STRIP - 1) // STRIP
    for s in range(lo, hi):
        group = s // strips
        first = (s - group * strips) * STRIP
        width = min(STRIP, kept[dims] - first)
        base = x_at + first + offset_of(group, dims, kept, from_, 0)
        target = out_at + first + offset_of(group, dims, kept, to, 0)
        for k in range(width):
            tops[uint64(k)], totals[uint64(k)] = lowest, zero
        for j in range(size):
            at = base + j * step_from
            for k in range(width):
                tops[uint64(k)] = maximum(tops[uint64(k)], load_one(x[uint64(at + k)]))
        for j in range(size):
            at = base + j * step_from
            for k in range(width):
                totals[uint64(k)] += exp(load_one(x[uint64(at + k)]) - tops[uint64(k)])
        for k in range(width):
            totals[uint64(k)] = log(totals[uint64(k)])
        for j in range(size):
            at, put = base + j * step_from, target + j * step_to
            for k in range(width):
                out[uint64(put + k)] = store_one((load_one(x[uint64(at + k)]) - tops[uint64(k)]) - totals[uint64(k)])


def softmax_backward_loop(lo, hi, kept, to, from_, saved, steps, out, out_at, grad, grad_at, y, y_at):
    """out = y * (grad - sum(grad * y)), where y is the softmax. steps: those in a row of out, grad and y; its size."""
    step_to, step_from, step_saved, size = steps[0], steps[1], steps[2], steps[3]
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


def log_softmax_backward_loop(lo, hi, kept, to, from_, saved, steps, out, out_at, grad, grad_at, y, y_at):
    """out = grad - exp(y) * sum(grad), where y is the log-softmax."""
    step_to, step_from, step_saved, size = steps[0], steps[1], steps[2], steps[3]
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


def softmax_backward_columns(lo, hi, kept, to, from_, saved, steps, out, out_at, grad, grad_at, y, y_at, totals):
    """`softmax_backward_loop` for strips of neighbouring columns."""
    step_to, step_from, step_saved, size = steps[0], steps[1], steps[2], steps[3]
    dims = len(kept) - 1
    strips = (kept[dims] + STRIP - 1) // STRIP
    for s in range(lo, hi):
        group = s // strips
        first = (s - group * strips) * STRIP
        width = min(STRIP, kept[dims] - first)
        base = grad_at + first + offset_of(group, dims, kept, from_, 0)
        y_base = y_at + first + offset_of(group, dims, kept, saved, 0)
        target = out_at + first + offset_of(group, dims, kept, to, 0)
        for k in range(width):
            totals[uint64(k)] = zero
        for j in range(size):
            at, y_row = base + j * step_from, y_base + j * step_saved
            for k in range(width):
                totals[uint64(k)] += load_one(grad[uint64(at + k)]) * load_one(y[uint64(y_row + k)])
        for j in range(size):
            at, y_row, put = base + j * step_from, y_base + j * step_saved, target + j * step_to
            for k in range(width):
                g, p = load_one(grad[uint64(at + k)]), load_one(y[uint64(y_row + k)])
                out[uint64(put + k)] = store_one(p * (g - totals[uint64(k)]))


def log_softmax_backward_columns(lo, hi, kept, to, from_, saved, steps, out, out_at, grad, grad_at, y, y_at, totals):
    """`log_softmax_backward_loop` for strips of neighbouring columns."""
    step_to, step_from, step_saved, size = steps[0], steps[1], steps[2], steps[3]
    dims = len(kept) - 1
    strips = (kept[dims] + STRIP - 1) // STRIP
    for s in range(lo, hi):
        group = s // strips
        first = (s - group * strips) * STRIP
        width = min(STRIP, kept[dims] - first)
        base = grad_at + first + offset_of(group, dims, kept, from_, 0)
        y_base = y_at + first + offset_of(group, dims, kept, saved, 0)
        target = out_at + first + offset_of(group, dims, kept, to, 0)
        for k in range(width):
            totals[uint64(k)] = zero
        for j in range(size):
            at = base + j * step_from
            for k in range(width):
                totals[uint64(k)] += load_one(grad[uint64(at + k)])
        for j in range(size):
            at, y_row, put = base + j * step_from, y_base + j * step_saved, target + j * step_to
            for k in range(width):
                g, p = load_one(grad[uint64(at + k)]), load_one(y[uint64(y_row + k)])
                out[uint64(put + k)] = store_one(g - exp(p) * totals[uint64(k)])


_BACKWARD = (softmax_backward_loop, log_softmax_backward_loop)
_BACKWARD_COLUMNS = (softmax_backward_columns, log_softmax_backward_columns)
_ENTRIES = ByTarget()


def _entry(loop: Callable, dtype: str, out_dtype: str) -> Entry:
    entry = _ENTRIES.get((loop, dtype, out_dtype))
    if entry is None:
        compute = DTYPES[dtype].compute
        given: dict[str, object] = {
            "load_one": load(dtype),
            "store_one": store(out_dtype),
            "lowest": np.dtype(compute).type(-np.inf),
            "zero": np.dtype(compute).type(0),
            "one": np.dtype(compute).type(1),
        }
        # "reassoc" for the sums over a row, see `reduce.py`; the subtraction of the maximum is not affected
        kernel = Kernel(loop, given=given, real=real_type(dtype), fastmath=REASSOCIATE)
        arrays = [array_type(out_dtype), "int64", array_type(dtype), "int64"]
        if loop in (*_BACKWARD, *_BACKWARD_COLUMNS):
            scratch = [f"{compute}[]"] * (loop in _BACKWARD_COLUMNS)
            signature = ["int64[]"] * 5 + arrays + [array_type(dtype), "int64"] + scratch
        elif loop in (softmax_in_place, log_softmax_in_place):
            signature = ["int64[]", *arrays]
        else:
            scratch = [f"{compute}[]"] * (2 if loop in (softmax_columns, log_softmax_columns) else 1)
            signature = ["int64[]"] * 3 + ["int64"] * 3 + arrays + scratch
        entry = _ENTRIES[loop, dtype, out_dtype] = kernel.entry("int64", "int64", *signature)
    return entry


def _with_dim(x: Operand) -> Operand:
    return x if x.shape else x._replace(shape=(1,), strides=(1,))


def side_by_side(walk: ReducePlan) -> bool:
    """Whether neighbouring rows lie side by side in all operands, and are many enough to be worked out at once."""
    steps = (walk.kept_in, *walk.kept_outs)
    return walk.elements > 1 and walk.kept[-1] >= FEW_COLUMNS and all(step[-1] == 1 for step in steps)


def _ready_forward(
    loop: Callable, in_place: Callable, columns: Callable | None, out: Operand, x: Operand, dim: int
) -> Callable[..., object]:
    out, x = _with_dim(out), _with_dim(x)
    walk = reduce_plan(x.shape, x.strides, (dim,), (out.strides,), True)
    count, (to,) = walk.results if walk.elements else 0, walk.kept_outs
    size, step_to, step_from, cost = walk.elements, out.strides[dim], x.strides[dim], 8 * walk.elements
    scratch = DTYPES[x.dtype].compute
    if out.dtype == scratch and len(to) == 1 and (step_to == step_from == 1 or count * size <= FEW):
        rows = np.array([to[0], walk.kept_in[0], size, step_to, step_from], np.int64)
        return ready(_entry(in_place, x.dtype, out.dtype), count, (rows,), cost)
    if columns is not None and side_by_side(walk):
        tables = (walk.kept, to, walk.kept_in, size, step_to, step_from)
        return _ready_columns(_entry(columns, x.dtype, out.dtype), walk, tables, 2, scratch)
    entry = _entry(loop, x.dtype, out.dtype)

    def with_scratch(lo: int, hi: int, *arrays: Any) -> None:
        entry(lo, hi, walk.kept, to, walk.kept_in, size, step_to, step_from, *arrays, np.empty(size, scratch))

    return ready(with_scratch, count, (), cost)


def _ready_columns(
    entry: Entry, walk: ReducePlan, tables: tuple, scratches: int, compute: str
) -> Callable[..., object]:
    """A loop over strips of columns, with scratch memory of its own for each chunk of them."""
    width = int(walk.kept[-1])

    def strips(lo: int, hi: int, *arrays: Any) -> None:
        entry(lo, hi, *tables, *arrays, *[np.empty(STRIP, compute) for _ in range(scratches)])

    return ready(strips, -(-width // STRIP) * (walk.results // width), (), 8 * walk.elements * min(STRIP, width))


def _ready_backward(loop: Callable, out: Operand, grad: Operand, y: Operand, dim: int) -> Callable[..., object]:
    out, grad, y = _with_dim(out), _with_dim(grad), _with_dim(y)
    walk = reduce_plan(grad.shape, grad.strides, (dim,), (out.strides, y.strides), True)
    to, saved = walk.kept_outs
    steps = np.array([out.strides[dim], grad.strides[dim], y.strides[dim], walk.elements], np.int64)
    tables = (walk.kept, to, walk.kept_in, saved, steps)
    if side_by_side(walk):
        entry = _entry(_BACKWARD_COLUMNS[_BACKWARD.index(loop)], grad.dtype, out.dtype)
        return _ready_columns(entry, walk, tables, 1, DTYPES[grad.dtype].compute)
    count = walk.results if walk.elements else 0
    return ready(_entry(loop, grad.dtype, out.dtype), count, tables, 8 * walk.elements)


# Each function below has a form for callers that remember what is to be done for operands that look alike: it returns
# `f(out, out_at, x, x_at)`, with a third array and its offset in backward, which does it.


def ready_softmax(out: Operand, x: Operand, dim: int) -> Callable[..., object]:
    # columns work in `out`, which 16-bit floats would round
    columns = softmax_columns if DTYPES[x.dtype].compute == out.dtype else None
    return _ready_forward(softmax_loop, softmax_in_place, columns, out, x, dim)


def ready_log_softmax(out: Operand, x: Operand, dim: int) -> Callable[..., object]:
    return _ready_forward(log_softmax_loop, log_softmax_in_place, log_softmax_columns, out, x, dim)


def ready_softmax_backward(out: Operand, grad: Operand, y: Operand, dim: int) -> Callable[..., object]:
    return _ready_backward(softmax_backward_loop, out, grad, y, dim)


def ready_log_softmax_backward(out: Operand, grad: Operand, y: Operand, dim: int) -> Callable[..., object]:
    return _ready_backward(log_softmax_backward_loop, out, grad, y, dim)


def softmax(out: Operand, x: Operand, dim: int) -> None:
    """Softmax of `x` along `dim` into `out`, of the same shape. Floating dtypes; they may differ."""
    ready_softmax(out, x, dim)(out.array, out.offset, x.array, x.offset)


def log_softmax(out: Operand, x: Operand, dim: int) -> None:
    """The logarithm of the softmax, without leaving the range of the dtype in between."""
    ready_log_softmax(out, x, dim)(out.array, out.offset, x.array, x.offset)


def softmax_backward(out: Operand, grad: Operand, y: Operand, dim: int) -> None:
    """The gradient of `softmax`, from that of its result `y`. `grad` and `y` have one dtype."""
    ready = ready_softmax_backward(out, grad, y, dim)
    ready(out.array, out.offset, grad.array, grad.offset, y.array, y.offset)


def log_softmax_backward(out: Operand, grad: Operand, y: Operand, dim: int) -> None:
    """The gradient of `log_softmax`, from that of its result `y`. `grad` and `y` have one dtype."""
    ready = ready_log_softmax_backward(out, grad, y, dim)
    ready(out.array, out.offset, grad.array, grad.offset, y.array, y.offset)
