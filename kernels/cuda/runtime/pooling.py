"""Pooling on a device: what kernels/ops/{max,mean}_pooling.py call where their tensors are here
(kernels/cuda/pooling.py). Shapes, dtypes and errors are said there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, empty
from redispatch.kernels import DTYPES
from redispatch.kernels.cpu.pooling import Windows3d
from redispatch.kernels.cuda import Launch
from redispatch.kernels.cuda import pooling as kernels
from redispatch.kernels.cuda.templates import THREADS, Written, accumulating
from redispatch.kernels.ops.max_pooling import Fractional, check_samples
from redispatch.kernels.ops.pooling import Loops, check_dtype

from .copies import sent
from .launch_recorder import constant
from .structured import Task, dense, launched

TABLES: dict[Any, Tensor] = {}  # by device and numbers; of the devices there are
MOST_TABLES = 256


def table_of(windows: Windows3d, like: Tensor) -> Tensor:
    """The windows' table on a tensor's device, sent there once."""

    def known() -> Tensor:
        key = like._device, windows.table.tobytes()
        found = TABLES.get(key)
        if found is None:
            if len(TABLES) >= MOST_TABLES:
                TABLES.clear()
            table = kernels.with_covering(windows.table)
            here = empty(table.shape, dtypes.int64)
            as_numpy(here)[...] = table
            found = TABLES[key] = sent(here, like._device)
        return found

    found: Tensor = constant(known)
    return found


def launch(
    written: Written, compute: str, tensors: Sequence[Tensor], rest: Sequence[int] = (), **given: object
) -> None:
    """A thread for each element of the first tensor; `rest` are numbers behind their count."""
    count = tensors[0]._shape.numel()
    if count:
        kernel = written.kernel(compute, [one._dtype.name for one in tensors], **given)
        where = Launch(kernel, (-(-count // THREADS), 1, 1), (THREADS, 1, 1))
        launched([Task(where, tuple(range(len(tensors))), (count, *rest))], tensors)


def largest(self: Tensor, shape: Sequence[int], windows: Windows3d, dims: int) -> tuple[Tensor, Tensor]:
    out, places = empty(shape, self._dtype, self._device), empty(shape, dtypes.int64, self._device)
    compute = DTYPES[self._dtype.name].compute
    least = -np.inf if self._dtype.is_floating_point else np.iinfo(compute).min
    lowest = np.dtype(compute).type(least)
    launch(kernels.LARGEST, compute, (out, places, dense(self), table_of(windows, self)), lowest=lowest)
    return out, places


def put_back(grad: Tensor, self: Tensor, indices: Tensor, windows: Windows3d) -> Tensor:
    out, table = empty(self._shape, grad._dtype, self._device), table_of(windows, self)
    compute = accumulating(grad._dtype.name)
    given: dict[str, Any] = {"BY_PLACES": True, "mean_of": kernels.MEAN_OF[compute]}
    launch(kernels.GATHERED, compute, (out, dense(grad), dense(indices), table), **given)
    return out


def averaged(self: Tensor, windows: Windows3d, shape: Sequence[int], dims: int) -> Tensor:
    out, compute = empty(shape, self._dtype, self._device), accumulating(self._dtype.name)
    mean_of = kernels.MEAN_OF[compute]
    launch(kernels.MEANS, compute, (out, dense(self), table_of(windows, self)), mean_of=mean_of)
    return out


def shared_out(grad: Tensor, self: Tensor, windows: Windows3d, dims: int) -> Tensor:
    out, table = empty(self._shape, grad._dtype, self._device), table_of(windows, self)
    compute = accumulating(grad._dtype.name)
    given: dict[str, Any] = {"BY_PLACES": False, "mean_of": kernels.MEAN_OF[compute]}
    launch(kernels.GATHERED, compute, (out, dense(grad), table, table), **given)
    return out


def at_random(dims: int) -> Callable[..., Any]:
    """The kernel of `fractional_max_pool2d`, for two dimensions. The random numbers stay on the device."""

    def kernel(self: Tensor, size: Sequence[int], counts: Sequence[int], samples: Tensor) -> tuple[Tensor, Tensor]:
        setting = Fractional(dims, self, size, counts)
        check_samples(self, samples, dims)
        check_dtype(f"fractional_max_pool{dims}d_out_frame", self)
        out, places = empty(setting.shape, self._dtype, self._device), empty(setting.shape, dtypes.int64, self._device)
        missing = [1] * (3 - dims)
        sizes = [*missing, *setting.sizes, *missing, *counts, *missing, *size]
        order = (0, 1, 0) if dims == 2 else (0, 1, 2)  # of the random numbers, for depth, height and width
        tensors = (out, places, dense(self), dense(samples))
        launch(kernels.AT_RANDOM, DTYPES[self._dtype.name].compute, tensors, (*sizes, dims, *order))
        return out, places

    return kernel


KERNELS: dict[str, Callable[..., Any]] = {
    "fractional_max_pool2d": at_random(2),
    "fractional_max_pool3d": at_random(3),
}
LOOPS = Loops(largest, put_back, averaged, shared_out)
