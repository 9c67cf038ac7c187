"""Sampling images at given places: the value of each channel at points that lie between the elements.

Two steps. `locate` turns each coordinate into a few terms: elements along its axis, with their weights, and the slopes
of the weights, by which they change as the point moves. Then the value of a point is a sum of products of terms, one
from each axis; its gradients are the same sum with the value's gradient or a slope in it.

A point has `terms` terms on each axis: 2 on a line, 1 at the nearest element, 4 on a cubic. An element outside of the
image is the place -1 and counts as zero. Read next: resample.py, where the places are the same for all lines.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import Operand, memory

from ..engine.pool import parallel_for
from ..engine.program import integral
from ..engine.template import Template, one, zero

uint64, int64 = np.uint64, np.int64
real = np.float64  # stands for the dtype

LINE, NEAREST, CUBIC = 0, 1, 2  # how to interpolate
ZEROS, BORDER, REFLECTION = 0, 1, 2  # what is outside of the image
TERMS = (2, 1, 4)

# --- one coordinate --------------------------------------------------------------------------------------------------


def position(coordinate, size, align):
    """Where in an axis a coordinate from [-1, 1] lies: at the corner elements' middles, or at the image's edges."""
    if align:
        return (coordinate + 1) / 2 * (size - 1)
    return ((coordinate + 1) * size - 1) / 2


def pace(size, align):
    """How fast the position moves."""
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
def sample_loop(lo, hi, channels, points, elements, terms, cells, weights, out, out_at, x, x_at):
    """The points of planes lo <= plane < hi: one channel of one image."""
    for plane in range(lo, hi):
        image, of = x_at + plane * elements, plane // channels * points * terms
        for p in range(points):
            total = zero
            for k in range(of + p * terms, of + (p + 1) * terms):
                cell = cells[uint64(k)]
                if cell >= 0:
                    total += weights[uint64(k)] * x[uint64(image + cell)]
            out[uint64(out_at + plane * points + p)] = total


@integral
def put_back_loop(lo, hi, channels, points, elements, terms, cells, weights, out, out_at, grad, grad_at):
    """Adds to planes lo <= plane < hi the gradients of the points: each element by the weight that it had."""
    for plane in range(lo, hi):
        image, of = out_at + plane * elements, plane // channels * points * terms
        for p in range(points):
            value = grad[uint64(grad_at + plane * points + p)]
            for k in range(of + p * terms, of + (p + 1) * terms):
                cell = cells[uint64(k)]
                if cell >= 0:
                    out[uint64(image + cell)] += value * weights[uint64(k)]


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
SAMPLE = Template(sample_loop, "int64[] cells", "x[] weights out x")
PUT_BACK = Template(put_back_loop, "int64[] cells", "x[] weights out grad")
MOVE = Template(move_loop, "int64[] g places", "x[] weights slopes out grad x")


class Points:
    """The points of a grid over images of some size, located: the terms of each point and axis."""

    def __init__(self, g: np.ndarray, count: int, places: Any, weights: Any, slopes: Any, dtype: str) -> None:
        self.g, self.count, self.places, self.weights, self.slopes, self.dtype = (
            g,
            count,
            places,
            weights,
            slopes,
            dtype,
        )
        self.channels, self.points, self.axes, self.terms = map(int, g[:4])
        self.elements = int(np.prod(g[4:]))

    @cached_property
    def combined(self) -> tuple[int, int, int, int, Any, Any]:
        """Returns the arguments of the loops over channels: sizes, and the elements and weights of all points."""
        terms = self.terms**self.axes
        cells, products = memory(self.count * terms, np.int64), memory(self.count * terms, self.dtype)
        parallel_for(COMBINE(x=self.dtype), self.count, (self.g, cells, products, self.places, self.weights), 4 * terms)
        return self.channels, self.points, self.elements, terms, cells, products

    def sample(self, out: Operand, x: Operand) -> None:
        """out[n, channels, points] of the images x[n, channels, size]."""
        self._by_planes(SAMPLE, out, x)

    def put_back(self, out: Operand, grad: Operand) -> None:
        """Adds to out[n, channels, size] the gradients grad[n, channels, points]."""
        self._by_planes(PUT_BACK, out, grad)

    def _by_planes(self, loop: Template, out: Operand, x: Operand) -> None:
        args = (*self.combined, out.array, out.offset, x.array, x.offset)
        parallel_for(loop(x=self.dtype), prod(x.shape[:2]), args, max(1, 4 * self.points * self.terms**self.axes))

    def move(self, out: Operand, grad: Operand, x: Operand) -> None:
        """out[n, points, axes], the gradients of the grid."""
        tables = self.g, self.places, self.weights, self.slopes
        args = (*tables, out.array, out.offset, grad.array, grad.offset, x.array, x.offset)
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
