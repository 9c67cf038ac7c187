"""Evenly spaced numbers, made on a device (kernels/cuda/ranges.py): what `arange` and `linspace` fill a tensor by."""

from __future__ import annotations

from redispatch.dispatch.tensor import Tensor, empty
from redispatch.kernels import is_contiguous
from redispatch.kernels.cuda import Launch
from redispatch.kernels.cuda.elementwise import as_argument
from redispatch.kernels.cuda.ranges import SPACED, TIMES
from redispatch.kernels.cuda.templates import THREADS

from .copies import copy_on_device
from .structured import Task, launched


def spaced_on_device(target: Tensor, compute: str, start: float, step: float, end: float, rising: int) -> None:
    """`DeviceKind.spaced`: numbers of the type `compute`, stored in a tensor of one dimension."""
    count = target._shape.numel()
    dense = is_contiguous(target._shape, target._stride)
    out = target if dense else empty(target._shape, target._dtype, target._device)
    if count:
        kernel = SPACED.kernel(compute, [out._dtype.name], times=TIMES[compute])
        numbers = (as_argument(number, compute) for number in (start, step, end))
        where = Launch(kernel, (-(-count // THREADS), 1, 1), (THREADS, 1, 1))
        launched([Task(where, (0,), (count, rising, *numbers))], [out])
    if not dense:
        copy_on_device(target, out)
