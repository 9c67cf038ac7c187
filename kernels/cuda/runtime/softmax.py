"""Softmax, log-softmax, their backwards and logsumexp on a device: one launch each (kernels/cuda/softmax.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, wrap_dim
from redispatch.kernels.cuda import softmax as kernels
from redispatch.kernels.cuda.templates import Written
from redispatch.kernels.ops import moments, softmax
from redispatch.kernels.ops.reductions import reduced_dims

from .structured import ByWork, InParts, Task, dense, launched


def around(shape: Sequence[int], dim: int) -> tuple[int, int, int]:
    """How many elements come before, along and behind a dimension."""
    if not shape:
        return 1, 1, 1
    d = wrap_dim(dim, len(shape))
    return math.prod(shape[:d]), shape[d], math.prod(shape[d + 1 :])


def rows(written: Written, tensors: Sequence[Tensor], dim: int, **given: object) -> list[Task]:
    """A launch over all rows along `dim` of tensors that have one shape; the first is written."""
    outer, size, inner = around(tensors[-1]._shape, dim)
    if not outer * inner:
        return []
    launch, rest = kernels.over_rows(written, tuple(x._dtype.name for x in tensors), outer, size, inner, **given)
    return [Task(launch, tuple(range(len(tensors))), rest)]


def softmax_work(out: Tensor, self: Tensor, dim: int, half_to_float: bool) -> list[Task]:
    return rows(kernels.SOFTMAX, (out, self), dim, LOGARITHM=False) if out._shape.numel() else []


def log_softmax_work(out: Tensor, self: Tensor, dim: int, half_to_float: bool) -> list[Task]:
    return rows(kernels.SOFTMAX, (out, self), dim, LOGARITHM=True) if out._shape.numel() else []


def softmax_backward_work(out: Tensor, grad: Tensor, output: Tensor, dim: int, input_dtype: Any) -> list[Task]:
    return rows(kernels.SOFTMAX_BACKWARD, (out, grad, output), dim, LOGARITHM=False) if out._shape.numel() else []


def log_softmax_backward_work(out: Tensor, grad: Tensor, output: Tensor, dim: int, input_dtype: Any) -> list[Task]:
    return rows(kernels.SOFTMAX_BACKWARD, (out, grad, output), dim, LOGARITHM=True) if out._shape.numel() else []


def logsumexp(self: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """Over several dimensions, which are put in a row first."""
    meta = moments.logsumexp.op.meta_function(self, dim, keepdim)
    result = meta.allocate()
    dims = reduced_dims(dim, len(self._shape))
    if self._dtype is not meta.dtype:
        self = self.to(meta.dtype)
    if len(dims) != 1:
        kept = [d for d in range(len(self._shape)) if d not in dims]
        self = self.permute([*kept, *dims]).reshape([math.prod(self._shape[d] for d in kept), -1 if dims else 1])
        dims = (1,)
    launched(rows(kernels.LOGSUMEXP, (result, dense(self)), dims[0]), [result, dense(self)])
    return result


OPERATORS = (
    ByWork(softmax.softmax_data_op, softmax_work, dense=("self",)),
    ByWork(softmax.log_softmax_data_op, log_softmax_work, dense=("self",)),
    ByWork(softmax.softmax_backward_op, softmax_backward_work, dense=("grad_output", "output")),
    ByWork(softmax.log_softmax_backward_op, log_softmax_backward_work, dense=("grad_output", "output")),
    InParts(moments.logsumexp.op, logsumexp),
)
