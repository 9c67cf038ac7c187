"""Fourier transforms on a device: the dimensions one after the other (kernels/cuda/fourier.py). What is transformed
first reads the argument, and what follows works in the result.

NVIDIA's library, where it is and can, takes up to three dimensions at once (kernels/cuda/cufft.py); a factor is put on
by a launch of ours, of lines of one element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, empty
from redispatch.kernels import contiguous_strides
from redispatch.kernels.cuda import cufft
from redispatch.kernels.cuda.fourier import COMPUTE, Lines, Place, Table, Transform
from redispatch.kernels.ops import fourier
from redispatch.kernels.ops.fourier import axes_of

from .copies import sent
from .operands import allocator
from .structured import SCRATCH, ByWork, Task

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
        self.taken, self.most, self.nbytes, self.tasks = 0, 0, 0, list[Task]()

    def place(self, tensor: int) -> Place:
        x = self.out if tensor == OUT else self.self
        return Place(tensor, x._dtype.name, tuple(x._stride))

    def scratch(self, shape: Sequence[int], like: Place) -> Place:
        """Memory between dimensions, in which these lie in the order that they have there."""
        order = sorted(range(len(shape)), key=lambda d: -like.strides[d])
        steps = dict(zip(order, contiguous_strides(tuple(shape[d] for d in order)), strict=True))
        found = Place(SCRATCH, self.compute, tuple(steps[d] for d in range(len(shape))), self.taken)
        self.taken += math.prod(shape)
        return found

    def put(self, transform: Transform, x: Place, out: Place) -> None:
        lines = Lines(transform, x, out, SCRATCH, self.taken)
        self.most = max(self.most, lines.kept, self.taken)
        for step in lines.steps:
            tables = tuple(table_of(one, self.self) for one in step.tables)
            self.tasks.append(Task(step.launch, step.tensors, step.rest, 0, tables))

    def copy(self, shape: tuple[int, ...], x: Place, out: Place, scale: float = 1.0) -> None:
        """Lines of one element."""
        x, out = (one._replace(strides=(*one.strides, 1)) for one in (x, out))
        self.put(Transform((*shape, 1), len(shape), 1, 1, 1, True, scale=scale), x, out)

    def by_library(
        self, shape: tuple[int, ...], axes: Sequence[int], x: Place, out: Place, halves: tuple[int, int], forward: bool
    ) -> bool:
        """Has cuFFT do it, where it is and can: a transform without a factor. See `cufft.layout`."""
        fft = allocator().driver.fft
        if fft is None:
            return False
        how = cufft.layout(shape, axes, (x.dtype, x.strides), (out.dtype, out.strides), halves)
        plan = None if how is None else fft.plan(how, self.out._device.index or 0)
        if plan is None:
            return False
        complex_bytes = np.dtype(self.compute).itemsize
        real = x.dtype != self.compute
        reached = 1 + sum((size - 1) * step for size, step in zip(shape, x.strides, strict=True))
        span = reached * complex_bytes // 2 if real else 0
        run = cufft.Transformation(plan, forward, complex_bytes, span)
        at = (
            -(-(self.taken if SCRATCH in (x.tensor, out.tensor) else 0) * complex_bytes // cufft.ALIGNED)
            * cufft.ALIGNED
        )
        self.tasks.append(Task(run, (out.tensor, x.tensor, SCRATCH), (at,)))
        self.nbytes = max(self.nbytes, at + run.nbytes)
        return True

    def all(self) -> list[Task]:
        nbytes = max(self.nbytes, self.most * np.dtype(self.compute).itemsize)
        return [task._replace(scratch=nbytes) for task in self.tasks]


def scale_of(normalization: int, count: int) -> float:
    """The factor of a transform over so many elements."""
    return (1.0, 1 / math.sqrt(count), 1 / count)[normalization]


def outermost_first(axes: Sequence[int], place: Place) -> list[int]:
    return sorted(axes, key=lambda d: -place.strides[d])


def several(
    work: Work, shape: tuple[int, ...], axes: Sequence[int], x: Place, out: Place, forward: bool, scale: float
) -> None:
    """Complex transforms over `axes`, from x to out; the first also brings the numbers there."""
    axes = outermost_first(axes, out)
    while axes:
        axes, group = axes[: -cufft.MOST_DIMS], axes[-cufft.MOST_DIMS :]
        n = shape[group[-1]]
        if work.by_library(shape, group, x, out, (n, n), forward):
            x = out
            continue
        for axis in group[::-1]:
            n = shape[axis]
            work.put(Transform(shape, axis, n, n, n, forward, scale=scale), x, out)
            x, scale = out, 1.0
    if scale != 1:
        work.copy(shape, out, out, scale)


def c2c(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> list[Task]:
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    x, there = work.place(SELF), work.place(OUT)
    if axes:
        scale = scale_of(normalization, math.prod(shape[d] for d in axes))
        several(work, shape, axes, x, there, forward, scale)
    else:
        work.copy(shape, x, there)
    return work.all()


def r2c(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> list[Task]:
    """The last dimension first, of which no more is written than is asked for."""
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    x, there = work.place(SELF), work.place(OUT)
    if not axes:
        work.copy(shape, x, there)
        return work.all()
    *others, last = axes
    scale, n = scale_of(normalization, math.prod(shape[d] for d in axes)), shape[last]
    kept = n // 2 + 1 if onesided else n
    halved = (*shape[:last], kept, *shape[last + 1 :])
    if not onesided and allocator().driver.fft is not None:
        work.copy(shape, x, there)
        several(work, shape, axes, there, there, True, scale)
        return work.all()
    others = outermost_first(others, there)
    others, group = others[: 1 - cufft.MOST_DIMS], others[1 - cufft.MOST_DIMS :]
    if not (onesided and work.by_library(shape, [*group, last], x, there, (n, kept), True)):
        work.put(Transform(shape, last, n, n, kept, True, scale=scale), x, there)
        others, scale = [*others, *group], 1.0
    several(work, halved, others, there, there, True, scale)
    return work.all()


def c2r(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> list[Task]:
    """The last dimension last, of which the other half is never read."""
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    *others, last = axes
    x, there, half = work.place(SELF), work.place(OUT), last_dim_size // 2 + 1
    scale = scale_of(normalization, last_dim_size * math.prod(shape[d] for d in others))
    whole = (*shape[:last], last_dim_size, *shape[last + 1 :])
    wanted = Transform(shape, last, last_dim_size, shape[last], last_dim_size, False, True, scale)
    if allocator().driver.fft is None or shape[last] < half:
        between = work.scratch(shape, there) if others else x
        several(work, shape, others, x, between, False, 1.0)
        work.put(wanted, between, there)
        return work.all()
    others, between = outermost_first(others, there), work.scratch(shape, there)
    others, group = others[: 1 - cufft.MOST_DIMS], others[1 - cufft.MOST_DIMS :]
    if others:
        several(work, shape, others, x, between, False, 1.0)
    else:  # what cuFFT reads it overwrites
        work.copy(shape, x, between)
    if not work.by_library(whole, [*group, last], between, there, (half, last_dim_size), False):
        several(work, shape, group, between, between, False, 1.0)
        work.put(wanted, between, there)
    elif scale != 1:
        work.copy(whole, there, there, scale)
    return work.all()


OPERATORS = (
    ByWork(fourier.fft_c2c_op, c2c),
    ByWork(fourier.fft_r2c_op, r2c),
    ByWork(fourier.fft_c2r_op, c2r),
)
