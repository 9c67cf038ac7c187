"""Order along one dimension: sort, argsort, topk, kthvalue, median, mode. What is chosen, and where it stood.

NaN is larger than all. Every sort is stable, whether one asks for it or not: the kernel knows no faster one. Gradients
go to where the chosen elements stood. Read next: searching.py.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtype, dtypes, empty, wrap_dim
from redispatch.kernels import Operand

from ..declare.operator import composite, structured
from ..declare.out_forms import copy_into_out
from ..declare.plan import Run
from ..declare.pointwise import COMPLEX
from ..declare.public import public
from ..declare.structured import Meta, check_has_kernel, copy_of
from .creation import preserved_strides
from .extremes import Choice, choosing, shared
from .reductions import reduced_shape

NO_KERNEL = ("bool", *COMPLEX)


def check_real(message: str, self: Tensor) -> None:
    if self._dtype.is_complex:
        raise RuntimeError(message)


def check_line(name: str, self: Tensor, axis: int) -> None:
    """Raises IndexError where one element is to be chosen of none."""
    if self._shape and not self._shape[axis]:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def removed(self: Tensor, axis: int, keepdim: bool) -> tuple[int, ...]:
    """The shape without a dimension, or with size 1 there."""
    return reduced_shape(self._shape, (axis,) if self._shape else (), keepdim)


# --- sort ------------------------------------------------------------------------------------------------------------


@choosing(
    "sort(Tensor self, int dim=-1, bool descending=False)", out="values", face=False, core=True, refuses="complex"
)
def sort_op(self, dim, descending):
    """Returns the elements in order along `dim`, and where each stood."""
    check_real(" Sort does not support complex dtypes on CPU", self)
    axis = wrap_dim(dim, len(self._shape))

    def ready(values: Operand, indices: Operand) -> Run:
        return kernels.ready_sort(values, indices, self._operand, axis, descending=descending)

    return Choice(self._shape, preserved_strides(self), ready)


@choosing(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)",
    out="values_stable",
    node="SortBackward1",
)
def sort_stable_op(self, stable, dim, descending):
    return sort_op.choice_function(self, dim, descending)


sort = public(sort_op, sort_stable_op)


@composite("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", face=False, refuses="complex")
def argsort_op(self, dim, descending):
    """Returns where each element stands in order along `dim`."""
    return sort_op.functional(self, dim, descending)[1]


@composite(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    out="stable_out",
    out_by=copy_into_out,
)
def argsort_stable_op(self, stable, dim, descending):
    return sort_stable_op.functional(self, stable=stable, dim=dim, descending=descending)[1]


argsort = public(argsort_op, argsort_stable_op)


@composite("msort(Tensor self) -> Tensor", out="out", out_by=copy_into_out, refuses="complex")
def msort(self):
    """Returns the elements in ascending order along the first dimension."""
    return sort_op.functional(self, 0)[0]


# --- topk, kthvalue, mode --------------------------------------------------------------------------------------------


@choosing(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True)",
    out="values",
    core=True,
    refuses="bool complex",
)
def topk(self, k, dim, largest, sorted):
    """Returns the `k` largest or smallest elements along `dim`, and where each stood."""
    axis = wrap_dim(dim, len(self._shape))
    if not 0 <= k <= (self._shape[axis] if self._shape else 1):
        raise RuntimeError("selected index k out of range")
    check_real(" topk does not support complex dtypes on CPU", self)
    if self._dtype is dtypes.bool:
        raise RuntimeError("topk does not support bool dtypes on CPU")

    def ready(values: Operand, indices: Operand) -> Run:
        return kernels.ready_top(values, indices, self._operand, axis, largest=largest, in_order=sorted)

    shape = (*self._shape[:axis], k, *self._shape[axis + 1 :]) if self._shape else ()
    return Choice(shape, None, ready)


@choosing("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False)", out="values", refuses="bool complex")
def kthvalue(self, k, dim, keepdim):
    """Returns the k-th smallest element along `dim`, and its place."""
    axis = wrap_dim(dim, len(self._shape))
    check_line("kthvalue", self, axis)
    if not 1 <= k <= (self._shape[axis] if self._shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    check_has_kernel("kthvalue_cpu", self, NO_KERNEL)
    return of_rank(self, axis, keepdim, k - 1)


def of_rank(self: Tensor, axis: int, keepdim: bool, rank: int | None, skip_nan: bool = False) -> Choice:
    def ready(values: Operand, indices: Operand) -> Run:
        return kernels.ready_rank(values, indices, self._operand, axis, rank, skip_nan=skip_nan)

    return Choice(removed(self, axis, keepdim), None, ready)


@choosing("mode(Tensor self, int dim=-1, bool keepdim=False)", out="values", refuses="complex")
def mode(self, dim, keepdim):
    """Returns the element that occurs most often along `dim`, and its place."""
    axis = wrap_dim(dim, len(self._shape))
    check_line("mode", self, axis)
    check_has_kernel("mode_cpu", self, COMPLEX)

    def ready(values: Operand, indices: Operand) -> Run:
        return kernels.ready_mode(values, indices, self._operand, axis)

    return Choice(removed(self, axis, keepdim), None, ready)


# --- median ----------------------------------------------------------------------------------------------------------


def of_none(kind: dtype) -> Any:
    """The median of no elements: NaN, and what a processor makes of that for integers."""
    return math.nan if kind.is_floating_point else -(1 << 8 * kind.itemsize - 1) if kind.itemsize > 2 else 0


def middle(name: str, skip_nan: bool, doc: str) -> Any:
    """The function `median` or `nanmedian`: of all elements, or of those along a dimension."""

    @structured(
        f"{name}(Tensor self) -> Tensor",
        out="out",
        derivative=lambda grad, self, result: shared(grad, self, result, None, False),
        refuses="bool complex",
        batching="full",
        face=False,
    )
    def of_all(self):
        check_has_kernel("median_cpu", self, NO_KERNEL)
        return Meta((), self._dtype, self._device)

    @of_all.body
    def body(out, self):
        """The middle one of all elements, of whose order in memory nothing depends."""
        count = self._shape.numel()
        if not count:
            kernels.fill(out._operand, of_none(out._dtype))
            return
        dense = self if kernels.is_dense(self._shape, self._stride) else copy_of(self)
        line = dense._operand._replace(shape=(count,), strides=(1,))
        place = empty((), dtypes.int64, out._device)._operand
        find = kernels.ready_rank(out._operand, place, line, 0, None, skip_nan=skip_nan)
        find(out._operand.array, out._offset, place.array, 0, line.array, line.offset)

    @choosing(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False)",
        out="dim_values",
        node=f"{name.capitalize()}Backward1",
        face=False,
    )
    def along_dim(self, dim, keepdim):
        axis = wrap_dim(dim, len(self._shape))
        check_line("median", self, axis)
        check_has_kernel("median_out", self, NO_KERNEL)
        return of_rank(self, axis, keepdim, None, skip_nan)

    return public(of_all, along_dim, doc=doc)


median = middle(
    "median",
    skip_nan=False,
    doc="Returns the median of all elements, or of those along `dim` and its place; the lower of two.",
)
nanmedian = middle(
    "nanmedian",
    skip_nan=True,
    doc="Returns the median without NaN of all elements, or of those along `dim` and its place.",
)
