"""Order on a device: sort, topk, kthvalue, median and mode (kernels/cuda/sort.py, selection.py).

Each operator has a function of its arguments that says by which launches lines are chosen from; its checks, and what
the results look like, are those of kernels/ops/sorting.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes, empty, wrap_dim
from redispatch.kernels import is_dense
from redispatch.kernels.cuda import selection, sort
from redispatch.kernels.cuda.sort import PLACES, VALUES, Sorting
from redispatch.kernels.ops import sorting

from .argreduce import find_extremes
from .copies import copy_on_device
from .softmax import around
from .structured import Task, Within, dense, launched

Lines = tuple[int, int, int]


def sorted_lines(x: Tensor, lines: Lines, dim: int, descending: bool) -> Sorting:
    return sort.planned(x._dtype.name, *lines, lines[1], descending)


def sorted_stably(x: Tensor, lines: Lines, stable: bool | None, dim: int, descending: bool) -> Sorting:
    return sorted_lines(x, lines, dim, descending)


def first_few(x: Tensor, lines: Lines, k: int, dim: int, largest: bool, sorts: bool) -> Sorting:
    return selection.first_few(x._dtype.name, *lines, k, largest, sorts)


def of_rank(x: Tensor, lines: Lines, k: int, dim: int, keepdim: bool) -> Sorting:
    return selection.of_rank(x._dtype.name, *lines, k - 1, False)


def middle(skip_nan: bool) -> Callable[..., Sorting]:
    def chosen(x: Tensor, lines: Lines, dim: int, keepdim: bool) -> Sorting:
        return selection.of_rank(x._dtype.name, *lines, -1, skip_nan)

    return chosen


def most_frequent(x: Tensor, lines: Lines, dim: int, keepdim: bool) -> Sorting:
    return selection.most_frequent(x._dtype.name, *lines)


OPERATORS: dict[Any, Callable[..., Sorting]] = {
    sorting.sort_op: sorted_lines,
    sorting.sort_stable_op: sorted_stably,
    sorting.topk.op: first_few,
    sorting.kthvalue.op: of_rank,
    sorting.median.ops[1]: middle(skip_nan=False),
    sorting.nanmedian.ops[1]: middle(skip_nan=True),
    sorting.mode.op: most_frequent,
}


def choose(op: Any, args: tuple[Any, ...], values: Tensor, indices: Tensor) -> None:
    """Fills both results, which may lie anyhow."""
    if op not in OPERATORS:
        find_extremes(op, args, values, indices)
        return
    x = args[0]
    if not values._shape.numel():
        return
    dim = wrap_dim(args[op.names.index("dim")], len(x._shape))
    keeps_order = values._shape == x._shape and values._stride == indices._stride and is_dense(x._shape, values._stride)
    if keeps_order:  # the results of a sort lie as what is sorted, which may be turned
        if x._stride != values._stride:
            x = laid(x, values._stride)
        size = x._shape[dim] if x._shape else 1
        inner = x._stride[dim] if size > 1 else 1
        found = [values, indices]
        lines = x._shape.numel() // (size * inner), size, inner
    else:
        x, lines = dense(x), around(x._shape, dim)
        found = [
            one if one.is_contiguous() else empty(one._shape, one._dtype, one._device) for one in (values, indices)
        ]
    plan = OPERATORS[op](x, lines, *args[1:])
    known: dict[str, int] = {VALUES: 0, PLACES: 1, sort.X: 2}
    tasks = []
    for step in plan.steps:
        told = tuple(known[k] if isinstance(k, str) else Within(k) for k in step.told)
        tasks.append(Task(step.launch, told, step.rest, plan.scratch))
    launched(tasks, [*found, x])
    for target, one in zip((values, indices), found, strict=True):
        if one is not target:
            copy_on_device(target, one)


def laid(x: Tensor, strides: tuple[int, ...]) -> Tensor:
    """A copy that lies so."""
    made = empty(x._shape, x._dtype, x._device, strides)
    copy_on_device(made, x)
    return made


def middle_of_all(skip_nan: bool) -> Callable[..., Tensor]:
    """The middle one of all elements."""

    def kernel(self: Any) -> Any:
        sorting.median.op.meta_function(self)
        if not self._shape.numel():
            return self.new_full([], sorting.of_none(self._dtype), dtype=dtypes.float32).to(self._dtype)
        op = sorting.nanmedian.ops[1] if skip_nan else sorting.median.ops[1]
        return op.functional(self.reshape([-1]), 0, False)[0]

    return kernel


PARTS: dict[str, Callable[..., Any]] = {
    "median": middle_of_all(skip_nan=False),
    "nanmedian": middle_of_all(skip_nan=True),
}
