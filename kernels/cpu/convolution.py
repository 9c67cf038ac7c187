"""Convolutions as matrix products: a window's elements become a column, and all windows one matrix.

With X the columns of a sample (unfold), W the weights as a matrix and Y the result,

    Y = W X                     correlate       forward; and backward to the input of a transposed convolution
    x = fold(W^T Y)             spread          backward to the input; and a transposed convolution itself
    W = Y X^T                   correlations    backward to the weight

Groups are matrices of their own, side by side. One, two or three dimensions are three, of which the first have size 1.
The columns of one sample are made at a time, in memory that the next sample uses again.

Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document processing", 2006.
Read next: blas.py, which multiplies; direct_convolution.py, which makes no columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides, numel
from redispatch.dispatch.tensor.operand import Operand

from ..engine.pool import parallel_for
from ..engine.program import integral
from ..engine.template import Template, zero
from .blas import matmul

uint64 = np.uint64


class Windows(NamedTuple):
    """Where windows lie. Each field has three items: depth, height, width."""

    image: tuple[int, ...]  # size of the image that they move over
    counts: tuple[int, ...]  # how many windows there are in each direction
    size: tuple[int, ...]  # of a window
    stride: tuple[int, ...]  # from one window to the next
    padding: tuple[int, ...]  # by how much the first one begins before the image
    dilation: tuple[int, ...]  # from one element of a window to the next

    def table(self, *more: int) -> np.ndarray:
        """As the loops take it."""
        return np.array([number for field in self for number in field] + list(more), np.int64)


# --- loops -----------------------------------------------------------------------------------------------------------


@integral
def first_inside(shift, stride):
    """The first window whose element, at `shift` of the window, is not before the image."""
    return max(0, (-shift + stride - 1) // stride)


@integral
def first_behind(shift, stride, size, count):
    """The first window whose element is behind the image."""
    return max(0, min(count, (size - shift + stride - 1) // stride))


@integral
def unfold_loop(lo, hi, g, columns, columns_at, x, x_at):
    """Rows lo <= row < hi of the columns: row (channel, kd, kh, kw) has that element of all windows, 0 outside.

    g: the fields of Windows, and the strides of the image by channel, depth, height, width.
    """
    d, h, w, od, oh, ow = g[0], g[1], g[2], g[3], g[4], g[5]
    kd, kh, kw, sd, sh, sw = g[6], g[7], g[8], g[9], g[10], g[11]
    pd, ph, pw, dd, dh, dw = g[12], g[13], g[14], g[15], g[16], g[17]
    of_channel, of_depth, of_height, of_width = g[18], g[19], g[20], g[21]
    for row in range(lo, hi):
        rest, kx = row // kw, row % kw
        rest, ky = rest // kh, rest % kh
        channel, kz = rest // kd, rest % kd
        shift = kx * dw - pw
        first, last = first_inside(shift, sw), first_behind(shift, sw, w, ow)
        first = min(first, last)
        step = sw * of_width
        to = columns_at + row * od * oh * ow
        for z in range(od):
            iz = z * sd + kz * dd - pd
            for y in range(oh):
                iy = y * sh + ky * dh - ph
                if iz < 0 or iz >= d or iy < 0 or iy >= h:
                    for i in range(ow):
                        columns[uint64(to + i)] = zero
                else:
                    at = x_at + channel * of_channel + iz * of_depth + iy * of_height + shift * of_width
                    for i in range(first):
                        columns[uint64(to + i)] = zero
                    if step == 1:
                        for i in range(first, last):
                            columns[uint64(to + i)] = x[uint64(at + i)]
                    else:
                        for i in range(first, last):
                            columns[uint64(to + i)] = x[uint64(at + i * step)]
                    for i in range(last, ow):
                        columns[uint64(to + i)] = zero
                to += ow


@integral
def fold_loop(lo, hi, g, columns, columns_at, x, x_at):
    """Adds to channels lo <= channel < hi of an image each element of the columns where `unfold_loop` took it from."""
    d, h, w, od, oh, ow = g[0], g[1], g[2], g[3], g[4], g[5]
    kd, kh, kw, sd, sh, sw = g[6], g[7], g[8], g[9], g[10], g[11]
    pd, ph, pw, dd, dh, dw = g[12], g[13], g[14], g[15], g[16], g[17]
    of_channel, of_depth, of_height, of_width = g[18], g[19], g[20], g[21]
    step = sw * of_width
    for channel in range(lo, hi):
        from_ = columns_at + channel * kd * kh * kw * od * oh * ow
        for k in range(kd * kh * kw):
            kx, ky, kz = k % kw, k // kw % kh, k // (kw * kh)
            shift = kx * dw - pw
            first, last = first_inside(shift, sw), first_behind(shift, sw, w, ow)
            for z in range(od):
                iz = z * sd + kz * dd - pd
                for y in range(oh):
                    iy = y * sh + ky * dh - ph
                    if iz >= 0 and iz < d and iy >= 0 and iy < h:
                        at = x_at + channel * of_channel + iz * of_depth + iy * of_height + shift * of_width
                        if step == 1:
                            for i in range(first, last):
                                x[uint64(at + i)] += columns[uint64(from_ + i)]
                        else:
                            for i in range(first, last):
                                x[uint64(at + i * step)] += columns[uint64(from_ + i)]
                    from_ += ow


UNFOLD = Template(unfold_loop, "int64[] g", "x[] columns x")
FOLD = Template(fold_loop, "int64[] g", "x[] columns x")


def unfold(columns: Operand, x: Operand, windows: Windows) -> None:
    """columns[channels * size, windows] of an image x[channels, depth, height, width]; the columns are contiguous."""
    rows = x.shape[0] * math.prod(windows.size)
    args = (windows.table(*x.strides), columns.array, columns.offset, x.array, x.offset)
    parallel_for(UNFOLD(name="unfold_windows", x=x.dtype), rows, args, math.prod(windows.counts))


def fold(x: Operand, columns: Operand, windows: Windows) -> None:
    """Adds the columns to an image x[channels, depth, height, width], whose elements lie apart."""
    work = math.prod(windows.counts) * math.prod(windows.size)
    args = (windows.table(*x.strides), columns.array, columns.offset, x.array, x.offset)
    parallel_for(FOLD(name="fold_windows", x=x.dtype), x.shape[0], args, work)


# --- products --------------------------------------------------------------------------------------------------------


def contiguous(shape: Sequence[int], dtype: str) -> Operand:
    """Memory of its own, with undefined values."""
    array = np.empty(math.prod(shape), getattr(np, dtype))
    return Operand(array, dtype, tuple(shape), contiguous_strides(tuple(shape)))


def part(x: Operand, index: int, shape: Sequence[int], transposed: bool = False) -> Operand:
    """Item `index` of a contiguous operand's first dimension as groups of matrices, each turned if that is asked."""
    groups, rows, columns = shape
    strides = (rows * columns, columns, 1)
    offset = x.offset + index * groups * rows * columns
    if transposed:
        return Operand(x.array, x.dtype, (groups, columns, rows), (strides[0], 1, columns), offset)
    return Operand(x.array, x.dtype, (groups, rows, columns), strides, offset)


def image(x: Operand, index: int) -> Operand:
    """Item `index` of a batch of images."""
    return Operand(x.array, x.dtype, x.shape[1:], x.strides[1:], x.offset + index * x.strides[0])


def elements(x: Operand) -> np.ndarray:
    """The elements of a contiguous operand."""
    return x.array[x.offset : x.offset + numel(x.shape)]


def add_to_channels(y: Operand, bias: Operand | None, images: int) -> None:
    """Adds to each channel of contiguous images its number."""
    if bias is not None:
        by_channel = elements(y).reshape(images, bias.shape[0], -1)
        by_channel += elements(bias)[:, None]


class Product:
    """The shapes of one convolution: the batch x[n, in, d, h, w], y[n, out, counts...], weights[out, in / groups, ...].

    For a transposed one x and y change places; nothing here knows which is which.
    """

    def __init__(self, windows: Windows, groups: int, into: int, out: int, dtype: str) -> None:
        self.windows, self.groups, self.into, self.out, self.dtype = windows, groups, into, out, dtype
        length, size = math.prod(windows.counts), math.prod(windows.size)
        inner = into // groups * size
        self.columns_shape = (groups, inner, length)
        self.weight_shape = (groups, out // groups, inner)
        self.result_shape = (groups, out // groups, length)
        # A window of one element at each element: the columns are the image.
        self.is_plain = size == 1 and windows.image == windows.counts and set(windows.stride) == {1}

    def columns_of(self, x: Operand, memory: Operand | None) -> Operand:
        """The columns of one image, in this memory; the image itself, where `scratch` gave none."""
        if memory is None:
            return Operand(x.array, x.dtype, self.columns_shape, contiguous_strides(self.columns_shape), x.offset)
        unfold(memory, x, self.windows)
        return memory

    def scratch(self, *images: Operand) -> Operand | None:
        """Memory for columns, where they differ from the images."""
        dense = all(one.strides[1:] == contiguous_strides(one.shape)[1:] for one in images)
        return None if self.is_plain and dense else contiguous(self.columns_shape, self.dtype)

    def correlate(self, y: Operand, x: Operand, weight: Operand, bias: Operand | None = None) -> None:
        """y = W X + bias; y, weight and bias are contiguous."""
        columns = self.scratch(x)
        for n in range(x.shape[0]):
            matmul(
                part(y, n, self.result_shape), part(weight, 0, self.weight_shape), self.columns_of(image(x, n), columns)
            )
        add_to_channels(y, bias, x.shape[0])

    def spread(self, x: Operand, y: Operand, weight: Operand, bias: Operand | None = None) -> None:
        """x = fold(W^T Y) + bias; all are contiguous."""
        elements(x)[:] = 0
        columns, matrices = contiguous(self.columns_shape, self.dtype), part(weight, 0, self.weight_shape, True)
        for n in range(x.shape[0]):
            matmul(columns, matrices, part(y, n, self.result_shape))
            fold(image(x, n), columns, self.windows)
        add_to_channels(x, bias, x.shape[0])

    def correlations(self, weight: Operand, y: Operand, x: Operand) -> None:
        """W = Y X^T; weight and y are contiguous."""
        memory, found = self.scratch(x), contiguous(self.weight_shape, self.dtype)
        total = elements(weight)
        total[:] = 0
        for n in range(x.shape[0]):
            turned = part(self.columns_of(image(x, n), memory), 0, self.columns_shape, True)
            matmul(found, part(y, n, self.result_shape), turned)
            total += found.array
