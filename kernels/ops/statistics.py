"""Statistics: sums and means without NaN, quantiles, covariance and correlation, histograms of any number of samples.

What is written in other operators has its derivative from them. A bin is closed at its left edge and open at its right
one, but for the last, which is closed; what lies outside, or is NaN, is not counted. Read next: moments.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, cannot_allocate, dtype, empty, wrap_dim
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.operator import CPU_FP32, composite, kernel
from ..declare.public import public
from ..declare.structured import c_name, not_implemented
from .arithmetic import mul_scalar_op, sub_scalar_op
from .reductions import DTYPE, Reduced, summing_dtype, unreduced

DIM = "int[1]? dim=None, bool keepdim=False"

# --- sums and means of what is a number ------------------------------------------------------------------------------


def check_nansum(self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> None:
    if self._dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype.is_complex:
        raise not_implemented("nansum_cpu", dtype)


nansum_op = Reduced(
    f"nansum(Tensor self, {DIM}, *, {DTYPE}) -> Tensor",
    kernels.NANSUM,
    summing_dtype,
    check=check_nansum,
    out="out",
    dtype_of_target=True,
    derivative=lambda grad, self, dim, keepdim: (
        unreduced(grad.to(self.dtype), self.shape, dim, keepdim) * self.isnan().logical_not()
    ),
    refuses="complex",
)
nansum = public(nansum_op, doc="Returns the sum without NaN of all elements, or of those along `dim`.")


@composite(
    f"nanmean(Tensor self, {DIM}, *, {DTYPE}) -> Tensor", out="out", out_by=copy_into_out, refuses="whole complex"
)
def nanmean(self, dim, keepdim, dtype):
    """Returns the mean without NaN of all elements, or of those along `dim`."""
    if not (self.is_floating_point() or self.is_complex()):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self._dtype.tensor_name}"
        )
    dims = None if dim is None else list(dim)
    seen = self.detach()
    count = (seen != seen).logical_not_().sum([] if dims is None else dims, keepdim)
    return nansum_op.functional(self, dims, keepdim, dtype=dtype) / count


# --- quantiles -------------------------------------------------------------------------------------------------------

QUANTILE = 'int? dim=None, bool keepdim=False, *, str interpolation="linear"'
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantiles(name: str, skip_nan: bool) -> Any:
    """`quantile` and `nanquantile`: the value at a share q of the way through the sorted elements."""
    facts: dict[str, Any] = {"refuses": "whole halves complex", "autocast": CPU_FP32, "out_by": copy_into_out}

    @composite(f"{name}(Tensor self, Tensor q, {QUANTILE}) -> Tensor", out="out", face=False, **facts)
    def many(self, q, dim, keepdim, interpolation):
        check_quantile(self, q, interpolation)
        return quantile_of(self, q, dim, keepdim, interpolation, skip_nan)

    @composite(f"{name}.scalar(Tensor self, float q, {QUANTILE}) -> Tensor", out="scalar_out", **facts)
    def one(self, q, dim, keepdim, interpolation):
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        share = ops.aten.scalar_tensor.default(q, dtype=self.dtype, device=self.device)
        check_quantile(self, share, interpolation)
        return quantile_of(self, share, dim, keepdim, interpolation, skip_nan)

    doc = f"Returns the value at a share `q` of the way through the sorted elements{' without NaN' * skip_nan}."
    return public(many, one, doc=doc)


def check_quantile(self: Any, q: Any, interpolation: str) -> None:
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            f"{interpolation}"
        )
    if self.dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if q.dim() > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q.dtype is not self.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if q.device != self.device:
        raise RuntimeError("quantile() q tensor must be on the same device as the input tensor")
    if not self.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q._array is not None and not ((as_numpy(q) >= 0) & (as_numpy(q) <= 1)).all():
        raise RuntimeError("quantile() q values must be in the range [0, 1]")


def quantile_of(self: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool) -> Any:
    """The elements at the ranks q * (n - 1), between two of them where that is no whole number.

    Where there are NaN, the result is NaN: they are sorted last, and the rank is set to the last one. Or they are
    left out: then n counts the others.
    """
    ordered = sorted_last(self, dim, keepdim)
    if skip_nan:
        count = ordered.isnan().logical_not_().sum([-1], True)
        ranks = q * sub_scalar_op.functional(count, 1)
        ranks.masked_fill_(ranks < 0, 0)
    else:
        last = ordered.shape[-1] - 1
        ranks = mul_scalar_op.functional(q, last)
        spoilt = ordered.isnan().any(-1, True)
        ranks = ranks.expand([*ordered.shape[:-1], q.numel()]).masked_fill(spoilt, last)
    if interpolation in WHOLE_RANK:
        getattr(ranks, WHOLE_RANK[interpolation])()
    below = ranks.long()
    values = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weight = ranks - below if interpolation == "linear" else ops.aten.full_like.default(ranks, 0.5)
        values.lerp_(ordered.gather(-1, ranks.ceil_().long()), weight)
    # the shares are the last dimension of the values, and the first of the result; a share without dimensions is none
    return values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1) if q.dim() else values.squeeze_(-1)


WHOLE_RANK = {"lower": "floor_", "higher": "ceil_", "nearest": "round_"}  # how a rank becomes that of an element


def sorted_last(self: Any, dim: int | None, keepdim: bool) -> Any:
    """The elements along `dim`, or all, sorted as the last dimension, behind the dimensions of the result."""
    axis = 0 if dim is None else wrap_dim(dim, self.dim())
    if dim is None or not self.dim():
        rows, shape = self.flatten(), [1] * self.dim() if keepdim else []
    else:
        rows = self if axis == self.dim() - 1 else self.unsqueeze(-1).transpose(axis, -1)
        shape = [1 if d == axis else size for d, size in enumerate(self.shape) if keepdim or d != axis]
    return rows.sort(-1).values.view([*shape, rows.shape[-1]])


quantile = quantiles("quantile", skip_nan=False)
nanquantile = quantiles("nanquantile", skip_nan=True)

# --- covariance and correlation --------------------------------------------------------------------------------------


@composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
def cov(self, correction, fweights, aweights):
    """Returns the covariances of the rows: each row is a variable, each column an observation.

    `fweights` says how often an observation was made, `aweights` how much it counts."""
    if self.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    if self.dtype.name == "bool":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = self if self.dim() == 2 else self.reshape(1, -1)
    weights = weights_of(rows, fweights, aweights)
    count = rows.shape[1]
    if weights is None:
        total: Any = count
        mean = rows.sum(1) / count  # NaN where there is no observation
    else:
        total = weights.sum()
        if total.item() == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (rows * weights).sum(1) / total
    freedom = degrees_of_freedom(count, correction, weights, aweights, total)
    centred = rows - mean.unsqueeze(1)
    weighted = centred if weights is None else centred * weights
    return (weighted @ (centred.conj() if centred.is_complex() else centred).t() / freedom).squeeze()


def weights_of(rows: Any, fweights: Any, aweights: Any) -> Any:
    """The product of the weights that are given, or None."""
    for name, weights, fits, kind in (
        ("fweights", fweights, is_whole, "integral"),
        ("aweights", aweights, Tensor.is_floating_point, "floating point"),
    ):
        if weights is None:
            continue
        if weights.dim() > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()} dimensions"
            )
        if not fits(weights):
            raise RuntimeError(
                f"cov(): expected {name} to have {kind} dtype but got {name} with {weights._dtype.tensor_name} dtype"
            )
        if weights.numel() != rows.shape[1]:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{weights.numel()} != {rows.shape[1]}"
            )
        if weights.numel() and (weights.min() < 0).item():
            raise RuntimeError(f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


def is_whole(x: Any) -> bool:
    return not (x.is_floating_point() or x.is_complex() or x.dtype.name == "bool")


def degrees_of_freedom(count: int, correction: int, weights: Any, aweights: Any, total: Any) -> Any:
    """The number of free observations: all but `correction`, as far as they count; none where there are fewer."""
    if weights is None:
        freedom: Any = count - correction
    elif correction and aweights is not None:
        freedom = total - (weights * aweights).sum() * correction / total
    else:
        freedom = total - correction
    if freedom <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=2,
        )
        return 0
    return freedom


@composite("corrcoef(Tensor self) -> Tensor")
def corrcoef(self):
    """Returns the covariances of the rows, divided by the standard deviations of the two; no real one outside [-1,
    1]."""
    if self.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    covariance = cov.op.functional(self)
    if not covariance.dim():
        return covariance / covariance  # a variable on its own: 1, or NaN where it does not vary
    variance = covariance.diagonal()
    if covariance.is_complex():
        variance = ops.aten.real.default(variance)
    deviation = variance.sqrt()
    result = covariance / deviation.reshape(-1, 1) / deviation.reshape(1, -1)
    return result if result.is_complex() else result.clip(-1, 1)


# --- histograms: how many samples, or how much weight, falls into each bin --------------------------------------------

_OPTIONS = "Tensor? weight=None, bool density=False"
_NAMED = "(Tensor hist, Tensor bin_edges)"
_SEVERAL = f"float[]? range=None, {_OPTIONS}) -> (Tensor hist, Tensor[] bin_edges)"
histogramdd_op = Operator(f"histogramdd(Tensor self, int[] bins, {_SEVERAL}", refuses="whole halves complex")


# --- samples, edges, counts, as numpy arrays --------------------------------------------------------------------------


def rows_of(self: Tensor) -> tuple[int, int]:
    """The shape of the samples as rows, a number for each dimension of the histogram."""
    if len(self._shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    return math.prod(self._shape[:-1]), self._shape[-1]


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
        try:
            edges.append(np.linspace(low, high, count + 1, dtype=rows.dtype))
        except (MemoryError, ValueError, IndexError):  # of more than numpy can count
            raise cannot_allocate(8 * count) from None
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


class Binning(NamedTuple):
    """A device's functions: make even edges of samples, seen as rows of a shape; count samples between; copy edges."""

    edges: Callable[[Tensor, tuple[int, int], Sequence[int], Any], list[Tensor]]
    counts: Callable[[Tensor, tuple[int, int], Sequence[Tensor], Tensor | None, bool], Tensor]
    copy: Callable[[Tensor], Tensor]


def edges_on_cpu(self: Tensor, rows: tuple[int, int], bins: Sequence[int], range_: Any) -> list[Tensor]:
    return [as_tensor(one, self) for one in even_edges(as_numpy(self).reshape(rows), bins, range_)]


def counts_on_cpu(
    self: Tensor, rows: tuple[int, int], edges: Sequence[Tensor], weight: Tensor | None, density: bool
) -> Tensor:
    with np.errstate(all="ignore"):
        return as_tensor(counted(as_numpy(self).reshape(rows), [*map(as_numpy, edges)], weight, density), self)


HERE = Binning(edges_on_cpu, counts_on_cpu, lambda edges: as_tensor(as_numpy(edges), edges))
ELSEWHERE: dict[str, Binning] = {}  # by type of device


def binning(self: Tensor) -> Binning:
    return ELSEWHERE.get(self._device.type, HERE)


# --- of one number ----------------------------------------------------------------------------------------------------


@kernel(
    f"histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, {_OPTIONS}) -> {_NAMED}",
    "CPU",
    out="bin_ct_out",
    refuses="whole halves complex",
)
def histogram_op(self, bins, range_, weight, density):
    check_dtype(self._dtype)
    how, column = binning(self), (self._shape.numel(), 1)
    edges = how.edges(self, column, [bins], range_)
    check_flat_weight(self, weight)
    return how.counts(self, column, edges, weight, density), edges[0]


def check_flat_weight(self: Tensor, weight: Tensor | None) -> None:
    count = self._shape.numel()
    if weight is not None and weight._shape.numel() == count and len(weight._shape) == len(self._shape):
        check_weight(self, (*weight._shape, 1), weight)
    else:
        check_weight(self, (count, 1), weight)


@kernel(
    f"histogram.bins_tensor(Tensor self, Tensor bins, *, {_OPTIONS}) -> {_NAMED}",
    "CPU",
    out="bins_tensor_out",
    refuses="whole halves complex",
    also=(histogram_op,),
)
def histogram(self, bins, weight, density):
    """Returns how many elements, or what weight, fall into each bin, and the edges of the bins."""
    check_edges(self, [bins], 1)
    check_dtype(self._dtype)
    check_flat_weight(self, weight)
    how = binning(self)
    return how.counts(self, (self._shape.numel(), 1), [bins], weight, density), how.copy(bins)


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
    return binning(self).edges(self, rows, bins, range_)


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
    how = binning(self)
    return how.counts(self, rows, how.edges(self, rows, bins, range_), weight, density)


@kernel(
    f"_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, {_OPTIONS}) -> Tensor",
    "CPU",
    out="out",
    refuses="whole halves complex",
)
def counts_by_edges_op(self, bins, weight, density):
    rows = rows_of(self)
    check_edges(self, bins, rows[1])
    check_weight(self, self._shape, weight)
    check_dtype(self._dtype)
    return binning(self).counts(self, rows, bins, weight, density)


def innermost(self: Any) -> int:
    return self.shape[wrap_dim(-1, self.dim(), wrap_scalar=False)]


@histogramdd_op.implicit
def histogramdd_composite(self, bins, range_, weight, density):
    if len(bins) != innermost(self):
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    edges = edges_op.functional(self, bins, range=range_, weight=weight, density=density)
    return counts_op.functional(self, bins, range=range_, weight=weight, density=density), edges


@composite(f"histogramdd.int_bins(Tensor self, int bins, {_SEVERAL}")
def histogramdd_number_op(self, bins, range_, weight, density):
    return histogramdd_composite(self, [bins] * innermost(self), range_, weight, density)


@composite(f"histogramdd.TensorList_bins(Tensor self, Tensor[] bins, {_SEVERAL}")
def histogramdd_edges_op(self, bins, range_, weight, density):
    return counts_by_edges_op.functional(self, bins, weight=weight, density=density), list(bins)


histogramdd = public(
    histogramdd_op,
    histogramdd_number_op,
    histogramdd_edges_op,
    method=False,
    doc="Returns how many points fall into each box of a grid, and the edges of its bins.",
)
