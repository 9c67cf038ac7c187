"""`cat` and `stack` on a device, whose parts are copied to where they belong; and evenly spaced numbers."""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like number, compute, store_out are put there by `Written`.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, empty, view_over, wrap_dim
from redispatch.kernels import is_contiguous
from redispatch.kernels.declare.structured import (
    is_among,
    overlapping,
)
from redispatch.kernels.ops.copying import check_value
from redispatch.kernels.ops.shape import cat_op, is_skipped, stack_op

from ..compiler import CUDA as cuda
from ..elementwise import as_argument
from ..intrinsics import product
from ..runtime.copies import copy_on_device, item_kernel
from ..runtime.structured import OnDevice, Task, define, kernel_of, launched
from ..templates import THREADS, Written, multiply

aten = ops.aten


class Joining(OnDevice):
    """The kernels of `cat`, or of `stack`, which gives each part a dimension of size 1."""

    def run_out(self, tensors: Sequence[Tensor], dim: int, out: Tensor) -> Tensor:
        if is_among(out, tensors):
            raise overlapping()
        return super().run_out(tensors, dim, out)

    def body_function(self, out: Tensor, tensors: Sequence[Tensor], dim: int) -> None:
        is_stack = self.op is stack_op
        axis, start = wrap_dim(dim, len(out._shape)), 0
        for x in tensors:
            if not is_stack and is_skipped(x):
                continue
            size = 1 if is_stack else x._shape[axis]
            shape = (*out._shape[:axis], size, *out._shape[axis + 1 :])
            if 0 not in shape:
                part = view_over(out, shape, out._stride, out._offset + start * out._stride[axis])
                if is_stack:
                    shape, stride = x._shape, (*out._stride[:axis], *out._stride[axis + 1 :])
                    part = view_over(out, shape, stride, part._offset)
                copy_on_device(part, x)
            start += size


for _op in (cat_op, stack_op):
    define(Joining(_op))


@kernel_of("masked_fill.Tensor")
def masked_fill(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """Reads the number where it lies: on the CPU it waits for no device."""
    check_value("masked_fill_", value)
    return aten.masked_fill.Scalar(self, mask, number_of(value))


@kernel_of("masked_fill_.Tensor")
def masked_fill_inplace(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    check_value("masked_fill_", value)
    return aten.masked_fill_.Scalar(self, mask, number_of(value))


def number_of(value: Tensor) -> Any:
    return item_kernel(value) if value._device.type == "cuda" else value.item()


# --- evenly spaced numbers, a thread for each -------------------------------------------------------------------------


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
