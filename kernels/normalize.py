"""Layer normalisation of dense rows: mean and variance, then the row itself, in one pass of the memory.

Sums run in float64, over the differences from the mean: one pass with sums of squares would cancel.
Read next: `loss.py`.
"""

import math
from collections.abc import Callable

import numpy as np

from .compile import Entry, Kernel
from .convert import CONVERT, array_type, load, real_type, store
from .operand import DTYPES, Operand
from .pool import ready
from .reduce import REASSOCIATE

uint64, float64 = np.uint64, np.float64

# The names right below stand for what `_entry` passes to `Kernel(given=...)`.


def load_one(x):
    return x


def load_weight(x):
    return x


def load_bias(x):
    return x


def store_one(x):
    return x


def narrow(x):
    return x


zero, one, unit, nothing = np.float64(0), np.float64(1), np.float64(1), np.float64(0)


def layer_norm_loop(
    lo, hi, size, eps, weighted, shifted, out, out_at, mean, mean_at, rstd, rstd_at, x, x_at, weight, weight_at,
    bias, bias_at,
):  # fmt: skip
    """out = (x - mean) * rstd * weight + bias, with rstd = 1 / sqrt(variance + eps), for rows lo <= i < hi."""
    for i in range(lo, hi):
        base, target = x_at + i * size, out_at + i * size
        total, squares = zero, zero
        for j in range(size):
            total += float64(load_one(x[uint64(base + j)]))
        center = total / size
        for j in range(size):
            difference = float64(load_one(x[uint64(base + j)])) - center
            squares += difference * difference
        mean[uint64(mean_at + i)] = store_one(center)
        rstd[uint64(rstd_at + i)] = store_one(one / math.sqrt(squares / size + eps))
        middle, scale = narrow(center), load_one(rstd[uint64(rstd_at + i)])
        for j in range(size):
            factor = load_weight(weight[uint64(weight_at + j)]) if weighted == 1 else unit
            shift = load_bias(bias[uint64(bias_at + j)]) if shifted == 1 else nothing
            out[uint64(target + j)] = store_one((load_one(x[uint64(base + j)]) - middle) * scale * factor + shift)


_ENTRIES: dict[tuple[str, str, str], Entry] = {}


def _entry(dtype: str, weight: str, bias: str) -> Entry:
    entry = _ENTRIES.get((dtype, weight, bias))
    if entry is None:
        compute = DTYPES[dtype].compute
        given: dict[str, object] = {
            "load_one": load(dtype),
            "load_weight": load(weight),
            "load_bias": load(bias),
            "store_one": store(dtype),
            "narrow": CONVERT[compute],
            "zero": np.float64(0),
            "one": np.float64(1),
            "unit": np.dtype(compute).type(1),
            "nothing": np.dtype(compute).type(0),
        }
        # "reassoc" for the sums over a row, see `reduce.py`
        kernel = Kernel(layer_norm_loop, given=given, real=real_type(dtype), fastmath=REASSOCIATE)
        arrays = [array_type(one) for one in (dtype, dtype, dtype, dtype, weight, bias)]
        signature = [word for array in arrays for word in (array, "int64")]
        entry = kernel.entry("int64", "int64", "int64", "float64", "int64", "int64", *signature)
        _ENTRIES[dtype, weight, bias] = entry
    return entry


def ready_layer_norm(
    x: Operand, rows: int, size: int, eps: float, weight: Operand | None, bias: Operand | None
) -> Callable[..., object]:
    """`f(out, at, mean, at, rstd, at, x, at, weight, at, bias, at)` for `rows` dense rows of `size`; the last two pairs
    only where they are given. Weight and bias compute in the type in which `x` does."""
    kinds = [x.dtype if one is None else one.dtype for one in (weight, bias)]
    leading = (size, float(eps), int(weight is not None), int(bias is not None))
    run = ready(_entry(x.dtype, *kinds), rows if size else 0, leading, 8 * size)
    if weight is not None and bias is not None:
        return run
    if weight is not None:
        return lambda *args: run(*args, *args[6:8])
    if bias is not None:
        return lambda *args: run(*args[:8], *args[6:])
    return lambda *args: run(*args, *args[6:8], *args[6:8])
