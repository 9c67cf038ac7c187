"""Where values belong among edges in order, and how much falls into each bin, on a GPU.

A search by halves has a thread for each value. Bins are counted by atomic additions: where there are few, in the
memory of each block first, so that blocks come together once for each bin and not for each element.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_edges, store_out are put there by `Written`.

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .compiler import CUDA as cuda
from .intrinsics import add_at
from .launch import Launch
from .templates import THREADS, Written

int64 = np.int64


def edges_below(out, edges, values, order, n, size, per):
    """How many of its line's edges are below each value, or, RIGHT, not above it; NaN is behind all.

    `per` values have the same line of `size` edges; ORDERED: `order` says where they stand in order. BINS: the number
    of the bin between two edges is wanted, -1 outside; the last one has both of its edges.
    """
    i = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if i < n:
        base, value = i // per * size, load_values(values[i])
        low, high = int64(0), size
        while low < high:
            middle = (low + high) >> 1
            edge = load_edges(edges[base + (order[base + middle] if ORDERED else middle)])
            if (edge <= value if RIGHT else edge < value) or value != value:
                low = middle + 1
            else:
                high = middle
        if BINS:
            if value == load_edges(edges[base + size - 1]):
                low = size - 1
            low = low - 1 if low < size else int64(-1)
        out[i] = store_out(low)


def add_up_by_place(out, places, weights, n, bins, each):
    """out[places[i]] += weights[i], or 1 of nothing WEIGHTED; places outside count for nothing. SHARED: bins few enough
    for a block's own memory, which takes `each` elements a thread."""
    own = cuda.shared.array(ROOM, compute)
    thread = int64(cuda.threadIdx.x)
    if SHARED:
        k = thread
        while k < bins:
            own[k] = zero
            k += THREADS
        cuda.syncthreads()
    i = int64(cuda.blockIdx.x) * (THREADS * each) + thread
    end = min(n, (int64(cuda.blockIdx.x) + 1) * (THREADS * each))
    while i < end:
        place = int64(places[i])
        if 0 <= place and place < bins:
            weight = load_weights(weights[i]) if WEIGHTED else one
            if SHARED:
                cuda.atomic.add(own, place, weight)
            else:
                add_at(out, place, weight)
        i += THREADS
    if SHARED:
        cuda.syncthreads()
        k = thread
        while k < bins:
            if own[k] != zero:
                add_at(out, k, own[k])
            k += THREADS


SEARCH = Written(edges_below, ("out", "edges", "values", "order"))
TALLY = Written(add_up_by_place, ("out", "places", "weights"))


class Room(NamedTuple):
    """shared: as many bins are counted in shared memory, which has 48 KB. each: elements of a thread then."""

    shared: int = 4096
    each: int = 16


ROOM = Room()


def tallying(out: str, places: str, weights: str | None, n: int, bins: int) -> tuple[Launch, tuple[int, ...]]:
    """The launch that adds up by place, and what it is told behind its arrays. `out` is int64, float32 or float64."""
    shared = bins <= ROOM.shared
    each = ROOM.each if shared else 1
    kernel = TALLY.kernel(
        out,
        (out, places, weights or out),
        SHARED=shared,
        WEIGHTED=weights is not None,
        THREADS=THREADS,
        ROOM=ROOM.shared if shared else 1,
    )
    return Launch(kernel, (-(-n // (THREADS * each)), 1, 1), (THREADS, 1, 1)), (n, bins, each)
