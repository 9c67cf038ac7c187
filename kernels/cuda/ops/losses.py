"""The negative log-likelihood of given classes on a GPU, forward and backward; cross_entropy is made of it.

Shapes: scores [n, classes, rest], labels [n, rest], all dense; `rest` is 1 where there are no images. A reduced loss is
a sum over blocks: each leaves its loss and its weight, and one more launch adds those up, unless there is one block.
A label that is no class counts for nothing, and is told of in the error words (indexing.py). Read next: norms.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels import DTYPES
from redispatch.kernels.engine.program import steps
from redispatch.kernels.ops import loss
from redispatch.kernels.ops.pair_losses import MEAN, NONE

from ..compiler import CUDA as cuda
from ..indexing import report
from ..runtime.async_errors import late_errors
from ..runtime.operands import allocator
from ..runtime.structured import ERRORS, SCRATCH, Task, work_of
from ..templates import THREADS, Written, block_total, part

EACH = 16  # labels that a thread reads where losses are added up
int64 = np.int64


@part
def loss_of_label(x, labels, weight, errors, index, rest, classes, ignored, weighted, operator):
    """The loss of one label, and its weight; 0 and 0 where it counts for nothing."""
    label, loss, used = int64(labels[index]), zero, zero
    if label != ignored:
        if 0 <= label < classes:
            row = index // rest
            used = load_weight(weight[label]) if weighted == 1 else one
            loss = -(used * load_x(x[(row * classes + label) * rest + (index - row * rest)]))
        else:
            report(errors, operator, label, classes, int64(1))
    return loss, used


def nll_each(out, total, x, labels, weight, errors, count, rest, classes, ignored, weighted, operator):
    """The loss of each label. The weights are not added up, of which PyTorch says 0."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index == 0:
        total[0] = store_total(zero)
    if index < count:
        loss, _ = loss_of_label(x, labels, weight, errors, index, rest, classes, ignored, weighted, operator)
        out[index] = store_out(loss)


def nll_sums(out, total, sums, x, labels, weight, errors, count, rest, classes, ignored, weighted, operator, mean):
    """The losses added up, and the weights."""
    parts = cuda.shared.array(THREADS, compute)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    loss, used = zero, zero
    end = min(count, (block + 1) * (THREADS * EACH))
    for index in steps(block * (THREADS * EACH) + thread, end, THREADS):
        part_of_loss, part_of_used = loss_of_label(
            x, labels, weight, errors, index, rest, classes, ignored, weighted, operator
        )
        loss += part_of_loss
        used += part_of_used
    loss = block_total(loss, parts)
    used = block_total(used, parts)
    if thread == 0:
        if int64(cuda.gridDim.x) == 1:
            out[0] = store_out(loss / used if mean == 1 else loss)
            total[0] = store_total(used)
        else:
            sums[block * 2] = loss
            sums[block * 2 + 1] = used


def nll_sums_of_sums(out, total, sums, blocks, mean):
    """Adds up the sums that the blocks of `nll_sums` left."""
    parts = cuda.shared.array(THREADS, compute)
    thread = int64(cuda.threadIdx.x)
    loss, used = zero, zero
    for block in steps(thread, blocks, THREADS):
        loss += sums[block * 2]
        used += sums[block * 2 + 1]
    loss = block_total(loss, parts)
    used = block_total(used, parts)
    if thread == 0:
        out[0] = store_out(loss / used if mean == 1 else loss)
        total[0] = store_total(used)


def nll_backward_each(out, grad, total, labels, weight, count, rest, classes, ignored, weighted, mean, grad_step):
    """-weight[label] grad at the label, over the total for a mean; zero elsewhere. A thread for each score."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < count:
        row = index // (classes * rest)
        within = index - row * classes * rest
        number = within // rest
        at = row * rest + (within - number * rest)
        label, slope = int64(labels[at]), zero
        if label == number and label != ignored:
            slope = -load_grad(grad[at * grad_step])
            if weighted == 1:
                slope *= load_weight(weight[label])
            if mean == 1:
                slope /= load_total(total[0])
        out[index] = store_out(slope)


EACH_LOSS = Written(nll_each, ("out", "total", "x", "labels", "weight", "errors"))
SUMS = Written(nll_sums, ("out", "total", "sums", "x", "labels", "weight", "errors"))
SUMS_OF_SUMS = Written(nll_sums_of_sums, ("out", "total", "sums"))
BACKWARD = Written(nll_backward_each, ("out", "grad", "total", "labels", "weight"))


def classes_and_rest(self: Tensor) -> tuple[int, int]:
    """Returns the sizes of scores [n, classes, ...], or of one row of them."""
    shape = self._shape
    return (shape[0], 1) if len(shape) == 1 else (shape[1], math.prod(shape[2:]))


@work_of(loss.nll_forward_op, loss.nll2d_forward_op, dense=("self", "target", "weight"))
def nll_work(
    outs: tuple[Tensor, Tensor], self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
) -> list[Task]:
    classes, rest = classes_and_rest(self)
    count, kind = target._shape.numel(), self._dtype.name
    compute = DTYPES[kind].compute
    operator = late_errors(allocator().driver).number("nll_loss")
    numbers = (count, rest, classes, ignore_index, int(weight is not None), operator)
    if reduction == NONE and len(self._shape) > 1:
        kinds = kind, kind, kind, target._dtype.name, kind, "int64"
        launch = EACH_LOSS.spread(compute, kinds, max(count, 1))
        return [Task(launch, (0, 1, 2, 3, 4, ERRORS), numbers)]
    blocks = max(1, -(-count // (THREADS * EACH)))
    launch = SUMS.launch(compute, (kind, kind, compute, kind, target._dtype.name, kind, "int64"), blocks)
    mean, scratch = int(reduction == MEAN), 2 * blocks * DTYPES[compute].storage.itemsize
    tensors = (0, 1, SCRATCH, 2, 3, 4, ERRORS)
    tasks = [Task(launch, tensors, (*numbers, mean), scratch)]
    if blocks > 1:
        last = SUMS_OF_SUMS.launch(compute, (kind, kind, compute), 1)
        tasks.append(Task(last, (0, 1, SCRATCH), (blocks, mean), scratch))
    return tasks


@work_of(loss.nll_backward_op, loss.nll2d_backward_op, dense=("grad_output", "target", "weight", "total_weight"))
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
    launch = BACKWARD.spread(compute, dtypes, count)
    flags = int(weight is not None), int(reduction == MEAN), int(each)
    return [Task(launch, (0, 1, 5, 3, 4), (count, rest, classes, ignore_index, *flags))]
