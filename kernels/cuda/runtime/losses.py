"""nll_loss on a device, of which cross_entropy is made (kernels/cuda/losses.py)."""

from __future__ import annotations

import math
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels import DTYPES
from redispatch.kernels.cuda import Launch, losses
from redispatch.kernels.cuda.templates import THREADS
from redispatch.kernels.ops import loss
from redispatch.kernels.ops.pair_losses import MEAN, NONE

from .async_errors import late_errors
from .operands import allocator
from .structured import ERRORS, SCRATCH, ByWork, Task


def classes_and_rest(self: Tensor) -> tuple[int, int]:
    """Of scores [n, classes, ...], or of one row of them."""
    shape = self._shape
    return (shape[0], 1) if len(shape) == 1 else (shape[1], math.prod(shape[2:]))


def nll_work(
    outs: tuple[Tensor, Tensor], self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> list[Task]:
    classes, rest = classes_and_rest(self)
    count, kind = target._shape.numel(), self._dtype.name
    compute = DTYPES[kind].compute
    operator = late_errors(allocator().driver).number("nll_loss")
    numbers = (count, rest, classes, ignore_index, int(weight is not None), operator)
    if reduction == NONE and len(self._shape) > 1:
        kernel = losses.EACH_LOSS.kernel(compute, (kind, kind, kind, target._dtype.name, kind, "int64"))
        launch = Launch(kernel, (max(1, -(-count // THREADS)), 1, 1), (THREADS, 1, 1))
        return [Task(launch, (0, 1, 2, 3, 4, ERRORS), numbers)]
    blocks = max(1, -(-count // (THREADS * losses.EACH)))
    kernel = losses.SUMS.kernel(compute, (kind, kind, compute, kind, target._dtype.name, kind, "int64"))
    mean, scratch = int(reduction == MEAN), 2 * blocks * DTYPES[compute].storage.itemsize
    tensors = (0, 1, SCRATCH, 2, 3, 4, ERRORS)
    tasks = [Task(Launch(kernel, (blocks, 1, 1), (THREADS, 1, 1)), tensors, (*numbers, mean), scratch)]
    if blocks > 1:
        last = Launch(losses.SUMS_OF_SUMS.kernel(compute, (kind, kind, compute)), (1, 1, 1), (THREADS, 1, 1))
        tasks.append(Task(last, (0, 1, SCRATCH), (blocks, mean), scratch))
    return tasks


def nll_backward_work(
    out: Tensor,
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Any,
    reduction: int,
    ignore_index: int,
    total: Tensor,
) -> list[Task]:
    loss.check_nll_gradient(grad_output, self, target, reduction, total)
    classes, rest = classes_and_rest(self)
    count, kind = out._shape.numel(), self._dtype.name
    if not count:
        return []
    each = reduction == NONE and len(self._shape) > 1
    compute = DTYPES[kind].compute
    dtypes = (kind, grad_output._dtype.name, total._dtype.name, target._dtype.name, kind)
    kernel = losses.BACKWARD.kernel(compute, dtypes)
    launch = Launch(kernel, (-(-count // THREADS), 1, 1), (THREADS, 1, 1))
    flags = int(weight is not None), int(reduction == MEAN), int(each)
    return [Task(launch, (0, 1, 5, 3, 4), (count, rest, classes, ignore_index, *flags))]


SCORES, GRADIENTS = ("self", "target", "weight"), ("grad_output", "target", "weight", "total_weight")
OPERATORS = (
    ByWork(loss.nll_forward_op, nll_work, dense=SCORES),
    ByWork(loss.nll2d_forward_op, nll_work, dense=SCORES),
    ByWork(loss.nll_backward_op, nll_backward_work, dense=GRADIENTS),
    ByWork(loss.nll2d_backward_op, nll_backward_work, dense=GRADIENTS),
)
