"""Softmax and log-softmax along one dimension, forward and backward.

The largest element of a row is subtracted first, so that exp cannot overflow; a row with NaN, or of nothing but -inf,
becomes NaN, as in PyTorch. Rows that are dense, or few, are worked out in place. Where columns
lie side by side, many are worked out at once. Any other row is gathered once into a dense scratch row of the compute
type (float32 for 16-bit floats), where the passes over it run as vectors, and written back once.
Read next: `indexing.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand

from ..engine.compile import Entry
from ..engine.elementwise import offset_of
from ..engine.pool import ready
from ..engine.primitives import maximum
from ..engine.template import Template, load_x, lowest, store_out, zero
from ..maths.vecmath import exp, log
from .reduce import REASSOCIATE, ReducePlan, reduce_plan

STRIP = 128  # columns that are worked out together
FEW_COLUMNS = 8  # fewer are gathered one by one
FEW = 128  # so many elements are read with any stride in less time than a scratch row takes to be allocated
uint64 = np.uint64

# --- what differs between the two -------------------------------------------------------------------------------------


def reciprocal(total):
    return 1.0 / total


def share(part, below_top, scale):
    return part * scale


def logarithm_of_share(part, below_top, shift):
    return below_top - shift


def product(grad, y):
    return grad * y


def alone(grad, y):
    return grad


def softmax_gradient(grad, y, total):
    return y * (grad - total)


def log_softmax_gradient(grad, y, total):
    return grad - exp(y) * total


# --- the loops. These names stand for those of `Softmax`. -------------------------------------------------------------

keeps, settled, finished, term, gradient = True, reciprocal, share, product, softmax_gradient


def in_place_loop(lo, hi, rows, out, out_at, x, x_at):
    """`gathered_loop` for an `out` of the compute type and rows one step apart: they are worked out where they will be.

    rows: the steps from row to row of `out` and `x`, the size of one, the steps within it.
    """
    to, from_, size, step_to, step_from = rows[0], rows[1], rows[2], rows[3], rows[4]
    for i in range(lo, hi):
        base, target = x_at + i * from_, out_at + i * to
        top, total = lowest, zero
        for j in range(size):
            top = maximum(top, load_x(x[uint64(base + j * step_from)]))
        for j in range(size):
            part = exp(load_x(x[uint64(base + j * step_from)]) - top)
            if keeps:
                out[uint64(target + j * step_to)] = part
            total += part
        rest = settled(total)
        for j in range(size):
            at, below_top = uint64(target + j * step_to), load_x(x[uint64(base + j * step_from)]) - top
            out[at] = store_out(finished(out[at], below_top, rest))


def gathered_loop(lo, hi, kept, to, from_, size, step_to, step_from, out, out_at, x, x_at, row):
    """out = exp(x - max) / sum(exp(x - max)), or its logarithm, for rows lo <= i < hi."""
    for i in range(lo, hi):
        base = x_at + offset_of(i, len(kept), kept, from_, 0)
        target = out_at + offset_of(i, len(kept), kept, to, 0)
        top, total = lowest, zero
        for j in range(size):
            row[uint64(j)] = load_x(x[uint64(base + j * step_from)])
        for j in range(size):
            top = maximum(top, row[uint64(j)])
        for j in range(size):
            part = exp(row[uint64(j)] - top)
            if keeps:
                row[uint64(j)] = part
            total += part
        rest = settled(total)
        for j in range(size):
            out[uint64(target + j * step_to)] = store_out(finished(row[uint64(j)], row[uint64(j)] - top, rest))


def columns_loop(lo, hi, kept, to, from_, size, step_to, step_from, out, out_at, x, x_at, tops, totals):
    """`in_place_loop` for strips lo <= s < hi of neighbouring columns, whose elements lie side by side."""
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
                tops[uint64(k)] = maximum(tops[uint64(k)], load_x(x[uint64(at + k)]))
        for j in range(size):
            at, put = base + j * step_from, target + j * step_to
            for k in range(width):
                part = exp(load_x(x[uint64(at + k)]) - tops[uint64(k)])
                if keeps:
                    out[uint64(put + k)] = part
                totals[uint64(k)] += part
        for k in range(width):
            totals[uint64(k)] = settled(totals[uint64(k)])
        for j in range(size):
            at, put = base + j * step_from, target + j * step_to
            for k in range(width):
                below_top = load_x(x[uint64(at + k)]) - tops[uint64(k)]
                out[uint64(put + k)] = store_out(finished(out[uint64(put + k)], below_top, totals[uint64(k)]))


def backward_loop(lo, hi, kept, to, from_, saved, steps, out, out_at, grad, grad_at, y, y_at):
    """The gradient, where y is the result, for rows lo <= i < hi. steps: in a row of out, grad and y; its size."""
    step_to, step_from, step_saved, size = steps[0], steps[1], steps[2], steps[3]
    for i in range(lo, hi):
        base = grad_at + offset_of(i, len(kept), kept, from_, 0)
        y_base = y_at + offset_of(i, len(kept), kept, saved, 0)
        target = out_at + offset_of(i, len(kept), kept, to, 0)
        total = zero
        for j in range(size):
            total += term(load_x(grad[uint64(base + j * step_from)]), load_x(y[uint64(y_base + j * step_saved)]))
        for j in range(size):
            g, p = load_x(grad[uint64(base + j * step_from)]), load_x(y[uint64(y_base + j * step_saved)])
            out[uint64(target + j * step_to)] = store_out(gradient(g, p, total))


def backward_columns_loop(lo, hi, kept, to, from_, saved, steps, out, out_at, grad, grad_at, y, y_at, totals):
    """`backward_loop` for strips of neighbouring columns."""
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
                totals[uint64(k)] += term(load_x(grad[uint64(at + k)]), load_x(y[uint64(y_row + k)]))
        for j in range(size):
            at, y_row, put = base + j * step_from, y_base + j * step_saved, target + j * step_to
            for k in range(width):
                g, p = load_x(grad[uint64(at + k)]), load_x(y[uint64(y_row + k)])
                out[uint64(put + k)] = store_out(gradient(g, p, totals[uint64(k)]))


# "reassoc" for the sums over a row, see `reduce.py`; the subtraction of the maximum is not affected
IN_PLACE = Template(in_place_loop, "int64[] rows", "out[] out", "x[] x", fastmath=REASSOCIATE)
GATHERED = Template(
    gathered_loop, "int64[] kept to from_", "out[] out", "x[] x", "x.compute[] row", fastmath=REASSOCIATE
)
COLUMNS = Template(
    columns_loop, "int64[] kept to from_", "out[] out", "x[] x", "x.compute[] tops totals", fastmath=REASSOCIATE
)
BACKWARD = Template(backward_loop, "int64[] kept to from_ saved steps", "out[] out", "x[] grad y", fastmath=REASSOCIATE)
BACKWARD_COLUMNS = Template(
    backward_columns_loop,
    "int64[] kept to from_ saved steps",
    "out[] out",
    "x[] grad y",
    "x.compute[] totals",
    fastmath=REASSOCIATE,
)


class Softmax(NamedTuple):
    """Softmax, or its logarithm. `ready` is for all operands of such metadata: it returns `f(out, out_at, x, x_at)`.

    keeps: whether exp(x - max) is worked out but once, and stands where the result will until the sum is known.
    """

    name: str
    keeps: bool
    settled: Callable  # of the sum
    finished: Callable  # of exp(x - max), x - max and the settled sum
    term: Callable  # of the gradient and the result, in the sum that the gradient of `x` needs
    gradient: Callable

    def ready(self, out: Operand, x: Operand, dim: int) -> Callable[..., object]:
        """Prepares the loop that fills `out`, of the shape of `x`, along `dim`. Floating dtypes; they may differ."""
        out, x = _with_dim(out), _with_dim(x)
        walk = reduce_plan(x.shape, x.strides, (dim,), (out.strides,), True)
        count, (to,) = walk.results if walk.elements else 0, walk.kept_outs
        size, step_to, step_from, cost = walk.elements, out.strides[dim], x.strides[dim], 8 * walk.elements
        compute = DTYPES[x.dtype].compute
        if out.dtype == compute and len(to) == 1 and (step_to == step_from == 1 or count * size <= FEW):
            rows = np.array([to[0], walk.kept_in[0], size, step_to, step_from], np.int64)
            return ready(self.forward(IN_PLACE, x.dtype, out.dtype), count, (rows,), cost)
        tables = (walk.kept, to, walk.kept_in, size, step_to, step_from)
        if side_by_side(walk) and (out.dtype == compute or not self.keeps):
            return ready_columns(self.forward(COLUMNS, x.dtype, out.dtype), walk, tables, 2, compute)
        entry = self.forward(GATHERED, x.dtype, out.dtype)

        def with_scratch(lo: int, hi: int, *arrays: Any) -> None:
            entry(lo, hi, *tables, *arrays, np.empty(size, compute))

        return ready(with_scratch, count, (), cost)

    def forward(self, loop: Template, dtype: str, out: str) -> Entry:
        how = {"keeps": self.keeps, "settled": self.settled, "finished": self.finished}
        return loop(name=f"{self.name}_{loop.name}", x=dtype, out=out, **how)

    def ready_backward(self, out: Operand, grad: Operand, y: Operand, dim: int) -> Callable[..., object]:
        """Prepares the loop that fills `out` with the gradient, of that of the result `y`, both of one dtype."""
        out, grad, y = _with_dim(out), _with_dim(grad), _with_dim(y)
        walk = reduce_plan(grad.shape, grad.strides, (dim,), (out.strides, y.strides), True)
        to, saved = walk.kept_outs
        steps = np.array([out.strides[dim], grad.strides[dim], y.strides[dim], walk.elements], np.int64)
        tables, together = (walk.kept, to, walk.kept_in, saved, steps), side_by_side(walk)
        loop = BACKWARD_COLUMNS if together else BACKWARD
        how = {"term": self.term, "gradient": self.gradient}
        entry = loop(name=f"{self.name}_{loop.name}", x=grad.dtype, out=out.dtype, **how)
        if together:
            return ready_columns(entry, walk, tables, 1, DTYPES[grad.dtype].compute)
        return ready(entry, walk.results if walk.elements else 0, tables, 8 * walk.elements)


SOFTMAX = Softmax("softmax", True, reciprocal, share, product, softmax_gradient)
LOG_SOFTMAX = Softmax("log_softmax", False, log, logarithm_of_share, alone, log_softmax_gradient)


def _with_dim(x: Operand) -> Operand:
    return x if x.shape else x._replace(shape=(1,), strides=(1,))


def side_by_side(walk: ReducePlan) -> bool:
    """Whether neighbouring rows lie side by side in all operands, and are many enough to be worked out at once."""
    steps = (walk.kept_in, *walk.kept_outs)
    return walk.elements > 1 and walk.kept[-1] >= FEW_COLUMNS and all(step[-1] == 1 for step in steps)


def ready_columns(entry: Entry, walk: ReducePlan, tables: tuple, scratches: int, compute: str) -> Callable[..., object]:
    """A loop over strips of columns, with scratch memory of its own for each chunk of them."""
    width = int(walk.kept[-1])

    def strips(lo: int, hi: int, *arrays: Any) -> None:
        entry(lo, hi, *tables, *arrays, *[np.empty(STRIP, compute) for _ in range(scratches)])

    return ready(strips, -(-width // STRIP) * (walk.results // width), (), 8 * walk.elements * min(STRIP, width))
