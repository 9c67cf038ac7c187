"""What is kept of many elements on a GPU: the places of those that are not zero, of a mask, the first of each run.

Blocks count what is to be kept of their pieces; a scan of these counts says where each block's results begin, and its
last one how many there are, for which the host waits; then the blocks count again, and write. An element is kept where
it is not zero, or, of RUNS, where it differs from the one before. Operands are dense. Read next: `searchsorted.py`.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, zero are put there by `Written`.

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES

from ..engine.program import integral
from .compiler import CUDA as cuda
from .launch import Launch
from .scan import CUMSUM, keep_number, kept_number, number, scanning
from .scan import planned as planned_scan
from .templates import THREADS, WARP, Written, block_total

int32, int64 = np.int32, np.int64


@integral
def add_counts(a, b):
    """Of a block, which 32 bits hold: half as many shuffles."""
    return int32(a + b)


def counting(lanes: int) -> Callable:
    """`scanned` of counts, for so many threads."""
    return scanning(add_counts, number("int32", 0), keep_number, kept_number, lanes)


def count_kept(counts, x, n, piece):
    """How many are kept of each piece."""
    parts = cuda.shared.array(WARPS, int64)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    i, end, count = block * piece + thread, min(n, (block + 1) * piece), int64(0)
    while i < end:
        here = load_x(x[i])
        count += int64(i == 0 or here != load_x(x[max(i - 1, 0)]) if RUNS else here != zero)
        i += THREADS
    count = block_total(count, parts)
    if thread == 0:
        counts[block] = count


def write_kept(places, out, groups, counts, x, source, order, n, piece):
    """The places of what is kept (PLACES), what `source` has there (VALUES), and to what each element belongs: the
    number of its run, at the place that `order` has for it (GROUPS). Behind the last place stands `n`."""
    sums = cuda.shared.array(WARPS, int32)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    end, upto = min(n, (block + 1) * piece), counts[block - 1] if block > 0 else int64(0)
    for tile in range((piece + THREADS * 4 - 1) // (THREADS * 4)):
        first = block * piece + (tile * THREADS + thread) * 4
        flags = int64(0)
        for k in range(4):
            i = first + k
            if i < end:
                here = load_x(x[i])
                flags |= int64(i == 0 or here != load_x(x[max(i - 1, 0)]) if RUNS else here != zero) << k
        before, total = scanned(int32(cuda.popc(flags)), sums, 0)
        to = upto + before
        for k in range(4):
            i = first + k
            if flags >> k & 1 == 1:
                if PLACES:
                    places[to] = i
                if VALUES:
                    out[to] = source[i]
                to += 1
            if GROUPS and i < end:
                groups[order[i]] = to - 1
        upto += total
    if PLACES and thread == 0 and end == n:
        places[upto] = n


def coordinate(out, places, count, step, size):
    """One of the indices of elements of which row-major places are known."""
    i = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if i < count:
        out[i] = places[i] // step % size


COUNT = Written(count_kept, ("counts", "x"))
WRITE = Written(write_kept, ("places", "out", "groups", "counts", "x", "source", "order"))
COORDINATE = Written(coordinate, ("out", "places"))

# --- launches ---------------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """threads: of a block. most: pieces, so that one block scans their counts."""

    threads: int = THREADS
    most: int = 1024


CUT = Cut()


class Kept(NamedTuple):
    """The launches that count, told (counts, x) and (counts, counts, counts, counts); how many counts there are; and
    what the last launch is told behind its arrays."""

    counts: Launch
    rest: tuple[int, ...]
    sums: Launch
    sums_rest: tuple[int, ...]
    parts: int


def kept(dtype: str, n: int, runs: bool) -> Kept:
    """What counts what is kept of `n` elements; there are some."""
    tile = CUT.threads * 4
    piece = -(-n // (tile * CUT.most)) * tile
    parts = -(-n // piece)
    kernel = COUNT.kernel(*computing(("int64", dtype)), RUNS=runs, THREADS=CUT.threads, WARPS=CUT.threads // WARP)
    sums = planned_scan(CUMSUM, "int64", "int64", 1, parts, 1)
    (one,) = sums.launches
    return Kept(Launch(kernel, (parts, 1, 1), (CUT.threads, 1, 1)), (n, piece), one, sums.rest, parts)


def writing(dtype: str, out: str, part: Kept, *, runs: bool, places: bool, values: bool, groups: bool) -> Launch:
    """The launch that writes what is kept."""
    threads = CUT.threads
    kernel = WRITE.kernel(
        *computing(("int64", out, "int64", "int64", dtype, out, "int64")),
        RUNS=runs,
        PLACES=places,
        VALUES=values,
        GROUPS=groups,
        THREADS=threads,
        WARPS=threads // WARP,
        scanned=counting(threads),
    )
    return Launch(kernel, (part.parts, 1, 1), (threads, 1, 1))


def computing(dtypes: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The type in which the second-last kind of array is compared, and dtypes in which a bool is a byte."""
    known = tuple("uint8" if name == "bool" else name for name in dtypes)
    return DTYPES[known[1 if len(known) == 2 else 4]].compute, known
