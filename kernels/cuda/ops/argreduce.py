"""Which element of a line is the largest or smallest, on a GPU, and its value: the first of equal ones, and of NaNs.

A block has a line; where lines lie side by side (`inner` of them), it takes 32, so that a warp reads neighbours. Each
thread keeps the best of its elements, and the block halves the number of threads that have one until one is left. Few
long lines are cut into pieces: a second launch chooses among the places that the pieces' blocks have found.
Operands are dense. Read next: scan.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, beats are put there by `Written`.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.declare.structured import check_out_dtype
from redispatch.kernels.engine.convert import is_above, is_below
from redispatch.kernels.engine.program import steps
from redispatch.kernels.ops import extremes

from ..compiler import CUDA as cuda
from ..runtime.structured import SCRATCH, ByWork, Task, around, as_on_cpu, define, filled_anyhow
from ..templates import THREADS, WARP, Written
from .scan import pieces

int64 = np.int64


def best_of_lines(values, places, found, x, count, size, length, inner, parts, piece):
    """A result for each of `parts` pieces of a line of `size` elements; `count` are all. AGAIN: the elements are those
    at the places that were `found` in a line of `length`."""
    best, standing = cuda.shared.array(THREADS, compute), cuda.shared.array(THREADS, int64)
    thread = int64(cuda.threadIdx.x)
    index = int64(cuda.blockIdx.x) * TOGETHER + thread % TOGETHER
    rest = index // inner
    column, outer = index - rest * inner, rest // parts
    part = rest - outer * parts
    base, place, value = outer * length * inner + column, int64(-1), load_x(x[0])
    end = min(size, (part + 1) * piece) if index < count else int64(0)
    for j in steps(part * piece + thread // TOGETHER, end, THREADS // TOGETHER):
        at = found[(outer * size + j) * inner + column] if AGAIN else j
        here = load_x(x[base + at * inner])
        if place < 0 or beats(here, value) or (at < place and not beats(value, here)):
            value, place = here, at
    best[thread] = value
    standing[thread] = place
    step = THREADS >> 1
    while step >= TOGETHER:
        cuda.syncthreads()
        if thread < step:
            here, at = best[thread + step], standing[thread + step]
            better = place < 0 or beats(here, value) or (at < place and not beats(value, here))
            if at >= 0 and better:
                value, place = here, at
                best[thread] = value
                standing[thread] = place
        step >>= 1
    if thread < TOGETHER and index < count:
        if parts > 1:
            found[index] = place
        else:
            places[index] = place
            if VALUES:
                values[index] = x[base + place * inner]


BEST = Written(best_of_lines, ("values", "places", "found", "x"))


class Cut(NamedTuple):
    """The blocks' shares of lines. threads: of a block. piece: of a line, at least. groups: so many blocks are made."""

    threads: int = THREADS
    piece: int = 1 << 12
    groups: int = 512


CUT = Cut()


def launches_of(self: Tensor, dim: int | None, largest: bool, values: bool, tensors: tuple[int, ...]) -> list[Task]:
    """One launch, or two with places between them; `tensors` are the numbers of values, places and `self` in a task."""
    outer, size, inner = (1, self._shape.numel(), 1) if dim is None else around(self._shape, dim)
    lines, together = outer * inner, WARP if inner >= WARP else 1
    if not lines:
        return []
    dtype, threads = self._dtype.name.replace("bool", "uint8"), CUT.threads
    parts, piece = pieces(size, CUT.piece * (1 if together == 1 else threads // WARP), lines, CUT.groups * together)
    given = {"VALUES": values, "TOGETHER": together, "THREADS": threads, "beats": is_above if largest else is_below}
    told = (*tensors[:2], SCRATCH if parts > 1 else tensors[1], tensors[2])
    kinds = dtype, "int64", "int64", dtype

    def task(again: bool, size: int, length: int, parts: int, piece: int) -> Task:
        blocks = -(-lines * parts // together)
        launch = BEST.launch(DTYPES[dtype].compute, kinds, blocks, threads, AGAIN=again, **given)
        return Task(launch, told, (lines * parts, size, length, inner, parts, piece), scratch)

    scratch = 8 * lines * parts if parts > 1 else 0
    first = task(False, size, size, parts, piece)
    return [first] if parts == 1 else [first, task(True, parts, size, 1, parts)]


# --- operators --------------------------------------------------------------------------------------------------------


def argmax_work(out: Tensor, self: Tensor, dim: int | None, keepdim: bool) -> list[Task]:
    return launches_of(self, dim, True, False, (1, 0, 1))


def argmin_work(out: Tensor, self: Tensor, dim: int | None, keepdim: bool) -> list[Task]:
    return launches_of(self, dim, False, False, (1, 0, 1))


class Positions(ByWork):
    """Places go nowhere but to int64."""

    def fill(self, target: Tensor, args: Sequence[Any]) -> None:
        check_out_dtype(target, dtypes.int64)
        super().fill(target, args)


define(Positions(extremes.argmax.op, argmax_work, dense=("self",)))
define(Positions(extremes.argmin.op, argmin_work, dense=("self",)))


def find_extremes(op: Any, args: tuple[Any, ...], values: Tensor, indices: Tensor) -> None:
    """Fills both results of `max` or `min` along a dimension, which may lie anyhow."""
    dim, largest = args[1], op.base_name == "max"
    filled_anyhow((values, indices), args[0], lambda x, *_: launches_of(x, dim, largest, True, (0, 1, 2)))


for _op in (extremes.max.ops[2], extremes.min.ops[2]):
    as_on_cpu(f"on the device: {_op.base_name}", _op.functional, _op.out)
