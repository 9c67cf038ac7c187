"""Pooling: the largest element, or the mean, of each window of an image.

Windows are given axis by axis, as the places where they start and stop inside the image: so strides, padding, dilation,
sizes that are rounded up and windows of different sizes (adaptive pooling) are one and the same to the loops. One or
two dimensions are three, of which the first have size 1. Read next: convolution.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import dataclass
from redispatch.dispatch.tensor.operand import DTYPES, Operand, arrays_of

from ..engine.pool import parallel_for
from ..engine.primitives import maximum
from ..engine.program import integral
from ..engine.template import Template, load_x, lowest, store_x, zero
from .convolution import first_behind, first_inside
from .indexing import COMBINE

uint64 = np.uint64
SIDES, PACE = (2, 3), 2  # of square windows, and their stride, as networks have them: loops are compiled for these
side = 2  # one of them
join, are_spread = COMBINE["sum"], False  # stand for one of these, and for whether means are given


@dataclass(frozen=True)
class Axis:
    """The windows along one axis: window i has the elements from starts[i] up to stops[i], each `step` apart.

    extents[i] is what it counts as in a mean: some of it may be padding. Where the windows follow each other at one
    stride, `stride` says so: window i has, but for what is outside of the image, the elements begin + i * stride + t *
    step, for 0 <= t < length.
    """

    size: int  # of the image
    starts: Sequence[int]
    stops: Sequence[int]
    extents: Sequence[int]
    step: int = 1
    stride: int = 0
    begin: int = 0
    length: int = 0

    def __len__(self) -> int:
        return len(self.starts)


ONE = Axis(1, (0,), (1,), (1,))


class Windows3d:
    """The windows over images of up to three axes, the same for each image."""

    step = 0  # from the table of one image to that of the next
    side = 0  # of windows that loops are compiled for

    def __init__(self, axes: Sequence[Axis], divisor: int = 0) -> None:
        axes = [ONE] * (3 - len(axes)) + list(axes)
        self.places = int(np.prod([len(axis) for axis in axes]))  # windows of an image
        self.elements = int(np.prod([axis.size for axis in axes]))  # elements of an image
        table = [axis.size for axis in axes] + [len(axis) for axis in axes] + [axis.step for axis in axes] + [divisor]
        table += [axes[-1].stride, axes[-1].begin, axes[-1].length]
        for axis in axes:
            table += [*axis.starts, *axis.stops, *axis.extents]
        self.table = np.array(table, np.int64)
        self.side = side_of(axes)
        spans = [max((b - a for a, b in zip(axis.starts, axis.stops, strict=True)), default=0) for axis in axes]
        self.work = self.places * max(1, int(np.prod(spans)))  # about, for one image


def side_of(axes: Sequence[Axis]) -> int:
    """The side of square windows in images, if it is one of SIDES and they are PACE apart; else 0."""
    depth, *image = axes
    known = depth == ONE and all(axis.stride == PACE and axis.step == 1 for axis in image)
    side = image[0].length
    return side if known and side == image[1].length and side in SIDES else 0


class WindowsOfEach:
    """Windows of one size, in other places for each image: `starts` has an array [images, windows] for each axis."""

    side = 0

    def __init__(self, sizes: Sequence[int], starts: Sequence[np.ndarray], spans: Sequence[int]) -> None:
        images, missing = len(starts[0]), 3 - len(starts)
        starts = [np.zeros((images, 1), np.int64)] * missing + list(starts)
        spans, counts = [1] * missing + list(spans), [one.shape[1] for one in starts]
        head = [*[1] * missing, *sizes, *counts, 1, 1, 1, 0, 0, 0, 0]
        parts = [np.broadcast_to(np.array(head, np.int64), (images, len(head)))]
        for one, span in zip(starts, spans, strict=True):
            parts += [one, one + span, np.full_like(one, span)]
        table = np.concatenate(parts, 1)
        self.table, self.step = table.ravel(), table.shape[1]
        self.work = int(np.prod(counts)) * max(1, int(np.prod(spans)))


Windows = Windows3d | WindowsOfEach


@integral
def keep_larger(widen, narrow, n, out, out_at, places, places_at, x, x_at, step, place):
    """Replaces out[i] by x[i * step] where that is larger: vectors of windows, for a step known beforehand."""
    for i in range(n):
        value, best = widen(x[uint64(x_at + i * step)]), widen(out[uint64(out_at + i)])
        larger = (value > best) | (value != value)
        out[uint64(out_at + i)] = narrow(value if larger else best)
        places[uint64(places_at + i)] = place + i * step if larger else places[uint64(places_at + i)]


@integral
def largest_loop(lo, hi, tables, step, out, out_at, places, places_at, x, x_at):
    """Of images lo <= n < hi the largest element of each window, and where in the image it is; NaN is the largest.

    Windows that follow each other at one stride are done together: one of their elements after the other. A window
    whose elements are all outside of the image has the lowest number, at the place where it begins.
    """
    for n in range(lo, hi):
        g = tables[n * step :]
        d, h, w, od, oh, ow, sz, sy, sx = g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8]
        stride, begin, length = g[10], g[11], g[12]
        z_at, y_at = 13, 13 + 3 * od
        w_at = y_at + 3 * oh
        image, to, to_place = x_at + n * d * h * w, out_at + n * od * oh * ow, places_at + n * od * oh * ow
        for k in range(od):
            for j in range(oh):
                inside = g[z_at + k] < g[z_at + od + k] and g[y_at + j] < g[y_at + oh + j]
                for i in range(ow):
                    at = (g[z_at + k] * h + g[y_at + j]) * w + g[w_at + i]
                    if inside and g[w_at + i] < g[w_at + ow + i]:
                        out[uint64(to + i)] = x[uint64(image + at)]
                    else:
                        out[uint64(to + i)] = store_x(lowest)
                    places[uint64(to_place + i)] = at
                for z in range(g[z_at + k], g[z_at + od + k], sz):
                    for y in range(g[y_at + j], g[y_at + oh + j], sy):
                        row = (z * h + y) * w
                        if stride == 0:
                            for i in range(ow):
                                p, q = to + i, to_place + i
                                for at in range(row + g[w_at + i], row + g[w_at + ow + i], sx):
                                    keep_larger(load_x, store_x, 1, out, p, places, q, x, image + at, 1, at)
                        for t in range(length):
                            first = first_inside(begin + t * sx, stride)
                            m, at = first_behind(begin + t * sx, stride, w, ow) - first, row + begin + t * sx
                            at, p, q = at + first * stride, to + first, to_place + first
                            if stride == 1:
                                keep_larger(load_x, store_x, m, out, p, places, q, x, image + at, 1, at)
                            elif stride == 2:
                                keep_larger(load_x, store_x, m, out, p, places, q, x, image + at, 2, at)
                            else:
                                keep_larger(load_x, store_x, m, out, p, places, q, x, image + at, stride, at)
                to, to_place = to + ow, to_place + ow


def squares(side):
    """The function that does windows of this side, one beside the other.

    LLVM knows the side, so it writes the inner loops out and has a vector of windows in registers.
    """

    @integral
    def largest_of_squares(widen, narrow, n, out, out_at, places, places_at, x, image, at, w):
        """The largest elements of n windows, all of which lie in the image, the first one from `at` on.

        False if there is a NaN: then its place may be wrong. First the largest, then the place of the first element
        that equals it: choosing both at once becomes a branch in what is left over at the end of a row, and takes six
        times as long.
        """
        numbers = True
        for i in range(n):
            first = image + at + i * PACE
            best, count = widen(x[uint64(first)]), 0
            for s in range(1, side * side):
                best = maximum(widen(x[uint64(first + s // side * w + s % side)]), best)
            for s in range(side * side - 2, -1, -1):
                count = 0 if widen(x[uint64(first + s // side * w + s % side)]) == best else count + 1
            numbers &= best == best
            out[uint64(out_at + i)] = narrow(best)
            places[uint64(places_at + i)] = first - image + count // side * w + count % side
        return numbers

    return largest_of_squares


largest_of_squares = squares(2)  # it stands for that of the side


@integral
def largest_of_one(widen, narrow, lowest, out, out_at, places, places_at, x, image, w, top, bottom, left, right):
    """The largest element of rows top <= y < bottom, from `left` up to `right`."""
    best, place = lowest, top * w + left
    if top < bottom and left < right:
        best = widen(x[uint64(image + place)])
    for y in range(top, bottom):
        for at in range(y * w + left, y * w + right):
            value = widen(x[uint64(image + at)])
            if value > best or value != value:
                best, place = value, at
    out[uint64(out_at)] = narrow(best)
    places[uint64(places_at)] = place


@integral
def squares_loop(lo, hi, tables, step, out, out_at, places, places_at, x, x_at):
    """`largest_loop` for square windows of a side and a stride that are known when it is compiled, in images."""
    g = tables
    h, w, oh, ow, begin = g[1], g[2], g[4], g[5], g[11]
    y_at, w_at = 16, 16 + 3 * oh
    first = min(ow, first_inside(begin, PACE))  # from there up to `last` windows lie between left and right
    last = max(first, first_behind(begin + side - 1, PACE, w, ow))
    for n in range(lo, hi):
        image, to, to_place = x_at + n * h * w, out_at + n * oh * ow, places_at + n * oh * ow
        for j in range(oh):
            top, bottom, left, right = g[y_at + j], g[y_at + oh + j], ow, ow
            if bottom - top == side:
                at, p, q = top * w + begin + first * PACE, to + first, to_place + first
                if largest_of_squares(load_x, store_x, last - first, out, p, places, q, x, image, at, w):
                    left, right = first, last
            for i in range(ow):
                if i < left or i >= right:
                    start, stop = g[w_at + i], g[w_at + ow + i]
                    p, q = to + i, to_place + i
                    largest_of_one(load_x, store_x, lowest, out, p, places, q, x, image, w, top, bottom, start, stop)
            to, to_place = to + ow, to_place + ow


@integral
def put_loop(lo, hi, elements, windows, out, out_at, places, places_at, x, x_at):
    """Puts, in images lo <= n < hi, each element in its place, joined to what is there: the last one stays, or all add
    up, as gradients of the largest elements do.
    """
    for n in range(lo, hi):
        for i in range(n * windows, (n + 1) * windows):
            at = places[uint64(places_at + i)]
            if at >= 0 and at < elements:
                to = uint64(out_at + n * elements + at)
                out[to] = join(out[to], x[uint64(x_at + i)])


def means_loop(lo, hi, g, means, means_at, image, image_at):
    """Of images lo <= n < hi the mean of each window; or, where they are spread, adds to each element of a window its
    share of the gradient of the mean."""
    d, h, w, od, oh, ow = g[0], g[1], g[2], g[3], g[4], g[5]
    z_at, y_at = 13, 13 + 3 * od
    w_at = y_at + 3 * oh
    for n in range(lo, hi):
        start, of = image_at + n * d * h * w, means_at + n * od * oh * ow
        for k in range(od):
            z_first, z_last, z_extent = g[z_at + k], g[z_at + od + k], g[z_at + 2 * od + k]
            for j in range(oh):
                first, last, extent = g[y_at + j], g[y_at + oh + j], z_extent * g[y_at + 2 * oh + j]
                for i in range(ow):
                    left, right = g[w_at + i], g[w_at + ow + i]
                    divisor = g[9] if g[9] != 0 else extent * g[w_at + 2 * ow + i]
                    share, total = load_x(means[uint64(of)]) / divisor if are_spread else zero, zero
                    for z in range(z_first, z_last):
                        for y in range(first, last):
                            row = start + (z * h + y) * w
                            for at in range(row + left, row + right):
                                if are_spread:
                                    image[uint64(at)] += share
                                else:
                                    total += load_x(image[uint64(at)])
                    if not are_spread:
                        means[uint64(of)] = store_x(total / divisor)
                    of += 1


LARGEST = Template(largest_loop, "int64[] tables places", "x[] out x")
SQUARES = Template(squares_loop, "int64[] tables places", "x[] out x")
PUT = Template(put_loop, "x[] out x", "int64[] places")
MEANS = Template(means_loop, "int64[] g", "x[] means image")
OF_SIDE = {side: {"side": side, "largest_of_squares": squares(side)} for side in SIDES}


def _run(loop: Template, images: int, work: int, head: Sequence[object], *operands: Operand, **given: Any) -> None:
    parallel_for(loop(x=operands[0].dtype, **given), images, (*head, *arrays_of(*operands)), work)


def largest(out: Operand, places: Operand, x: Operand, windows: Windows, images: int) -> None:
    """The largest elements and their places. All operands are contiguous; `places` is int64."""
    head = windows.table, windows.step
    if windows.side and DTYPES[x.dtype].kind == "float":
        name = f"squares_of_{windows.side}_loop"
        _run(SQUARES, images, windows.work, head, out, places, x, name=name, **OF_SIDE[windows.side])
    else:
        _run(LARGEST, images, windows.work, head, out, places, x)


def put_back(out: Operand, places: Operand, grad: Operand, images: int) -> None:
    """Adds the gradients of the largest elements to `out`. All are contiguous; no 16-bit floats."""
    _by_places("sum", out, places, grad, images)


def put(out: Operand, places: Operand, x: Operand, images: int) -> None:
    """Puts elements in their places in `out`, of the same dtype. All are contiguous."""
    _by_places("replace", out, places, x, images)


def _by_places(how: str, out: Operand, places: Operand, x: Operand, images: int) -> None:
    elements, windows = (int(np.prod(one.shape)) // images for one in (out, x))
    head, work = (elements, windows), 4 * max(windows, 1)
    _run(PUT, images, work, head, out, places, x, name=f"put_{how}_loop", join=COMBINE[how])


def means(out: Operand, x: Operand, windows: Windows3d, images: int) -> None:
    """The means. All operands are contiguous."""
    _run(MEANS, images, windows.work, (windows.table,), out, x, name="mean_loop", are_spread=False)


def spread(out: Operand, grad: Operand, windows: Windows3d, images: int) -> None:
    """Adds the gradients of the means to `out`. All are contiguous; no 16-bit floats."""
    _run(MEANS, images, windows.work, (windows.table,), grad, out, name="spread_loop", are_spread=True)
