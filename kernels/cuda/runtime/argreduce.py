"""Which element is the largest or smallest, on a device: argmax, argmin, max and min along a dimension, in one launch
or two (kernels/cuda/argreduce.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.cuda import argreduce
from redispatch.kernels.declare.structured import check_out_dtype
from redispatch.kernels.ops import extremes

from .copies import copy_on_device
from .scans import dense_like
from .softmax import around
from .structured import SCRATCH, ByWork, Task, dense, launched


def best_of_lines(self: Tensor, dim: int | None, largest: bool, values: bool, tensors: tuple[int, ...]) -> list[Task]:
    """The launches; `tensors` are the numbers of values, places and `self` in a task."""
    lines = (1, self._shape.numel(), 1) if dim is None else around(self._shape, dim)
    if not lines[0] * lines[2]:
        return []
    plan = argreduce.planned(self._dtype.name, *lines, largest, values)
    found = SCRATCH if plan.found else tensors[1]
    told = (*tensors[:2], found, tensors[2])
    return [Task(launch, told, rest, 8 * plan.found) for launch, rest in plan.steps]


def argmax_work(out: Tensor, self: Tensor, dim: int | None, keepdim: bool) -> list[Task]:
    return best_of_lines(self, dim, True, False, (1, 0, 1))


def argmin_work(out: Tensor, self: Tensor, dim: int | None, keepdim: bool) -> list[Task]:
    return best_of_lines(self, dim, False, False, (1, 0, 1))


class Positions(ByWork):
    """Places go nowhere but to int64."""

    def fill(self, target: Tensor, args: Sequence[Any]) -> None:
        check_out_dtype(target, dtypes.int64)
        super().fill(target, args)


OPERATORS = (
    Positions(extremes.argmax.op, argmax_work, dense=("self",)),
    Positions(extremes.argmin.op, argmin_work, dense=("self",)),
)
RECORDED = (extremes.max.ops[2], extremes.min.ops[2])


def find_extremes(op: Any, args: tuple[Any, ...], values: Tensor, indices: Tensor) -> None:
    """Fills both results of `max` or `min` along a dimension, which may lie anyhow."""
    found, x = [dense_like(one) for one in (values, indices)], dense(args[0])
    tasks = best_of_lines(x, args[1], op.base_name == "max", True, (0, 1, 2))
    launched(tasks, [*found, x])
    for target, one in zip((values, indices), found, strict=True):
        if one is not target:
            copy_on_device(target, one)
