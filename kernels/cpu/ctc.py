"""Connectionist temporal classification: how likely it is that a sequence of distributions spells given labels.

Between the labels, before and after them, may be blanks: l' = blank, l_1, blank, l_2, ..., blank. A path goes through
l' and at each time stays, moves on by one, or by two past a blank between different labels. α[t, s] is the logarithm
of the probability of all paths that are at l'_s at time t; β[t, s] that of all that go on from there to the end.

Dense arrays: log probabilities x [time, batch, classes]; alpha [batch, time, 2 * longest + 1]; `table` has a row for
each sequence: its number of times, its number of labels, and where in `labels` these start.

Source: Graves et al., "Connectionist temporal classification" (2006). Read next: `normalize.py`.
"""

import math

from redispatch.dispatch.tensor.target import cached_by_target

from ..engine.compile import Entry, Kernel
from ..engine.program import integral


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


@cached_by_target
def ctc_loss(dtype: str) -> Entry:
    """`f(lo, hi, batch, classes, times, width, blank, losses, alpha, x, labels, table)`, of flat arrays."""
    x = f"{dtype}[]"
    return Kernel(ctc_loop, real=dtype).entry(*["int64"] * 7, x, x, x, "int64[]", "int64[]")


@cached_by_target
def ctc_loss_backward(dtype: str) -> Entry:
    """`f(lo, hi, batch, classes, width, times, blank, zero_infinity, out, grad, losses, alpha, beta, x, labels,
    table)`."""
    x = f"{dtype}[]"
    return Kernel(ctc_backward_loop, real=dtype).entry(*["int64"] * 8, x, x, x, x, x, x, "int64[]", "int64[]")
