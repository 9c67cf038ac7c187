"""Convolutions as matrix products: a window's elements become a column, and all windows one matrix.

With X the columns of a sample (unfold), W the weights as a matrix and Y the result,

    Y = W X                     correlate       forward; and backward to the input of a transposed convolution
    x = fold(W^T Y)             spread          backward to the input; and a transposed convolution itself
    W = Y X^T                   correlations    backward to the weight

Groups are matrices of their own, side by side. One, two or three dimensions are three, of which the first have size 1.
The columns of one sample are made at a time, in memory that the next sample uses again.

Source: Chellapilla, Puri, Simard, "High performance convolutional neural networks for document processing", 2006.

Where each channel has windows of its own, there is no matrix product, but sums of shifted rows (`Depthwise`):

    y[channel] = sum over the window's elements k of w[channel, k] * x[channel], shifted by k

The matrices would have a single row for each group here, and to make their columns would take longer
than these sums do. A row of an image is short and stays in the nearest cache while it is added to.

Read next: blas.py, which multiplies; direct_convolution.py, which makes no columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides, is_contiguous, numel
from redispatch.dispatch.tensor.operand import Operand, arrays_of, memory

from ..engine.elementwise import Elementwise
from ..engine.pool import parallel_for
from ..engine.program import integral
from ..engine.template import Template, zero
from .blas import matmul
from .copy import copy, fill
from .reduce import REASSOCIATE

uint64 = np.uint64


class Windows(NamedTuple):
    """Places windows on an image. Each field has three items: depth, height, width."""

    image: tuple[int, ...]  # size of the image that they move over
    counts: tuple[int, ...]  # how many windows there are in each direction
    size: tuple[int, ...]  # of a window
    stride: tuple[int, ...]  # from one window to the next
    padding: tuple[int, ...]  # by how much the first one begins before the image
    dilation: tuple[int, ...]  # from one element of a window to the next

    def table(self, *more: int) -> np.ndarray:
        """The table that the loops take."""
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
def copy_row(zero, row, to, x, at, step, first, last, width):
    """row[i] = x[i * step] for first <= i < last, and zero before and behind, where there is no image."""
    for i in range(first):
        row[uint64(to + i)] = zero
    if step == 1:
        for i in range(first, last):
            row[uint64(to + i)] = x[uint64(at + i)]
    else:
        for i in range(first, last):
            row[uint64(to + i)] = x[uint64(at + i * step)]
    for i in range(last, width):
        row[uint64(to + i)] = zero


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
                    copy_row(zero, columns, to, x, 0, step, ow, ow, ow)
                else:
                    at = x_at + channel * of_channel + iz * of_depth + iy * of_height + shift * of_width
                    copy_row(zero, columns, to, x, at, step, first, last, ow)
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
    array = memory(math.prod(shape), getattr(np, dtype))
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


def row(x: Operand) -> Operand:
    """The elements of a contiguous operand, one behind the other."""
    return Operand(x.array, x.dtype, (numel(x.shape),), (1,), x.offset)


def clear(x: Operand) -> None:
    """Makes all elements of a contiguous operand zero."""
    fill(row(x), 0)


def plus(x, y):
    return x + y


ADD = Elementwise("add_to", plus)


def add_to_channels(y: Operand, bias: Operand | None, images: int) -> None:
    """Adds to each channel of contiguous images its number."""
    if bias is not None and numel(y.shape):
        channels = bias.shape[0]
        each = numel(y.shape) // (images * channels)
        by_channel = Operand(y.array, y.dtype, (images, channels, each), (channels * each, each, 1), y.offset)
        ADD.run(by_channel, by_channel, Operand(bias.array, bias.dtype, (channels, 1), (1, 1), bias.offset))


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
        clear(x)
        columns, matrices = contiguous(self.columns_shape, self.dtype), part(weight, 0, self.weight_shape, True)
        for n in range(x.shape[0]):
            matmul(columns, matrices, part(y, n, self.result_shape))
            fold(image(x, n), columns, self.windows)
        add_to_channels(x, bias, x.shape[0])

    def correlations(self, weight: Operand, y: Operand, x: Operand) -> None:
        """W = Y X^T; weight and y are contiguous."""
        memory, found = self.scratch(x), contiguous(self.weight_shape, self.dtype)
        total = row(weight)
        clear(weight)
        for n in range(x.shape[0]):
            turned = part(self.columns_of(image(x, n), memory), 0, self.columns_shape, True)
            matmul(found, part(y, n, self.result_shape), turned)
            ADD.run(total, total, row(found))


# --- one row of a depthwise convolution -------------------------------------------------------------------------------


@integral
def correlate_row(y, y_at, x, x_at, step, w, w_at, first, last):
    """y[i] += w * x[i * step], for first <= i < last."""
    weight = w[uint64(w_at)]
    for i in range(first, last):
        y[uint64(y_at + i)] += weight * x[uint64(x_at + i * step)]


@integral
def spread_row(y, y_at, x, x_at, step, w, w_at, first, last):
    """x[i * step] += w * y[i], for first <= i < last."""
    weight = w[uint64(w_at)]
    for i in range(first, last):
        x[uint64(x_at + i * step)] += weight * y[uint64(y_at + i)]


@integral
def multiply_rows(y, y_at, x, x_at, step, w, w_at, first, last):
    """w += the sum of y[i] * x[i * step], for first <= i < last."""
    total = w[uint64(w_at)]
    for i in range(first, last):
        total += y[uint64(y_at + i)] * x[uint64(x_at + i * step)]
    w[uint64(w_at)] = total


def with_row(y, y_at, x, x_at, step, w, w_at, first, last):
    """Stands for one of the three."""


# --- all images ------------------------------------------------------------------------------------------------------


@integral
def channels_loop(lo, hi, g, y, y_at, x, x_at, w, w_at):
    """Channels lo <= channel < hi of x, in all images, with all that belongs to them.

    g: the fields of Windows; images, channels of x, channels of y for each of these. All arrays are contiguous.
    """
    d, h, width, od, oh, ow = g[0], g[1], g[2], g[3], g[4], g[5]
    kd, kh, kw, sd, sh, sw = g[6], g[7], g[8], g[9], g[10], g[11]
    pd, ph, pw, dd, dh, dw = g[12], g[13], g[14], g[15], g[16], g[17]
    images, channels, each = g[18], g[19], g[20]
    for channel in range(lo, hi):
        for n in range(images):
            x_plane = x_at + (n * channels + channel) * d * h * width
            for made in range(channel * each, (channel + 1) * each):
                y_plane, window = y_at + (n * channels * each + made) * od * oh * ow, w_at + made * kd * kh * kw
                for k in range(kd * kh * kw):
                    kx, ky, kz = k % kw, k // kw % kh, k // (kw * kh)
                    shift = kx * dw - pw
                    first, last = first_inside(shift, sw), first_behind(shift, sw, width, ow)
                    for z in range(od):
                        iz = z * sd + kz * dd - pd
                        for row in range(oh):
                            iy = row * sh + ky * dh - ph
                            if iz >= 0 and iz < d and iy >= 0 and iy < h:
                                of = x_plane + (iz * h + iy) * width + shift
                                to = y_plane + (z * oh + row) * ow
                                if sw == 1:  # a number that LLVM knows makes vectors
                                    with_row(y, to, x, of, 1, w, window + k, first, last)
                                else:
                                    with_row(y, to, x, of, sw, w, window + k, first, last)


CHANNELS = Template(channels_loop, "int64[] g", "x[] y x w")
# The sum of products may be added in any order, so that it is done in vectors; NaN and inf count as ever.
SUMS_OF_PRODUCTS = Template(channels_loop, "int64[] g", "x[] y x w", fastmath=REASSOCIATE)


class Depthwise:
    """The shapes of one such convolution: the batch x[n, in, d, h, w], y[n, out, counts...], weights[out, 1, ...]."""

    def __init__(self, windows: Windows, into: int, out: int, dtype: str) -> None:
        self.windows, self.into, self.each, self.dtype = windows, into, out // into, dtype

    def correlate(self, y: Operand, x: Operand, weight: Operand, bias: Operand | None = None) -> None:
        """y = the sums, and the bias of each channel; y, weight and bias are contiguous."""
        clear(y)
        self._run(correlate_row, y, dense(x), weight)
        add_to_channels(y, bias, x.shape[0])

    def spread(self, x: Operand, y: Operand, weight: Operand, bias: Operand | None = None) -> None:
        """x = the sum of each sum's part, and the bias of each channel; all are contiguous."""
        clear(x)
        self._run(spread_row, y, x, weight)
        add_to_channels(x, bias, x.shape[0])

    def correlations(self, weight: Operand, y: Operand, x: Operand) -> None:
        """W = the products of rows; weight and y are contiguous."""
        clear(weight)
        self._run(multiply_rows, y, dense(x), weight)

    def _run(self, row: Callable[..., Any], y: Operand, x: Operand, weight: Operand) -> None:
        arrays = arrays_of(y, x, weight)
        work = x.shape[0] * self.each * int(np.prod(self.windows.counts)) * int(np.prod(self.windows.size))
        table = self.windows.table(x.shape[0], self.into, self.each)
        loop = SUMS_OF_PRODUCTS if row is multiply_rows else CHANNELS
        entry = loop(name=f"depthwise_{row.__name__}", x=self.dtype, with_row=row)
        parallel_for(entry, self.into, (table, *arrays), max(1, work))


def dense(x: Operand) -> Operand:
    """Returns the elements of an operand row by row, copied where they lie otherwise."""
    if is_contiguous(x.shape, x.strides):
        return x
    made = contiguous(x.shape, x.dtype)
    copy(made, x)
    return made
