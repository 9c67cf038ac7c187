"""Layer normalisation of dense rows, forward and backward: the statistics of a row, then the row itself, while it is
in the cache.

Sums run in float64, over the differences from the mean: one pass with sums of squares would cancel.
Read next: `kernels/ops/loss.py`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand

from ..engine.convert import CONVERT
from ..engine.pool import ready
from ..engine.template import Template, given, load_bias, load_weight, load_x, one, store_x, zero
from .reduce import REASSOCIATE, SUM

uint64, float64 = np.uint64, np.float64

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

ROWS = 32  # whose gradients for weight and bias add up in the compute type; the sums of such blocks add up in float64


def layer_norm_backward_loop(
    lo, hi, rows, size, weighted, of_input, of_affine, out, parts, grad, grad_at, x, x_at, mean, mean_at, rstd, rstd_at,
    weight, weight_at,
):  # fmt: skip
    """Blocks lo <= b < hi of ROWS rows. With y = (x - mean) rstd, of which g is the gradient:

    out = rstd (g - mean(g) - y mean(g y)), parts[b, 0] = sum of grad * y and parts[b, 1] = sum of grad.

    Each inner loop has one purpose and no condition: else LLVM leaves it scalar, and three times as slow.
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
                if weighted:
                    for j in range(size):
                        g = load_x(grad[uint64(source + j)]) * load_weight(weight[uint64(weight_at + j)])
                        total += g
                        slope += g * ((load_x(x[uint64(base + j)]) - middle) * scale)
                else:
                    for j in range(size):
                        g = load_x(grad[uint64(source + j)])
                        total += g
                        slope += g * ((load_x(x[uint64(base + j)]) - middle) * scale)
                shared, tilt = scale * narrow(total / size), scale * scale * narrow(slope / size)
                if weighted:
                    for j in range(size):
                        g = load_x(grad[uint64(source + j)]) * load_weight(weight[uint64(weight_at + j)])
                        difference = load_x(x[uint64(base + j)]) - middle
                        out[uint64(target + j)] = store_x(scale * g - shared - tilt * difference)
                else:
                    for j in range(size):
                        g = load_x(grad[uint64(source + j)])
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
    flags = int(weight is not None), int(there[0]), int(sums)
    entry = LAYER_NORM_BACKWARD(x=dtype, weight=weight or dtype, narrow=CONVERT[compute])
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
