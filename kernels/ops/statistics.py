"""Statistics: sums and means without NaN, quantiles, covariance and correlation.

What is written in other operators has its derivative from them. Read next: moments.py, histograms.py, integrals.py.
"""

from __future__ import annotations

import warnings
from typing import Any

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, as_numpy, wrap_dim
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.operator import composite
from ..declare.public import public
from ..declare.structured import not_implemented
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
    facts: dict[str, Any] = {"refuses": "whole halves complex", "autocast": {"cpu": "fp32"}}
    many = Operator(f"{name}(Tensor self, Tensor q, {QUANTILE}) -> Tensor", out="out", **facts)
    one = Operator(f"{name}.scalar(Tensor self, float q, {QUANTILE}) -> Tensor", out="scalar_out", **facts)

    @many.implicit
    def quantile_composite(self: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Any:
        check_quantile(self, q, interpolation)
        return quantile_of(self, q, dim, keepdim, interpolation, skip_nan)

    @one.implicit
    def quantile_of_number(self: Any, q: float, dim: int | None, keepdim: bool, interpolation: str) -> Any:
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        share = ops.aten.scalar_tensor.default(q, dtype=self.dtype, device=self.device)
        return quantile_composite(self, share, dim, keepdim, interpolation)

    copy_into_out(many)
    copy_into_out(one)
    return public(
        many,
        one,
        doc=f"Returns the value at a share `q` of the way through the sorted elements{' without NaN' * skip_nan}.",
    )


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
    """How many observations are free: all but `correction`, as far as they count; none where there are fewer."""
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
