"""Normalisation on a GPU: layer, group and batch norm, forward, and layer norm's backward.

All three subtract a mean and divide by a deviation, over the elements of a "row": the last dimensions, a group of
channels, or a channel of the whole batch. A row is a block's. It adds up the elements, then the squares of their
differences from the mean: one pass with sums of squares would cancel. The gradients of weight and bias are sums over
rows: a block has 32 neighbouring columns. Read next: windows.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .compiler import CUDA as cuda
from .templates import THREADS, Written, block_total, steps, strip_total

int64 = np.int64


class Rows(NamedTuple):
    """Where the elements of rows lie in a dense tensor, and which weight belongs to them.

    Element j of row r lies at `r * step + (j // inner) * stride + j % inner`, and has the weight number
    `(r % groups) * channels + j // run`.
    """

    size: int
    step: int
    inner: int
    stride: int
    groups: int
    channels: int
    run: int


def of_last(size: int) -> Rows:
    """Layer norm: rows of `size`, with a weight for each of their elements."""
    return Rows(size, size, size, 0, 1, 0, 1)


def of_groups(groups: int, channels: int, image: int) -> Rows:
    """Group norm: so many groups of so many channels."""
    size = channels * image
    return Rows(size, size, size, 0, groups, channels, image)


def of_channels(batch: int, channels: int, image: int) -> Rows:
    """Batch norm: a row is a channel of all images."""
    return Rows(batch * image, image, image, channels * image, channels, 1, batch * image)


def normalized_rows(
    out, mean, rstd, total, x, weight, bias, size, step, inner, stride, groups, channels, run, eps, weighted, shifted
):  # fmt: skip
    """out = (x - mean) rstd weight + bias, with rstd = 1 / sqrt(total / size + eps); `total` is that of the squares."""
    parts = cuda.shared.array(THREADS, compute)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    row = int64(cuda.blockIdx.x)
    base, first = row * step, row % groups * channels
    elements, squares = zero, zero
    for j in steps(thread, size, threads):
        elements += load_x(x[base + j // inner * stride + j % inner])
    middle = block_total(elements, parts) / compute(size)
    for j in steps(thread, size, threads):
        difference = load_x(x[base + j // inner * stride + j % inner]) - middle
        squares += difference * difference
    squares = block_total(squares, parts)
    scale = one / math.sqrt(squares / compute(size) + number(eps))
    if thread == 0:
        mean[row] = store_mean(middle)
        rstd[row] = store_rstd(scale)
        if KEEPS_TOTAL:
            total[row] = store_total(squares)
    for j in steps(thread, size, threads):
        at = base + j // inner * stride + j % inner
        value = (load_x(x[at]) - middle) * scale
        if weighted == 1:
            value *= load_weight(weight[first + j // run])
        if shifted == 1:
            value += load_bias(bias[first + j // run])
        out[at] = store_out(value)


def layer_norm_backward_rows(out, grad, x, mean, rstd, weight, size, weighted):
    """With y = (x - mean) rstd, of which g is the gradient: rstd (g - mean(g) - y mean(g y))."""
    parts = cuda.shared.array(THREADS, compute)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    row = int64(cuda.blockIdx.x)
    base = row * size
    middle, scale = load_mean(mean[row]), load_rstd(rstd[row])
    total, slope = zero, zero
    for j in steps(thread, size, threads):
        g = load_grad(grad[base + j])
        if weighted == 1:
            g *= load_weight(weight[j])
        total += g
        slope += g * (load_x(x[base + j]) - middle) * scale
    total = block_total(total, parts) / compute(size)
    slope = block_total(slope, parts) / compute(size)
    for j in steps(thread, size, threads):
        g = load_grad(grad[base + j])
        if weighted == 1:
            g *= load_weight(weight[j])
        out[base + j] = store_out(scale * (g - total - (load_x(x[base + j]) - middle) * scale * slope))


def layer_norm_backward_columns(of_weight, of_bias, grad, x, mean, rstd, rows, size, wants_weight, wants_bias):
    """The sums over rows of grad y, and of grad."""
    parts = cuda.shared.array(THREADS, compute)
    thread, each = int64(cuda.threadIdx.x), int64(cuda.blockDim.x) >> 5
    column = int64(cuda.blockIdx.x) * 32 + (thread & 31)
    scales, shifts = zero, zero
    for row in steps(thread >> 5 if column < size else rows, rows, each):
        g = load_grad(grad[row * size + column])
        scales += g * (load_x(x[row * size + column]) - load_mean(mean[row])) * load_rstd(rstd[row])
        shifts += g
    scales = strip_total(scales, parts)
    shifts = strip_total(shifts, parts)
    if thread < 32 and column < size:
        if wants_weight == 1:
            of_weight[column] = store_of_weight(scales)
        if wants_bias == 1:
            of_bias[column] = store_of_bias(shifts)


NORMALIZED = Written(normalized_rows, ("out", "mean", "rstd", "total", "x", "weight", "bias"))
BACKWARD = Written(layer_norm_backward_rows, ("out", "grad", "x", "mean", "rstd", "weight"))
BACKWARD_OF_FACTORS = Written(layer_norm_backward_columns, ("of_weight", "of_bias", "grad", "x", "mean", "rstd"))
