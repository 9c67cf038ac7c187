"""Where values belong among edges in order, and how much falls into each bin, on a GPU.

A search by halves has a thread for each value. Bins are counted by atomic additions: where there are few, in the
memory of each block first, so that blocks come together once for each bin and not for each element.
Read next: histograms.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_edges, store_out are put there by `Written`.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.ops import searching

from ..compiler import CUDA as cuda
from ..intrinsics import add_at
from ..launch import Launch
from ..runtime.structured import Task, composite_of, dense, launched
from ..templates import THREADS, Written

aten = ops.aten
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
    launch = TALLY.launch(
        out,
        (out, places, weights or out),
        -(-n // (THREADS * each)),
        SHARED=shared,
        WEIGHTED=weights is not None,
        THREADS=THREADS,
        ROOM=ROOM.shared if shared else 1,
    )
    return launch, (n, bins, each)


def below_or_at(
    edges: Any, values: Any, right: bool, order: Any = None, dtype: Any = dtypes.int64, bins: bool = False
) -> Any:
    """How many edges of the last dimension are below each value, or, with `right`, not above it.

    Edges are in order, or are put so by `order`. Where they have several lines, the values' last dimension goes with
    them. With `bins` and `right`, the number of the bin between two edges; -1 outside.
    """
    out = empty(values._shape, dtype, values._device)
    n, size = values._shape.numel(), edges._shape[-1]
    if n:
        compute = DTYPES[aten.result_type.Tensor(edges, values).name].compute
        tensors = [out, dense(edges), dense(values), None if order is None else dense(order)]
        kinds = [*(x._dtype.name for x in tensors[:3] if x is not None), "int64"]
        given = {"RIGHT": right, "ORDERED": order is not None, "BINS": bins, "THREADS": THREADS}
        launch = SEARCH.spread(compute, kinds, n, **given)
        per = values._shape[-1] if len(edges._shape) > 1 else n
        launched([Task(launch, (0, 1, 2, 3), (n, size, per))], tensors)
    return out


@composite_of("searchsorted.Tensor")
def searchsorted(sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any) -> Any:
    meta = searching.searchsorted_op.meta_function(sorted_sequence, self, out_int32, right, side, sorter)
    return below_or_at(sorted_sequence, self, right or side == "right", sorter, meta.dtype)


@composite_of("searchsorted.Scalar")
def searchsorted_scalar(
    sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any
) -> Any:
    searching.searchsorted_scalar_op.meta_function(sorted_sequence, self, out_int32, right, side, sorter)
    dtype = dtypes.float64 if isinstance(self, float) else sorted_sequence._dtype
    value = aten.scalar_tensor.default(self, dtype=dtype, device=sorted_sequence._device)
    return searchsorted(sorted_sequence, value.reshape([1]), out_int32, right, side, sorter).reshape([])


@composite_of("bucketize.Tensor")
def bucketize(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    searching.bucketize_op.meta_function(self, boundaries, out_int32, right)
    return searchsorted(boundaries, self, out_int32, right, None, None)


@composite_of("bucketize.Scalar")
def bucketize_scalar(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    searching.bucketize_scalar_op.meta_function(self, boundaries, out_int32, right)
    return searchsorted_scalar(boundaries, self, out_int32, right, None, None)


@composite_of("isin.Tensor_Tensor", "isin.Tensor_Scalar", "isin.Scalar_Tensor")
def isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Any:
    """Whether each element is among the others, which are put in order and searched."""
    on = next(x._device for x in (elements, test_elements) if isinstance(x, Tensor))
    one, others = (
        x if isinstance(x, Tensor) else aten.scalar_tensor.default(x, dtype=y._dtype, device=on)
        for x, y in ((elements, test_elements), (test_elements, elements))
    )
    dtype = aten.result_type.Tensor(one, others)
    if not others._shape.numel():
        return aten.full.default(list(one._shape), invert, dtype=dtypes.bool, device=on)
    others, _ = others.to(dtype).reshape([-1]).sort()
    place = below_or_at(others, one.to(dtype), False).clamp(0, others._shape[0] - 1)
    found = others.take(place) == one
    return found.logical_not() if invert else found


# --- counts -----------------------------------------------------------------------------------------------------------


def tally(places: Any, weights: Any, bins: int) -> Any:
    """[bins]: the weights of the elements at each place, or how many there are; places outside count for nothing.

    Sums are float32 or float64, as the weights are, in no fixed order; counts int64.
    """
    dtype = dtypes.int64 if weights is None else weights._dtype
    found = aten.zeros.default([bins], dtype=dtype, device=places._device)
    n = places._shape.numel()
    if n and bins:
        kinds = dtype.name, places._dtype.name, None if weights is None else dtype.name
        launch, rest = tallying(*kinds, n, bins)
        tensors = [found, dense(places), None if weights is None else dense(weights)]
        launched([Task(launch, (0, 1, 2), rest)], tensors)
    return found


@composite_of("bincount")
def bincount(self: Any, weights: Any, minlength: int) -> Any:
    """How often each integer occurs, or the sum of its weights."""
    if len(self._shape) != 1 or self._dtype.category > dtypes.INTEGER or self._dtype is dtypes.bool:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights._shape != self._shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    count = minlength
    if self._shape[0]:
        least, most = aten.stack.default(aten.aminmax.default(self)).tolist()
        if least < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        count = max(minlength, most + 1)
    if weights is not None and weights._dtype is not dtypes.float32:
        weights = weights.to(dtypes.float64)
    return tally(self, weights, count)
