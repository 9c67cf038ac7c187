"""Scans on a device: cumsum, cumprod, logcumsumexp, cummax and cummin, in one launch or two (kernels/cuda/scan.py)."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels import DTYPES
from redispatch.kernels.cuda import scan
from redispatch.kernels.cuda.scan import Operation
from redispatch.kernels.ops import scans

from .structured import SCRATCH, ByWork, Task, around, filled_anyhow


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
    ByWork(scans.cumsum_op, cumsum_work, dense=("self",), elementwise=True),
    ByWork(scans.cumprod_op, cumprod_work, dense=("self",), elementwise=True),
    ByWork(scans.logcumsumexp_op, logcumsumexp_work, dense=("self",), elementwise=True),
)


def fill_extremes(name: str, self: Tensor, dim: int, values: Tensor, indices: Tensor) -> None:
    """Fills both results of `cummax` or `cummin`, which may lie anyhow."""
    operation = scan.CUMMAX if name == "cummax" else scan.CUMMIN
    filled_anyhow((values, indices), self, lambda x, out, places: scanning(operation, out, x, dim))


RECORDED = (scans.cummax_op, scans.cummin_op)
