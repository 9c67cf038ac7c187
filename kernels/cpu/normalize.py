"""Rows normalised: softmax and log-softmax along one dimension, layer normalisation; forward and backward.

Softmax: the largest element of a row is subtracted first, so that exp cannot overflow; a row with NaN, or of nothing
but -inf, becomes NaN, as in PyTorch. Rows that are dense, or few, are worked out in place. Where columns lie side by
side, many are worked out at once. Any other row is gathered once into a dense scratch row of the compute type (float32
for 16-bit floats), where the passes over it run as vectors, and written back once.

Layers: the statistics of a dense row, then the row itself, while it is in the cache. Sums run in float64, over the
differences from the mean: one pass with sums of squares would cancel.
Read next: `indexing.py`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand

from ..engine.compile import Entry
from ..engine.convert import CONVERT
from ..engine.elementwise import offset_of
from ..engine.pool import ready
from ..engine.primitives import maximum
from ..engine.template import Template, given, load_bias, load_weight, load_x, lowest, one, store_out, store_x, zero
from ..maths.vecmath import exp, log
from .reduce import REASSOCIATE, SUM, ReducePlan, ready_strips, reduce_plan

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
            return ready_strips(self.forward(COLUMNS, x.dtype, out.dtype), walk, tables, STRIP, [compute] * 2, 8)
        return ready(self.forward(GATHERED, x.dtype, out.dtype), count, tables, cost, [(size, compute)])

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
            return ready_strips(entry, walk, tables, STRIP, [DTYPES[grad.dtype].compute], 8)
        return ready(entry, walk.results if walk.elements else 0, tables, 8 * walk.elements)


SOFTMAX = Softmax("softmax", True, reciprocal, share, product, softmax_gradient)
LOG_SOFTMAX = Softmax("log_softmax", False, log, logarithm_of_share, alone, log_softmax_gradient)


def _with_dim(x: Operand) -> Operand:
    return x if x.shape else x._replace(shape=(1,), strides=(1,))


def side_by_side(walk: ReducePlan) -> bool:
    """Whether neighbouring rows lie side by side in all operands, and are many enough to be worked out at once."""
    steps = (walk.kept_in, *walk.kept_outs)
    return walk.elements > 1 and walk.kept[-1] >= FEW_COLUMNS and all(step[-1] == 1 for step in steps)


# --- layers -----------------------------------------------------------------------------------------------------------

float64 = np.float64

narrow = given  # stands for the conversion to the type that is computed in


def layer_norm_loop(
    lo, hi, size, eps, weighted, shifted, out, out_at, mean, mean_at, rstd, rstd_at, x, x_at, weight, weight_at,
    bias, bias_at,
):  # fmt: skip
    """out = (x - mean) * rstd * weight + bias, with rstd = 1 / sqrt(variance + eps), for rows lo <= i < hi."""
    for i in range(lo, hi):
        base, target = x_at + i * size, out_at + i * size
        total, squares = 0.0, 0.0
        for j in range(size):
            total += float64(load_x(x[uint64(base + j)]))
        center = total / size
        for j in range(size):
            difference = float64(load_x(x[uint64(base + j)])) - center
            squares += difference * difference
        mean[uint64(mean_at + i)] = store_x(center)
        rstd[uint64(rstd_at + i)] = store_x(1.0 / math.sqrt(squares / size + eps))
        middle, scale = narrow(center), load_x(rstd[uint64(rstd_at + i)])
        for j in range(size):
            factor = load_weight(weight[uint64(weight_at + j)]) if weighted == 1 else one
            shift = load_bias(bias[uint64(bias_at + j)]) if shifted == 1 else zero
            out[uint64(target + j)] = store_x((load_x(x[uint64(base + j)]) - middle) * scale * factor + shift)


# "reassoc" for the sums over a row, see `reduce.py`
LAYER_NORM = Template(
    layer_norm_loop, "float64 eps", "x[] out mean rstd x", "weight[] weight", "bias[] bias", fastmath=REASSOCIATE
)


def ready_layer_norm(
    x: Operand, rows: int, size: int, eps: float, weight: Operand | None, bias: Operand | None
) -> Callable[..., object]:
    """`f(out, at, mean, at, rstd, at, x, at, weight, at, bias, at)` for `rows` dense rows of `size`; the last two pairs
    only where they are given. Weight and bias compute in the type in which `x` does."""
    kinds = {k: (one or x).dtype for k, one in (("weight", weight), ("bias", bias))}
    entry = LAYER_NORM(x=x.dtype, **kinds, narrow=CONVERT[DTYPES[x.dtype].compute])
    leading = (size, float(eps), int(weight is not None), int(bias is not None))
    run = ready(entry, rows if size else 0, leading, 8 * size)
    if weight is not None and bias is not None:
        return run
    if weight is not None:
        return lambda *args: run(*args, *args[6:8])
    if bias is not None:
        return lambda *args: run(*args[:8], *args[6:])
    return lambda *args: run(*args, *args[6:8], *args[6:8])


# --- backward --------------------------------------------------------------------------------------------------------

weighted = True  # whether there is a weight
ROWS = 32  # whose gradients for weight and bias add up in the compute type; the sums of such blocks add up in float64


def layer_norm_backward_loop(
    lo, hi, rows, size, of_input, of_affine, out, parts, grad, grad_at, x, x_at, mean, mean_at, rstd, rstd_at,
    weight, weight_at,
):  # fmt: skip
    """Blocks lo <= b < hi of ROWS rows. With y = (x - mean) rstd, of which g is the gradient:

    out = rstd (g - mean(g) - y mean(g y)), parts[b, 0] = sum of grad * y and parts[b, 1] = sum of grad.

    Each inner loop has one purpose and no condition but `weighted`, known when it is compiled: else LLVM leaves
    it scalar, and three times as slow.
    """
    for b in range(lo, hi):
        scales, shifts = 2 * b * size, (2 * b + 1) * size
        if of_affine:
            for j in range(2 * size):
                parts[uint64(scales + j)] = zero
        for i in range(b * ROWS, min((b + 1) * ROWS, rows)):
            base, source, target = x_at + i * size, grad_at + i * size, i * size
            middle, scale = load_x(mean[uint64(mean_at + i)]), load_x(rstd[uint64(rstd_at + i)])
            if of_affine:
                for j in range(size):
                    g = load_x(grad[uint64(source + j)])
                    parts[uint64(scales + j)] += g * ((load_x(x[uint64(base + j)]) - middle) * scale)
                    parts[uint64(shifts + j)] += g
            if of_input:
                total, slope = zero, zero
                for j in range(size):
                    g = load_x(grad[uint64(source + j)])
                    if weighted:
                        g = g * load_weight(weight[uint64(weight_at + j)])
                    total += g
                    slope += g * ((load_x(x[uint64(base + j)]) - middle) * scale)
                shared, tilt = scale * narrow(total / size), scale * scale * narrow(slope / size)
                for j in range(size):
                    g = load_x(grad[uint64(source + j)])
                    if weighted:
                        g = g * load_weight(weight[uint64(weight_at + j)])
                    difference = load_x(x[uint64(base + j)]) - middle
                    out[uint64(target + j)] = store_x(scale * g - shared - tilt * difference)


LAYER_NORM_BACKWARD = Template(
    layer_norm_backward_loop, "x[] out grad x mean rstd", "x.compute[] parts", "weight[] weight", fastmath=REASSOCIATE
)


def ready_layer_norm_backward(
    dtype: str, rows: int, size: int, weight: str | None, outs: Sequence[Operand | None]
) -> Callable[..., object]:
    """The gradients of `rows` dense rows, and those of weight and bias: `outs`, each of which may be left out.

    Returns `f(*outs, grad, at, x, at, mean, at, rstd, at, weight, at)`, an array and an offset for each, the weight's
    only if it has a dtype; what comes behind is not read. The first four inputs have one dtype, and the weight computes
    in the type in which they do.
    """
    blocks, compute = -(-rows // ROWS), DTYPES[dtype].compute
    storage, there = DTYPES[dtype].storage, [out is not None for out in outs]
    sums = any(there[1:])
    flags, weighted = (int(there[0]), int(sums)), weight is not None
    entry = LAYER_NORM_BACKWARD(x=dtype, weight=weight or dtype, weighted=weighted, narrow=CONVERT[compute])
    run = ready(entry, blocks if size else 0, (rows, size, *flags), 16 * ROWS * size)
    columns = Operand(np.empty(blocks * 2 * size, compute), compute, (blocks, size), (2 * size, 1))
    adding = [None if out is None else SUM.ready(_as_row(out), columns, (0,)) for out in outs[1:]]
    behind = 2 * sum(there)

    def backward(*arrays: Any) -> None:
        parts = np.empty(blocks * 2 * size if sums else 0, compute)
        target = arrays[0] if there[0] else np.empty(0, storage)
        inputs = arrays[behind : behind + (10 if weight else 8)]
        run(target, parts, *inputs, *(() if weight else inputs[:2]))
        at = 2 * there[0]
        for place, add in enumerate(adding):
            if add is not None:
                add(*arrays[at : at + 2], parts, place * size)
                at += 2

    return backward


def _as_row(out: Operand) -> Operand:
    """A dense operand with one dimension."""
    return out._replace(shape=(len(out.array),), strides=(1,))
