"""Images resampled: along an axis, by a matrix that is the same for all lines; and at any given points.

Along an axis, each element of the result is a weighted sum of elements of the source. Which elements, and with what
weights, is the same for every line along the axis: a sparse matrix, here an `AxisMap`. Padding by reflection, enlarging
an image by any filter, shrinking it without aliasing: all are such maps, one for each axis. So one loop does them all,
an axis at a time; and since the gradient of a linear map is its transpose, the same loop goes backward.

At points that lie between the elements, two steps give the value of each channel. `locate` turns each coordinate into a
few terms: elements along its axis, with their weights, and the slopes of the weights, by which they change as the point
moves. Then the value of a point is a sum of products of terms, one from each axis; its gradients are the same sum with
the value's gradient or a slope in it. A point has `terms` terms on each axis: 2 on a line, 1 at the nearest element, 4
on a cubic. An element outside of the image is the place -1 and counts as zero.

Read next: kernels/ops/resampling.py, which says what the matrices are; pooling.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from redispatch.dispatch import dataclass
from redispatch.dispatch.tensor.geometry import contiguous_strides
from redispatch.dispatch.tensor.operand import DTYPES, Operand, arrays_of, memory

from ..engine.pool import parallel_for
from ..engine.program import integral
from ..engine.template import Template, one, zero
from .copy import copy

uint64 = np.uint64


@dataclass(frozen=True, eq=False)
class AxisMap:
    """A sparse matrix [count, size]: row i has the terms from starts[i] up to starts[i + 1].

    Term t is weights[t] times element places[t] of the source; without weights, it is that element itself.
    """

    size: int  # of the source along this axis
    starts: np.ndarray
    places: np.ndarray
    weights: np.ndarray | None = None

    @property
    def count(self) -> int:
        """The size of the result."""
        return len(self.starts) - 1

    @cached_property
    def is_identity(self) -> bool:
        """Whether each element is what it was."""
        numbers = np.arange(self.size + 1)
        alike = np.array_equal(self.starts, numbers) and np.array_equal(self.places, numbers[:-1])
        return self.weights is None and alike

    @cached_property
    def stretch(self) -> tuple[int, int, int]:
        """(begin, end, shift): the longest range of i in which element i is element i + shift of the source."""
        if self.weights is not None or len(self.places) != self.count or np.any(np.diff(self.starts) != 1):
            return 0, 0, 0
        shifts = self.places - np.arange(self.count)
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(shifts)) + 1, [self.count]])
        longest = int(np.argmax(np.diff(cuts)))
        return int(cuts[longest]), int(cuts[longest + 1]), int(shifts[cuts[longest]]) if self.count else 0

    @cached_property
    def transposed(self) -> AxisMap:
        """The matrix [size, count], which takes gradients back."""
        order = np.argsort(self.places, kind="stable")
        rows = np.repeat(np.arange(self.count), np.diff(self.starts))
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.places, minlength=self.size))])
        return AxisMap(self.count, starts, rows[order], None if self.weights is None else self.weights[order])

    @cached_property
    def merged(self) -> AxisMap:
        """Returns the matrix with one term for each place that a row has."""
        rows = np.repeat(np.arange(self.count), np.diff(self.starts))
        cells, term = np.unique(rows * self.size + self.places, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(np.bincount(cells // self.size, minlength=self.count))])
        return AxisMap(self.size, starts, cells % self.size, np.bincount(term, self.weights_in("float64")))

    def weights_in(self, dtype: str) -> np.ndarray:
        """The weights as numbers of this dtype."""
        if self.weights is None:
            return np.ones(len(self.places), dtype)
        return self.weights.astype(dtype)


def picking(size: int, places: np.ndarray) -> AxisMap:
    """The map whose result has these elements of the source."""
    return AxisMap(size, np.arange(len(places) + 1), places)


# --- loops -----------------------------------------------------------------------------------------------------------


@integral
def combined(i, starts, places, weights, x, at):
    """Element i of a line that begins at `at`."""
    first, last = starts[uint64(i)], starts[uint64(i + 1)]
    total = zero
    if first < last:  # begun with the first term and not with a zero, which would take the sign of -0.0
        total = weights[uint64(first)] * x[uint64(at + places[uint64(first)])]
    for t in range(first + 1, last):
        total += weights[uint64(t)] * x[uint64(at + places[uint64(t)])]
    return total


@integral
def lines_loop(lo, hi, count, size, begin, end, shift, starts, places, weights, out, out_at, x, x_at):
    """Lines lo <= n < hi, where the elements along the axis are neighbours. From `begin` to `end` they only move."""
    for n in range(lo, hi):
        to, at = out_at + n * count, x_at + n * size
        for i in range(begin):
            out[uint64(to + i)] = combined(i, starts, places, weights, x, at)
        for i in range(begin, end):
            out[uint64(to + i)] = x[uint64(at + i + shift)]
        for i in range(end, count):
            out[uint64(to + i)] = combined(i, starts, places, weights, x, at)


@integral
def rows_loop(lo, hi, count, size, inner, starts, places, weights, out, out_at, x, x_at):
    """Rows lo <= n * count + i < hi of `inner` neighbours each, which all have the same terms."""
    for row in range(lo, hi):
        n, i = row // count, row % count
        to, at = out_at + row * inner, x_at + n * size * inner
        first, last = starts[uint64(i)], starts[uint64(i + 1)]
        if first == last:
            for k in range(inner):
                out[uint64(to + k)] = zero
        for t in range(first, last):
            w, of = weights[uint64(t)], at + places[uint64(t)] * inner
            if t == first:
                for k in range(inner):
                    out[uint64(to + k)] = w * x[uint64(of + k)]
            else:
                for k in range(inner):
                    out[uint64(to + k)] += w * x[uint64(of + k)]


LINES = Template(lines_loop, "int64[] starts places", "real[] weights", "x[] out x")
ROWS = Template(rows_loop, "int64[] starts places", "real[] weights", "x[] out x")


def real_of(dtype: str) -> str:
    """The dtype of weights: that of the real part."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def _along(out: Operand, x: Operand, axis: AxisMap, outer: int, inner: int) -> None:
    """One axis: `outer` times the axis times `inner` neighbours. Both operands are contiguous."""
    arrays = axis.starts, axis.places, axis.weights_in(real_of(x.dtype)), out.array, out.offset, x.array, x.offset
    dtypes = {"x": x.dtype, "real": real_of(x.dtype)}
    terms = max(1, len(axis.places) // max(axis.count, 1))
    if inner == 1:
        lines = axis.count, axis.size, *axis.stretch
        parallel_for(LINES(name="resample_lines", **dtypes), outer, (*lines, *arrays), 2 * axis.count * terms)
    else:
        rows = axis.count, axis.size, inner
        parallel_for(ROWS(name="resample_rows", **dtypes), outer * axis.count, (*rows, *arrays), inner * terms)


def resample(out: Operand, x: Operand, axes: Sequence[AxisMap]) -> None:
    """`x` mapped along its last axes, one map for each. Both are contiguous and have one dtype, no 16-bit float.

    An axis that shrinks comes before one that grows, so that there is least to do in between. Among those that shrink
    the last comes last, since it is the slowest: its neighbours have different terms.
    """
    lead = len(x.shape) - len(axes)

    def growth(d: int) -> tuple[float, int]:
        ratio = axes[d].count / max(axes[d].size, 1)
        return ratio, -d if ratio > 1 else d

    order = sorted((d for d in range(len(axes)) if not axes[d].is_identity), key=growth)
    if not order:
        copy(out, x)
    for d in order:
        shape = (*x.shape[: lead + d], axes[d].count, *x.shape[lead + d + 1 :])
        made = out if d == order[-1] else _memory(shape, x.dtype)
        _along(made, x, axes[d], prod(shape[: lead + d]), prod(shape[lead + d + 1 :]))
        x = made


def _memory(shape: tuple[int, ...], dtype: str) -> Operand:
    return Operand(memory(prod(shape), DTYPES[dtype].storage), dtype, shape, contiguous_strides(shape))


# --- at any points ----------------------------------------------------------------------------------------------------

int64 = np.int64
real = np.float64  # stands for the dtype

LINE, NEAREST, CUBIC = 0, 1, 2  # how to interpolate
ZEROS, BORDER, REFLECTION = 0, 1, 2  # what is outside of the image
TERMS = (2, 1, 4)

# --- one coordinate --------------------------------------------------------------------------------------------------


def position(coordinate, size, align):
    """Returns the position in an axis of a coordinate from [-1, 1]: corner elements' middles or edges are its ends."""
    if align:
        return (coordinate + 1) / 2 * (size - 1)
    return ((coordinate + 1) * size - 1) / 2


def pace(size, align):
    """The speed of the position."""
    if align:
        return (size - 1) / 2
    return size / 2


def clipped(at, size):
    """The position inside of the image, and how fast it moves."""
    if at <= 0:
        return 0.0, 0.0
    if at >= size - 1:
        return size - 1, 0.0
    return at, 1.0


def reflected(at, low, span):
    """The position after reflections at `low` and at `low + span`, and how fast it moves."""
    if span == 0:
        return 0.0, 0.0
    at = at - low
    sign = 1.0
    if at < 0:
        at, sign = -at, -1.0
    flips, rest = np.floor(at / span), at % span
    if flips % 2 == 0:
        return rest + low, sign
    return span - rest + low, -sign


def finite(at):
    """The position, or one far outside for what is no number that an index could be."""
    return at if at > -1e9 and at < 1e9 else -100.0


def inside(at, size, padding, align):
    """The position after what `padding` makes of one outside of the image, and how fast it moves."""
    speed = 1.0
    if padding == 2:
        if align:
            at, speed = reflected(at, 0.0, size - 1)
        else:
            at, speed = reflected(at, -0.5, size)
    if padding > 0:
        at, factor = clipped(at, size)
        speed = speed * factor
    return finite(at), speed


def near(x):
    """The cubic up to a distance of 1."""
    return (1.25 * x - 2.25) * x * x + 1


def far(x):
    """The cubic between distances of 1 and 2."""
    return ((-0.75 * x + 3.75) * x - 6) * x + 3


def near_slope(x):
    return (3.75 * x - 4.5) * x


def far_slope(x):
    return (-2.25 * x + 7.5) * x - 6


@integral
def place_of(at, size):
    """The element at a whole position; -1 outside."""
    place = int64(at)
    return place if place >= 0 and place < int64(size) else int64(-1)


@integral
def locate_loop(lo, hi, axes, terms, padding, align, sizes, places, weights, slopes, grid, grid_at):
    """The terms of points lo <= n < hi: [point, axis, term]. A grid's last axis comes first."""
    for n in range(lo, hi):
        for axis in range(axes):
            size = sizes[uint64(axis)]
            raw = position(grid[uint64(grid_at + (n + 1) * axes - 1 - axis)], size, align)
            to = (n * axes + axis) * terms
            if terms == 4:
                at = finite(raw)
                low = np.floor(at)
                t, speed = at - low, pace(size, align)
                first = int64(low) - 1
                for k in range(4):
                    where, _ = inside(real(first + k), size, padding, align)
                    places[uint64(to + k)] = place_of(np.rint(where), size)
                weights[uint64(to)], slopes[uint64(to)] = far(one + t), speed * far_slope(one + t)
                weights[uint64(to + 1)], slopes[uint64(to + 1)] = near(t), speed * near_slope(t)
                weights[uint64(to + 2)], slopes[uint64(to + 2)] = near(one - t), -speed * near_slope(one - t)
                weights[uint64(to + 3)], slopes[uint64(to + 3)] = far(one + one - t), -speed * far_slope(one + one - t)
            else:
                at, speed = inside(raw, size, padding, align)
                if terms == 1:
                    places[uint64(to)] = place_of(np.rint(at), size)
                    weights[uint64(to)], slopes[uint64(to)] = one, zero
                else:
                    low, speed = np.floor(at), speed * pace(size, align)
                    places[uint64(to)], places[uint64(to + 1)] = place_of(low, size), place_of(low + one, size)
                    weights[uint64(to)], slopes[uint64(to)] = one - (at - low), -speed
                    weights[uint64(to + 1)], slopes[uint64(to + 1)] = at - low, speed


# --- all axes --------------------------------------------------------------------------------------------------------
# g: channels, points of an image, axes, terms, and the image's depth, height, width. Two axes are three, of which the
# first has one element, always at place 0 with the weight 1.


@integral
def combine_loop(lo, hi, g, cells, products, places, weights):
    """The products of terms of points lo <= n < hi: which element of a channel each is for, or -1, and its weight."""
    axes, terms, height, width = g[2], g[3], g[5], g[6]
    depth_terms = terms if axes == 3 else 1
    for n in range(lo, hi):
        of, to = n * axes * terms, n * depth_terms * terms * terms
        y_of, x_of = of + (axes - 2) * terms, of + (axes - 1) * terms
        for kz in range(depth_terms):
            z, wz = (places[uint64(of + kz)], weights[uint64(of + kz)]) if axes == 3 else (0, one)
            for ky in range(terms):
                y, wy = places[uint64(y_of + ky)], wz * weights[uint64(y_of + ky)]
                for kx in range(terms):
                    x = places[uint64(x_of + kx)]
                    is_inside = z >= 0 and y >= 0 and x >= 0
                    cells[uint64(to)] = (z * height + y) * width + x if is_inside else -1
                    products[uint64(to)] = wy * weights[uint64(x_of + kx)]
                    to += 1


# --- all channels ----------------------------------------------------------------------------------------------------


@integral
def sample_loop(lo, hi, channels, points, elements, terms, cells, weights, values, values_at, x, x_at):
    """The values of the points of planes lo <= plane < hi: one channel of one image. Or, where they are put back, adds
    to each element the gradients of the points, by the weight that it had."""
    for plane in range(lo, hi):
        image, of = x_at + plane * elements, plane // channels * points * terms
        for p in range(points):
            at, total = uint64(values_at + plane * points + p), zero
            value = values[at] if put_back else zero
            for k in range(of + p * terms, of + (p + 1) * terms):
                cell = cells[uint64(k)]
                if cell >= 0:
                    if put_back:
                        x[uint64(image + cell)] += value * weights[uint64(k)]
                    else:
                        total += weights[uint64(k)] * x[uint64(image + cell)]
            if not put_back:
                values[at] = total


put_back = False  # stands for whether the values are given


@integral
def move_loop(lo, hi, g, places, weights, slopes, out, out_at, grad, grad_at, x, x_at):
    """The gradients of the coordinates of points lo <= n < hi: how all channels change as the point moves."""
    channels, points, axes, terms, depth, height, width = g[0], g[1], g[2], g[3], g[4], g[5], g[6]
    for n in range(lo, hi):
        batch, p = n // points, n % points
        of = n * axes * terms
        y_of, x_of = of + (axes - 2) * terms, of + (axes - 1) * terms
        by_z, by_y, by_x = zero, zero, zero
        for kz in range(terms if axes == 3 else 1):
            z, wz, sz = 0, one, zero
            if axes == 3:
                z, wz, sz = places[uint64(of + kz)], weights[uint64(of + kz)], slopes[uint64(of + kz)]
            for ky in range(terms):
                y, wy, sy = places[uint64(y_of + ky)], weights[uint64(y_of + ky)], slopes[uint64(y_of + ky)]
                for kx in range(terms):
                    at, wx, sx = places[uint64(x_of + kx)], weights[uint64(x_of + kx)], slopes[uint64(x_of + kx)]
                    if z >= 0 and y >= 0 and at >= 0:
                        total = zero
                        for channel in range(channels):
                            plane = batch * channels + channel
                            element = x[uint64(x_at + ((plane * depth + z) * height + y) * width + at)]
                            total += grad[uint64(grad_at + plane * points + p)] * element
                        by_z += total * sz * wy * wx
                        by_y += total * wz * sy * wx
                        by_x += total * wz * wy * sx
        to = out_at + n * axes
        out[uint64(to)], out[uint64(to + 1)] = by_x, by_y
        if axes == 3:
            out[uint64(to + 2)] = by_z


# --- calls -----------------------------------------------------------------------------------------------------------

LOCATE = Template(locate_loop, "x[] sizes weights slopes grid", "int64[] places")
COMBINE = Template(combine_loop, "int64[] g cells places", "x[] products weights")
SAMPLE = Template(sample_loop, "int64[] cells", "x[] weights values x")
MOVE = Template(move_loop, "int64[] g places", "x[] weights slopes out grad x")


@dataclass(eq=False)
class Points:
    """The points of a grid over images of some size, located: the terms of each point and axis."""

    g: np.ndarray
    count: int
    places: Any
    weights: Any
    slopes: Any
    dtype: str

    def __post_init__(self) -> None:
        self.channels, self.points, self.axes, self.terms = map(int, self.g[:4])
        self.elements = int(np.prod(self.g[4:]))

    @cached_property
    def combined(self) -> tuple[int, int, int, int, Any, Any]:
        """Returns the arguments of the loops over channels: sizes, and the elements and weights of all points."""
        terms = self.terms**self.axes
        cells, products = memory(self.count * terms, np.int64), memory(self.count * terms, self.dtype)
        parallel_for(COMBINE(x=self.dtype), self.count, (self.g, cells, products, self.places, self.weights), 4 * terms)
        return self.channels, self.points, self.elements, terms, cells, products

    def sample(self, out: Operand, x: Operand) -> None:
        """out[n, channels, points] of the images x[n, channels, size]."""
        self._by_planes(out, x, False)

    def put_back(self, out: Operand, grad: Operand) -> None:
        """Adds to out[n, channels, size] the gradients grad[n, channels, points]."""
        self._by_planes(grad, out, True)

    def _by_planes(self, values: Operand, x: Operand, put_back: bool) -> None:
        args, work = (*self.combined, *arrays_of(values, x)), 4 * self.points * self.terms**self.axes
        entry = SAMPLE(name="put_back_loop" if put_back else "sample_loop", x=self.dtype, put_back=put_back)
        parallel_for(entry, prod(x.shape[:2]), args, max(1, work))

    def move(self, out: Operand, grad: Operand, x: Operand) -> None:
        """out[n, points, axes], the gradients of the grid."""
        tables = self.g, self.places, self.weights, self.slopes
        args = (*tables, *arrays_of(out, grad, x))
        parallel_for(MOVE(x=self.dtype), self.count, args, max(1, 4 * self.channels * self.terms**self.axes))


def locate(grid: Operand, images: tuple[int, ...], mode: int, padding: int, align: bool) -> Points:
    """The points grid[n, ..., axes] over images of the shape [n, channels, size]; float32 or float64, contiguous."""
    axes, terms = grid.shape[-1], TERMS[mode]
    count, dtype = prod(grid.shape[:-1]), grid.dtype
    size = count * axes * terms
    places, weights, slopes = memory(size, np.int64), memory(size, dtype), memory(size, dtype)
    sizes = np.array(images[2:], dtype)
    args = (axes, terms, padding, int(align), sizes, places, weights, slopes, grid.array, grid.offset)
    parallel_for(LOCATE(x=dtype, real=getattr(np, dtype)), count, args, 8 * axes * terms)
    g = images[1], prod(grid.shape[1:-1]), axes, terms, *[1] * (3 - axes), *images[2:]
    return Points(np.array(g, np.int64), count, places, weights, slopes, dtype)
