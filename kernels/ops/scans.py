"""Scans: results up to each element along one dimension. Running sums, products, log-sum-exps, maxima and minima.

The result has the shape of the input and lies row by row. Integers add up and multiply in int64; `dtype=` says in which
dtype to compute.

`segment_reduce` gives one result for each run of entries. The runs are given by their `lengths`, or by the `offsets` of
their ends; dimensions before the axis have runs of their own. An empty run gives `initial`, or what the reduction of
nothing is. Read next: moments.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import STATE
from redispatch.dispatch.specialiser.annotations import leaf
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtypes, empty, shown, wrap_dim
from redispatch.kernels.cpu.scan import Scan

from ..declare.numbers import storable
from ..declare.operator import CUDA_SET_DTYPE, kernel, leaf_kernel, planned
from ..declare.plan import Run
from ..declare.structured import Meta, apart, check_no_internal_overlap, not_implemented, resize_out, same_dtype
from .extremes import chosen
from .reductions import DTYPE, in_dtype, summing_dtype

# --- cumsum, cumprod -------------------------------------------------------------------------------------------------


@planned(
    f"cumsum(Tensor self, int dim, *, {DTYPE}) -> Tensor",
    inplace=True,
    out="out",
    dtype_of_target=True,
    core=True,
    derivative=lambda grad, dim: from_the_end(grad, dim),
    forward="linear",
    autocast=CUDA_SET_DTYPE,
    doc="Returns the sums of all elements up to each along `dim`.",
)
def cumsum(self, dim, dtype):
    return scan_meta("cumsum", self, dim, dtype)


@planned(
    f"cumprod(Tensor self, int dim, *, {DTYPE}) -> Tensor",
    inplace=True,
    out="out",
    dtype_of_target=True,
    autocast=CUDA_SET_DTYPE,
    doc="Returns the products of all elements up to each along `dim`.",
)
def cumprod(self, dim, dtype):
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


@cumsum.op.loop
def cumsum_loop(out, self, dim, dtype):
    return scan_loop(kernels.CUMSUM, out, self, dim, dtype)


@cumprod.op.loop
def cumprod_loop(out, self, dim, dtype):
    return scan_loop(kernels.CUMPROD, out, self, dim, dtype)


def from_the_end(grad: Any, dim: int) -> Any:
    """The sums of each element and those behind it."""
    return grad.flip(dim).cumsum(dim).flip(dim)


@cumprod.op.gradient("self")
def cumprod_backward(grad, self, result, dim):
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


# --- logcumsumexp ----------------------------------------------------------------------------------------------------


@planned(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    out="out",
    out_dtype=same_dtype("expected scalar_type {wanted} but found {found}"),
    refuses="whole",
    doc="Returns log(sum of exp(x)) of all elements up to each along `dim`, without overflow.",
)
def logcumsumexp(self, dim):
    wrap_dim(dim, len(self._shape))
    if self._dtype.category <= dtypes.INTEGER:
        raise not_implemented("logcumsumexp_out_cpu", self._dtype)
    return Meta(self._shape, self._dtype, self._device)


@logcumsumexp.op.loop
def logcumsumexp_loop(out, self, dim):
    scan = kernels.COMPLEX_LOGCUMSUMEXP if self._dtype.is_complex else kernels.LOGCUMSUMEXP
    return scan.ready(out._operand, self._operand, wrap_dim(dim, len(self._shape)))


@logcumsumexp.op.gradient("self")
def logcumsumexp_backward(grad, self, result, dim):
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


logcumsumexp.op.forward(logcumsumexp_tangent)

# --- cummax, cummin --------------------------------------------------------------------------------------------------


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


def running_extremes(name: str, which: str) -> Any:
    """Declares `cummax` or `cummin`."""

    def into_out(self: Tensor, dim: int, values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        axis = check_scanned(name, self, dim)
        for out, wanted in ((values, self._dtype), (indices, dtypes.int64)):
            if out._dtype is not wanted:
                raise RuntimeError(f"expected scalar_type {wanted.tensor_name} but found {out._dtype.tensor_name}")
            resize_out(out, Meta(self._shape, wanted, self._device))
            check_no_internal_overlap(out)
        return fill_extremes(name, apart(self, values, elementwise=False), axis, values, indices)

    @leaf_kernel(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        out="out",
        out_by=lambda op: op.kernel_out("CPU", "Meta")(into_out),
        refuses="complex",
        derivative=to_the_places,
        nondifferentiable=(1,),
        forward=chosen(dim=1),
        doc=f"Returns the {which} of all elements up to each along `dim`, and its place.",
    )
    @leaf
    def extremes(self, dim):
        axis = check_scanned(name, self, dim)
        made = empty(self._shape, self._dtype, self._device), empty(self._shape, dtypes.int64, self._device)
        return fill_extremes(name, self, axis, *made)

    return extremes


def to_the_places(grad: Any, result1: Any, self_shape: Any, dim: int) -> Any:
    """The gradient of running extremes: what each place was chosen for, added up."""
    return grad.new_zeros(self_shape).scatter_add(dim, result1, grad)


cummax, cummin = running_extremes("cummax", "largest"), running_extremes("cummin", "smallest")

# --- segment_reduce: over runs of entries along a dimension -----------------------------------------------------------

_RUNS = "Tensor? lengths=None, {}Tensor? offsets=None, int axis=0"

UFUNCS: dict[str, Any] = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
OF_NOTHING = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


class Runs(NamedTuple):
    """The places of runs among the entries along the axis, all dimensions before it flattened."""

    starts: np.ndarray
    lengths: np.ndarray
    shape: tuple[int, ...]  # of the runs, before the dimensions behind the axis


def check_call(data: Tensor, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int) -> tuple[int, Tensor]:
    """(the axis from the front, the lengths or offsets)"""
    axis = wrap_dim(axis, len(data._shape))
    if reduce not in UFUNCS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    given = lengths if lengths is not None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if axis != len(given._shape) - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    if len(data._shape) <= axis:
        raise RuntimeError("Expected data.dim() >= lengths_value.dim() to be true, but got false.")
    if tuple(given._shape[:-1]) != tuple(data._shape[:axis]):
        raise RuntimeError(
            f"segment_reduce(): Expected the shape of lengths, {list(given._shape)}, to be that of data before the "
            f"axis, {list(data._shape[:axis])}"
        )
    return axis, given


def runs_of(data: Tensor, axis: int, given: Tensor, by_length: bool) -> Runs:
    """The runs; RuntimeError where they do not lie inside the axis."""
    if given._dtype.name not in ("int32", "int64"):
        raise not_implemented("_segment_reduce_lengths_cpu_kernel1", given._dtype)
    size = data._shape[axis]
    if not given._shape.numel():
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    numbers = shown(given).reshape(-1, given._shape[-1]).astype(np.int64)
    if by_length:
        if (numbers < 0).any():
            raise RuntimeError("lengths contains negative value!")
        # in Python's integers: a sum that wraps around would look right
        if any(sum(row) != size for row in numbers.tolist()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
        ends = numbers.cumsum(1)
        starts, lengths = ends - numbers, numbers
    else:
        if (numbers < 0).any() or (numbers > size).any() or (np.diff(numbers) < 0).any():
            raise RuntimeError(f"segment_reduce(): Expected offsets to increase from 0 to at most {size}")
        starts, lengths = numbers[:, :-1], np.diff(numbers)
    rows = np.arange(len(numbers))[:, None] * size
    return Runs((starts + rows).reshape(-1), lengths.reshape(-1), (*given._shape[:-1], lengths.shape[1]))


def entries(x: Tensor, axis: int) -> np.ndarray:
    """The data as a table in float64: a row for each entry along the axis."""
    count = math.prod(x._shape[: axis + 1])
    return as_numpy(x).astype(np.float64).reshape(count, math.prod(x._shape[axis + 1 :]))


def reduced(x: np.ndarray, runs: Runs, reduce: str, start: float) -> np.ndarray:
    """For each run what `start` and its entries add up to, or the like."""
    ufunc = UFUNCS[reduce]
    result = np.full((len(runs.lengths), x.shape[1]), start)
    full = np.flatnonzero(runs.lengths)
    if len(full):
        # reduceat goes from each index to the next: from a start to the end; what follows up to the next is dropped
        bounds = np.stack([runs.starts[full], runs.starts[full] + runs.lengths[full]], 1).reshape(-1)
        padded = np.concatenate([x, np.zeros((1, x.shape[1]))])
        result[full] = ufunc(result[full], ufunc.reduceat(padded, bounds)[::2])
    return result


def check_dtype(data: Tensor) -> None:
    if not data._dtype.is_floating_point:
        raise not_implemented("_segment_reduce_cpu", data._dtype)


@kernel(
    f"segment_reduce(Tensor data, str reduce, *, {_RUNS.format('Tensor? indices=None, ')}, bool unsafe=False, "
    "Scalar? initial=None) -> Tensor",
    "CPU",
    out="out",
    refuses="whole complex",
    batching="other",
    derivative=lambda grad, result, data, reduce, lengths, offsets, axis, initial: (
        segment_reduce_backward_op.functional(
            grad, result, data, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial
        )
    ),
    method=False,
    doc="Returns the sum, mean, maximum, minimum or product of each segment.",
)
def segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    axis, given = check_call(data, reduce, lengths, indices, offsets, axis)
    runs = runs_of(data, axis, given, lengths is not None)
    check_dtype(data)
    with np.errstate(all="ignore"):
        first = OF_NOTHING[reduce] if initial is None else storable(initial, dtypes.float32)
        found = reduced(entries(data, axis), runs, reduce, first)
        if reduce == "mean":
            some = runs.lengths[:, None] > 0
            empty_mean = math.nan if initial is None else float(initial)
            found = np.where(some, found / np.maximum(runs.lengths, 1)[:, None], empty_mean)
        return stored(found, (*runs.shape, *data._shape[axis + 1 :]), data)


@segment_reduce.op.kernel("Meta")
def segment_reduce_meta(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    axis, given = check_call(data, reduce, lengths, indices, offsets, axis)
    count = given._shape[-1] - (lengths is None)
    shape = (*given._shape[:-1], count, *data._shape[axis + 1 :])
    return empty(Size(shape), data._dtype, data._device)


def stored(values: np.ndarray, shape: tuple[int, ...], like: Tensor) -> Tensor:
    made = empty(Size(shape), like._dtype, like._device)
    as_numpy(made)[...] = values.reshape(shape)
    return made


@kernel(
    f"_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, {_RUNS.format('')}, "
    "Scalar? initial=None) -> Tensor",
    "CPU",
    out="out",
    refuses="whole complex",
    batching="other",
    relies="segment_reduce",
)
def segment_reduce_backward_op(grad, output, data, reduce, lengths, offsets, axis, initial):
    """Each entry's share of the gradient of its run; none where it is in no run."""
    axis, given = check_call(data, reduce, lengths, None, offsets, axis)
    runs = runs_of(data, axis, given, lengths is not None)
    check_dtype(data)
    x = entries(data, axis)
    run = np.repeat(np.arange(len(runs.lengths)), runs.lengths)  # of each entry that is in one
    within = np.arange(len(run)) - np.repeat(runs.lengths.cumsum() - runs.lengths, runs.lengths)
    entry = runs.starts[run] + within
    flow, values = entries(grad, axis)[run], x[entry]
    with np.errstate(all="ignore"):
        if reduce == "mean":
            flow = flow / runs.lengths[run][:, None]
        elif reduce == "prod":
            flow = flow * products_of_others(x, runs, values, run, 1.0 if initial is None else float(initial))
        elif reduce != "sum":
            result = entries(output, axis)[run]
            chosen = (values == result) | (np.isnan(values) & np.isnan(result))
            counts = np.zeros((len(runs.lengths), x.shape[1]))
            np.add.at(counts, run, chosen)
            flow = np.where(chosen, flow / np.maximum(counts[run], 1), 0)
        gradient = np.zeros_like(x)
        gradient[entry] = flow
        return stored(gradient, tuple(data._shape), data)


def products_of_others(x: np.ndarray, runs: Runs, values: np.ndarray, run: np.ndarray, initial: float) -> np.ndarray:
    """For each entry the product of `initial` and the others in its run, zeros among them or not."""
    zero = values == 0
    zeros = reduced((x == 0).astype(np.float64), runs, "sum", 0.0)[run]
    others = reduced(np.where(x == 0, 1.0, x), runs, "prod", initial)[run] / np.where(zero, 1.0, values)
    return np.where((zeros == 0) | ((zeros == 1) & zero), others, 0)


@segment_reduce_backward_op.kernel("Meta")
def segment_reduce_backward_meta(grad, output, data, *rest):
    return empty(data._shape, data._dtype, data._device)
