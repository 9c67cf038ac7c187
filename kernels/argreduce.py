"""Which element is the largest or smallest, and its value: argmax, argmin, and max/min with indices.

The first of equal elements wins, and NaN wins over everything, the first NaN over the others. Elements are compared by
the integer keys of `order.py`. Each result takes two passes over its elements: one for the best key, which
vectorises, and one that stops where it is found. Read next: `softmax.py`.
"""

from collections.abc import Callable, Sequence

import numpy as np

from .compile import Entry, Kernel
from .convert import array_type, load, store
from .elementwise import offset_of
from .operand import Operand
from .order import keys
from .pool import ready
from .reduce import chain, larger, reduce_plan, smaller

uint64 = np.uint64


def load_one(x):
    return x


def better(best, x):
    return x


def from_key(key):
    return key


def store_one(x):
    return x


start = np.int64(0)


def argreduce_loop(
    lo, hi, kept, value_to, index_to, kept_in, reduced, reduced_in, values, values_at, indices, indices_at, x, x_at
):
    """Results lo <= i < hi: the best value, and its row-major position among the reduced elements."""
    kept_dims, dims = len(kept), len(reduced)
    inner, step = reduced[dims - 1], reduced_in[dims - 1]
    runs = 1
    for d in range(dims - 1):
        runs *= reduced[d]
    for i in range(lo, hi):
        base = x_at + offset_of(i, kept_dims, kept, kept_in, 0)
        best = start
        for run in range(runs):
            at = base + offset_of(run, dims - 1, reduced, reduced_in, 0)
            if step == 1:
                for j in range(inner):
                    best = better(best, load_one(x[uint64(at + j)]))
            else:
                for j in range(inner):
                    best = better(best, load_one(x[uint64(at + j * step)]))
        found = -1
        for run in range(runs):
            at = base + offset_of(run, dims - 1, reduced, reduced_in, 0)
            for j in range(inner):
                if load_one(x[uint64(at + j * step)]) == best:
                    found = run * inner + j
                    break
            if found >= 0:
                break
        values[uint64(values_at + offset_of(i, kept_dims, kept, value_to, 0))] = store_one(from_key(best))
        indices[uint64(indices_at + offset_of(i, kept_dims, kept, index_to, 0))] = found


_ENTRIES: dict[tuple[str, bool], Entry] = {}


def _entry(dtype: str, largest: bool) -> Entry:
    entry = _ENTRIES.get((dtype, largest))
    if entry is None:
        to_key, back, lowest = keys(dtype, largest)
        given = {
            "load_one": chain(load(dtype), to_key),
            "better": larger if largest else smaller,
            "from_key": back,
            "store_one": store(dtype),
            "start": lowest,
        }
        kernel = Kernel(argreduce_loop, name="argmax" if largest else "argmin", given=given)
        tables, array = ["int64[]"] * 6, array_type(dtype)
        entry = kernel.entry("int64", "int64", *tables, array, "int64", "int64[]", "int64", array, "int64")
        _ENTRIES[dtype, largest] = entry
    return entry


def extreme_with_indices(
    values: Operand | None, indices: Operand, x: Operand, dims: Sequence[int], *, largest: bool
) -> None:
    """The largest (or smallest) elements over `dims` of `x` and their positions, int64. `values` may be None.

    Both outputs keep the reduced dimensions as 1, or leave them out. Several `dims` count as one, row-major. A result
    without elements has none to name: callers raise first.
    """
    found = () if values is None else (values.array, values.offset)
    find = ready_extreme(values, indices, x, dims, largest=largest)
    find(*found, indices.array, indices.offset, x.array, x.offset)


def ready_extreme(
    values: Operand | None, indices: Operand, x: Operand, dims: Sequence[int], *, largest: bool
) -> Callable[..., object]:
    """The same for all operands that look like these, for callers that remember it.

    It is called as `f(values, values_at, indices, indices_at, x, x_at)`, without the first two where nobody looks.
    """
    nobody: tuple = ()
    if values is None:  # let every value land in one cell
        cell = np.empty(1, x.array.dtype)
        values, nobody = Operand(cell, x.dtype, indices.shape, (0,) * len(indices.shape)), (cell, 0)
    walk = reduce_plan(x.shape, x.strides, tuple(dims), (values.strides, indices.strides), True)
    leading = (walk.kept, *walk.kept_outs, walk.kept_in, walk.reduced, walk.reduced_in, *nobody)
    return ready(_entry(x.dtype, largest), walk.results, leading, 2 * walk.elements)
