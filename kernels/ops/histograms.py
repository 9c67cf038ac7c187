"""Histograms: how many samples, or how much weight, falls into each bin; of one number or of several.

A bin is closed at its left edge and open at its right one, but for the last, which is closed. What lies outside, or is
NaN, is not counted. Read next: searching.py, for histc and bincount.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtype, empty

from ..declare.declare import Operator
from ..declare.operator import composite, kernel
from ..declare.public import public
from ..declare.structured import c_name, not_implemented

_OPTIONS = "Tensor? weight=None, bool density=False"
_NAMED = "(Tensor hist, Tensor bin_edges)"
_SEVERAL = f"float[]? range=None, {_OPTIONS}) -> (Tensor hist, Tensor[] bin_edges)"
histogramdd_op = Operator(f"histogramdd(Tensor self, int[] bins, {_SEVERAL}", refuses="whole halves complex")
histogramdd_edges_op = Operator(f"histogramdd.TensorList_bins(Tensor self, Tensor[] bins, {_SEVERAL}")


# --- samples, edges, counts, as numpy arrays --------------------------------------------------------------------------


def rows_of(self: Tensor) -> np.ndarray:
    """The samples as rows, a number for each dimension of the histogram."""
    if len(self._shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    return as_numpy(self).reshape(math.prod(self._shape[:-1]), self._shape[-1])


def check_weight(self: Tensor, shape: Sequence[int], weight: Tensor | None) -> None:
    """`shape` is that of the samples, with the innermost dimension for the numbers of one sample."""
    if weight is None:
        return
    if weight._dtype is not self._dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({c_name(self._dtype)}), and weight({c_name(weight._dtype)})"
        )
    if tuple(weight._shape) != tuple(shape[:-1]):
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(shape)} and weight with shape "
            f"{list(weight._shape)}"
        )


def check_dtype(kind: dtype) -> None:
    if kind.name not in ("float32", "float64"):
        raise not_implemented("histogramdd", kind)


def check_edges(self: Tensor, bins: Sequence[Tensor], dims: int) -> None:
    if len(bins) != dims:
        raise RuntimeError(
            f"torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional histogram but got "
            f"{len(bins)}"
        )
    for d, edges in enumerate(bins):
        if edges._dtype is not self._dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{c_name(self._dtype)} and bins for dimension {d} with dtype {c_name(edges._dtype)}"
            )
        if len(edges._shape) != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {len(edges._shape)} dimensions in "
                f"the bins tensor for dimension {d}"
            )
        if not edges._shape[0]:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have at least 1 element, but got {edges._shape[0]} elements in "
                f"the bins tensor for dimension {d}"
            )
        check_count(edges._shape[0] - 1, d)


def check_count(bins: int, dim: int) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")


def even_edges(rows: np.ndarray, bins: Sequence[int], range_: Sequence[float] | None) -> list[np.ndarray]:
    """So many bins of equal width for each dimension, over the range given, or from the least to the largest number."""
    dims = rows.shape[1]
    if len(bins) != dims:
        raise RuntimeError(
            f"torch.histogramdd: expected {dims} bins for a {dims}-dimensional histogram but got {len(bins)}"
        )
    for d, count in enumerate(bins):
        check_count(count, d)
    if range_ is not None and len(range_) != 2 * dims:
        raise RuntimeError(
            f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got "
            f"{len(range_)}"
        )
    edges = []
    for d, count in enumerate(bins):
        if range_ is not None:
            low, high = range_[2 * d : 2 * d + 2]
        elif len(rows):
            low, high = float(rows[:, d].min()), float(rows[:, d].max())
        else:
            low, high = 0.0, 1.0
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(np.linspace(low, high, count + 1, dtype=rows.dtype))
    return edges


def counted(rows: np.ndarray, edges: Sequence[np.ndarray], weight: Any, density: bool) -> np.ndarray:
    """The weight of the samples in each bin; with `density`, divided by the bin's size and the weight of all."""
    shape = tuple(len(one) - 1 for one in edges)
    places = np.zeros(len(rows), np.int64)
    inside = np.ones(len(rows), bool)
    for d, one in enumerate(edges):
        x = rows[:, d]
        inside &= (x >= one[0]) & (x <= one[-1])
        place = np.searchsorted(one, x, side="right") - 1
        place[x == one[-1]] = shape[d] - 1
        places = places * shape[d] + place
    factors = None if weight is None else as_numpy(weight).reshape(-1)[inside]
    sums = np.bincount(places[inside], factors, minlength=math.prod(shape))
    found = sums[: math.prod(shape)].reshape(shape).astype(rows.dtype)
    if density:
        found /= found.sum()
        for d, one in enumerate(edges):
            found /= np.diff(one).reshape([-1 if k == d else 1 for k in range(len(shape))])
    return found


def as_tensor(values: np.ndarray, like: Tensor) -> Tensor:
    made = empty(Size(values.shape), like._dtype, like._device)
    as_numpy(made)[...] = values
    return made


# --- of one number ----------------------------------------------------------------------------------------------------


@kernel(
    f"histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, {_OPTIONS}) -> {_NAMED}",
    "CPU",
    out="bin_ct_out",
    refuses="whole halves complex",
)
def histogram_op(self, bins, range_, weight, density):
    check_dtype(self._dtype)
    column = as_numpy(self).reshape(-1, 1)
    edges = even_edges(column, [bins], range_)
    check_flat_weight(self, weight)
    with np.errstate(all="ignore"):
        return as_tensor(counted(column, edges, weight, density), self), as_tensor(edges[0], self)


@kernel(
    f"histogram.bins_tensor(Tensor self, Tensor bins, *, {_OPTIONS}) -> {_NAMED}",
    "CPU",
    out="bins_tensor_out",
    refuses="whole halves complex",
)
def histogram_bins_op(self, bins, weight, density):
    """Returns how many elements, or what weight, fall into each bin, and the edges of the bins."""
    check_edges(self, [bins], 1)
    check_dtype(self._dtype)
    check_flat_weight(self, weight)
    column, edges = as_numpy(self).reshape(-1, 1), as_numpy(bins)
    with np.errstate(all="ignore"):
        return as_tensor(counted(column, [edges], weight, density), self), as_tensor(edges, self)


def check_flat_weight(self: Tensor, weight: Tensor | None) -> None:
    count = self._shape.numel()
    if weight is not None and weight._shape.numel() == count and len(weight._shape) == len(self._shape):
        check_weight(self, (*weight._shape, 1), weight)
    else:
        check_weight(self, (count, 1), weight)


histogram = public(histogram_bins_op, histogram_op)

# --- of several -------------------------------------------------------------------------------------------------------


@kernel(
    f"_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, {_OPTIONS}) -> Tensor[]",
    "CPU",
    late_out=True,
    refuses="whole halves complex",
)
def edges_op(self, bins, range_, weight, density):
    rows = rows_of(self)
    check_dtype(self._dtype)
    return [as_tensor(one, self) for one in even_edges(rows, bins, range_)]


@kernel(
    f"_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, {_OPTIONS}) -> Tensor",
    "CPU",
    out="out",
    refuses="whole halves complex",
)
def counts_op(self, bins, range_, weight, density):
    rows = rows_of(self)
    check_weight(self, self._shape, weight)
    check_dtype(self._dtype)
    with np.errstate(all="ignore"):
        return as_tensor(counted(rows, even_edges(rows, bins, range_), weight, density), self)


@kernel(
    f"_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, {_OPTIONS}) -> Tensor",
    "CPU",
    out="out",
    refuses="whole halves complex",
)
def counts_by_edges_op(self, bins, weight, density):
    rows = rows_of(self)
    check_edges(self, bins, rows.shape[1])
    check_weight(self, self._shape, weight)
    check_dtype(self._dtype)
    with np.errstate(all="ignore"):
        return as_tensor(counted(rows, [as_numpy(one) for one in bins], weight, density), self)


def innermost(self: Any) -> int:
    if not self.dim():
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    return self.shape[-1]


@histogramdd_op.implicit
def histogramdd_composite(self, bins, range_, weight, density):
    if len(bins) != innermost(self):
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    edges = edges_op.functional(self, bins, range=range_, weight=weight, density=density)
    return counts_op.functional(self, bins, range=range_, weight=weight, density=density), edges


@composite(f"histogramdd.int_bins(Tensor self, int bins, {_SEVERAL}")
def histogramdd_number_op(self, bins, range_, weight, density):
    return histogramdd_composite(self, [bins] * innermost(self), range_, weight, density)


@histogramdd_edges_op.implicit
def histogramdd_by_edges(self, bins, range_, weight, density):
    return counts_by_edges_op.functional(self, bins, weight=weight, density=density), list(bins)


histogramdd = public(
    histogramdd_op,
    histogramdd_number_op,
    histogramdd_edges_op,
    method=False,
    doc="Returns how many points fall into each box of a grid, and the edges of its bins.",
)
