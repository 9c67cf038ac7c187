"""Evenly spaced numbers on a GPU, a thread for each: what `arange` and `linspace` fill a tensor by."""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like number, compute, store_out are put there by `Written`.

from __future__ import annotations

import numpy as np

from redispatch.dispatch.tensor import Tensor, empty
from redispatch.kernels import is_contiguous

from ..compiler import CUDA as cuda
from ..elementwise import as_argument
from ..intrinsics import product
from ..runtime.copies import copy_on_device
from ..runtime.structured import Task, launched
from ..scan import multiply
from ..templates import THREADS, Written

int64 = np.int64


def spaced_numbers(out, n, rising, start, step, end):
    """Number i is start + i step, and from number `rising` on it is counted from the end, so that both are met."""
    i = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if i < n:
        if i < rising:
            out[i] = store_out(number(start) + times(compute(i), number(step)))
        else:
            out[i] = store_out(number(end) - times(compute(n - 1 - i), number(step)))


# A sum that is fused with its product has other last bits than the CPU's.
TIMES = {"float32": product, "float64": product, "int64": multiply}
SPACED = Written(spaced_numbers, ("out",))


def spaced_on_device(target: Tensor, compute: str, start: float, step: float, end: float, rising: int) -> None:
    """`DeviceKind.spaced`: numbers of the type `compute`, stored in a tensor of one dimension."""
    count = target._shape.numel()
    dense = is_contiguous(target._shape, target._stride)
    out = target if dense else empty(target._shape, target._dtype, target._device)
    if count:
        numbers = (as_argument(number, compute) for number in (start, step, end))
        where = SPACED.spread(compute, [out._dtype.name], count, times=TIMES[compute])
        launched([Task(where, (0,), (count, rising, *numbers))], [out])
    if not dense:
        copy_on_device(target, out)
