"""Scans: results up to each element along one dimension. Running sums, products, log-sum-exps, maxima and minima.

The result has the shape of the input and lies row by row. Integers add up and multiply in int64; `dtype=` says in which
dtype to compute. Read next: moments.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import STATE
from redispatch.dispatch.specialiser.annotations import leaf
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, empty, wrap_dim
from redispatch.kernels.cpu.scan import Scan

from ..declare.declare import Operator
from ..declare.plan import Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta, apart, check_no_internal_overlap, not_implemented, resize_out
from .extremes import chosen
from .reductions import DTYPE, in_dtype, summing_dtype

# --- cumsum, cumprod -------------------------------------------------------------------------------------------------

cumsum_op = Planned(
    f"cumsum(Tensor self, int dim, *, {DTYPE}) -> Tensor", inplace=True, out="out", dtype_of_target=True, core=True
)
cumprod_op = Planned(
    f"cumprod(Tensor self, int dim, *, {DTYPE}) -> Tensor", inplace=True, out="out", dtype_of_target=True
)


@cumsum_op.meta
def cumsum_meta(self: Tensor, dim: int, dtype: Any) -> Meta:
    return scan_meta("cumsum", self, dim, dtype)


@cumprod_op.meta
def cumprod_meta(self: Tensor, dim: int, dtype: Any) -> Meta:
    return scan_meta("cumprod", self, dim, dtype)


def scan_meta(name: str, self: Tensor, dim: int, dtype: Any) -> Meta:
    wrap_dim(dim, len(self._shape))
    kind = summing_dtype(self, dtype)
    if kind is dtypes.bool:
        raise not_implemented(f"{name}_out_cpu", kind)
    return Meta(self._shape, kind, self._device)


def scan_loop(scan: Scan, out: Tensor, self: Tensor, dim: int, dtype: Any) -> Run:
    axis = wrap_dim(dim, len(self._shape))
    return in_dtype(summing_dtype(self, dtype), lambda x: scan.ready(out._operand, x, axis), self)


@cumsum_op.loop
def cumsum_loop(out: Tensor, self: Tensor, dim: int, dtype: Any) -> Run:
    return scan_loop(kernels.CUMSUM, out, self, dim, dtype)


@cumprod_op.loop
def cumprod_loop(out: Tensor, self: Tensor, dim: int, dtype: Any) -> Run:
    return scan_loop(kernels.CUMPROD, out, self, dim, dtype)


def from_the_end(grad: Any, dim: int) -> Any:
    """The sums of each element and those behind it."""
    return grad.flip(dim).cumsum(dim).flip(dim)


def cumprod_backward(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """The gradient of running products: for x[k], the sum over i >= k of grad[i] times the others up to x[i].

    Up to the first zero that is grad * result / x[k]. At it the others are multiplied with a 1 in its place; behind it
    every product has the zero in it. Where the gradient itself is to be differentiated, and there are zeros, the
    products of the others are formed one by one.
    """
    if not self.dim():
        return grad
    if self._dtype is not result._dtype:
        self = self.to(result._dtype)
    zero, dim = self == 0, dim % self.dim()
    if STATE.get().grad_enabled and (zero._array is None or as_numpy(zero).any()):
        return (grad.unsqueeze(dim) * running_products_of_others(self, dim)).sum(dim + 1)
    zeros = zero.cumsum(dim)
    first = zero & (zeros == 1)
    rest = self.masked_fill(first, 1)
    before = (from_the_end(grad * result, dim) / rest).masked_fill(zeros != 0, 0)
    return before + (from_the_end(grad * rest.cumprod(dim), dim) * first)


def running_products_of_others(self: Any, dim: int) -> Any:
    """At [..., k, i, ...], k in the place of `dim`: the product of all up to x[i] but x[k]; 0 for i < k."""
    n = self.shape[dim]
    square = self.unsqueeze(dim).expand((*self.shape[:dim], n, *self.shape[dim:]))
    own, later = (empty((n, n, *(1,) * (self.dim() - dim - 1)), dtypes.bool, self._device) for _ in range(2))
    as_numpy(own).reshape(n, n)[...] = np.eye(n, dtype=bool)
    as_numpy(later).reshape(n, n)[...] = np.tri(n, k=-1, dtype=bool)
    return square.masked_fill(own, 1).cumprod(dim + 1).masked_fill(later, 0)


cumsum_op.derivative(self=lambda grad, dim: from_the_end(grad, dim))
cumsum_op.forward("linear")
cumprod_op.derivative(self=cumprod_backward)
cumsum_op.autocast(cuda="fp32_set_opt_dtype")
cumprod_op.autocast(cuda="fp32_set_opt_dtype")
cumsum = public(cumsum_op, doc="Returns the sums of all elements up to each along `dim`.")
cumprod = public(cumprod_op, doc="Returns the products of all elements up to each along `dim`.")

# --- logcumsumexp ----------------------------------------------------------------------------------------------------

logcumsumexp_op = Planned("logcumsumexp(Tensor self, int dim) -> Tensor", out="out", refuses="whole")


@logcumsumexp_op.meta
def logcumsumexp_meta(self: Tensor, dim: int) -> Meta:
    wrap_dim(dim, len(self._shape))
    if self._dtype.category <= dtypes.INTEGER:
        raise not_implemented("logcumsumexp_out_cpu", self._dtype)
    return Meta(self._shape, self._dtype, self._device)


@logcumsumexp_op.loop
def logcumsumexp_loop(out: Tensor, self: Tensor, dim: int) -> Run:
    scan = kernels.COMPLEX_LOGCUMSUMEXP if self._dtype.is_complex else kernels.LOGCUMSUMEXP
    return scan.ready(out._operand, self._operand, wrap_dim(dim, len(self._shape)))


def logcumsumexp_backward(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """The sum over i >= k of grad[i] * exp(x[k] - result[i]), in logarithms: positive and negative gradients apart,
    unless they are complex, where each has a logarithm."""

    def share(log_grad: Any) -> Any:
        return ((log_grad - result).flip(dim).logcumsumexp(dim).flip(dim) + self).exp()

    none = -_LARGEST.get(self.dtype.to_real().name, 3.3895e38)  # not -inf, whose differences would be NaN
    if grad.is_complex():
        return share(grad.log().masked_fill(grad == 0, none))
    size = grad.abs().log()
    return share(size.masked_fill(grad <= 0, none)) - share(size.masked_fill(grad >= 0, none))


_LARGEST = {"float16": 65504.0, "float64": 1.7976e308}  # finite numbers as large as there are, nearly


def logcumsumexp_tangent(arguments: list[Any], tangents: list[Any], result: Any) -> Any:
    """The mean of the tangents up to each element, weighted by exp(x)."""
    (self, dim), (tangent, _) = arguments, tangents
    weights = (self - (self.real if self.is_complex() else self).amax(dim, True)).exp()
    return (tangent * weights).cumsum(dim) / weights.cumsum(dim)


logcumsumexp_op.derivative(self=logcumsumexp_backward)
logcumsumexp_op.forward(logcumsumexp_tangent)
logcumsumexp = public(
    logcumsumexp_op, doc="Returns log(sum of exp(x)) of all elements up to each along `dim`, without overflow."
)

# --- cummax, cummin --------------------------------------------------------------------------------------------------

cummax_op = Operator("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", refuses="complex")
cummin_op = Operator("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", refuses="complex")
cummax_out_op = Operator(
    "cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) "
    "-> (Tensor(a!) values, Tensor(b!) indices)"
)
cummin_out_op = Operator(
    "cummin.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) "
    "-> (Tensor(a!) values, Tensor(b!) indices)"
)


def check_scanned(name: str, self: Tensor, dim: int) -> int:
    """The dimension, counted from the front. Errors as PyTorch words them."""
    if not self._shape and dim not in (0, -1):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    if self._dtype.is_complex:
        raise not_implemented(f"{name}_cpu", self._dtype)
    return wrap_dim(dim, len(self._shape))


ELSEWHERE: dict[str, Callable[[str, Tensor, int, Tensor, Tensor], None]] = {}  # by device: what fills both results


def fill_extremes(name: str, self: Tensor, dim: int, values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    if "meta" in (self._device.type, values._device.type, indices._device.type):
        return values, indices
    if self._device.type in ELSEWHERE:
        ELSEWHERE[self._device.type](name, self, dim, values, indices)
        return values, indices
    outs = values._operand, indices._operand
    fill = kernels.ready_cumulative_extreme(*outs, self._operand, dim, largest=name == "cummax")
    fill(*(part for x in (values, indices, self) for part in (x._operand.array, x._offset)))
    return values, indices


def running_extremes(name: str, self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    axis = check_scanned(name, self, dim)
    made = empty(self._shape, self._dtype, self._device), empty(self._shape, dtypes.int64, self._device)
    return fill_extremes(name, self, axis, *made)


def running_extremes_out(name: str, self: Tensor, dim: int, values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    axis = check_scanned(name, self, dim)
    for out, wanted in ((values, self._dtype), (indices, dtypes.int64)):
        if out._dtype is not wanted:
            raise RuntimeError(f"expected scalar_type {wanted.tensor_name} but found {out._dtype.tensor_name}")
        resize_out(out, Meta(self._shape, wanted, self._device))
        check_no_internal_overlap(out)
    return fill_extremes(name, apart(self, values, elementwise=False), axis, values, indices)


@cummax_op.kernel("CPU", "Meta")
@leaf
def cummax_kernel(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return running_extremes("cummax", self, dim)


@cummin_op.kernel("CPU", "Meta")
@leaf
def cummin_kernel(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return running_extremes("cummin", self, dim)


@cummax_out_op.kernel("CPU", "Meta")
def cummax_out_kernel(self: Tensor, dim: int, values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    return running_extremes_out("cummax", self, dim, values, indices)


@cummin_out_op.kernel("CPU", "Meta")
def cummin_out_kernel(self: Tensor, dim: int, values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    return running_extremes_out("cummin", self, dim, values, indices)


def to_the_places(grad: Any, result1: Any, self_shape: Any, dim: int) -> Any:
    """The gradient of running extremes: what each place was chosen for, added up."""
    return grad.new_zeros(self_shape).scatter_add(dim, result1, grad)


for _op in (cummax_op, cummin_op):
    _op.derivative(self=to_the_places, nondifferentiable=(1,))
    _op.forward(chosen(dim=1))
cummax_op.out = cummax_out_op.functional
cummin_op.out = cummin_out_op.functional
cummax = public(cummax_op, doc="Returns the largest of all elements up to each along `dim`, and its place.")
cummin = public(cummin_op, doc="Returns the smallest of all elements up to each along `dim`, and its place.")
