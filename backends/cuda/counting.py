"""Histograms and different slices on a device, put together from other operators as parts.py does.

Edges of bins are made on the CPU, where it is said what they are; so the program waits for the least and the largest
number where no range is given. Read next: ops/histograms.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.kernels import contiguous_strides
from redispatch.ops import searching
from redispatch.ops.histograms import check_dtype, check_edges, check_flat_weight, check_weight, even_edges
from redispatch.tensor import CPU, Size, Tensor, as_numpy, dtypes, empty, wrap_dim

from .copies import sent
from .parts import below_or_at, counted, lengths, places_of_true

aten = ops.aten


def there(numbers: np.ndarray, dtype: Any, on: Any) -> Tensor:
    """An array's numbers on a device."""
    here = empty(Size(numbers.shape), dtype, CPU)
    as_numpy(here)[...] = numbers
    return sent(here, on)


# --- histograms -------------------------------------------------------------------------------------------------------


def places_in(edges: Any, x: Any) -> tuple[Any, Any]:
    """(the bin of each number, whether it is in one): bins are open on the right, but for the last."""
    bins = edges._shape[0] - 1
    inside = (x >= edges[0]) & (x <= edges[bins])
    return (below_or_at(edges, x, True) - 1).clamp(0, bins - 1), inside


def sums_by_place(places: Any, inside: Any, weight: Any, bins: int) -> Any:
    """[bins]: the weight of what is inside, in float64; without weights how many there are."""
    weight = inside.to(dtypes.float64) if weight is None else aten.where.ScalarOther(inside, weight.double(), 0)
    return weight.new_zeros([bins]).index_add(0, places, weight)


def histc(self: Any, bins: int, min: Any, max: Any) -> Any:
    searching.histc_meta(self, bins, min, max)
    x = self.reshape([-1]).to(dtypes.float64)
    if min == max and x._shape[0]:
        min, max = (extreme.item() for extreme in aten.aminmax.default(x))
        if not (math.isfinite(min) and math.isfinite(max)):
            raise RuntimeError(f"torch.histc: range of [{min:g}, {max:g}] is not finite")
    if min == max:
        min, max = min - 1, max + 1
    edges = there(np.linspace(float(min), float(max), bins + 1), dtypes.float64, self._device)
    return sums_by_place(*places_in(edges, x), None, bins).to(self._dtype)


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
    return [there(one, rows._dtype, rows._device) for one in even_edges(ends, bins, range_)]


def counts(rows: Any, edges: Sequence[Any], weight: Any, density: bool) -> Any:
    """The weight of the samples in each bin; with `density`, divided by the bin's size and the weight of all."""
    shape = [one._shape[0] - 1 for one in edges]
    places, inside = aten.zeros.default([rows._shape[0]], dtype=dtypes.int64, device=rows._device), None
    for d, one in enumerate(edges):
        place, within = places_in(one, rows.select(1, d).contiguous())
        places = places * shape[d] + place
        inside = within if inside is None else inside & within
    flat = None if weight is None else weight.reshape([-1])
    found = sums_by_place(places, inside, flat, math.prod(shape)).reshape(shape).to(rows._dtype)
    if density:
        found = found / found.sum()
        for d, one in enumerate(edges):
            found = found / one.diff().reshape([-1 if k == d else 1 for k in range(len(shape))])
    return found


def histogram(self: Any, bins: int, range_: Any, weight: Any, density: bool) -> tuple[Any, Any]:
    check_dtype(self._dtype)
    column = self.reshape([-1, 1])
    edges = edges_of(column, [bins], range_)
    check_flat_weight(self, weight)
    return counts(column, edges, weight, density), edges[0]


def histogram_by_edges(self: Any, bins: Any, weight: Any, density: bool) -> tuple[Any, Any]:
    check_edges(self, [bins], 1)
    check_dtype(self._dtype)
    check_flat_weight(self, weight)
    return counts(self.reshape([-1, 1]), [bins], weight, density), bins.clone()


def histogramdd_edges(self: Any, bins: Any, range_: Any, weight: Any, density: bool) -> list[Any]:
    rows = rows_of(self)
    check_dtype(self._dtype)
    return edges_of(rows, bins, range_)


def histogramdd_counts(self: Any, bins: Any, range_: Any, weight: Any, density: bool) -> Any:
    rows = rows_of(self)
    check_weight(self, self._shape, weight)
    check_dtype(self._dtype)
    return counts(rows, edges_of(rows, bins, range_), weight, density)


def histogramdd_by_edges(self: Any, bins: Sequence[Any], weight: Any, density: bool) -> Any:
    rows = rows_of(self)
    check_edges(self, bins, rows._shape[1])
    check_weight(self, self._shape, weight)
    check_dtype(self._dtype)
    return counts(rows, bins, weight, density)


# --- different slices -------------------------------------------------------------------------------------------------


def unique_dim(self: Any, dim: int, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Any, ...]:
    """The different slices along a dimension, in lexicographic order: sorted by the last element first."""
    rows = slices(self, dim)
    if not rows._shape[0]:
        return self.clone(), *(self.new_empty([0], dtype=dtypes.int64) for _ in range(2))
    order = counted(rows._shape[0], rows)
    for k in range(rows._shape[1] - 1, -1, -1):
        _, by_this = rows.select(1, k).index_select(0, order).sort(stable=True)
        order = order.index_select(0, by_this)
    starts, group = runs_of_rows(rows.index_select(0, order))
    inverse = order.new_empty(list(order._shape)).scatter_(0, order, group)
    found = slices_back(rows.index_select(0, order.index_select(0, starts)), dim, self)
    return found, inverse, lengths(starts, rows._shape[0])


def unique_dim_consecutive(self: Any, dim: int, return_inverse: bool, return_counts: bool) -> tuple[Any, ...]:
    """The slices along a dimension without those that are equal to the one before."""
    rows = slices(self, dim)
    starts, group = runs_of_rows(rows)
    return slices_back(rows.index_select(0, starts), dim, self), group, lengths(starts, rows._shape[0])


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


def runs_of_rows(rows: Any) -> tuple[Any, Any]:
    """(where each run of equal rows begins, the run that each row is in)"""
    first = aten.ones.default([rows._shape[0]], dtype=dtypes.bool, device=rows._device)
    rest = rows._shape[0] - 1
    if rest > 0:
        first.narrow(0, 1, rest).copy_((rows.narrow(0, 1, rest) != rows.narrow(0, 0, rest)).any(1))
    return places_of_true(first), first.cumsum(0) - 1


PARTS: dict[str, Callable[..., Any]] = {
    "histc": histc,
    "histogram.bin_ct": histogram,
    "histogram.bins_tensor": histogram_by_edges,
    "_histogramdd_bin_edges": histogramdd_edges,
    "_histogramdd_from_bin_cts": histogramdd_counts,
    "_histogramdd_from_bin_tensors": histogramdd_by_edges,
    "unique_dim": unique_dim,
    "unique_dim_consecutive": unique_dim_consecutive,
}
