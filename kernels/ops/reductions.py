"""Reductions: many elements into one, along some dimensions or all: sums, means, products, truth.

`dim` None or [] means all dimensions; a reduced dimension is left out, or kept as size 1 (`keepdim`). Integers add up
in int64; `dtype=` says in which dtype to compute. Read next: extremes.py, scans.py, moments.py.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import STATE
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtype, dtypes, empty, metadata_of, wrap_dim
from redispatch.kernels import Operand
from redispatch.kernels.cpu.reduce import Recipe, Reduction

from ..declare.declare import Operator
from ..declare.plan import PLANS, Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta

DIMS = "Tensor self, int[1]? dim, bool keepdim=False"
DTYPE = "ScalarType? dtype=None"
REDUCTION = ("reduction",)

# --- dimensions ------------------------------------------------------------------------------------------------------


def reduced_dims(dim: Sequence[int] | int | None, ndim: int, empty_means_all: bool = True) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front. IndexError out of range, RuntimeError for one given twice."""
    if isinstance(dim, int):
        dim = (dim,)
    if dim is None or (not dim and empty_means_all):
        return tuple(range(ndim))
    wrapped = [wrap_dim(d, ndim) for d in dim]
    for i, d in enumerate(wrapped):
        if d in wrapped[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(wrapped) if ndim else ()


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Size:
    """The shape with `dims` left out, or kept as 1."""
    if keepdim:
        return Size(1 if d in dims else size for d, size in enumerate(shape))
    return Size(size for d, size in enumerate(shape) if d not in dims)


def count_of(shape: Sequence[int], dims: Sequence[int]) -> int:
    """How many elements go into each result."""
    return math.prod(shape[d] for d in dims)


def unreduced(grad: Any, shape: Sequence[int], dim: Any, keepdim: bool) -> Any:
    """What undoes a reduction's shape: `grad` of the result, expanded to the shape of the input."""
    return with_kept_dims(grad, shape, dim, keepdim).expand(shape)


def with_kept_dims(result: Any, shape: Sequence[int], dim: Any, keepdim: bool) -> Any:
    """A result with the reduced dimensions as size 1, so that it broadcasts against the input."""
    if keepdim or not len(shape):
        return result
    for d in sorted(reduced_dims(dim, len(shape))):
        result = result.unsqueeze(d)
    return result


# --- what is computed in which dtype ---------------------------------------------------------------------------------


def summing_dtype(self: Tensor, dtype: dtype | None) -> dtype:
    """Integers and bools add up in int64."""
    return dtype or (dtypes.int64 if self._dtype.category <= dtypes.INTEGER else self._dtype)


def averaging_dtype(self: Tensor, dtype: dtype | None) -> dtype:
    """Only floating and complex dtypes have means."""
    found = dtype or self._dtype
    if found.category <= dtypes.INTEGER:
        which = "Optional" if dtype else "Input"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {found.tensor_name}"
        )
    return found


def reduced_in(dtype: dtype, reduction: Reduction, out: Tensor, self: Tensor, dims: tuple[int, ...]) -> Run:
    """The loop of a reduction that computes in this dtype."""
    return in_dtype(dtype, lambda x: reduction.ready(out._operand, x, dims), self)


def in_dtype(dtype: dtype, ready: Callable[[Operand], Run], self: Tensor) -> Run:
    """The loop `ready(x)`, behind a conversion where it would compute in a narrower or other dtype than this."""
    own = self._dtype
    exact = own.category <= dtypes.INTEGER and dtype is dtypes.int64
    widens = own.is_floating_point and own.itemsize == 2 and dtype is dtypes.float32
    if own is dtype or exact or widens:
        return ready(self._operand)
    dense = empty(self._shape, dtype, self._device)._operand
    convert, reduce = kernels.ready_copy(dense, self._operand), ready(dense)
    elements, storage = self._shape.numel(), kernels.DTYPES[dense.dtype].storage

    def run(to: np.ndarray, to_at: int, x: np.ndarray, x_at: int) -> None:
        scratch = kernels.memory(elements, storage)
        convert(scratch, 0, x, x_at)
        reduce(to, to_at, scratch, 0)

    return run


def converted(self: Tensor, dtype: dtype) -> Tensor:
    """A dense copy of another dtype, below the dispatcher."""
    fresh = empty(self._shape, dtype, self._device)
    kernels.copy(fresh._operand, self._operand)
    return fresh


# --- sum -------------------------------------------------------------------------------------------------------------

sum_op = Planned(f"sum(Tensor self, *, {DTYPE}) -> Tensor", out="out", tags=REDUCTION, dtype_of_target=True)
sum_dim_op = Planned(
    f"sum.dim_IntList({DIMS}, *, {DTYPE}) -> Tensor", out="IntList_out", tags=REDUCTION, dtype_of_target=True
)


@sum_dim_op.meta
def sum_meta(self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Meta:
    dims = reduced_dims(dim, len(self._shape))
    return Meta(reduced_shape(self._shape, dims, keepdim), summing_dtype(self, dtype), self._device)


@sum_dim_op.loop
def sum_loop(out: Tensor, self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Run:
    return reduced_in(summing_dtype(self, dtype), kernels.SUM, out, self, reduced_dims(dim, len(self._shape)))


@sum_op.meta
def sum_all_meta(self: Tensor, dtype: Any) -> Meta:
    return sum_meta(self, None, False, dtype)


@sum_op.loop
def sum_all_loop(out: Tensor, self: Tensor, dtype: Any) -> Run:
    return sum_loop(out, self, None, False, dtype)


sum_op.derivative(self=lambda grad, self_shape: grad.expand(self_shape))
sum_op.forward("linear")
sum_dim_op.derivative(
    self=lambda grad, self_shape, dim, keepdim: unreduced(grad, self_shape, dim, keepdim), node="SumBackward1"
)
sum_dim_op.forward("linear")
sum_op.autocast(cuda="fp32_set_opt_dtype")
sum_dim_op.autocast(cuda="fp32_set_opt_dtype")
sum = public(sum_op, sum_dim_op)

sum_to_size_op = Operator("sum_to_size(Tensor self, SymInt[] size) -> Tensor")


class Summing(NamedTuple):
    """How broadcasting is undone: which dimensions are summed, and whether some of them then go."""

    dims: tuple[int, ...]
    leading: bool


SUMMINGS: dict[Any, Summing] = {}  # by metadata and wanted size


@sum_to_size_op.implicit
@inline
def sum_to_size_composite(self: Tensor, size: Sequence[int]) -> Tensor:
    """What broadcasting `size` to the shape of `self` did, undone."""
    key = (self._interned or metadata_of(self), tuple(size))
    found = SUMMINGS.get(key) or new_summing(key)
    if not found.dims:
        return self
    summed = sum_dim_op.functional(self, found.dims, True)
    return view_as(summed, size) if found.leading else summed


def view_as(summed: Any, size: Sequence[int]) -> Tensor:
    return summed.view(list(size))


@leaf
def new_summing(key: Any) -> Summing:
    shape, size = tuple(key[0].shape), key[1]
    leading = len(shape) - len(size)
    if leading < 0 or builtins.any(
        want != 1 and want != have for want, have in zip(size, shape[leading:], strict=True)
    ):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    dims = [*range(leading)]
    dims += [d for d in range(leading, len(shape)) if size[d - leading] == 1 and shape[d] != 1]
    if len(SUMMINGS) >= PLANS:
        SUMMINGS.clear()
    SUMMINGS[key] = found = Summing(tuple(dims), leading > 0)
    return found


sum_to_size = public(sum_to_size_op, function=False)

# --- mean ------------------------------------------------------------------------------------------------------------

mean_op = Planned(f"mean(Tensor self, *, {DTYPE}) -> Tensor", tags=REDUCTION)
mean_dim_op = Planned(f"mean.dim({DIMS}, *, {DTYPE}) -> Tensor", out="out", tags=REDUCTION)


@mean_dim_op.meta
def mean_meta(self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Meta:
    dims = reduced_dims(dim, len(self._shape))
    return Meta(reduced_shape(self._shape, dims, keepdim), averaging_dtype(self, dtype), self._device)


@mean_dim_op.loop
def mean_loop(out: Tensor, self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Run:
    return reduced_in(averaging_dtype(self, dtype), kernels.MEAN, out, self, reduced_dims(dim, len(self._shape)))


@mean_op.meta
def mean_all_meta(self: Tensor, dtype: Any) -> Meta:
    return mean_meta(self, None, False, dtype)


@mean_op.loop
def mean_all_loop(out: Tensor, self: Tensor, dtype: Any) -> Run:
    return mean_loop(out, self, None, False, dtype)


mean_op.derivative(self=lambda grad, self_shape: grad.expand(self_shape) / self_shape.numel())
mean_op.forward("linear")
mean_dim_op.derivative(
    self=lambda grad, self_shape, dim, keepdim: (
        unreduced(grad, self_shape, dim, keepdim) / count_of(self_shape, reduced_dims(dim, len(self_shape)))
    ),
    node="MeanBackward1",
)
mean_dim_op.forward("linear")
mean = public(mean_op, mean_dim_op)

# --- prod ------------------------------------------------------------------------------------------------------------

prod_op = Planned(f"prod(Tensor self, *, {DTYPE}) -> Tensor", tags=REDUCTION)
prod_dim_op = Planned(
    f"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, {DTYPE}) -> Tensor",
    out="int_out",
    tags=REDUCTION,
    dtype_of_target=True,
)


@prod_dim_op.meta
def prod_meta(self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Meta:
    return sum_meta(self, dim, keepdim, dtype)


@prod_dim_op.loop
def prod_loop(out: Tensor, self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Run:
    return reduced_in(summing_dtype(self, dtype), kernels.PROD, out, self, reduced_dims(dim, len(self._shape)))


@prod_op.meta
def prod_all_meta(self: Tensor, dtype: Any) -> Meta:
    return sum_meta(self, None, False, dtype)


@prod_op.loop
def prod_all_loop(out: Tensor, self: Tensor, dtype: Any) -> Run:
    return prod_loop(out, self, None, False, dtype)


def prod_backward(grad: Any, self: Any, dim: int) -> Any:
    """The gradient of a product: for each element the product of the others, zeros among them or not.

    With one zero only that element has a gradient: the product of the rest; with several none has any. Where the
    gradient itself is to be differentiated and there are zeros, the products of the others are formed one by one.
    """
    zero = self == 0
    if STATE.get().grad_enabled and (zero._array is None or as_numpy(zero).any()):
        return grad * products_of_others(self, dim)
    zeros = zero.sum(dim, True)
    rest = self.masked_fill(zero, 1)
    counted = (zeros == 0) | ((zeros == 1) & zero)
    return (grad * rest.prod(dim, True) / rest).masked_fill(~counted, 0)


def products_of_others(self: Any, dim: int) -> Any:
    """For each element along `dim`, the product of all the others there; takes the square of the memory."""
    from_rows = self.movedim(dim, -1)
    n = from_rows.shape[-1]
    square = from_rows.unsqueeze(-2).expand((*from_rows.shape, n))
    own = np.eye(n, dtype=bool)
    mask = empty((n, n), dtypes.bool, self._device)
    as_numpy(mask)[...] = own
    return square.masked_fill(mask, 1).prod(-1).movedim(-1, dim)


def prod_all_backward(grad: Any, self: Any) -> Any:
    return prod_backward(grad, self.reshape(-1), 0).reshape(self.shape)


def prod_dim_backward(grad: Any, self: Any, dim: int, keepdim: bool) -> Any:
    if not self.dim():
        return grad
    return prod_backward(with_kept_dims(grad, self.shape, dim, keepdim), self, dim)


prod_op.derivative(self=prod_all_backward)
prod_dim_op.derivative(self=prod_dim_backward, node="ProdBackward1")
prod_op.autocast(cpu="fp32", cuda="fp32_set_opt_dtype")
prod_dim_op.autocast(cpu="fp32", cuda="fp32_set_opt_dtype")
prod = public(prod_op, prod_dim_op)

# --- all, any --------------------------------------------------------------------------------------------------------


def truth_dtype(self: Tensor) -> dtype:
    """bool; uint8 stays uint8, which stood for bool before there was one."""
    return dtypes.uint8 if self._dtype is dtypes.uint8 else dtypes.bool


def truth_meta(self: Tensor, dim: Any, keepdim: bool) -> Meta:
    dims = reduced_dims(dim, len(self._shape), empty_means_all=False)
    return Meta(reduced_shape(self._shape, dims, keepdim), truth_dtype(self), self._device)


def truth_loop(reduction: Reduction, out: Tensor, self: Tensor, dim: Any) -> Run:
    if out._dtype not in (dtypes.bool, dtypes.uint8):
        name = "all" if reduction is kernels.ALL else "any"
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {out._dtype.tensor_name}")
    dims = reduced_dims(dim, len(self._shape), empty_means_all=False)
    # without dimensions to reduce, a reduction still makes bools of the elements, each by itself
    return reduction.ready(out._operand, self._operand, dims)


all_op = Planned("all(Tensor self) -> Tensor", out="all_out", tags=REDUCTION)
all_dim_op = Planned("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", out="out", tags=REDUCTION)
all_dims_op = Planned(
    "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", out="dims_out", tags=REDUCTION
)
any_op = Planned("any(Tensor self) -> Tensor", out="all_out", tags=REDUCTION)
any_dim_op = Planned("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", out="out", tags=REDUCTION)
any_dims_op = Planned(
    "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", out="dims_out", tags=REDUCTION
)


@all_op.meta
@any_op.meta
def truth_all_meta(self: Tensor) -> Meta:
    return truth_meta(self, None, False)


all_dim_op.meta(truth_meta)
all_dims_op.meta(truth_meta)
any_dim_op.meta(truth_meta)
any_dims_op.meta(truth_meta)


@all_dim_op.loop
@all_dims_op.loop
def all_loop(out: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Run:
    return truth_loop(kernels.ALL, out, self, dim)


@all_op.loop
def all_all_loop(out: Tensor, self: Tensor) -> Run:
    return truth_loop(kernels.ALL, out, self, None)


@any_dim_op.loop
@any_dims_op.loop
def any_loop(out: Tensor, self: Tensor, dim: Any, keepdim: bool) -> Run:
    return truth_loop(kernels.ANY, out, self, dim)


@any_op.loop
def any_all_loop(out: Tensor, self: Tensor) -> Run:
    return truth_loop(kernels.ANY, out, self, None)


for _op in (all_op, all_dim_op, all_dims_op, any_op, any_dim_op, any_dims_op):
    _op.not_differentiable()
all = public(all_op, all_dim_op, all_dims_op)
any = public(any_op, any_dim_op, any_dims_op)

# --- count_nonzero ---------------------------------------------------------------------------------------------------

int64 = np.int64


def one_unless_zero(x):
    return int64(1) if x != 0 else int64(0)


def add_to(acc, x):
    return acc + x


def as_counted(acc, total):
    return acc


COUNT = Reduction("count_nonzero", lambda dtype: Recipe(one_unless_zero, np.int64(0), add_to, as_counted))

count_nonzero_op = Planned("count_nonzero(Tensor self, int? dim=None) -> Tensor", tags=REDUCTION)
count_nonzero_dims_op = Planned("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", tags=REDUCTION)


@count_nonzero_op.meta
@count_nonzero_dims_op.meta
def count_nonzero_meta(self: Tensor, dim: Any) -> Meta:
    return Meta(reduced_shape(self._shape, reduced_dims(dim, len(self._shape)), False), dtypes.int64, self._device)


@count_nonzero_op.loop
@count_nonzero_dims_op.loop
def count_nonzero_loop(out: Tensor, self: Tensor, dim: Any) -> Run:
    return COUNT.ready(out._operand, self._operand, reduced_dims(dim, len(self._shape)))


count_nonzero_op.not_differentiable()
count_nonzero_dims_op.not_differentiable()
count_nonzero = public(count_nonzero_op, count_nonzero_dims_op)
