"""Histograms and different slices on a device, put together from other operators as decompositions.py does.

Edges of bins are made on the CPU, where it is said what they are; so the program waits for the least and the largest
number where no range is given. Read next: kernels/ops/histograms.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import as_numpy, dtypes, wrap_dim
from redispatch.kernels import contiguous_strides
from redispatch.kernels.ops import searching
from redispatch.kernels.ops.histograms import check_dtype, check_edges, check_flat_weight, check_weight, even_edges

from ..runtime.copies import array_on
from ..runtime.structured import composite_of
from .compaction import kept, lengths
from .decompositions import counted
from .searchsorted import below_or_at, tally

aten = ops.aten

# --- histograms -------------------------------------------------------------------------------------------------------


def bins_of(edges: Any, x: Any) -> Any:
    """The bin of each number, -1 outside: bins are open on the right, but for the last."""
    return below_or_at(edges, x, True, bins=True)


@composite_of("histc")
def histc(self: Any, bins: int, min: Any, max: Any) -> Any:
    searching.histc.op.meta_function(self, bins, min, max)
    x = self.reshape([-1])
    if min == max and x._shape[0]:
        min, max = aten.stack.default(aten.aminmax.default(x)).tolist()
        if not (math.isfinite(min) and math.isfinite(max)):
            raise RuntimeError(f"torch.histc: range of [{min:g}, {max:g}] is not finite")
    if min == max:
        min, max = min - 1, max + 1
    edges = array_on(self._device, np.linspace(float(min), float(max), bins + 1))
    return tally(bins_of(edges, x), None, bins).to(self._dtype)


def rows_of(self: Any) -> Any:
    """The samples as rows, a number for each dimension of the histogram."""
    if len(self._shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    return self.reshape([math.prod(self._shape[:-1]), self._shape[-1]])


def edges_of(rows: Any, bins: Sequence[int], range_: Any) -> list[Any]:
    """Edges of bins of equal width, made from the least and the largest numbers, or from a range."""
    ends = np.empty((0, rows._shape[1]), rows._dtype.numpy)
    if range_ is None and rows._shape[0]:
        ends = as_numpy(aten.stack.default([rows.amin(0), rows.amax(0)]).cpu())
    return [array_on(rows._device, one, rows._dtype) for one in even_edges(ends, bins, range_)]


def counts(rows: Any, edges: Sequence[Any], weight: Any, density: bool) -> Any:
    """The weight of the samples in each bin; with `density`, divided by the bin's size and the weight of all."""
    shape = [one._shape[0] - 1 for one in edges]
    places: Any = None
    for d, one in enumerate(edges):
        place = bins_of(one, rows.select(1, d))
        if places is not None:
            outside = (places < 0) | (place < 0)
            place = (places * shape[d] + place).masked_fill(outside, -1)
        places = place
    flat = None if weight is None else weight.reshape([-1]).double()
    found = tally(places, flat, math.prod(shape)).reshape(shape).to(rows._dtype)
    if density:
        found = found / found.sum()
        for d, one in enumerate(edges):
            found = found / one.diff().reshape([-1 if k == d else 1 for k in range(len(shape))])
    return found


@composite_of("histogram.bin_ct")
def histogram(self: Any, bins: int, range_: Any, weight: Any, density: bool) -> tuple[Any, Any]:
    check_dtype(self._dtype)
    column = self.reshape([-1, 1])
    edges = edges_of(column, [bins], range_)
    check_flat_weight(self, weight)
    return counts(column, edges, weight, density), edges[0]


@composite_of("histogram.bins_tensor")
def histogram_by_edges(self: Any, bins: Any, weight: Any, density: bool) -> tuple[Any, Any]:
    check_edges(self, [bins], 1)
    check_dtype(self._dtype)
    check_flat_weight(self, weight)
    return counts(self.reshape([-1, 1]), [bins], weight, density), bins.clone()


@composite_of("_histogramdd_bin_edges")
def histogramdd_edges(self: Any, bins: Any, range_: Any, weight: Any, density: bool) -> list[Any]:
    rows = rows_of(self)
    check_dtype(self._dtype)
    return edges_of(rows, bins, range_)


@composite_of("_histogramdd_from_bin_cts")
def histogramdd_counts(self: Any, bins: Any, range_: Any, weight: Any, density: bool) -> Any:
    rows = rows_of(self)
    check_weight(self, self._shape, weight)
    check_dtype(self._dtype)
    return counts(rows, edges_of(rows, bins, range_), weight, density)


@composite_of("_histogramdd_from_bin_tensors")
def histogramdd_by_edges(self: Any, bins: Sequence[Any], weight: Any, density: bool) -> Any:
    rows = rows_of(self)
    check_edges(self, bins, rows._shape[1])
    check_weight(self, self._shape, weight)
    check_dtype(self._dtype)
    return counts(rows, bins, weight, density)


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
