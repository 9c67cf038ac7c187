"""Order along one dimension, what is chosen and where it stood: sort, argsort, topk, kthvalue, median, mode; search:
unique, searchsorted, bucketize, isin, bincount, histc.

NaN is larger than all. Every sort is stable, whether one asks for it or not: the kernel knows no faster one. Gradients
go to where the chosen elements stood. How many results there are of `unique` and `bincount` depends on the values, so
that these have no meta kernels; they are compared by numpy, and every NaN is a value of its own.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    another,
    as_numpy,
    dtype,
    dtypes,
    empty,
    overridable_in_python,
    view_over,
    wrap_dim,
)
from redispatch.kernels import Operand

from ..declare.declare import no_formula
from ..declare.operator import composite, kernel, structured
from ..declare.out_forms import copy_into_out
from ..declare.overridable import overridable_function
from ..declare.plan import Run
from ..declare.pointwise import COMPLEX, FLOATING, NOT_FLOATING
from ..declare.public import public
from ..declare.structured import Meta, Structured, check_has_kernel, copy_of, same_dtype
from .creation import preserved_strides
from .extremes import Choice, choosing, shared
from .reductions import converted, reduced_shape

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


@composite(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    out="stable_out",
    out_by=copy_into_out,
    refuses="complex",
)
def argsort_stable_op(self, stable, dim, descending):
    return sort_stable_op.functional(self, stable=stable, dim=dim, descending=descending)[1]


@composite(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", refuses="complex", also=(argsort_stable_op,)
)
def argsort(self, dim, descending):
    """Returns where each element stands in order along `dim`."""
    return sort_op.functional(self, dim, descending)[1]


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

# --- which values there are, and where one belongs: unique, searchsorted, bucketize, isin, bincount, histc ------------

DYNAMIC = ("dynamic_output_shape",)


def comparable(x: Tensor, kernel: str = "unique") -> np.ndarray:
    """The values as numpy can compare them: 16-bit floats as float32, which has them all."""
    check_has_kernel(kernel, x, COMPLEX)
    return as_numpy(converted(x, dtypes.float32) if x._dtype.name in ("float16", "bfloat16") else x)


def of_kind(values: np.ndarray, like: Tensor) -> Tensor:
    """numpy's values as a tensor of the dtype of `like`."""
    made = empty(Size(values.shape), like._dtype)
    source = empty(Size(values.shape), dtypes.float32) if values.dtype == np.float32 else made
    as_numpy(source)[...] = values
    if source is not made:
        kernels.copy(made._operand, source._operand)
    return made


def positions(values: np.ndarray | None) -> Tensor:
    """int64 results; none where they are not asked for."""
    values = np.empty(0, np.int64) if values is None else values
    made = empty(Size(values.shape), dtypes.int64)
    as_numpy(made)[...] = values
    return made


# --- unique ----------------------------------------------------------------------------------------------------------

THREE = "(Tensor, Tensor, Tensor)"


def dynamic(schema: str, **facts: Any) -> Any:
    """A decorator that declares an operator whose values, but no positions or counts, could have a gradient."""
    name, several = schema.partition("(")[0], tuple(range(1, schema.partition("->")[2].count("Tensor")))
    return kernel(
        schema, "CPU", tags=DYNAMIC, derivative=no_formula(name), nondifferentiable=several, face=False, **facts
    )


@dynamic(
    f"_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> {THREE}",
    refuses="complex",
)
def unique2_op(self, sorted, return_inverse, return_counts):
    return unique_values(self, return_inverse, return_counts)


@dynamic("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)", refuses="complex")
def unique_op(self, sorted, return_inverse):
    return unique_values(self, return_inverse, False)[:2]


def unique_values(self: Tensor, return_inverse: bool, return_counts: bool) -> tuple[Tensor, ...]:
    """(the values in ascending order, for each element which of them it is, how often each occurs)"""
    values, inverse, counts = np.unique(comparable(self), return_inverse=True, return_counts=True, equal_nan=False)
    of_each = inverse.reshape(tuple(self._shape)) if return_inverse else None
    return of_kind(values, self), positions(of_each), positions(counts if return_counts else None)


def slices_first(self: Tensor, dim: int) -> tuple[np.ndarray, int]:
    """The slices along `dim`, and that dimension."""
    axis = wrap_dim(dim, len(self._shape), wrap_scalar=False)
    return np.moveaxis(comparable(self, "unique_dim"), axis, 0), axis


def slices_back(slices: np.ndarray, axis: int, like: Tensor) -> Tensor:
    """Slices along `axis` again. In memory they lie one after the other."""
    together = of_kind(np.ascontiguousarray(slices), like)
    steps = list(kernels.contiguous_strides(slices.shape))
    sizes = list(slices.shape)
    for numbers in (steps, sizes):
        numbers.insert(axis, numbers.pop(0))
    return view_over(together, Size(sizes), tuple(steps), 0)


@dynamic(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
    f"-> {THREE}",
    refuses="complex",
)
def unique_dim_op(self, dim, sorted, return_inverse, return_counts):
    """Returns the unique slices along `dim`, in lexicographic order."""
    slices, axis = slices_first(self, dim)
    if not len(slices):
        return of_kind(comparable(self), self), positions(None), positions(None)
    rows = slices.reshape(len(slices), -1)
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    first, inverse, counts = runs(rows[order])
    of_each = np.empty(len(rows), np.int64)
    of_each[order] = inverse
    return slices_back(slices[order[first]], axis, self), positions(of_each), positions(counts)


def runs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The starts of runs of equal rows, the run that each row is in, and the length of each."""
    changes = np.ones(len(rows), bool)
    changes[1:] = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    first = np.flatnonzero(changes)
    return first, np.cumsum(changes) - 1, np.diff(np.append(first, len(rows)))


def unique_slices(self: Tensor, dim: int) -> tuple[Tensor, ...]:
    """The slices along `dim` without those that are equal to the one before."""
    slices, axis = slices_first(self, dim)
    first, inverse, counts = runs(slices)
    return slices_back(slices[first], axis, self), positions(inverse), positions(counts)


@dynamic(
    f"unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> {THREE}",
    refuses="complex",
)
def unique_dim_consecutive_op(self, dim, return_inverse, return_counts):
    return unique_slices(self, dim)


@dynamic(
    f"unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> {THREE}",
    refuses="complex",
)
def unique_consecutive_op(self, return_inverse, return_counts, dim):
    """Returns what is unique among neighbours: slices, or elements of the flattened tensor where there is no `dim`."""
    if dim is not None:
        return unique_slices(self, dim)
    elements = comparable(self).ravel()
    first, inverse, counts = runs(elements)
    of_each = inverse.reshape(tuple(self._shape)) if return_inverse else None
    return of_kind(elements[first], self), positions(of_each), positions(counts if return_counts else None)


@overridable_function
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Returns the different values, ascending; on request also which of them each element is, and how often each
    occurs.

    With `dim`, the different slices along that dimension.
    """
    if dim is None:
        found = unique2_op.functional(input, sorted, return_inverse, return_counts)
    else:
        found = unique_dim_op.functional(input, dim, sorted, return_inverse, return_counts)
    return asked_for(found, return_inverse, return_counts)


@overridable_function
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Returns `unique` among neighbours: the first of each run of equal values (or slices along `dim`), in their
    order."""
    found = unique_consecutive_op.functional(input, return_inverse, return_counts, dim)
    return asked_for(found, return_inverse, return_counts)


def asked_for(found: Any, return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    more = ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return (values, *more) if more else values


Tensor.unique = another(unique, "unique", overridable_in_python)  # type: ignore[attr-defined]  # attached here
Tensor.unique_consecutive = another(unique_consecutive, "unique_consecutive", overridable_in_python)  # type: ignore[attr-defined]  # attached here

# --- searchsorted, bucketize -----------------------------------------------------------------------------------------

SEARCH = "*, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor"
BUCKETS = "Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"
search = partial(structured, derivative=False, face=False)


def check_search(edges: Tensor, shape: Any, right: bool, side: str | None, sorter: Tensor | None) -> None:
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None:
        if sorter._shape != edges._shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(edges._shape)}and got sorter tensor {list(sorter._shape)}"
            )
        if sorter._dtype is not dtypes.int64:
            raise RuntimeError(
                f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter._dtype.tensor_name}"
            )
    check_has_kernel("searchsorted_out_cpu", edges, COMPLEX if shape is None else ("bool", *COMPLEX))
    if shape is None:
        if len(edges._shape) != 1:
            raise RuntimeError(
                "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
                f"got boundaries tensor dim({len(edges._shape)}) and input value's dim(0) numel(1)"
            )
    elif len(edges._shape) != 1 and (len(edges._shape) != len(shape) or edges._shape[:-1] != shape[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(edges._shape)} and input "
            f"value tensor {list(shape)}"
        )


@search(f"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, {SEARCH}", out="Tensor_out", refuses="bool")
def searchsorted_op(sorted_sequence, self, out_int32, right, side, sorter):
    """Returns the place of each value in a sorted sequence."""
    shape, on = (self._shape, self) if isinstance(self, Tensor) else (None, sorted_sequence)
    check_search(sorted_sequence, shape, right, side, sorter)
    return Meta(shape or (), dtypes.int32 if out_int32 else dtypes.int64, on._device)


searchsorted_scalar_op = search(
    f"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, {SEARCH}", out="Scalar_out", refuses=()
)(searchsorted_op.meta_function)


@searchsorted_op.body
@searchsorted_scalar_op.body
def searchsorted_body(out, sorted_sequence, self, out_int32, right, side, sorter):
    """Counts the edges of its line that are below each value; with `right`, below or equal to it."""
    edges = in_order(comparable(sorted_sequence), sorter)
    values = comparable(self) if isinstance(self, Tensor) else np.asarray(self)
    sides: Any = "right" if right or side == "right" else "left"
    found = as_numpy(out)
    for place in np.ndindex(*edges.shape[:-1]) if edges.ndim > 1 else (...,):
        found[place] = np.searchsorted(edges[place], values[place], sides)
    if (
        values.dtype.kind == "f"
    ):  # numpy puts NaN behind all, so the index behind it is what is asked for on either side
        found[np.isnan(values)] = edges.shape[-1]


def in_order(edges: np.ndarray, sorter: Tensor | None) -> np.ndarray:
    if sorter is None:
        return edges
    order = as_numpy(sorter)
    if ((order < 0) | (order >= edges.shape[-1])).any():
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return np.take_along_axis(edges, order, -1)


@search(f"bucketize.Tensor(Tensor self, {BUCKETS}", out="Tensor_out", refuses="bool")
def bucketize_op(self, boundaries, out_int32, right):
    """Returns between which two `boundaries` each element lies."""
    if len(boundaries._shape) != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({len(boundaries._shape)})")
    return searchsorted_op.meta_function(boundaries, self, out_int32, right, None, None)


bucketize_scalar_op = search(f"bucketize.Scalar(Scalar self, {BUCKETS}", out="Scalar_out", refuses=())(
    bucketize_op.meta_function
)


@bucketize_op.body
@bucketize_scalar_op.body
def bucketize_body(out, self, boundaries, out_int32, right):
    searchsorted_body(out, boundaries, self, out_int32, right, None, None)


searchsorted = public(searchsorted_op, searchsorted_scalar_op, method=False)
bucketize = public(bucketize_op, bucketize_scalar_op, method=False)

# --- isin ------------------------------------------------------------------------------------------------------------

isin_op, isin_scalar_op, scalar_isin_op = (
    Structured(
        f"isin.{kind}({arguments}, *, bool assume_unique=False, bool invert=False) -> Tensor",
        out=f"{kind}_out",
        derivative=False,
        refuses="bool complex",
        batching="pointwise" if kind == "Tensor_Scalar" else "",
    )
    for kind, arguments in {
        "Tensor_Tensor": "Tensor elements, Tensor test_elements",
        "Tensor_Scalar": "Tensor elements, Scalar test_element",
        "Scalar_Tensor": "Scalar element, Tensor test_elements",
    }.items()
)


@isin_op.meta
@isin_scalar_op.meta
@scalar_isin_op.meta
def isin_meta(elements, test_elements, assume_unique, invert):
    for x in (elements, test_elements):
        if isinstance(x, Tensor) and x._dtype.name in ("bool", "complex64", "complex128"):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {x._dtype.tensor_name}")
    if isinstance(elements, Tensor):
        return Meta(elements._shape, dtypes.bool, elements._device)
    return Meta((), dtypes.bool, test_elements._device)


@isin_op.body
@isin_scalar_op.body
@scalar_isin_op.body
def isin_body(out, elements, test_elements, assume_unique, invert):
    """Whether each element is among the others."""
    values = [comparable(x) if isinstance(x, Tensor) else np.asarray(x) for x in (elements, test_elements)]
    one, others = values
    as_numpy(out)[...] = np.isin(one, others, assume_unique=assume_unique and others.ndim > 0, invert=invert)


isin = public(
    isin_op, isin_scalar_op, scalar_isin_op, method=False, doc="Returns whether each element is among `test_elements`."
)

# --- bincount, histc -------------------------------------------------------------------------------------------------


@kernel(
    "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
    "CPU",
    tags=DYNAMIC,
    derivative=False,
    refuses="bool floating complex",
)
def bincount(self, weights, minlength):
    """Returns how often each of 0, 1, ... occurs, or the sum of the weights of its occurrences."""
    check_has_kernel("bincount_cpu", self, ("bool", *FLOATING, *COMPLEX))
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    values = as_numpy(self)
    if values.ndim != 1 or (values < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    kernels.memory(
        max(minlength, int(values.max()) + 1 if values.size else 0), np.int64
    )  # RuntimeError for more than there is
    if weights is None:
        return positions(np.bincount(values, minlength=minlength))
    if weights._shape != self._shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    found = np.bincount(values, comparable(weights), minlength)
    result = empty(Size(found.shape), dtypes.float32 if weights._dtype is dtypes.float32 else dtypes.float64)
    as_numpy(result)[...] = found
    return result


@structured(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    out="out",
    out_dtype=same_dtype(
        "torch.histogram: input tensor and hist tensor should have the same dtype, "
        "but got input {c_wanted} and hist {c_found}"
    ),
    derivative=False,
    refuses="whole complex",
)
def histc(self, bins, min, max):
    """Returns how many elements fall into each of `bins` equal ranges between `min` and `max`."""
    check_has_kernel("histogram_cpu", self, NOT_FLOATING)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    return Meta((bins,), self._dtype, self._device)


@histc.op.body
def histc_body(out, self, bins, min, max):
    """Counts the elements in each of `bins` equal parts of [min, max], by default of all values there are."""

    def stored(x: Any) -> np.ndarray:  # PyTorch computes in the dtype of the elements
        return comparable(of_kind(np.asarray(x), self)) if self._dtype.itemsize == 2 else x

    values = comparable(self).ravel()
    if min == max and values.size:
        min, max = values.min(), values.max()
        if not (math.isfinite(min) and math.isfinite(max)):
            raise RuntimeError(f"torch.histc: range of [{min:g}, {max:g}] is not finite")
    if min == max:
        min, max = min - 1, max + 1
    low, high = (stored(values.dtype.type(end)) for end in (min, max))
    values = values[(low <= values) & (values <= high)]
    if high == low:  # bins narrower than numbers are apart: all are in the middle one
        places = np.full(values.shape, bins // 2)
    else:
        with np.errstate(over="ignore"):
            scaled = stored(stored(values - low) * values.dtype.type(bins))
            places = np.minimum(stored(scaled / stored(high - low)), bins - 1).astype(np.int64)
    as_numpy(out)[...] = np.bincount(places, minlength=bins)
