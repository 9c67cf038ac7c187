"""Scans on a device: cumsum, cumprod, logcumsumexp, cummax and cummin, in one launch or two (kernels/cuda/scan.py)."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor, empty
from redispatch.kernels import DTYPES
from redispatch.kernels.cuda import scan
from redispatch.kernels.cuda.scan import Operation
from redispatch.kernels.ops import scans

from .copies import copy_on_device
from .softmax import around
from .structured import SCRATCH, ByWork, Task, dense, launched


def scanning(operation: Operation, out: Tensor, self: Tensor, dim: int) -> list[Task]:
    """The launches that fill `out` with the results up to each element of `self` along `dim`; both are dense.

    An operation that tells of places fills another tensor, which stands behind `out` among the task's tensors.
    """
    if not out._shape.numel():
        return []
    plan = scan.planned(operation, out._dtype.name, self._dtype.name, *around(self._shape, dim))
    carry = SCRATCH if plan.carried else 0
    tensors = (0, 1, carry, 2) if operation.placed else (0, 0, carry, 1)
    nbytes = plan.carried * DTYPES[plan.carry].storage.itemsize
    return [Task(launch, tensors, plan.rest, nbytes) for launch in plan.launches]


def cumsum_work(out: Tensor, self: Tensor, dim: int, dtype: Any) -> list[Task]:
    return scanning(scan.CUMSUM, out, self, dim)


def cumprod_work(out: Tensor, self: Tensor, dim: int, dtype: Any) -> list[Task]:
    return scanning(scan.CUMPROD, out, self, dim)


def logcumsumexp_work(out: Tensor, self: Tensor, dim: int) -> list[Task]:
    return scanning(scan.COMPLEX_LOGCUMSUMEXP if self._dtype.is_complex else scan.LOGCUMSUMEXP, out, self, dim)


OPERATORS = (
    ByWork(scans.cumsum.op, cumsum_work, dense=("self",), elementwise=True),
    ByWork(scans.cumprod.op, cumprod_work, dense=("self",), elementwise=True),
    ByWork(scans.logcumsumexp.op, logcumsumexp_work, dense=("self",), elementwise=True),
)


def fill_extremes(name: str, self: Tensor, dim: int, values: Tensor, indices: Tensor) -> None:
    """Fills both results of `cummax` or `cummin`, which may lie anyhow."""
    operation = scan.CUMMAX if name == "cummax" else scan.CUMMIN
    found = [dense_like(x) for x in (values, indices)]
    x = dense(self)
    launched(scanning(operation, found[0], x, dim), [*found, x])
    for target, one in zip((values, indices), found, strict=True):
        if one is not target:
            copy_on_device(target, one)


def dense_like(x: Tensor) -> Tensor:
    """The tensor, or another one that looks like it and lies row by row."""
    return x if x.is_contiguous() else empty(x._shape, x._dtype, x._device)


RECORDED = (scans.cummax.op, scans.cummin.op)
