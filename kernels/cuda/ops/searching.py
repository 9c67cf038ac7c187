"""Where values belong among edges in order, how much falls into each bin, and different slices, on a GPU.

A search by halves has a thread for each value. Bins are counted by atomic additions: where there are few, in the
memory of each block first, so that blocks come together once for each bin and not for each element. Histograms and
different slices are put together from these and other operators, as in decompositions.py. Edges of bins are made on the
CPU, where it is said what they are; so the program waits for the least and the largest number where no range is given.
Read next: kernels/ops/statistics.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_edges, store_out are put there by `Written`.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, empty, wrap_dim
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels import contiguous_strides
from redispatch.kernels.engine.program import steps
from redispatch.kernels.ops import sorting, statistics
from redispatch.kernels.ops.statistics import even_edges

from ..compiler import CUDA as cuda
from ..intrinsics import add_at
from ..launch import Launch
from ..runtime.copies import array_on, copied
from ..runtime.launch_recorder import constant
from ..runtime.structured import Task, apart_from_target, as_on_cpu, composite_of, dense, launched
from ..templates import THREADS, Written
from .compaction import kept, lengths

aten = ops.aten
int64 = np.int64


MOST_KEPT = 1 << 14  # numbers that are kept on a device for calls that look alike; more are sent each time


def counted(n: int, like: Tensor) -> Any:
    """0, 1, ..., n - 1 on the device of a tensor, where nobody writes to them."""

    def made() -> Any:
        return aten.arange.default(n, dtype=dtypes.int64, device=like._device)

    return constant(made) if n <= MOST_KEPT else made()


def edges_below(out, edges, values, order, n, size, per):
    """Counts those of its line's edges that are below each value, or, RIGHT, not above it; NaN is behind all.

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
        for k in steps(thread, bins, THREADS):
            own[k] = zero
        cuda.syncthreads()
    end = min(n, (int64(cuda.blockIdx.x) + 1) * (THREADS * each))
    for i in steps(int64(cuda.blockIdx.x) * (THREADS * each) + thread, end, THREADS):
        place = int64(places[i])
        if 0 <= place and place < bins:
            weight = load_weights(weights[i]) if WEIGHTED else one
            if SHARED:
                cuda.atomic.add(own, place, weight)
            else:
                add_at(out, place, weight)
    if SHARED:
        cuda.syncthreads()
        for k in steps(thread, bins, THREADS):
            if own[k] != zero:
                add_at(out, k, own[k])


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
    """Counts the edges of the last dimension that are below each value, or, with `right`, not above it.

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
    meta = sorting.searchsorted_op.meta_function(sorted_sequence, self, out_int32, right, side, sorter)
    return below_or_at(sorted_sequence, self, right or side == "right", sorter, meta.dtype)


@composite_of("searchsorted.Scalar")
def searchsorted_scalar(
    sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any
) -> Any:
    dtype = dtypes.float64 if isinstance(self, float) else sorted_sequence._dtype
    value = aten.scalar_tensor.default(self, dtype=dtype, device=sorted_sequence._device)
    return searchsorted(sorted_sequence, value.reshape([1]), out_int32, right, side, sorter).reshape([])


@composite_of("bucketize.Tensor")
def bucketize(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    return searchsorted(boundaries, self, out_int32, right, None, None)


@composite_of("bucketize.Scalar")
def bucketize_scalar(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
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
    """Counts each integer, or sums its weights."""
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


# --- histograms -------------------------------------------------------------------------------------------------------


def bins_of(edges: Any, x: Any) -> Any:
    """The bin of each number, -1 outside: bins are open on the right, but for the last."""
    return below_or_at(edges, x, True, bins=True)


@composite_of("histc")
def histc(self: Any, bins: int, min: Any, max: Any) -> Any:
    x = self.reshape([-1])
    if min == max and x._shape[0]:
        min, max = aten.stack.default(aten.aminmax.default(x)).tolist()
        if not (math.isfinite(min) and math.isfinite(max)):
            raise RuntimeError(f"torch.histc: range of [{min:g}, {max:g}] is not finite")
    if min == max:
        min, max = min - 1, max + 1
    edges = array_on(self._device, np.linspace(float(min), float(max), bins + 1))
    return tally(bins_of(edges, x), None, bins).to(self._dtype)


def edges_of(self: Any, shape: tuple[int, int], bins: Sequence[int], range_: Any) -> list[Any]:
    """Edges of bins of equal width, made from the least and the largest numbers, or from a range."""
    rows, ends = self.reshape([*shape]), np.empty((0, shape[1]), self._dtype.numpy)
    if range_ is None and shape[0]:
        ends = as_numpy(aten.stack.default([rows.amin(0), rows.amax(0)]).cpu())
    return [array_on(self._device, one, self._dtype) for one in even_edges(ends, bins, range_)]


def counts(self: Any, rows: tuple[int, int], edges: Sequence[Any], weight: Any, density: bool) -> Any:
    """The weight of the samples in each bin; with `density`, divided by the bin's size and the weight of all."""
    samples, shape = self.reshape([*rows]), [one._shape[0] - 1 for one in edges]
    places: Any = None
    for d, one in enumerate(edges):
        place = bins_of(one, samples.select(1, d))
        if places is not None:
            outside = (places < 0) | (place < 0)
            place = (places * shape[d] + place).masked_fill(outside, -1)
        places = place
    flat = None if weight is None else weight.reshape([-1]).double()
    found = tally(places, flat, math.prod(shape)).reshape(shape).to(self._dtype)
    if density:
        found = found / found.sum()
        for d, one in enumerate(edges):
            found = found / one.diff().reshape([-1 if k == d else 1 for k in range(len(shape))])
    return found


statistics.ELSEWHERE["cuda"] = statistics.Binning(apart_from_target(edges_of), apart_from_target(counts), copied)
for _op in (
    statistics.histogram_op,
    statistics.histogram.op,
    statistics.edges_op,
    statistics.counts_op,
    statistics.counts_by_edges_op,
):
    as_on_cpu(f"on the device: {_op.base_name}", _op.functional)


# --- different slices -------------------------------------------------------------------------------------------------


@composite_of("unique_dim")
def unique_dim(self: Any, dim: int, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Any, ...]:
    """The different slices along a dimension, in lexicographic order: sorted by the last element first."""
    rows = slices(self, dim)
    if not rows._shape[0]:
        return self.clone(), *(self.new_empty([0], dtype=dtypes.int64) for _ in range(2))
    order = counted(rows._shape[0], rows)
    for k in range(rows._shape[1] - 1, -1, -1):
        _, by_this = rows.select(1, k).index_select(0, order).sort(stable=True)
        order = order.index_select(0, by_this)
    starts, inverse = runs_of_rows(rows.index_select(0, order), order)
    firsts = order.index_select(0, starts.narrow(0, 0, starts._shape[0] - 1))
    return slices_back(rows.index_select(0, firsts), dim, self), inverse, lengths(starts)


@composite_of("unique_dim_consecutive")
def unique_dim_consecutive(self: Any, dim: int, return_inverse: bool, return_counts: bool) -> tuple[Any, ...]:
    """The slices along a dimension without those that are equal to the one before."""
    rows = slices(self, dim)
    starts, group = runs_of_rows(rows, counted(rows._shape[0], rows))
    firsts = starts.narrow(0, 0, starts._shape[0] - 1)
    return slices_back(rows.index_select(0, firsts), dim, self), group, lengths(starts)


def slices(self: Any, dim: int) -> Any:
    """[slices, elements]"""
    axis = wrap_dim(dim, len(self._shape))
    if self._dtype.is_complex:
        raise NotImplementedError(f"\"unique_dim\" not implemented for '{self._dtype.tensor_name}'")
    first = self.movedim(axis, 0) if len(self._shape) > 1 else self
    return first.reshape([first._shape[0], math.prod(first._shape[1:])])


def slices_back(rows: Any, dim: int, like: Any) -> Any:
    """Slices along the dimension again. In memory they lie one after the other."""
    axis = wrap_dim(dim, len(like._shape))
    sizes = [rows._shape[0], *like._shape[:axis], *like._shape[axis + 1 :]]
    steps = list(contiguous_strides(tuple(sizes)))
    for numbers in (sizes, steps):
        numbers.insert(axis, numbers.pop(0))
    return rows.as_strided(sizes, steps)


def runs_of_rows(rows: Any, order: Any) -> tuple[Any, Any]:
    """(where each run of equal rows begins, and the end of all; at the places of `order`, the run of each row)"""
    first = aten.ones.default([rows._shape[0]], dtype=dtypes.bool, device=rows._device)
    rest = rows._shape[0] - 1
    if rest > 0:
        first.narrow(0, 1, rest).copy_((rows.narrow(0, 1, rest) != rows.narrow(0, 0, rest)).any(1))
    starts, _, group = kept(first, order=order)
    return starts, group
