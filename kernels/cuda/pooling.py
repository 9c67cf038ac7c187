"""Pooling on a GPU, and its gradients: a thread for each window, and one for each pixel.

Windows are the tables of the CPU's (../pooling.py): the places where they start and stop, axis by axis. Behind those
come, for each pixel of an axis, the first window that may have it and the one behind the last. So a pixel gathers what
belongs to it from its windows, in one order always, where adding it from the windows' side would take atomics.
Read next: `runtime/pooling.py`.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import math

import numpy as np

from ..engine.program import integral
from .compiler import CUDA as cuda
from .templates import THREADS, Written

int64, float32, float64 = np.int64, np.float32, np.float64
HEAD = 13  # numbers of a table before those of the axes: sizes, counts, steps, the divisor, three more


def with_covering(table: np.ndarray) -> np.ndarray:
    """A table, and behind it, axis by axis, the windows that may have each pixel: the first ones, those behind the
    last. A window between them need not have it, where windows have gaps."""
    parts, at = [table], HEAD
    for size, count in zip(table[:3], table[3:6], strict=True):
        starts, stops = table[at : at + count], table[at + count : at + 2 * count]
        at += 3 * count
        pixels = np.arange(size)
        later = np.minimum.accumulate(starts[::-1])[::-1]  # dilated windows at the edge do not start in their order
        first = np.searchsorted(np.maximum.accumulate(stops), pixels, "right")
        parts += [first, np.searchsorted(later, pixels, "right")]
    return np.concatenate(parts).astype(np.int64)


def largest_of_windows(out, places, x, table, windows):
    """The largest element of each window, and where in the image it is; NaN is the largest.

    A window whose elements are all outside of the image has the lowest number, at the place where it begins.
    """
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < windows:
        h, w, od, oh, ow = table[1], table[2], table[3], table[4], table[5]
        image = index // (od * oh * ow)
        rest = index - image * od * oh * ow
        k = rest // (oh * ow)
        j = (rest - k * oh * ow) // ow
        i = rest - (k * oh + j) * ow
        z_at, y_at, x_at = HEAD + k, HEAD + 3 * od + j, HEAD + 3 * od + 3 * oh + i
        base = image * table[0] * h * w
        best, place = lowest, (table[z_at] * h + table[y_at]) * w + table[x_at]
        if table[z_at] < table[z_at + od] and table[y_at] < table[y_at + oh] and table[x_at] < table[x_at + ow]:
            best = load_x(x[base + place])
        for z in range(table[z_at], table[z_at + od], table[6]):
            for y in range(table[y_at], table[y_at + oh], table[7]):
                for at in range((z * h + y) * w + table[x_at], (z * h + y) * w + table[x_at + ow], table[8]):
                    value = load_x(x[base + at])
                    if value > best or value != value:
                        best, place = value, at
        out[index] = store_out(best)
        places[index] = place


@integral
def start_at_random(shift, i, size, count, span):
    """Where window number i of an axis begins (kernels/ops/max_pooling.py, `starts_of`)."""
    if i == count - 1:
        return size - span
    step = type(shift)(size - span) / type(shift)(count - 1)
    return int64(math.trunc((type(shift)(i) + shift) * step) - math.trunc(shift * step))


def largest_of_windows_at_random(
    out, places, x, samples, windows, d, h, w, od, oh, ow, kd, kh, kw, numbers, z_number, y_number, x_number
):  # fmt: skip
    """The same for windows of one size whose places follow, in each image, from `numbers` random ones, an axis each."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < windows:
        image = index // (od * oh * ow)
        rest = index - image * od * oh * ow
        k = rest // (oh * ow)
        j = (rest - k * oh * ow) // ow
        i = rest - (k * oh + j) * ow
        z0 = start_at_random(load_samples(samples[image * numbers + z_number]), k, d, od, kd)
        y0 = start_at_random(load_samples(samples[image * numbers + y_number]), j, h, oh, kh)
        x0 = start_at_random(load_samples(samples[image * numbers + x_number]), i, w, ow, kw)
        base, place = image * d * h * w, (z0 * h + y0) * w + x0
        best = load_x(x[base + place])
        for z in range(z0, z0 + kd):
            for y in range(y0, y0 + kh):
                for at in range((z * h + y) * w + x0, (z * h + y) * w + x0 + kw):
                    value = load_x(x[base + at])
                    if value > best or value != value:
                        best, place = value, at
        out[index] = store_out(best)
        places[index] = place


def means_of_windows(out, x, table, windows):
    """The mean of each window."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < windows:
        h, w, od, oh, ow = table[1], table[2], table[3], table[4], table[5]
        image = index // (od * oh * ow)
        rest = index - image * od * oh * ow
        k = rest // (oh * ow)
        j = (rest - k * oh * ow) // ow
        i = rest - (k * oh + j) * ow
        z_at, y_at, x_at = HEAD + k, HEAD + 3 * od + j, HEAD + 3 * od + 3 * oh + i
        base, total = image * table[0] * h * w, zero
        for z in range(table[z_at], table[z_at + od]):
            for y in range(table[y_at], table[y_at + oh]):
                for at in range((z * h + y) * w + table[x_at], (z * h + y) * w + table[x_at + ow]):
                    total += load_x(x[base + at])
        extent = table[z_at + 2 * od] * table[y_at + 2 * oh] * table[x_at + 2 * ow]
        out[index] = store_out(mean_of(total, table[9] if table[9] != 0 else extent))


def gathered_by_pixels(out, grad, places, table, pixels):
    """To each pixel the gradients of the windows whose largest element it was, or its shares of those of means."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < pixels:
        d, h, w, od, oh, ow = table[0], table[1], table[2], table[3], table[4], table[5]
        image = index // (d * h * w)
        pixel = index - image * d * h * w
        z = pixel // (h * w)
        y = (pixel - z * h * w) // w
        x = pixel - (z * h + y) * w
        covering = HEAD + 3 * (od + oh + ow)
        z_at, y_at, x_at = covering + z, covering + 2 * d + y, covering + 2 * d + 2 * h + x
        total = zero
        for k in range(table[z_at], table[z_at + d]):
            for j in range(table[y_at], table[y_at + h]):
                for i in range(table[x_at], table[x_at + w]):
                    at = ((image * od + k) * oh + j) * ow + i
                    if BY_PLACES:
                        if places[at] == pixel:
                            total += load_grad(grad[at])
                    else:
                        extent = table[HEAD + 2 * od + k] * table[HEAD + 3 * od + 2 * oh + j]
                        extent *= table[HEAD + 3 * od + 3 * oh + 2 * ow + i]
                        total += mean_of(load_grad(grad[at]), table[9] if table[9] != 0 else extent)
        out[index] = store_out(total)


def mean_of_singles(total, count):
    return total / float32(count)


def mean_of_doubles(total, count):
    return total / float64(count)


@integral
def mean_of_integers(total, count):
    """Cut off at the point."""
    found = abs(total) // count
    return found if total >= 0 else -found


MEAN_OF = {"float32": mean_of_singles, "float64": mean_of_doubles, "int64": mean_of_integers}
LARGEST = Written(largest_of_windows, ("out", "places", "x", "table"))
AT_RANDOM = Written(largest_of_windows_at_random, ("out", "places", "x", "samples"))
MEANS = Written(means_of_windows, ("out", "x", "table"))
GATHERED = Written(gathered_by_pixels, ("out", "grad", "places", "table"))
