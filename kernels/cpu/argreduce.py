"""Which element is the largest or smallest, and its value: argmax, argmin, and max/min with indices.

The first of equal elements wins, and NaN wins over everything, the first NaN over the others. The best of each block of
elements is found by a loop that vectorises; only in the block that won is the element looked for.
Read next: `softmax.py`.
"""

from collections.abc import Callable, Sequence

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand, memory

from ..engine.elementwise import offset_of
from ..engine.order import order
from ..engine.pool import ready
from ..engine.template import Template, load_x
from .reduce import BLOCK, reduce_plan

FEW = 64  # elements of which one is looked for by itself
uint64 = np.uint64
pick, beats, worst = order("float64", True)  # they stand for those of the dtype


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
        best, best_run, j = worst, -1, 0
        for run in range(runs):
            at = base + offset_of(run, dims - 1, reduced, reduced_in, 0)
            for block in range(0, inner, BLOCK):
                stop = min(block + BLOCK, inner)
                top = worst
                if step == 1:
                    for k in range(block, stop):
                        top = pick(top, load_x(x[uint64(at + k)]))
                else:
                    for k in range(block, stop):
                        top = pick(top, load_x(x[uint64(at + k * step)]))
                if best_run < 0 or beats(top, best):
                    best, best_run, j = top, run, block
        at = base + offset_of(best_run, dims - 1, reduced, reduced_in, 0)
        is_nan = best != best
        while j + FEW <= inner:
            found = False
            for k in range(j, j + FEW):
                value = load_x(x[uint64(at + k * step)])
                found |= (value == best) | (is_nan & (value != value))
            if found:
                break
            j += FEW
        while j < inner - 1:
            value = load_x(x[uint64(at + j * step)])
            if value == best or (is_nan and value != value):
                break
            j += 1
        values[uint64(values_at + offset_of(i, kept_dims, kept, value_to, 0))] = x[uint64(at + j * step)]
        indices[uint64(indices_at + offset_of(i, kept_dims, kept, index_to, 0))] = best_run * inner + j


ARGREDUCE = Template(
    argreduce_loop, "int64[] kept value_to index_to kept_in reduced reduced_in indices", "x[] values x"
)


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
    """Prepares the loop for all operands of this metadata, for callers that remember it.

    It is called as `f(values, values_at, indices, indices_at, x, x_at)`, without the first two where nobody looks.
    """
    nobody: tuple = ()
    if values is None:  # let every value land in one cell
        cell = memory(1, DTYPES[x.dtype].storage)
        values, nobody = Operand(cell, x.dtype, indices.shape, (0,) * len(indices.shape)), (cell, 0)
    walk = reduce_plan(x.shape, x.strides, tuple(dims), (values.strides, indices.strides), True)
    leading = (walk.kept, *walk.kept_outs, walk.kept_in, walk.reduced, walk.reduced_in, *nobody)
    how = order(x.dtype, largest)._asdict()
    entry = ARGREDUCE(name="argmax" if largest else "argmin", x=x.dtype, **how)
    return ready(entry, walk.results, leading, 2 * walk.elements)
