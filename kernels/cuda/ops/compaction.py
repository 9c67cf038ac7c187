"""Keeping some of many elements on a GPU: the places of those that are not zero, of a mask, the first of each run.

Blocks count what is to be kept of their pieces; a scan of these counts says where each block's results begin, and its
last one how many there are, which the host reads, and so waits for; then the blocks count again, and write. An element
is kept where it is not zero, or, of RUNS, where it differs from the one before. Operands are dense.
Read next: searching.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, zero are put there by `Written`.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.engine.program import integral, steps
from redispatch.kernels.ops.masking import nonzero_static_shape

from ..compiler import CUDA as cuda
from ..runtime.structured import Task, composite_of, dense, launched
from ..templates import THREADS, WARP, Written, block_total, part
from .scan import CUMSUM, keep_number, kept_number, number, scanning
from .scan import planned as planned_scan

aten = ops.aten
int32, int64 = np.int32, np.int64


@integral
def add_counts(a, b):
    """Adds two counts of a block, which 32 bits hold: half as many shuffles."""
    return int32(a + b)


def counting(lanes: int) -> Callable:
    """`scanned` of counts, for so many threads."""
    return scanning(add_counts, number("int32", 0), keep_number, kept_number, lanes)


@part
def is_kept(x, i):
    here = load_x(x[i])
    return i == 0 or here != load_x(x[max(i - 1, 0)]) if RUNS else here != zero


def count_kept(counts, x, n, piece):
    """Counts what is kept of each piece."""
    parts = cuda.shared.array(WARPS, int64)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    end, count = min(n, (block + 1) * piece), int64(0)
    for i in steps(block * piece + thread, end, THREADS):
        count += int64(is_kept(x, i))
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
                flags |= int64(is_kept(x, i)) << k
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


def as_bytes(*dtypes: str) -> tuple[str, ...]:
    """The dtypes with a bool as a byte."""
    return tuple("uint8" if name == "bool" else name for name in dtypes)


# --- places -----------------------------------------------------------------------------------------------------------


def positions(n: int, like: Tensor) -> Any:
    return empty((n,), dtypes.int64, like._device)


def kept(x: Tensor, source: Tensor | None = None, *, runs: bool = False, order: Tensor | None = None) -> Any:
    """(places, elements of `source` there, the run of each element) of what is kept of a flat tensor: of what is not
    zero, or of the first of each run. Behind the places stands the number of elements.

    What is not asked for, by `source` or `order`, is None; with both missing, places alone.
    """
    x = dense(x)
    n, other = x._shape.numel(), x if source is None else source
    if not n:
        nothing = positions(1, x).fill_(0), None if source is None else empty((0,), other._dtype, x._device)
        return *nothing, None if order is None else positions(0, x)
    tile, threads = CUT.threads * 4, CUT.threads
    piece = -(-n // (tile * CUT.most)) * tile
    parts = -(-n // piece)
    (kind,) = as_bytes(x._dtype.name)
    given = {"RUNS": runs, "THREADS": threads, "WARPS": threads // WARP}
    compute, rest = DTYPES[kind].compute, (n, piece)
    count_each = COUNT.launch(compute, ("int64", kind), parts, threads, **given)
    sums = planned_scan(CUMSUM, "int64", "int64", 1, parts, 1)
    counts = positions(parts, x)
    launched([Task(count_each, (0, 1), rest), Task(sums.launches[0], (0, 0, 0, 0), sums.rest)], [counts, x])
    count = int(counts[parts - 1].item())
    places = positions(count + 1, x)
    out = None if source is None else empty((count,), other._dtype, x._device)
    groups = None if order is None else positions(n, x)
    told = [places, out, groups, counts, x, dense(other), order]
    given |= {"PLACES": source is None or runs, "VALUES": source is not None, "GROUPS": order is not None}
    kinds = as_bytes("int64", other._dtype.name, "int64", "int64", kind, other._dtype.name, "int64")
    writing = WRITE.launch(compute, kinds, parts, threads, scanned=counting(threads), **given)
    launched([Task(writing, tuple(range(7)), rest)], told)
    return places, out, groups


def places_of_true(mask: Any) -> Any:
    """The places of a flat mask's true elements, in order. Waits for their number."""
    places, _, _ = kept(mask)
    return places.narrow(0, 0, places._shape[0] - 1)


@composite_of("nonzero")
def nonzero(self: Any) -> Any:
    """The indices of the elements that are not zero, a row for each; they lie column by column."""
    dims = len(self._shape)
    places = places_of_true(self.reshape([-1]))
    count = places._shape[0]
    if dims == 1:
        return places.unsqueeze(0).t()
    rows = empty((dims, count), dtypes.int64, self._device)
    if count:
        launch, step, tasks = COORDINATE.spread("int64", ("int64", "int64"), count, THREADS=THREADS), 1, []
        for d in range(dims - 1, -1, -1):
            tasks.append(Task(launch, (d, dims), (count, step, self._shape[d])))
            step *= self._shape[d]
        launched(tasks, [*(rows[d] for d in range(dims)), places])
    return rows.t()


@composite_of("nonzero_static")
def nonzero_static(self: Any, size: int, fill_value: int) -> Any:
    """The indices of the first `size` elements that are not zero; rows of `fill_value` where there are fewer."""
    made = self.new_full([*nonzero_static_shape(self, size)], fill_value, dtype=dtypes.int64)
    found = nonzero(self)
    count = min(size, found._shape[0])
    made.narrow(0, 0, count).copy_(found.narrow(0, 0, count))
    return made


@composite_of("masked_select")
def masked_select(self: Any, mask: Any) -> Any:
    """The elements where the mask is true, as one dimension. Both broadcast."""
    if mask._dtype is not dtypes.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    x, mask = aten.broadcast_tensors.default([self, mask])
    _, found, _ = kept(mask.reshape([-1]), x.reshape([-1]))
    return found


# --- different elements -----------------------------------------------------------------------------------------------


def lengths(starts: Any) -> Any:
    """The lengths of runs, of where they begin, and the end of all."""
    count = starts._shape[0] - 1
    return starts.narrow(0, 1, count) - starts.narrow(0, 0, count)


@composite_of("_unique2")
def unique(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Any, Any, Any]:
    """The different elements in ascending order; where each is among them; how often each occurs."""
    values, order = self.reshape([-1]).sort(stable=True)
    return runs(values, self, order if return_inverse else None, return_counts)


def runs(values: Any, self: Any, order: Any, return_counts: bool) -> tuple[Any, Any, Any]:
    """The first of each run of equal elements, and what is asked for of the others; where they were is `order`."""
    starts, found, groups = kept(values, values, runs=True, order=order)
    none = self.new_empty([0], dtype=dtypes.int64)
    inverse = none if groups is None else groups.reshape(list(self._shape))
    return found, inverse, lengths(starts) if return_counts else none


@composite_of("_unique")
def unique1(self: Any, sorted: bool, return_inverse: bool) -> tuple[Any, Any]:
    return unique(self, sorted, return_inverse, False)[:2]


@composite_of("unique_consecutive")
def unique_consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> tuple[Any, Any, Any]:
    """The first of each run of equal elements."""
    if dim is not None and len(self._shape) != 1:
        return aten.unique_dim_consecutive.default(self, dim, return_inverse, return_counts)
    flat = self.reshape([-1])
    order = aten.arange.default(flat._shape[0], dtype=dtypes.int64, device=flat._device) if return_inverse else None
    return runs(flat, self, order, return_counts)
