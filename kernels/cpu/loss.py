"""The negative log-likelihood of given classes, forward and backward.

Shapes: x [n, classes, *rest], target [n, *rest]; callers pass the rest as one dimension (size 1 if there is none).
Losses add up in float64. Read next: `random.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand, as_ndarray
from redispatch.dispatch.tensor.target import ByTarget

from ..engine.compile import Entry, Kernel
from ..engine.convert import array_type, load, real_type, store
from ..engine.pool import ready, serial_for
from ..engine.program import integral
from .copy import fill
from .indexing import BadIndex

uint64 = np.uint64


def load_one(x):
    return x


def store_one(x):
    return x


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
                    w = load_one(weight[weight_at + label * steps[5]])
                    loss = -w * load_one(x[x_at + n * steps[0] + label * steps[1] + r * steps[2]])
                    totals[0] += loss
                    totals[1] += w
            if kind == 0:
                out[out_at + n * steps[6] + r * steps[7]] = store_one(loss)
    if hi == count:
        total[total_at] = store_one(totals[1] * min(kind, 1))
        if kind == 1:
            out[out_at] = store_one(totals[0] / totals[1])
        if kind == 2:
            out[out_at] = store_one(totals[0])


@integral
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
                    w = load_one(weight[uint64(weight_at + label * steps[2])])
                    g = -w * load_one(grad[uint64(grad_at + n * steps[0] + r * steps[1])])
                    if mean:
                        g = g / load_one(total[uint64(total_at)])
                    out[uint64(base + label * rest + r)] = store_one(g)


_ENTRIES = ByTarget()


def _entry(dtype: str, target_dtype: str, backward: bool) -> Entry:
    name = "nll_backward" if backward else "nll"
    entry = _ENTRIES.get((name + dtype, target_dtype))
    if entry is None:
        array, labels = array_type(dtype), array_type(target_dtype)
        given = {"load_one": load(dtype), "store_one": store(dtype)}
        kernel = Kernel(nll_backward_loop if backward else nll_loop, name=name, given=given, real=real_type(dtype))
        arrays = [word for one in (array, array, array, labels, array) for word in (one, "int64")]
        if backward:
            head = ["int64"] * 5 + ["int64[]", "int64", array[:-2], "int64[]"]
        else:
            head = ["int64"] * 7 + ["int64[]", "float64[]"]
        entry = kernel.entry(*head, *arrays)
        _ENTRIES[name + dtype, target_dtype] = entry
    return entry


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
    operands that look like these. It also writes the sum of the weights used, for the backward pass. A mean over
    nothing is NaN. It returns a target that is no class, for the caller to raise as IndexError.
    """
    n, classes, rest = x.shape
    weights, step = _weights(weight, x.dtype)
    each = reduction == "none"
    steps = np.array([*x.strides, *target.strides, step, *(out.strides if each else (0, 0))], np.int64)
    entry = _entry(x.dtype, target.dtype, False)
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


def nll_loss(
    out: Operand, total_weight: Operand, x: Operand, target: Operand, weight: Operand | None = None, **how: Any
) -> BadIndex | None:
    """What `ready_nll_loss` gives, done."""
    arrays = [
        part for one in (out, total_weight, x, target, weight) if one is not None for part in (one.array, one.offset)
    ]
    return ready_nll_loss(out, x, target, weight, **how)(*arrays)


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
    dense operands that look like these. total: what the forward pass wrote, by which a mean divides. It returns a
    target that is no class; then the result is of no use.
    """
    n, classes, rest = out.shape
    weights, step = _weights(weight, out.dtype)
    steps = np.array([*(grad.strides or (0, 0)), step], np.int64)
    nothing = DTYPES[out.dtype].storage.type(0)
    leading = (rest, classes, ignore_index, steps, int(mean), nothing)
    run = ready(_entry(out.dtype, target.dtype, True), n, leading, max(1, classes * rest))
    ones = () if weight is not None else (weights.array, 0)
    metadata = target[1:4]

    def backward(*arrays: Any) -> BadIndex | None:
        found = np.zeros(1, np.int64)
        run(found, *arrays, *ones)
        return _first_bad(Operand(arrays[6], *metadata, arrays[7]), classes, ignore_index) if found[0] else None

    return backward


def nll_loss_backward(
    out: Operand, grad: Operand, total: Operand, target: Operand, weight: Operand | None = None, **how: Any
) -> BadIndex | None:
    """What `ready_nll_loss_backward` gives, done."""
    arrays = [part for one in (out, grad, total, target, weight) if one is not None for part in (one.array, one.offset)]
    return ready_nll_loss_backward(out, grad, target, weight, **how)(*arrays)
