"""Convolutions without a matrix of columns: it is there already, where images are laid out for it.

Let the images have their padding, and let the windows move by one element. Then with the image as one long row x, the
element k of all windows is that row, begun later: columns[k] = x[shift(k):]. Between two rows of windows lie a few
places that are no windows; they are computed too, and left out at the end. So

    y[o] = sum over taps t of w[o, t] x[shift(t):]              a tap: an element of the window, in one channel

is a matrix product that reads overlapping rows. Where windows move by `stride`, every stride-th element makes up a row
of its own (a "phase" of the image), and each tap has its place in one of these. Backward to the input is the same over
the gradient, with windows turned around.

Four rows of the result and three taps are done at a time: twelve weights stay in registers, and three loads from x
serve twelve multiplications. That is about four fifths of what a large matrix product reaches, and no columns were
written down for it. For 16 channels of 32 images of 14 x 14 and windows of 3 x 3 it takes half the time of
convolution.py.

Source: the table of taps is that of M. Dukhan, "The indirect convolution algorithm", 2019, with offsets for pointers.
Read next: convolution.py, which does what is left: integers, complex numbers, windows of one element, many rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides
from redispatch.dispatch.tensor.operand import Operand, memory

from ..engine.pool import parallel_for
from ..engine.program import integral, steps
from ..engine.template import Template, zero
from .blas import CONTRACT
from .convolution import Product, Windows, clear, contiguous, copy_row, first_behind, first_inside
from .copy import copy
from .reduce import REASSOCIATE

uint64 = np.uint64

ROWS = 4  # of the result, done together
CHUNK = 1024  # places done together: their sums stay in the nearest cache
VECTOR = 16  # places that are computed in any case, at the end of a row
BATCH = 1 << 18  # elements that are laid out at a time
FEW_ROWS = 64  # in a group of the result, up to which this is faster: columns are made once, and serve all rows

# --- loops -----------------------------------------------------------------------------------------------------------


@integral
def lay_out_loop(lo, hi, g, images, stride, planes, x, x_at):
    """Images lo <= channel * images + n < hi as the windows need them: in `planes`, with zeros outside of the image.

    g: sizes of the image, steps, extents of a plane, phases; strides of x by batch, channel and axis; then for each
    axis and phase the first coordinate. Behind the last image come zeros, up to the next channel's.
    """
    d, h, w, sd, sh, sw = g[0], g[1], g[2], g[3], g[4], g[5]
    ed, eh, ew, phases_d, phases_h, phases_w = g[6], g[7], g[8], g[9], g[10], g[11]
    of_batch, of_channel, of_depth, of_height, of_width = g[12], g[13], g[14], g[15], g[16]
    phases, step = phases_d * phases_h * phases_w, sw * of_width
    for one in range(lo, hi):
        channel, n = one // images, one % images
        image = x_at + n * of_batch + channel * of_channel
        for phase in range(phases):
            row = (channel * phases + phase) * stride
            to = row + n * ed * eh * ew
            z_first = g[17 + phase // (phases_w * phases_h)]
            y_first = g[17 + phases_d + phase // phases_w % phases_h]
            x_first = g[17 + phases_d + phases_h + phase % phases_w]
            last = first_behind(x_first, sw, w, ew)
            first = min(first_inside(x_first, sw), last)
            for z in range(ed):
                iz = z_first + z * sd
                for y in range(eh):
                    iy = y_first + y * sh
                    if iz < 0 or iz >= d or iy < 0 or iy >= h:
                        copy_row(zero, planes, to, x, 0, step, ew, ew, ew)
                    else:
                        at = image + iz * of_depth + iy * of_height + x_first * of_width
                        copy_row(zero, planes, to, x, at, step, first, last, ew)
                    to += ew
            if n == images - 1:
                for i in range(to, row + stride):
                    planes[uint64(i)] = zero


@integral
def add_three_taps(n, sums, s0, s1, s2, s3, x, x0, x1, x2, w, w0, w1, w2, w3):
    """sums[s + i] += w[...] x[...] for four rows: three taps, which begin at x0, x1, x2 and weigh w0, w0 + 1, ..."""
    a0, a1, a2 = w[uint64(w0)], w[uint64(w0 + 1)], w[uint64(w0 + 2)]
    b0, b1, b2 = w[uint64(w1)], w[uint64(w1 + 1)], w[uint64(w1 + 2)]
    c0, c1, c2 = w[uint64(w2)], w[uint64(w2 + 1)], w[uint64(w2 + 2)]
    d0, d1, d2 = w[uint64(w3)], w[uint64(w3 + 1)], w[uint64(w3 + 2)]
    for i in range(n):
        e0, e1, e2 = x[uint64(x0 + i)], x[uint64(x1 + i)], x[uint64(x2 + i)]
        sums[uint64(s0 + i)] = sums[uint64(s0 + i)] + e0 * a0 + e1 * a1 + e2 * a2
        sums[uint64(s1 + i)] = sums[uint64(s1 + i)] + e0 * b0 + e1 * b1 + e2 * b2
        sums[uint64(s2 + i)] = sums[uint64(s2 + i)] + e0 * c0 + e1 * c1 + e2 * c2
        sums[uint64(s3 + i)] = sums[uint64(s3 + i)] + e0 * d0 + e1 * d1 + e2 * d2


@integral
def add_tap(n, sums, s0, s1, s2, s3, x, x0, w, w0, w1, w2, w3):
    """Adds the products of one tap."""
    a, b, c, d = w[uint64(w0)], w[uint64(w1)], w[uint64(w2)], w[uint64(w3)]
    for i in range(n):
        e = x[uint64(x0 + i)]
        sums[uint64(s0 + i)] += e * a
        sums[uint64(s1 + i)] += e * b
        sums[uint64(s2 + i)] += e * c
        sums[uint64(s3 + i)] += e * d


@integral
def take_windows(start, n, g, out, to, sums, at):
    """out = sums of places start <= place < start + n, but of those that are no windows.

    g: extents of a plane, windows by depth, height and width, and the strides of `out` by batch and these.
    """
    depth, height, width, od, oh, ow = g[0], g[1], g[2], g[3], g[4], g[5]
    of_batch, of_depth, of_height, of_width = g[6], g[7], g[8], g[9]
    done = 0
    while done < n:
        row, column = (start + done) // width, (start + done) % width
        image, z, y = row // (height * depth), row // height % depth, row % height
        few = min(width - column, n - done)
        if z < od and y < oh:
            here = to + image * of_batch + z * of_depth + y * of_height + column * of_width
            last = min(few, ow - column)
            if of_width == 1:
                for i in range(last):
                    out[uint64(here + i)] = sums[uint64(at + done + i)]
            else:
                for i in range(last):
                    out[uint64(here + i * of_width)] = sums[uint64(at + done + i)]
        done += few


@integral
def sums_loop(lo, hi, g, taps, bias, w, w_at, sums, x, out, out_at):
    """Units lo <= unit < hi of the result, sums over taps: a unit is four rows of it and as many places as are done at
    a time. `sums` has room for each unit.

    g: what `take_windows` needs; taps, rows of a group, groups, places, places at a time, where the last image ends;
    from one group to the next in x; stride of `out` by channel.
    """
    count, rows, groups, places, chunk, end = g[10], g[11], g[12], g[13], g[14], g[15]
    of_group, of_channel = g[16], g[17]
    blocks = (rows + 3) // 4
    whole = count - count % 3
    s0 = lo * 4 * chunk  # ranges are done by one thread each: the memory of the first unit serves all
    s1, s2, s3 = s0 + chunk, s0 + 2 * chunk, s0 + 3 * chunk
    for unit in range(lo, hi):
        row, group, start = unit % blocks * 4, unit // blocks % groups, unit // (blocks * groups) * chunk
        few, n = min(4, rows - row), min(chunk, places - start)
        channel, at = group * rows + row, group * of_group + start
        w0 = w_at + channel * count  # where fewer than four rows are left, the last one is done several times
        w1, w2, w3 = w0 + min(1, few - 1) * count, w0 + min(2, few - 1) * count, w0 + (few - 1) * count
        for k in range(4):
            first = bias[uint64(channel + min(k, few - 1))]
            for i in range(n):
                sums[uint64(s0 + k * chunk + i)] = first
        for t in range(0, whole, 3):
            x0, x1, x2 = at + taps[t], at + taps[t + 1], at + taps[t + 2]
            add_three_taps(n, sums, s0, s1, s2, s3, x, x0, x1, x2, w, w0 + t, w1 + t, w2 + t, w3 + t)
        for t in range(whole, count):
            add_tap(n, sums, s0, s1, s2, s3, x, at + taps[t], w, w0 + t, w1 + t, w2 + t, w3 + t)
        for k in range(few):
            take_windows(start, min(n, end - start), g, out, out_at + (channel + k) * of_channel, sums, s0 + k * chunk)


@integral
def products_loop(lo, hi, g, taps, w, y, x):
    """Blocks lo <= unit < hi of four rows of weights, to which the products of y and of each tap are added.

    g: taps, rows of a group, groups, places, places at a time; from one row to the next in y; from one group to the
    next in x.
    """
    count, rows, places, chunk, of_row, of_group = g[0], g[1], g[2], g[3], g[4], g[5]
    blocks = (rows + 3) // 4
    whole = count - count % 3
    for unit in range(lo, hi):
        row, group = unit % blocks * 4, unit // blocks
        few, channel = min(4, rows - row), group * rows + row
        w0 = channel * count
        for start in steps(0, places, chunk):
            n, at = min(chunk, places - start), group * of_group + start
            y0 = channel * of_row + start
            y1, y2, y3 = y0 + min(1, few - 1) * of_row, y0 + min(2, few - 1) * of_row, y0 + (few - 1) * of_row
            for t in range(0, whole, 3):
                x0, x1, x2 = at + taps[t], at + taps[t + 1], at + taps[t + 2]
                a0, a1, a2, b0, b1, b2 = zero, zero, zero, zero, zero, zero
                c0, c1, c2, d0, d1, d2 = zero, zero, zero, zero, zero, zero
                for i in range(n):
                    e0, e1, e2 = x[uint64(x0 + i)], x[uint64(x1 + i)], x[uint64(x2 + i)]
                    f0, f1, f2, f3 = y[uint64(y0 + i)], y[uint64(y1 + i)], y[uint64(y2 + i)], y[uint64(y3 + i)]
                    a0 += f0 * e0
                    a1 += f0 * e1
                    a2 += f0 * e2
                    b0 += f1 * e0
                    b1 += f1 * e1
                    b2 += f1 * e2
                    c0 += f2 * e0
                    c1 += f2 * e1
                    c2 += f2 * e2
                    d0 += f3 * e0
                    d1 += f3 * e1
                    d2 += f3 * e2
                to = w0 + t
                add_three(w, to, a0, a1, a2)
                if few > 1:
                    add_three(w, to + count, b0, b1, b2)
                if few > 2:
                    add_three(w, to + 2 * count, c0, c1, c2)
                if few > 3:
                    add_three(w, to + 3 * count, d0, d1, d2)
            for t in range(whole, count):
                x0 = at + taps[t]
                for k in range(few):
                    total = zero
                    for i in range(n):
                        total += y[uint64(y0 + k * of_row + i)] * x[uint64(x0 + i)]
                    w[uint64(w0 + k * count + t)] += total


@integral
def add_three(w, at, a, b, c):
    w[uint64(at)] += a
    w[uint64(at + 1)] += b
    w[uint64(at + 2)] += c


@integral
def mend_loop(lo, hi, g, w, w_at, y, y_at, x, x_at):
    """Elements lo <= i < hi of the gradient of weights that are NaN: the sum of products over all windows.

    g: the fields of Windows; images, channels of x and of y in a group; the strides of x; channels of y, which is
    contiguous.
    """
    d, h, width, od, oh, ow = g[0], g[1], g[2], g[3], g[4], g[5]
    kd, kh, kw, sd, sh, sw = g[6], g[7], g[8], g[9], g[10], g[11]
    pd, ph, pw, dd, dh, dw = g[12], g[13], g[14], g[15], g[16], g[17]
    images, into, out = g[18], g[19], g[20]
    size = into * kd * kh * kw
    count = g[26]
    for i in range(lo, hi):
        if w[uint64(w_at + i)] == w[uint64(w_at + i)]:
            continue
        made, tap, total = i // size, i % size, zero
        channel, kx, ky, kz = tap // (kd * kh * kw), tap % kw, tap // kw % kh, tap // (kw * kh) % kd
        for n in range(images):
            image = x_at + n * g[21] + (made // out * into + channel) * g[22]
            for place in range(od * oh * ow):
                iz = place // (oh * ow) * sd + kz * dd - pd
                iy, ix = place // ow % oh * sh + ky * dh - ph, place % ow * sw + kx * dw - pw
                if iz >= 0 and iz < d and iy >= 0 and iy < h and ix >= 0 and ix < width:
                    at = image + iz * g[23] + iy * g[24] + ix * g[25]
                    total += y[uint64(y_at + (n * count + made) * od * oh * ow + place)] * x[uint64(at)]
        w[uint64(w_at + i)] = total


MEND = Template(mend_loop, "int64[] g", "x[] w y x")
LAY_OUT = Template(lay_out_loop, "int64[] g", "x[] planes x")
# "contract": a product and a sum may be rounded once, as in BLAS; REASSOCIATE: so may sums be added in any order, which
# makes vectors of them. NaN and inf count as ever.
SUMS = Template(sums_loop, "int64[] g taps", "x[] bias w sums x out", fastmath=CONTRACT)
PRODUCTS = Template(products_loop, "int64[] g taps", "x[] w y x", fastmath=CONTRACT | REASSOCIATE)

# --- how images are laid out -----------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """Along one axis, phase f of an image has the elements firsts[f], firsts[f] + step, ...; zeros outside of it."""

    size: int  # of the image
    step: int
    extent: int  # elements of a phase
    firsts: tuple[int, ...]

    def shared(self, count: int) -> Axis:
        """Returns the axis without the zeros at its end that are also those at the beginning of the next row."""
        before = [-(first // self.step) for first in self.firsts]
        inside = [-((first - self.size) // self.step) for first in self.firsts]
        behind = [self.extent - here for here in inside]
        spare = max(0, min(*before, *behind, self.extent - count))
        return self._replace(extent=self.extent - spare)


class Layout:
    """Images as rows: of each channel and phase all images, of these all planes, of these all rows, one by one."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        sizes, steps, extents, firsts = zip(*axes, strict=True)
        self.extents: tuple[int, ...] = extents
        self.of_image = math.prod(extents)
        self.phase_counts = tuple(len(one) for one in firsts)
        self.phases = math.prod(self.phase_counts)
        self.before = [*sizes, *steps, *extents, *self.phase_counts]
        self.after = [number for one in firsts for number in one]

    def phase(self, of_axes: Sequence[int]) -> int:
        """The number of a phase."""
        return (of_axes[0] * self.phase_counts[1] + of_axes[1]) * self.phase_counts[2] + of_axes[2]

    def shift(self, shifts: Sequence[int]) -> int:
        """Returns where in a row a tap begins."""
        return (shifts[0] * self.extents[1] + shifts[1]) * self.extents[2] + shifts[2]

    def lay_out(self, x: Operand, batch: Batch) -> np.ndarray:
        """The rows of a batch of the images x[n, channels, depth, height, width]."""
        channels, (first, images, stride, _) = x.shape[1], batch
        planes = aligned(channels * self.phases * stride, x.dtype)
        table = np.array([*self.before, *x.strides, *self.after], np.int64)
        args = (table, images, stride, planes, x.array, x.offset + first * x.strides[0])
        parallel_for(LAY_OUT(x=x.dtype), channels * images, args, self.phases * self.of_image)
        return planes


# --- sums over taps --------------------------------------------------------------------------------------------------


class Batch(NamedTuple):
    """Images that are laid out together."""

    first: int
    images: int
    stride: int  # from one row to the next
    places: int  # in a row, up to the last window of the last image, and up to a round number


class Direct(Product):
    """Computes a `Product` of float32 or float64 without columns where that pays: for few rows of the result.

    turned: whether the windows are given turned around, the last element first.
    """

    def __init__(self, windows: Windows, groups: int, into: int, out: int, dtype: str, turned: bool = False) -> None:
        super().__init__(windows, groups, into, out, dtype)
        axes, of_axes = [], []
        for size, count, k, stride, padding, dilation in zip(*windows, strict=True):
            begins = range(0, k * dilation, dilation)
            phases = sorted({at % stride for at in begins})
            firsts = tuple(phase - padding for phase in phases)
            axes.append(Axis(size, stride, count + begins[-1] // stride, firsts).shared(count))
            of_axes.append([(phases.index(at % stride), at // stride) for at in begins])
        self.layout = layout = Layout(axes)
        taps = [tuple(zip(*tap, strict=True)) for tap in itertools.product(*of_axes)]
        if turned:
            taps.reverse()
        rows = np.array([layout.phase(phases) for phases, _ in taps], np.int64)
        shifts = np.array([layout.shift(shifts) for _, shifts in taps], np.int64)
        # For each element of the windows, in each channel of a group: the row that it reads, and where it begins there.
        self.rows = (np.arange(into // groups, dtype=np.int64)[:, None] * layout.phases + rows).ravel()
        self.shifts = np.tile(shifts, into // groups)

    def correlate(self, y: Operand, x: Operand, weight: Operand, bias: Operand | None = None) -> None:
        """y = W X + bias; y, weight and bias are contiguous."""
        if self.out // self.groups > FEW_ROWS:
            super().correlate(y, x, weight, bias)
            return
        result, extents = self.images(y, x.shape[0]), self.layout.extents
        of_batch, of_channel, *strides = result.strides
        added = np.zeros(self.out, weight.array.dtype) if bias is None else bias.array[bias.offset :]
        for batch in self.batches(x):
            planes = self.layout.lay_out(x, batch)
            chunk, blocks = chunk_of(batch.places), self.groups * -(-self.out // self.groups // ROWS)
            units = -(-batch.places // chunk) * blocks
            windows = [*extents, *self.windows.counts, of_batch, *strides]
            sizes = [len(self.rows), self.out // self.groups, self.groups, batch.places, chunk]
            steps = [batch.images * self.layout.of_image, planes.size // self.groups, of_channel]
            table = np.array([*windows, *sizes, *steps], np.int64)
            taps, sums = self.rows * batch.stride + self.shifts, aligned(units * ROWS * chunk, self.dtype)
            to = result.offset + batch.first * of_batch
            args = (table, taps, added, weight.array, weight.offset, sums, planes, result.array, to)
            parallel_for(SUMS(x=self.dtype), units, args, (len(taps) + 1) * chunk)

    def spread(self, x: Operand, y: Operand, weight: Operand, bias: Operand | None = None) -> None:
        """x = fold(W^T Y) + bias: the windows, turned around, move over y; all are contiguous."""
        w, groups = self.windows, self.groups
        if {*w.stride} != {1} or not ROWS <= self.into // groups <= FEW_ROWS:
            super().spread(x, y, weight, bias)
            return
        padding = [d * (k - 1) - p for k, p, d in zip(w.size, w.padding, w.dilation, strict=True)]
        back = Windows(w.counts, w.image, w.size, w.stride, tuple(padding), w.dilation)
        size, into, out = math.prod(w.size), self.into // groups, self.out // groups
        shape, steps = (groups, into, out, size), (out * into * size, size, into * size, 1)
        turned = contiguous(shape, self.dtype)
        copy(turned, weight._replace(shape=shape, strides=steps))
        direct(back, groups, self.out, self.into, self.dtype, True).correlate(
            x, self.images(y, x.shape[0]), turned, bias
        )

    def correlations(self, weight: Operand, y: Operand, x: Operand) -> None:
        """W = Y X^T; weight and y are contiguous."""
        rows, layout = self.out // self.groups, self.layout
        if rows > FEW_ROWS:
            super().correlations(weight, y, x)
            return
        axes = zip(self.windows.counts, layout.extents, strict=True)
        of_grad, grad = Layout([Axis(count, 1, extent, (0,)) for count, extent in axes]), self.images(y, x.shape[0])
        found = weight.array[weight.offset : weight.offset + math.prod(self.weight_shape)]
        clear(weight)
        for batch in self.batches(x):
            planes = layout.lay_out(x, batch)
            taps, steps = self.rows * batch.stride + self.shifts, [batch.stride, planes.size // self.groups]
            table = np.array([len(taps), rows, batch.places, chunk_of(batch.places), *steps], np.int64)
            args = (table, taps, found, of_grad.lay_out(grad, batch), planes)
            units = self.groups * -(-rows // ROWS)
            parallel_for(PRODUCTS(x=self.dtype), units, args, len(taps) * batch.places)
        self.mend(weight, y, x)

    def mend(self, weight: Operand, y: Operand, x: Operand) -> None:
        """Computes W = Y X^T again where `correlations` has made a NaN.

        Places that are no windows count for nothing, as the gradient is zero there. But zero times infinity is NaN.
        """
        w, table = self.windows, [x.shape[0], self.into // self.groups, self.out // self.groups, *x.strides, self.out]
        elements = math.prod(self.weight_shape)
        args = (w.table(*table), weight.array, weight.offset, y.array, y.offset, x.array, x.offset)
        parallel_for(MEND(x=self.dtype), elements, args)

    def images(self, y: Operand, n: int) -> Operand:
        """A contiguous y as images of three dimensions."""
        shape = (n, self.out, *self.windows.counts)
        return Operand(y.array, y.dtype, shape, contiguous_strides(shape), y.offset)

    def batches(self, x: Operand) -> Iterator[Batch]:
        """All images, so many at a time as fit a cache, in equal parts."""
        n, layout = x.shape[0], self.layout
        parts = min(n, -(-n * self.into * layout.phases * layout.of_image // BATCH))
        last = layout.shift([count - 1 for count in self.windows.counts]) + 1
        for first in range(0, n, -(-n // parts)):
            images = min(-(-n // parts), n - first)
            places = rounded_up((images - 1) * layout.of_image + last)
            reach = max(images * layout.of_image, places + int(self.shifts.max()))
            yield Batch(first, images, row_stride(reach), places)


def aligned(n: int, dtype: str) -> np.ndarray:
    """Memory that begins with a line of the cache, so that no vector lies in two of them: a tenth of the time."""
    found = memory(n + VECTOR, getattr(np, dtype))
    skip = -found.ctypes.data % 64 // found.itemsize
    return found[skip : skip + n]


def row_stride(length: int) -> int:
    """From one row to the next: not a power of two, at which all rows would claim the same lines of a cache."""
    return length + (528 - length) % 1024


def rounded_up(n: int) -> int:
    return -(-n // VECTOR) * VECTOR


def chunk_of(places: int) -> int:
    """The number of places that are done at a time: `CHUNK` or fewer, in parts of one size."""
    return rounded_up(-(-places // -(-places // CHUNK)))


direct = lru_cache(maxsize=256)(Direct)  # to find the taps takes longer than a small convolution
