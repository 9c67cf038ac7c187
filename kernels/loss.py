"""The negative log-likelihood of given classes, forward and backward.

Shapes: x [n, classes, *rest], target [n, *rest]; callers pass the rest as one dimension (size 1 if there is none).
Losses add up in float64. Read next: `random.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compile import Entry, Kernel
from .convert import array_type, load, real_type, store
from .copy import fill
from .indexing import BadIndex
from .operand import DTYPES, Operand, as_ndarray
from .pool import serial_for


def load_one(x):
    return x


def store_one(x):
    return x


def nll_loop(
    lo, hi, count, rest, classes, kind, ignored, steps, totals, out, out_at, total, total_at, x, x_at,
    target, target_at, weight, weight_at,
):  # fmt: skip
    """Adds loss and weight of elements lo <= i < hi (n * rest + r) to `totals`; the range that ends at `count` stores
    the result. totals[2] becomes 1 where a label is no class.

    kind: 0 stores each loss, 1 the sum over the weights, 2 the sum.
    """
    for i in range(lo, hi):
        n = i // rest
        r = i - n * rest
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


def nll_backward_loop(
    lo, hi, rest, steps, out, out_at, target, target_at, weight, weight_at, ignored, grad, grad_at, total
):
    """out[n, label, r] = -weight[label] * grad[n, r] / total; all else stays as it is."""
    for i in range(lo, hi):
        n = i // rest
        r = i - n * rest
        label = target[target_at + n * steps[3] + r * steps[4]]
        if label != ignored:
            w = load_one(weight[weight_at + label * steps[5]])
            g = load_one(grad[grad_at + n * steps[6] + r * steps[7]])
            out[out_at + n * steps[0] + label * steps[1] + r * steps[2]] = store_one(-w * g / total)


_ENTRIES: dict[tuple[str, str], Entry] = {}


def _entry(dtype: str, target_dtype: str, backward: bool) -> Entry:
    name = "nll_backward" if backward else "nll"
    entry = _ENTRIES.get((name + dtype, target_dtype))
    if entry is None:
        array, labels = array_type(dtype), array_type(target_dtype)
        given = {"load_one": load(dtype), "store_one": store(dtype)}
        kernel = Kernel(nll_backward_loop if backward else nll_loop, name=name, given=given, real=real_type(dtype))
        if backward:
            head = ("int64", "int64", "int64", "int64[]", array, "int64", labels, "int64", array, "int64", "int64")
            entry = kernel.entry(*head, array, "int64", "float64")
        else:
            arrays = [word for one in (array, array, array, labels, array) for word in (one, "int64")]
            entry = kernel.entry(*["int64"] * 7, "int64[]", "float64[]", *arrays)
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
    each, count = reduction == "none", n * rest
    steps = np.array([*x.strides, *target.strides, step, *(out.strides if each else (0, 0))], np.int64)
    entry = _entry(x.dtype, target.dtype, False)
    leading = (count, max(rest, 1), classes, KINDS.index(reduction), ignore_index, steps)
    ones = () if weight is not None else (weights.array, 0)
    looks = target[1:4]

    def run(*arrays: Any) -> BadIndex | None:
        totals = np.zeros(3)
        if count:
            serial_for(entry, count, (*leading, totals, *arrays, *ones))
        else:
            entry(0, 0, *leading, totals, *arrays, *ones)
        return _first_bad(Operand(arrays[6], *looks, arrays[7]), classes, ignore_index) if totals[2] else None

    return run


def nll_loss(
    out: Operand, total_weight: Operand, x: Operand, target: Operand, weight: Operand | None = None, **how: Any
) -> BadIndex | None:
    """What `ready_nll_loss` gives, done."""
    arrays = [
        part for one in (out, total_weight, x, target, weight) if one is not None for part in (one.array, one.offset)
    ]
    return ready_nll_loss(out, x, target, weight, **how)(*arrays)


def nll_loss_backward(
    out: Operand,
    grad: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int = -100,
    total_weight: float = 1.0,
) -> BadIndex | None:
    """The gradient for x, of shape [n, classes, rest]. `grad` is [n, rest], or 0-d for a reduced loss.

    total_weight: what the forward pass wrote, for "mean"; 1 otherwise.
    """
    n, classes, rest = out.shape
    bad = _first_bad(target, classes, ignore_index)
    if bad is not None:
        return bad
    fill(out, 0)
    weights, step = _weights(weight, out.dtype)
    steps = np.array([*out.strides, *target.strides, step, *(grad.strides or (0, 0))], np.int64)
    args: tuple = (rest, steps, out.array, out.offset, target.array, target.offset, weights.array, weights.offset)
    args += (ignore_index, grad.array, grad.offset, float(total_weight))
    serial_for(_entry(out.dtype, target.dtype, True), n * rest, args)
    return None
