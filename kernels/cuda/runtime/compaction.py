"""What is kept of many elements, on a device: places that are not zero, masks, different elements
(kernels/cuda/compaction.py). How many there are is read by the host, which waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels.cuda import Launch, compaction
from redispatch.kernels.cuda.templates import THREADS

from .structured import Task, dense, launched

aten = ops.aten


def positions(n: int, like: Tensor) -> Any:
    return empty((n,), dtypes.int64, like._device)


def kept(x: Tensor, source: Tensor | None = None, *, runs: bool = False, order: Tensor | None = None) -> Any:
    """(places, elements of `source` there, the run of each element) of what is kept of a flat tensor: of what is not
    zero, or of the first of each run. Behind the places stands the number of elements.

    What is not asked for, by `source` or `order`, is None; with both missing, places alone.
    """
    x = dense(x)
    n, other = x._shape.numel(), x if source is None else source
    if not n:
        nothing = positions(1, x).fill_(0), None if source is None else empty((0,), other._dtype, x._device)
        return *nothing, None if order is None else positions(0, x)
    plan = compaction.kept(x._dtype.name, n, runs)
    counts = positions(plan.parts, x)
    launched([Task(plan.counts, (0, 1), plan.rest), Task(plan.sums, (0, 0, 0, 0), plan.sums_rest)], [counts, x])
    count = int(counts[plan.parts - 1].item())
    places = positions(count + 1, x)
    out = None if source is None else empty((count,), other._dtype, x._device)
    groups = None if order is None else positions(n, x)
    asked = {"places": source is None or runs, "values": source is not None, "groups": order is not None}
    launch = compaction.writing(x._dtype.name, other._dtype.name, plan, runs=runs, **asked)
    told = [places, out, groups, counts, x, dense(other), order]
    launched([Task(launch, tuple(range(7)), plan.rest)], told)
    return places, out, groups


def places_of_true(mask: Any) -> Any:
    """The places of a flat mask's true elements, in order. Waits for their number."""
    places, _, _ = kept(mask)
    return places.narrow(0, 0, places._shape[0] - 1)


def nonzero(self: Any) -> Any:
    """The indices of the elements that are not zero, a row for each; they lie column by column."""
    dims = len(self._shape)
    places = places_of_true(self.reshape([-1]))
    count = places._shape[0]
    if dims == 1:
        return places.unsqueeze(0).t()
    rows = empty((dims, count), dtypes.int64, self._device)
    if count:
        kernel = compaction.COORDINATE.kernel("int64", ("int64", "int64"), THREADS=THREADS)
        launch, step, tasks = Launch(kernel, (-(-count // THREADS), 1, 1), (THREADS, 1, 1)), 1, []
        for d in range(dims - 1, -1, -1):
            tasks.append(Task(launch, (d, dims), (count, step, self._shape[d])))
            step *= self._shape[d]
        launched(tasks, [*(rows[d] for d in range(dims)), places])
    return rows.t()


def nonzero_static(self: Any, size: int, fill_value: int) -> Any:
    """The indices of the first `size` elements that are not zero; rows of `fill_value` where there are fewer."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    made = self.new_full([size, len(self._shape)], fill_value, dtype=dtypes.int64)
    found = nonzero(self)
    count = min(size, found._shape[0])
    made.narrow(0, 0, count).copy_(found.narrow(0, 0, count))
    return made


def masked_select(self: Any, mask: Any) -> Any:
    """The elements where the mask is true, as one dimension. Both broadcast."""
    if mask._dtype is not dtypes.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    x, mask = aten.broadcast_tensors.default([self, mask])
    _, found, _ = kept(mask.reshape([-1]), x.reshape([-1]))
    return found


# --- different elements -----------------------------------------------------------------------------------------------


def lengths(starts: Any) -> Any:
    """How long each run is, of where they begin, and the end of all."""
    count = starts._shape[0] - 1
    return starts.narrow(0, 1, count) - starts.narrow(0, 0, count)


def unique(self: Any, return_inverse: bool, return_counts: bool) -> tuple[Any, Any, Any]:
    """The different elements in ascending order; where each is among them; how often each occurs."""
    values, order = self.reshape([-1]).sort(stable=True)
    return runs(values, self, order if return_inverse else None, return_counts)


def runs(values: Any, self: Any, order: Any, return_counts: bool) -> tuple[Any, Any, Any]:
    """The first of each run of equal elements, and what is asked for of the others; where they were is `order`."""
    starts, found, groups = kept(values, values, runs=True, order=order)
    none = self.new_empty([0], dtype=dtypes.int64)
    inverse = none if groups is None else groups.reshape(list(self._shape))
    return found, inverse, lengths(starts) if return_counts else none


def unique2(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Any, Any, Any]:
    return unique(self, return_inverse, return_counts)


def unique1(self: Any, sorted: bool, return_inverse: bool) -> tuple[Any, Any]:
    return unique(self, return_inverse, False)[:2]


def unique_consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> tuple[Any, Any, Any]:
    """The first of each run of equal elements."""
    if dim is not None and len(self._shape) != 1:
        return ops.aten.unique_dim_consecutive.default(self, dim, return_inverse, return_counts)
    flat = self.reshape([-1])
    order = aten.arange.default(flat._shape[0], dtype=dtypes.int64, device=flat._device) if return_inverse else None
    return runs(flat, self, order, return_counts)


PARTS: dict[str, Callable[..., Any]] = {
    "nonzero": nonzero,
    "nonzero_static": nonzero_static,
    "masked_select": masked_select,
    "_unique2": unique2,
    "_unique": unique1,
    "unique_consecutive": unique_consecutive,
}
