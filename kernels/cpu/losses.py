"""Losses, forward and backward: the negative log-likelihood of given classes, margins, and CTC.

Losses add up in float64. Labels of margins and of CTC have been looked at: all are classes. Read next: `random.py`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand, as_ndarray

from ..engine.pool import ready, serial_for
from ..engine.program import integral
from ..engine.template import Template, load_x, store_x
from .copy import fill
from .indexing import BadIndex

float64, uint64 = np.float64, np.uint64

# --- the negative log-likelihood --------------------------------------------------------------------------------------

# Shapes: x [n, classes, *rest], target [n, *rest]; callers pass the rest as one dimension (size 1 if there is none).


def nll_loop(
    lo, hi, count, rest, classes, kind, ignored, steps, totals, out, out_at, total, total_at, x, x_at,
    target, target_at, weight, weight_at,
):  # fmt: skip
    """Adds loss and weight of elements lo <= n < hi to `totals`; the range that ends at `count` stores the result.
    totals[2] becomes 1 where a label is no class.

    kind: 0 stores each loss, 1 the sum over the weights, 2 the sum.
    """
    for n in range(lo, hi):
        for r in range(rest):
            label = target[target_at + n * steps[3] + r * steps[4]]
            loss = 0.0
            if label != ignored:
                if label < 0 or label >= classes:
                    totals[2] = 1
                else:
                    w = load_x(weight[weight_at + label * steps[5]])
                    loss = -w * load_x(x[x_at + n * steps[0] + label * steps[1] + r * steps[2]])
                    totals[0] += loss
                    totals[1] += w
            if kind == 0:
                out[out_at + n * steps[6] + r * steps[7]] = store_x(loss)
    if hi == count:
        total[total_at] = store_x(totals[1] * min(kind, 1))
        if kind == 1:
            out[out_at] = store_x(totals[0] / totals[1])
        if kind == 2:
            out[out_at] = store_x(totals[0])


def nll_backward_loop(
    lo, hi, rest, classes, ignored, steps, mean, nothing, found, out, out_at, grad, grad_at, total, total_at, target,
    target_at, weight, weight_at,
):  # fmt: skip
    """out[n, label, r] = -weight[label] * grad[n, r], over the total for a mean, for lo <= n < hi, and 0 elsewhere.

    All is dense; steps: of grad along n and r, of the weight. found[0] becomes 1 where a label is no class.
    """
    for n in range(lo, hi):
        base = out_at + n * classes * rest
        for i in range(classes * rest):
            out[uint64(base + i)] = nothing
        for r in range(rest):
            label = target[uint64(target_at + n * rest + r)]
            if label != ignored:
                if label < 0 or label >= classes:
                    found[0] = 1
                else:
                    w = load_x(weight[uint64(weight_at + label * steps[2])])
                    g = -w * load_x(grad[uint64(grad_at + n * steps[0] + r * steps[1])])
                    if mean:
                        g = g / load_x(total[uint64(total_at)])
                    out[uint64(base + label * rest + r)] = store_x(g)


NLL = Template(nll_loop, "int64[] steps", "float64[] totals", "x[] out total x weight", "label[] target")
NLL_BACKWARD = Template(
    nll_backward_loop, "int64[] steps found", "stored nothing", "x[] out grad total weight", "label[] target"
)


def _weights(weight: Operand | None, dtype: str) -> tuple[Operand, int]:
    """The weights and their step; without any, a single 1 with a step of 0."""
    if weight is not None:
        return weight, weight.strides[0]
    one = Operand(np.empty(1, DTYPES[dtype].storage), dtype, (1,), (1,))
    fill(one, 1)
    return one, 0


def _first_bad(target: Operand, classes: int, ignored: int) -> BadIndex | None:
    labels = as_ndarray(target)
    bad = (labels != ignored) & ((labels < 0) | (labels >= classes))
    return BadIndex(int(labels[bad].flat[0]), 1, classes) if bad.any() else None


KINDS = ("none", "mean", "sum")


def ready_nll_loss(
    out: Operand,
    x: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Callable[..., BadIndex | None]:
    """-weight[target] * x at the target: each ("none", out [n, rest]), their "sum", or that over the weights ("mean").

    Returns `f(out, at, total, at, x, at, target, at)`, with the weight and its offset last where there is one, for
    operands of such metadata. It also writes the sum of the weights used, for the backward pass. A mean over
    nothing is NaN. It returns a target that is no class, for the caller to raise as IndexError.
    """
    n, classes, rest = x.shape
    weights, step = _weights(weight, x.dtype)
    each = reduction == "none"
    steps = np.array([*x.strides, *target.strides, step, *(out.strides if each else (0, 0))], np.int64)
    entry = NLL(x=x.dtype, label=target.dtype)
    leading = (n, rest, classes, KINDS.index(reduction), ignore_index, steps)
    ones = () if weight is not None else (weights.array, 0)
    metadata = target[1:4]

    def run(*arrays: Any) -> BadIndex | None:
        totals = np.zeros(3)
        if n:
            serial_for(entry, n, (*leading, totals, *arrays, *ones), max(rest, 1))
        else:
            entry(0, 0, *leading, totals, *arrays, *ones)
        return _first_bad(Operand(arrays[6], *metadata, arrays[7]), classes, ignore_index) if totals[2] else None

    return run


def ready_nll_loss_backward(
    out: Operand,
    grad: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int = -100,
    mean: bool = True,
) -> Callable[..., BadIndex | None]:
    """The gradient for x, of shape [n, classes, rest]. `grad` is [n, rest], or 0-d for a reduced loss.

    Returns `f(out, at, grad, at, total, at, target, at)`, with the weight and its offset last where there is one, for
    dense operands of such metadata. total: what the forward pass wrote, by which a mean divides. It returns a
    target that is no class; then the result is of no use.
    """
    n, classes, rest = out.shape
    weights, step = _weights(weight, out.dtype)
    steps = np.array([*(grad.strides or (0, 0)), step], np.int64)
    storage = DTYPES[out.dtype].storage
    leading = (rest, classes, ignore_index, steps, int(mean), storage.type(0))
    entry = NLL_BACKWARD(x=out.dtype, label=target.dtype, stored=storage.name)
    run = ready(entry, n, leading, max(1, classes * rest))
    ones = () if weight is not None else (weights.array, 0)
    metadata = target[1:4]

    def backward(*arrays: Any) -> BadIndex | None:
        found = np.zeros(1, np.int64)
        run(found, *arrays, *ones)
        return _first_bad(Operand(arrays[6], *metadata, arrays[7]), classes, ignore_index) if found[0] else None

    return backward


# --- margins ----------------------------------------------------------------------------------------------------------

# The score of a sample's own classes is to lead the others by a margin. Rows are dense: x [n, classes], target [n]
# (multi-margin) or [n, classes] (multi-label), losses [n].


def multi_margin_loop(lo, hi, classes, p, margin, out, x, target, weight, weighted):
    """out[i] = w * sum over j != y of max(0, margin - x[y] + x[j])^p / classes, with y the target of row i."""
    for i in range(lo, hi):
        label = target[i]
        own = x[i * classes + label]
        total = float64(0)
        for j in range(classes):
            lack = margin - own + x[i * classes + j]
            if j != label and lack > 0:
                total += lack if p == 1 else lack * lack
        if weighted:
            total *= weight[label]
        out[i] = total / classes


def multi_margin_backward_loop(lo, hi, classes, p, margin, out, grad, grad_step, share, x, target, weight, weighted):
    """out[i, j] = share * grad[i] * slope."""
    for i in range(lo, hi):
        label = target[i]
        own = x[i * classes + label]
        factor = float64(share * grad[i * grad_step] / classes)
        if weighted:
            factor *= weight[label]
        total = float64(0)
        for j in range(classes):
            lack = margin - own + x[i * classes + j]
            slope = float64(0)
            if j != label and lack > 0:
                slope = factor if p == 1 else 2 * factor * lack
            out[i * classes + j] = slope
            total -= slope
        out[i * classes + label] = total


def multi_label_loop(lo, hi, classes, out, is_target, x, target):
    """out[i] = sum over own classes y and others j of max(0, 1 - x[y] + x[j]) / classes; marks the own classes.

    The labels of a row end at the first that is negative.
    """
    for i in range(lo, hi):
        base = i * classes
        for j in range(classes):
            is_target[base + j] = 0
        for k in range(classes):
            if target[base + k] < 0:
                break
            is_target[base + target[base + k]] = 1
        total = float64(0)
        for k in range(classes):
            if target[base + k] < 0:
                break
            own = x[base + target[base + k]]
            for j in range(classes):
                lack = 1 - own + x[base + j]
                if is_target[base + j] == 0 and lack > 0:
                    total += lack
        out[i] = total / classes


def multi_label_backward_loop(lo, hi, classes, out, grad, grad_step, share, x, target, is_target):
    """out[i, j] = share * grad[i] * (how many labels j presses, or, for a label, minus how many press it) / classes."""
    for i in range(lo, hi):
        base = i * classes
        factor = share * grad[i * grad_step] / classes
        for j in range(classes):
            out[base + j] = 0
        for k in range(classes):
            if target[base + k] < 0:
                break
            label = target[base + k]
            for j in range(classes):
                if is_target[base + j] == 0 and 1 - x[base + label] + x[base + j] > 0:
                    out[base + label] -= factor
                    out[base + j] += factor


MULTI_MARGIN = Template(multi_margin_loop, "x margin", "x[] out x weight", "int64[] target")
MULTI_MARGIN_BACKWARD = Template(
    multi_margin_backward_loop, "x margin", "x[] out grad x weight", "float64 share", "int64[] target"
)
MULTI_LABEL = Template(multi_label_loop, "x[] out is_target x", "int64[] target")
MULTI_LABEL_BACKWARD = Template(
    multi_label_backward_loop, "x[] out grad x is_target", "float64 share", "int64[] target"
)


# --- connectionist temporal classification ----------------------------------------------------------------------------

# How likely it is that a sequence of distributions spells given labels (Graves et al., "Connectionist temporal
# classification", 2006).
#
# Between the labels, before and after them, may be blanks: l' = blank, l_1, blank, l_2, ..., blank. A path goes through
# l' and at each time stays, moves on by one, or by two past a blank between different labels. α[t, s] is the logarithm
# of the probability of all paths that are at l'_s at time t; β[t, s] that of all that go on from there to the end.
#
# Dense arrays: log probabilities x [time, batch, classes]; alpha [batch, time, 2 * longest + 1]; `table` has a row for
# each sequence: its number of times, its number of labels, and where in `labels` these start.


def log_of_sum(a, b):
    """log(exp a + exp b)."""
    high, low = max(a, b), min(a, b)
    if low == -math.inf:
        return high
    return high + math.log1p(math.exp(low - high))


@integral
def label_at(s, first, labels, blank):
    """l'_s."""
    return blank if s % 2 == 0 else labels[first + s // 2]


@integral
def may_skip(s, first, labels, blank):
    """Whether a path may go from l'_(s-2) to l'_s."""
    return s >= 2 and s % 2 == 1 and labels[first + s // 2] != labels[first + s // 2 - 1]


def ctc_loop(lo, hi, batch, classes, times, width, blank, losses, alpha, x, labels, table):
    """losses[b] = -log of the probability of sequence b; `alpha` comes filled with -inf."""
    for b in range(lo, hi):
        steps, count, first = table[3 * b], table[3 * b + 1], table[3 * b + 2]
        last = 2 * count
        if steps == 0:
            losses[b] = 0 if count == 0 else math.inf
            continue
        start = b * times * width
        alpha[start] = x[b * classes + blank]
        if count > 0:
            alpha[start + 1] = x[b * classes + labels[first]]
        for t in range(1, steps):
            row, before = start + t * width, start + (t - 1) * width
            for s in range(last + 1):
                total = alpha[before + s]
                if s >= 1:
                    total = log_of_sum(total, alpha[before + s - 1])
                if may_skip(s, first, labels, blank):
                    total = log_of_sum(total, alpha[before + s - 2])
                alpha[row + s] = total + x[(t * batch + b) * classes + label_at(s, first, labels, blank)]
        end = start + (steps - 1) * width + last
        losses[b] = -log_of_sum(alpha[end], alpha[end - 1]) if count > 0 else -alpha[end]


def ctc_backward_loop(
    lo, hi, batch, classes, width, times, blank, zero_infinity, out, grad, losses, alpha, beta, x, labels, table
):
    """out[t, b, c] = grad[b] * (exp x[t, b, c] - share of the paths that are at class c at time t).

    `beta` is scratch, two rows for each sequence; `out` comes filled with zeros.
    """
    for b in range(lo, hi):
        steps, count, first = table[3 * b], table[3 * b + 1], table[3 * b + 2]
        last = 2 * count
        if zero_infinity and losses[b] == math.inf:
            continue
        for step in range(steps):
            t = steps - 1 - step
            at = (t * batch + b) * classes
            row, after = (2 * b + t % 2) * width, (2 * b + (t + 1) % 2) * width
            for c in range(classes):
                out[at + c] = -math.inf
            for s in range(last + 1):
                label = label_at(s, first, labels, blank)
                if step == 0:
                    total = 0 * x[at] if s >= last - 1 else -math.inf
                else:
                    total = beta[after + s]
                    if s < last:
                        total = log_of_sum(total, beta[after + s + 1])
                    if s + 2 <= last and may_skip(s + 2, first, labels, blank):
                        total = log_of_sum(total, beta[after + s + 2])
                beta[row + s] = total + x[at + label]
                both = alpha[(b * times + t) * width + s] + beta[row + s]
                out[at + label] = log_of_sum(out[at + label], both)
            for c in range(classes):
                share = math.exp(out[at + c] + losses[b] - x[at + c])
                out[at + c] = grad[b] * (math.exp(x[at + c]) - share)


CTC = Template(ctc_loop, "x[] losses alpha x", "int64[] labels table")
CTC_BACKWARD = Template(ctc_backward_loop, "x[] out grad losses alpha beta x", "int64[] labels table")
