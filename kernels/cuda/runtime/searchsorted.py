"""Searches in what is in order, and counts by place, on a device (kernels/cuda/searchsorted.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.cuda import Launch
from redispatch.kernels.cuda import searchsorted as kernels
from redispatch.kernels.cuda.templates import THREADS
from redispatch.kernels.ops import searching

from .structured import Task, dense, launched

aten = ops.aten


def below_or_at(
    edges: Any, values: Any, right: bool, order: Any = None, dtype: Any = dtypes.int64, bins: bool = False
) -> Any:
    """How many edges of the last dimension are below each value, or, with `right`, not above it.

    Edges are in order, or are put so by `order`. Where they have several lines, the values' last dimension goes with
    them. With `bins` and `right`, the number of the bin between two edges; -1 outside.
    """
    out = empty(values._shape, dtype, values._device)
    n, size = values._shape.numel(), edges._shape[-1]
    if n:
        compute = DTYPES[aten.result_type.Tensor(edges, values).name].compute
        tensors = [out, dense(edges), dense(values), None if order is None else dense(order)]
        kinds = [*(x._dtype.name for x in tensors[:3] if x is not None), "int64"]
        given = {"RIGHT": right, "ORDERED": order is not None, "BINS": bins, "THREADS": THREADS}
        kernel = kernels.SEARCH.kernel(compute, kinds, **given)
        launch = Launch(kernel, (-(-n // THREADS), 1, 1), (THREADS, 1, 1))
        per = values._shape[-1] if len(edges._shape) > 1 else n
        launched([Task(launch, (0, 1, 2, 3), (n, size, per))], tensors)
    return out


def searchsorted(sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any) -> Any:
    meta = searching.searchsorted_op.meta_function(sorted_sequence, self, out_int32, right, side, sorter)
    return below_or_at(sorted_sequence, self, right or side == "right", sorter, meta.dtype)


def searchsorted_scalar(
    sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any
) -> Any:
    searching.searchsorted_scalar_op.meta_function(sorted_sequence, self, out_int32, right, side, sorter)
    dtype = dtypes.float64 if isinstance(self, float) else sorted_sequence._dtype
    value = aten.scalar_tensor.default(self, dtype=dtype, device=sorted_sequence._device)
    return searchsorted(sorted_sequence, value.reshape([1]), out_int32, right, side, sorter).reshape([])


def bucketize(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    searching.bucketize_op.meta_function(self, boundaries, out_int32, right)
    return searchsorted(boundaries, self, out_int32, right, None, None)


def bucketize_scalar(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    searching.bucketize_scalar_op.meta_function(self, boundaries, out_int32, right)
    return searchsorted_scalar(boundaries, self, out_int32, right, None, None)


def isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Any:
    """Whether each element is among the others, which are put in order and searched."""
    on = next(x._device for x in (elements, test_elements) if isinstance(x, Tensor))
    one, others = (
        x if isinstance(x, Tensor) else aten.scalar_tensor.default(x, dtype=y._dtype, device=on)
        for x, y in ((elements, test_elements), (test_elements, elements))
    )
    dtype = aten.result_type.Tensor(one, others)
    if not others._shape.numel():
        return aten.full.default(list(one._shape), invert, dtype=dtypes.bool, device=on)
    others, _ = others.to(dtype).reshape([-1]).sort()
    place = below_or_at(others, one.to(dtype), False).clamp(0, others._shape[0] - 1)
    found = others.take(place) == one
    return found.logical_not() if invert else found


# --- counts -----------------------------------------------------------------------------------------------------------


def tally(places: Any, weights: Any, bins: int) -> Any:
    """[bins]: the weights of the elements at each place, or how many there are; places outside count for nothing.

    Sums are float32 or float64, as the weights are, in no fixed order; counts int64.
    """
    dtype = dtypes.int64 if weights is None else weights._dtype
    found = aten.zeros.default([bins], dtype=dtype, device=places._device)
    n = places._shape.numel()
    if n and bins:
        kinds = dtype.name, places._dtype.name, None if weights is None else dtype.name
        launch, rest = kernels.tallying(*kinds, n, bins)
        tensors = [found, dense(places), None if weights is None else dense(weights)]
        launched([Task(launch, (0, 1, 2), rest)], tensors)
    return found


def bincount(self: Any, weights: Any, minlength: int) -> Any:
    """How often each integer occurs, or the sum of its weights."""
    if len(self._shape) != 1 or self._dtype.category > dtypes.INTEGER or self._dtype is dtypes.bool:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights._shape != self._shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    count = minlength
    if self._shape[0]:
        least, most = aten.stack.default(aten.aminmax.default(self)).tolist()
        if least < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        count = max(minlength, most + 1)
    if weights is not None and weights._dtype is not dtypes.float32:
        weights = weights.to(dtypes.float64)
    return tally(self, weights, count)


PARTS: dict[str, Callable[..., Any]] = {
    "searchsorted.Tensor": searchsorted,
    "searchsorted.Scalar": searchsorted_scalar,
    "bucketize.Tensor": bucketize,
    "bucketize.Scalar": bucketize_scalar,
    "isin.Tensor_Tensor": isin,
    "isin.Tensor_Scalar": isin,
    "isin.Scalar_Tensor": isin,
    "bincount": bincount,
}
