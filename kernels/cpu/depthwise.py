"""Convolutions in which each channel has windows of its own: no matrix product, but sums of shifted rows.

    y[channel] = sum over the window's elements k of w[channel, k] * x[channel], shifted by k

The matrices of convolution.py would have a single row for each group here, and to make their columns would take longer
than these sums do. A row of an image is short and stays in the nearest cache while it is added to.

The methods of `Depthwise` are those of `Product`. Read next: convolution.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.geometry import is_contiguous
from redispatch.dispatch.tensor.operand import Operand

from ..engine.pool import parallel_for
from ..engine.program import integral
from ..engine.template import Template
from .convolution import Windows, add_to_channels, contiguous, elements, first_behind, first_inside
from .copy import copy
from .reduce import REASSOCIATE

uint64 = np.uint64

# --- one row ---------------------------------------------------------------------------------------------------------


@integral
def correlate_row(y, y_at, x, x_at, step, w, w_at, first, last):
    """y[i] += w * x[i * step], for first <= i < last."""
    weight = w[uint64(w_at)]
    if step == 1:
        for i in range(first, last):
            y[uint64(y_at + i)] += weight * x[uint64(x_at + i)]
    else:
        for i in range(first, last):
            y[uint64(y_at + i)] += weight * x[uint64(x_at + i * step)]


@integral
def spread_row(y, y_at, x, x_at, step, w, w_at, first, last):
    """x[i * step] += w * y[i], for first <= i < last."""
    weight = w[uint64(w_at)]
    if step == 1:
        for i in range(first, last):
            x[uint64(x_at + i)] += weight * y[uint64(y_at + i)]
    else:
        for i in range(first, last):
            x[uint64(x_at + i * step)] += weight * y[uint64(y_at + i)]


@integral
def multiply_rows(y, y_at, x, x_at, step, w, w_at, first, last):
    """w += the sum of y[i] * x[i * step], for first <= i < last."""
    total = w[uint64(w_at)]
    if step == 1:
        for i in range(first, last):
            total += y[uint64(y_at + i)] * x[uint64(x_at + i)]
    else:
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
                                with_row(y, y_plane + (z * oh + row) * ow, x, of, sw, w, window + k, first, last)


CHANNELS = Template(channels_loop, "int64[] g", "x[] y x w")
# The sum of products may be added in any order, so that it is done in vectors; NaN and inf count as ever.
SUMS_OF_PRODUCTS = Template(channels_loop, "int64[] g", "x[] y x w", fastmath=REASSOCIATE)


class Depthwise:
    """The shapes of one such convolution: the batch x[n, in, d, h, w], y[n, out, counts...], weights[out, 1, ...]."""

    def __init__(self, windows: Windows, into: int, out: int, dtype: str) -> None:
        self.windows, self.into, self.each, self.dtype = windows, into, out // into, dtype

    def correlate(self, y: Operand, x: Operand, weight: Operand, bias: Operand | None = None) -> None:
        """y = the sums, and the bias of each channel; y, weight and bias are contiguous."""
        elements(y)[:] = 0
        self._run(correlate_row, y, dense(x), weight)
        add_to_channels(y, bias, x.shape[0])

    def spread(self, x: Operand, y: Operand, weight: Operand, bias: Operand | None = None) -> None:
        """x = the sum of each sum's part, and the bias of each channel; all are contiguous."""
        elements(x)[:] = 0
        self._run(spread_row, y, x, weight)
        add_to_channels(x, bias, x.shape[0])

    def correlations(self, weight: Operand, y: Operand, x: Operand) -> None:
        """W = the products of rows; weight and y are contiguous."""
        elements(weight)[:] = 0
        self._run(multiply_rows, y, dense(x), weight)

    def _run(self, row: Callable[..., Any], y: Operand, x: Operand, weight: Operand) -> None:
        arrays = [part for one in (y, x, weight) for part in (one.array, one.offset)]
        work = x.shape[0] * self.each * int(np.prod(self.windows.counts)) * int(np.prod(self.windows.size))
        table = self.windows.table(x.shape[0], self.into, self.each)
        loop = SUMS_OF_PRODUCTS if row is multiply_rows else CHANNELS
        entry = loop(name=f"depthwise_{row.__name__}", x=self.dtype, with_row=row)
        parallel_for(entry, self.into, (table, *arrays), max(1, work))


def dense(x: Operand) -> Operand:
    """The same elements, row by row."""
    if is_contiguous(x.shape, x.strides):
        return x
    made = contiguous(x.shape, x.dtype)
    copy(made, x)
    return made
