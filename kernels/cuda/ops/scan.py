"""Scans on a GPU: results up to each element of a line, for any operation that may be put in brackets as one likes.

An operation is an `Operation`: how an element becomes what is carried along, and how two of those combine, the one that
stands before first. Two forms:

- rows: lines lie in memory one after the other. `LANES` threads share a line, few for a short one, at most the block,
  and each takes four neighbours. Threads combine by shuffles, warps by shared memory, and a block goes on along its
  line, carrying the result.
- columns: lines lie side by side. A thread goes down one line, so that a warp reads neighbours.

Few long lines are cut into pieces, so that all of the GPU has work: one launch leaves the total of each piece, and in a
second one each block first combines those of the pieces before its own. Operands are dense; `out` may be `x`.
Read next: sort.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, store_out, combine are put there by `Written`.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache as once
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.cpu.scan import log_add_exp_of_complex
from redispatch.kernels.engine.program import integral
from redispatch.kernels.maths.vecmath import exp, log1p
from redispatch.kernels.ops import scans
from redispatch.kernels.ops.scans import ELSEWHERE

from ..compiler import CUDA as cuda
from ..elementwise import MOST
from ..intrinsics import shuffle_up
from ..launch import Launch
from ..runtime.structured import SCRATCH, Task, around, as_on_cpu, filled_anyhow, work_of
from ..templates import THREADS, WARP, Written, accumulating, add, multiply, part

EACH = 4  # neighbours that a thread takes
FEW = (4, WARP)  # threads of a line that is no longer than they take at once; all others have a block
int32, int64 = np.int32, np.int64


# --- what threads have in common --------------------------------------------------------------------------------------


@once
def scanning(combine: Callable, nothing: Callable, keep: Callable, kept: Callable, lanes: int) -> Callable:
    """`scanned(acc, totals, standing)`: what the threads before this one have, of the `lanes` that share a line, and
    what all have. `totals` and `standing` have room for each warp. Lines of less than a block's threads are not asked
    for the latter, and get something else."""
    span, warps = min(lanes, WARP), max(lanes // WARP, 1)

    @integral
    def scanned(acc, totals, standing):
        thread = int64(cuda.threadIdx.x)
        own, warp = thread % span, thread // 32
        distance = 1
        while distance < span:
            other = shuffle_up(acc, distance)
            if own >= distance:
                acc = combine(other, acc)
            distance *= 2
        before = shuffle_up(acc, 1)
        if own == 0:
            before = nothing()
        if warps > 1:
            cuda.syncthreads()  # for those that still read what a call before has left
            if own == 31:
                keep(totals, standing, warp, acc)
            cuda.syncthreads()
            first, acc = warp // warps * warps, nothing()
            for k in range(first, first + warps):
                if k == warp:
                    before = combine(acc, before)
                acc = combine(acc, kept(totals, standing, k))
        return before, acc

    return scanned


# --- the two forms ----------------------------------------------------------------------------------------------------


@part
def put(out, places, at, acc):
    """Writes a result, and its place."""
    out[at] = store_out(value_of(acc))
    write_place(places, at, acc)


def scan_rows(out, places, carry, x, lines, size, parts, piece):
    """A group of LANES threads for each piece of a line. TOTALS: the total of each piece is all that is wanted."""
    totals, standing = cuda.shared.array(WARPS, compute), cuda.shared.array(WARPS, int32)
    thread = int64(cuda.threadIdx.x)
    lane = thread % LANES
    group = int64(cuda.blockIdx.x) * (THREADS // LANES) + thread // LANES
    line = group // parts
    part = group - line * parts
    base, begin = line * size, part * piece
    end = min(size, begin + piece) if line < lines else int64(0)
    before = nothing()
    if CARRIED:  # each thread a few of the pieces before, in their order
        each = (part + LANES - 1) // LANES
        for k in range(lane * each, min(part, (lane + 1) * each)):
            held = carry[group - part + k]
            before = combine(before, recalled(held, load_x(x[base + place_of_held(held)])))
        _, before = scanned(before, totals, standing)
    for tile in range((piece + LANES * 4 - 1) // (LANES * 4)):
        j = begin + tile * (LANES * 4) + lane * 4
        at = base + j
        a = taken(load_x(x[at]), j) if j < end else nothing()
        b = combine(a, taken(load_x(x[at + 1]), j + 1)) if j + 1 < end else a
        c = combine(b, taken(load_x(x[at + 2]), j + 2)) if j + 2 < end else b
        d = combine(c, taken(load_x(x[at + 3]), j + 3)) if j + 3 < end else c
        ahead, total = scanned(d, totals, standing)
        ahead = combine(before, ahead)
        if not TOTALS:
            a, b, c, d = combine(ahead, a), combine(ahead, b), combine(ahead, c), combine(ahead, d)
            if j < end:
                put(out, places, at, a)
            if j + 1 < end:
                put(out, places, at + 1, b)
            if j + 2 < end:
                put(out, places, at + 2, c)
            if j + 3 < end:
                put(out, places, at + 3, d)
        before = combine(before, total)
    if TOTALS and lane == 0 and line < lines:
        carry[group] = to_hold(before)


def scan_columns(out, places, carry, x, count, size, inner, parts, piece):
    """A thread for each piece of a line; `count` are all. `inner` lines lie side by side."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < count:
        rest = index // inner
        outer = rest // parts
        part = rest - outer * parts
        base = outer * size * inner + (index - rest * inner)
        j = part * piece
        end = min(size, j + piece)
        acc = nothing()
        if CARRIED:
            for k in range(part):
                held = carry[index - (part - k) * inner]
                acc = combine(acc, recalled(held, load_x(x[base + place_of_held(held) * inner])))
        while j + 3 < end:  # four are read before one is written, which might be one of them for all a compiler knows
            at = base + j * inner
            a, b = taken(load_x(x[at]), j), taken(load_x(x[at + inner]), j + 1)
            c, d = taken(load_x(x[at + 2 * inner]), j + 2), taken(load_x(x[at + 3 * inner]), j + 3)
            a = combine(acc, a)
            b = combine(a, b)
            c = combine(b, c)
            acc = combine(c, d)
            if not TOTALS:
                put(out, places, at, a)
                put(out, places, at + inner, b)
                put(out, places, at + 2 * inner, c)
                put(out, places, at + 3 * inner, acc)
            j += 4
        while j < end:
            at = base + j * inner
            acc = combine(acc, taken(load_x(x[at]), j))
            if not TOTALS:
                put(out, places, at, acc)
            j += 1
        if TOTALS:
            carry[index] = to_hold(acc)


ARRAYS = ("out", "places", "carry", "x")
ROWS, COLUMNS = Written(scan_rows, ARRAYS, at_once=512), Written(scan_columns, ARRAYS)

# --- operations -------------------------------------------------------------------------------------------------------


class Operation(NamedTuple):
    """The operation of a scan. All functions are for the type that is computed in.

    nothing: what changes nothing, as a function of that type. placed: whether a number goes with its place.
    """

    name: str
    combine: Callable
    nothing: Callable[[str], Callable]
    placed: bool = False


def log_add_exp(a, b):
    """log(exp(a) + exp(b)): of infinities and NaN, too."""
    most, least = (a, b) if b < a else (b, a)
    return most if least == most and least - least != 0 else most + log1p(exp(least - most))


def later_largest(a, b):
    """The larger number with its place; of equal ones the one behind, and of NaNs. A place of -1 is that of none."""
    return b if b[1] >= 0 and (a[1] < 0 or b[0] >= a[0] or b[0] != b[0]) else a


def later_smallest(a, b):
    return b if b[1] >= 0 and (a[1] < 0 or b[0] <= a[0] or b[0] != b[0]) else a


@once
def number(compute: str, value: float) -> Callable:
    """Makes a function that returns a number of that type."""
    start = np.dtype(compute).type(value)

    def constant():
        return start

    return constant


@once
def no_number(compute: str) -> Callable:
    start = np.dtype(compute).type(0)

    @integral
    def constant():
        return start, int32(-1)

    return constant


CUMSUM = Operation("cumsum", add, lambda compute: number(compute, 0))
CUMPROD = Operation("cumprod", multiply, lambda compute: number(compute, 1))
LOGCUMSUMEXP = Operation("logcumsumexp", log_add_exp, lambda compute: number(compute, -math.inf))
COMPLEX_LOGCUMSUMEXP = LOGCUMSUMEXP._replace(combine=log_add_exp_of_complex)
CUMMAX = Operation("cummax", later_largest, no_number, placed=True)
CUMMIN = Operation("cummin", later_smallest, no_number, placed=True)

# A number by itself, and one with its place, in 32 bits. The latter is carried from piece to piece as its place alone.


@integral
def itself(x):
    return x


@integral
def number_taken(x, j):
    return x


@integral
def number_recalled(held, x):
    return held


@integral
def no_place(held):
    return int64(0)


@integral
def write_no_place(places, at, acc):
    return None


@integral
def keep_number(totals, standing, k, acc):
    totals[k] = acc


@integral
def kept_number(totals, standing, k):
    return totals[k]


@integral
def pair_taken(x, j):
    return x, int32(j)


@integral
def pair_recalled(held, x):
    return x, int32(held)


@integral
def value_of_pair(acc):
    return acc[0]


@integral
def place_of_pair(acc):
    return int64(acc[1])


@integral
def write_place_of_pair(places, at, acc):
    places[at] = int64(acc[1])


@integral
def keep_pair(totals, standing, k, acc):
    totals[k] = acc[0]
    standing[k] = acc[1]


@integral
def kept_pair(totals, standing, k):
    return totals[k], standing[k]


NUMBER = {
    "taken": number_taken,
    "recalled": number_recalled,
    "place_of_held": no_place,
    "value_of": itself,
    "write_place": write_no_place,
    "to_hold": itself,
}
PAIR = {
    "taken": pair_taken,
    "recalled": pair_recalled,
    "place_of_held": itself,
    "value_of": value_of_pair,
    "write_place": write_place_of_pair,
    "to_hold": place_of_pair,
}

# --- launches ---------------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """The blocks' shares of lines. threads: of a block. groups: as many pieces are made, if there are fewer lines.
    walkers: the same for columns. shortest: piece of a column."""

    threads: int = THREADS
    groups: int = 512
    walkers: int = 1 << 15
    shortest: int = 64


CUT = Cut()


class Planned(NamedTuple):
    """The launches for lines that lie so: one, or two with `carried` numbers of type `carry` between them. All are told
    out, places, carry, x, and `rest`."""

    launches: tuple[Launch, ...]
    rest: tuple[int, ...]
    carry: str
    carried: int


def planned(
    operation: Operation, out: str, x: str, outer: int, size: int, inner: int, cut: Cut | None = None
) -> Planned:
    """The launches that scan the `outer * inner` lines of `size` elements; dtypes are those of the tensors."""
    cut = cut or CUT
    if size >= MOST:
        raise NotImplementedError(f"{operation.name}: {size} elements of a line are more than a CUDA kernel counts yet")
    if operation.placed:
        out, x = (name.replace("bool", "uint8") for name in (out, x))
        compute, carry, kind, keep, kept = DTYPES[x].compute, "int64", PAIR, keep_pair, kept_pair
    else:
        compute = carry = accumulating(out)
        kind, keep, kept = NUMBER, keep_number, kept_number
    nothing = operation.nothing(compute)
    dtypes = (out, "int64", carry, x)
    given: dict[str, object] = {**kind, "combine": operation.combine, "nothing": nothing, "THREADS": cut.threads}
    if inner == 1:
        lanes = next((few for few in FEW if few * EACH >= size), cut.threads)
        parts, piece = pieces(size, lanes * EACH, outer, cut.groups if lanes == cut.threads else 0)
        given |= {"LANES": lanes, "WARPS": max(1, cut.threads // WARP)}
        given["scanned"] = scanning(operation.combine, nothing, keep, kept, lanes)
        written, count, blocks = ROWS, outer, -(-outer * parts * lanes // cut.threads)
        rest: tuple[int, ...] = (count, size, parts, piece)
    else:
        parts, piece = pieces(size, cut.shortest, outer * inner, cut.walkers)
        parts, piece = pieces(size, piece, 1, math.isqrt(2 * size)) if parts > 1 else (parts, piece)
        written, count = COLUMNS, outer * inner * parts
        blocks, rest = -(-count // cut.threads), (count, size, inner, parts, piece)
    flags: Sequence[tuple[bool, bool]] = [(True, False), (False, True)] if parts > 1 else [(False, False)]
    launches = tuple(
        written.launch(compute, dtypes, blocks, cut.threads, TOTALS=totals, CARRIED=carried, **given)
        for totals, carried in flags
    )
    return Planned(launches, rest, carry, outer * inner * parts if parts > 1 else 0)


def pieces(size: int, least: int, lines: int, wanted: int) -> tuple[int, int]:
    """(how many pieces a line is cut into, their size): a multiple of `least`, so that there are `wanted` of all lines,
    if they are as long."""
    parts = max(1, min(size // least, wanted // max(lines, 1)))
    piece = max(1, -(-size // (parts * least))) * least
    return max(1, -(-size // piece)), piece


# --- operators --------------------------------------------------------------------------------------------------------


def launches_of(operation: Operation, out: Tensor, self: Tensor, dim: int) -> list[Task]:
    """The launches that fill `out` with the results up to each element of `self` along `dim`; both are dense.

    An operation that tells of places fills another tensor, which stands behind `out` among the task's tensors.
    """
    if not out._shape.numel():
        return []
    plan = planned(operation, out._dtype.name, self._dtype.name, *around(self._shape, dim))
    carry = SCRATCH if plan.carried else 0
    tensors = (0, 1, carry, 2) if operation.placed else (0, 0, carry, 1)
    nbytes = plan.carried * DTYPES[plan.carry].storage.itemsize
    return [Task(launch, tensors, plan.rest, nbytes) for launch in plan.launches]


@work_of(scans.cumsum.op, dense=("self",), elementwise=True)
def cumsum_work(out: Tensor, self: Tensor, dim: int, dtype: Any) -> list[Task]:
    return launches_of(CUMSUM, out, self, dim)


@work_of(scans.cumprod.op, dense=("self",), elementwise=True)
def cumprod_work(out: Tensor, self: Tensor, dim: int, dtype: Any) -> list[Task]:
    return launches_of(CUMPROD, out, self, dim)


@work_of(scans.logcumsumexp.op, dense=("self",), elementwise=True)
def logcumsumexp_work(out: Tensor, self: Tensor, dim: int) -> list[Task]:
    return launches_of(COMPLEX_LOGCUMSUMEXP if self._dtype.is_complex else LOGCUMSUMEXP, out, self, dim)


def fill_extremes(name: str, self: Tensor, dim: int, values: Tensor, indices: Tensor) -> None:
    """Fills both results of `cummax` or `cummin`, which may lie anyhow."""
    operation = CUMMAX if name == "cummax" else CUMMIN
    filled_anyhow((values, indices), self, lambda x, out, places: launches_of(operation, out, x, dim))


ELSEWHERE["cuda"] = fill_extremes
for _op in (scans.cummax.op, scans.cummin.op):
    as_on_cpu(f"on the device: {_op.base_name}", _op.functional, _op.out)
