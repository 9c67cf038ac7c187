"""The negative log-likelihood of given classes on a GPU, forward and backward.

Shapes: scores [n, classes, rest], labels [n, rest], all dense; `rest` is 1 where there are no images. A reduced loss is
a sum over blocks: each leaves its loss and its weight, and one more launch adds those up, unless there is one block.
A label that is no class counts for nothing, and is told of in the error words (indexing.py). Read next: norms.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import numpy as np

from .compiler import CUDA as cuda
from .indexing import report
from .templates import THREADS, Written, block_total, steps

EACH = 16  # labels that a thread reads where losses are added up
int64 = np.int64


def nll_each(out, total, x, labels, weight, errors, count, rest, classes, ignored, weighted, operator):
    """The loss of each label. The weights are not added up, of which PyTorch says 0."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index == 0:
        total[0] = store_total(zero)
    if index < count:
        label, loss = int64(labels[index]), zero
        if label != ignored:
            if 0 <= label < classes:
                row = index // rest
                loss = -load_x(x[(row * classes + label) * rest + (index - row * rest)])
                if weighted == 1:
                    loss *= load_weight(weight[label])
            else:
                report(errors, operator, label, classes, int64(1))
        out[index] = store_out(loss)


def nll_sums(out, total, sums, x, labels, weight, errors, count, rest, classes, ignored, weighted, operator, mean):
    """The losses added up, and the weights."""
    parts = cuda.shared.array(THREADS, compute)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    loss, used = zero, zero
    end = min(count, (block + 1) * (THREADS * EACH))
    for index in steps(block * (THREADS * EACH) + thread, end, THREADS):
        label = int64(labels[index])
        if label != ignored:
            if 0 <= label < classes:
                row = index // rest
                w = load_weight(weight[label]) if weighted == 1 else one
                loss -= w * load_x(x[(row * classes + label) * rest + (index - row * rest)])
                used += w
            else:
                report(errors, operator, label, classes, int64(1))
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
    """What the blocks of `nll_sums` left, added up."""
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
