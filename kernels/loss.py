"""The negative log-likelihood of given classes, forward and backward.

Shapes: x [n, classes, *rest], target [n, *rest]; callers pass the rest as one dimension (size 1 if there is none).
Losses add up in float64. Read next: `random.py`.
"""

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


def nll_loop(lo, hi, rest, steps, x, x_at, target, target_at, weight, weight_at, ignored, each, out, out_at, totals):
    """Adds loss and weight of elements lo <= i < hi (n * rest + r) to `totals`; writes each loss where `each` is 1."""
    for i in range(lo, hi):
        n = i // rest
        r = i - n * rest
        label = target[target_at + n * steps[3] + r * steps[4]]
        loss = 0.0
        if label != ignored:
            w = load_one(weight[weight_at + label * steps[5]])
            loss = -w * load_one(x[x_at + n * steps[0] + label * steps[1] + r * steps[2]])
            totals[0] += loss
            totals[1] += w
        if each == 1:
            out[out_at + n * steps[6] + r * steps[7]] = store_one(loss)


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
        head = ("int64", "int64", "int64", "int64[]", array, "int64", labels, "int64", array, "int64", "int64")
        tail = (array, "int64", "float64") if backward else ("int64", array, "int64", "float64[]")
        entry = _ENTRIES[name + dtype, target_dtype] = kernel.entry(*head, *tail)
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


def nll_loss(
    out: Operand,
    total_weight: Operand,
    x: Operand,
    target: Operand,
    weight: Operand | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> BadIndex | None:
    """-weight[target] * x at the target: each ("none", out [n, rest]), their "sum", or that over the weights ("mean").

    Also writes the sum of the weights used, for the backward pass. A mean over nothing is NaN. Returns a target that
    is no class (nothing is written then), for the caller to raise as IndexError.
    """
    n, classes, rest = x.shape
    bad = _first_bad(target, classes, ignore_index)
    if bad is not None:
        return bad
    weights, step = _weights(weight, x.dtype)
    each = reduction == "none"
    steps = np.array([*x.strides, *target.strides, step, *(out.strides if each else (0, 0))], np.int64)
    totals = np.zeros(2)
    args: tuple = (
        rest,
        steps,
        x.array,
        x.offset,
        target.array,
        target.offset,
        weights.array,
        weights.offset,
        ignore_index,
    )
    args += (int(each), out.array, out.offset, totals)
    serial_for(_entry(x.dtype, target.dtype, False), n * rest, args)
    if not each:
        with np.errstate(invalid="ignore"):
            fill(out, float(totals[0] / totals[1]) if reduction == "mean" else float(totals[0]))
    fill(total_weight, 0.0 if each else float(totals[1]))
    return None


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
