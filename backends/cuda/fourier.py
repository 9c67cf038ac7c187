"""Fourier transforms on a device: the dimensions one after the other (kernels/cuda/fourier.py). What is transformed
first reads the argument, and what follows works in the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.kernels import contiguous_strides
from redispatch.kernels.cuda.fourier import COMPUTE, Lines, Place, Table, Transform
from redispatch.ops import fourier
from redispatch.ops.fourier import axes_of
from redispatch.tensor import Tensor, as_numpy, dtypes, empty

from .copies import sent
from .planned import SCRATCH, OnCUDA, Task

OUT, SELF = 0, 1
TABLES: dict[Any, Tensor] = {}  # by device and what they are
MOST_TABLES = 256


def table_of(table: Table, like: Tensor) -> Tensor:
    """A table on a tensor's device, sent there once."""
    key = like._device, table.make.__name__, table.key
    found = TABLES.get(key)
    if found is None:
        if len(TABLES) >= MOST_TABLES:
            TABLES.clear()
        array = table.make(*table.key)
        here = empty(array.shape, getattr(dtypes, array.dtype.name))
        as_numpy(here)[...] = array
        found = TABLES[key] = sent(here, like._device)
    return found


class Work:
    """The launches of a call, as they are found."""

    def __init__(self, out: Tensor, self_: Tensor) -> None:
        self.out, self.self = out, self_
        self.compute = COMPUTE[self_._dtype.name]
        self.taken, self.most, self.tasks = 0, 0, list[Task]()

    def place(self, tensor: int) -> Place:
        x = self.out if tensor == OUT else self.self
        return Place(tensor, x._dtype.name, tuple(x._stride))

    def scratch(self, shape: Sequence[int]) -> Place:
        """Memory between dimensions."""
        found = Place(SCRATCH, self.compute, contiguous_strides(tuple(shape)), self.taken)
        self.taken += math.prod(shape)
        return found

    def put(self, transform: Transform, x: Place, out: Place) -> None:
        lines = Lines(transform, x, out, SCRATCH, self.taken)
        self.most = max(self.most, lines.kept, self.taken)
        for step in lines.steps:
            tables = tuple(table_of(one, self.self) for one in step.tables)
            self.tasks.append(Task(step.launch, step.tensors, step.rest, 0, tables))

    def all(self) -> list[Task]:
        nbytes = self.most * np.dtype(self.compute).itemsize
        return [task._replace(scratch=nbytes) for task in self.tasks]


def scale_of(normalization: int, count: int) -> float:
    """The factor of a transform over so many elements."""
    return (1.0, 1 / math.sqrt(count), 1 / count)[normalization]


def one_after_the_other(
    work: Work, shape: tuple[int, ...], axes: Sequence[int], x: Place, out: Place, forward: bool, scale: float
) -> None:
    """Complex transforms over `axes`, from x to out; the first also brings the numbers there."""
    for k, axis in enumerate(axes):
        n = shape[axis]
        done = Transform(shape, axis, n, n, n, forward, scale=scale if k == len(axes) - 1 else 1.0)
        work.put(done, x, out)
        x = out


def c2c(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> list[Task]:
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    x, there = work.place(SELF), work.place(OUT)
    if not axes:  # a copy: of lines of one element
        shape, axes = (*shape, 1), [len(shape)]
        x, there = (one._replace(strides=(*one.strides, 1)) for one in (x, there))
    scale = scale_of(normalization, math.prod(shape[d] for d in axes))
    one_after_the_other(work, shape, axes[::-1], x, there, forward, scale)
    return work.all()


def r2c(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> list[Task]:
    """The last dimension first, of which no more is written than is asked for."""
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    x, there = work.place(SELF), work.place(OUT)
    if not axes:
        shape, axes, onesided = (*shape, 1), [len(shape)], False
        x, there = (one._replace(strides=(*one.strides, 1)) for one in (x, there))
    *others, last = axes
    scale, n = scale_of(normalization, math.prod(shape[d] for d in axes)), shape[last]
    kept = n // 2 + 1 if onesided else n
    work.put(Transform(shape, last, n, n, kept, True, scale=1.0 if others else scale), x, there)
    halved = (*shape[:last], kept, *shape[last + 1 :])
    one_after_the_other(work, halved, others[::-1], there, there, True, scale)
    return work.all()


def c2r(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> list[Task]:
    """The last dimension last, of which the other half is never read."""
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    *others, last = axes
    x = work.place(SELF)
    if others:
        between = work.scratch(shape)
        one_after_the_other(work, shape, others, x, between, False, 1.0)
        x = between
    scale = scale_of(normalization, last_dim_size * math.prod(shape[d] for d in others))
    wanted = Transform(shape, last, last_dim_size, shape[last], last_dim_size, False, True, scale)
    work.put(wanted, x, work.place(OUT))
    return work.all()


OPERATORS = (
    OnCUDA(fourier.fft_c2c_op, c2c),
    OnCUDA(fourier.fft_r2c_op, r2c),
    OnCUDA(fourier.fft_c2r_op, c2r),
)
