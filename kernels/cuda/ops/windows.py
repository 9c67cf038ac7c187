"""Windows of images on a GPU: pooling, and windows as columns of a matrix; and the gradients of both.

A thread makes each element of a result. Windows that are pooled are the tables of the CPU's (kernels/cpu/pooling.py):
the places where they start and stop, axis by axis. Behind those come, for each pixel of an axis, the first window that
may have it and the one behind the last. So a pixel gathers what belongs to it from its windows, or from the columns, in
one order always, where adding it from the windows' side would take atomics. Shapes, dtypes and errors are said by the
operators themselves.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels import DTYPES
from redispatch.kernels.cpu.pooling import Windows3d
from redispatch.kernels.engine.program import integral
from redispatch.kernels.ops.folding import Blocks, blocks_of_columns, blocks_of_images, col2im, im2col
from redispatch.kernels.ops.max_pooling import Fractional
from redispatch.kernels.ops.pooling import ELSEWHERE, Loops
from redispatch.kernels.ops.pooling import OPERATORS as POOLS

from ..compiler import CUDA as cuda
from ..runtime.copies import table_on
from ..runtime.structured import Task, as_on_cpu, dense, launched, work_of
from ..templates import THREADS, Written, accumulating, divided

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


@integral
def place_of(index, depth, height, width):
    """(image, z, y, x) of an element, which is counted over images of these sizes."""
    image = index // (depth * height * width)
    rest = index - image * depth * height * width
    z = rest // (height * width)
    y = (rest - z * height * width) // width
    return image, z, y, rest - (z * height + y) * width


def largest_of_windows(out, places, x, table, windows):
    """The largest element of each window, and where in the image it is; NaN is the largest.

    A window whose elements are all outside of the image has the lowest number, at the place where it begins.
    """
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < windows:
        h, w, od, oh, ow = table[1], table[2], table[3], table[4], table[5]
        image, k, j, i = place_of(index, od, oh, ow)
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
    """The start of window number i of an axis (kernels/ops/max_pooling.py, `starts_of`)."""
    if i == count - 1:
        return size - span
    step = type(shift)(size - span) / type(shift)(count - 1)
    return int64(math.trunc((type(shift)(i) + shift) * step) - math.trunc(shift * step))


def largest_of_windows_at_random(
    out, places, x, samples, windows, d, h, w, od, oh, ow, kd, kh, kw, numbers, z_number, y_number, x_number
):  # fmt: skip
    """Finds the maxima of windows of one size whose places follow, in each image, from `numbers` random ones, an axis
    each."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < windows:
        image, k, j, i = place_of(index, od, oh, ow)
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
        image, k, j, i = place_of(index, od, oh, ow)
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
        image, z, y, x = place_of(index, d, h, w)
        pixel = (z * h + y) * w + x
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

# --- pooling ----------------------------------------------------------------------------------------------------------


def table_of(windows: Windows3d, like: Tensor) -> Tensor:
    """The windows' table on a tensor's device."""
    return table_on(like._device, windows.table.tobytes(), lambda: with_covering(windows.table))


def launch(
    written: Written, compute: str, tensors: Sequence[Tensor], rest: Sequence[int] = (), **given: object
) -> None:
    """A thread for each element of the first tensor; `rest` are numbers behind their count."""
    count = tensors[0]._shape.numel()
    if count:
        where = written.spread(compute, [one._dtype.name for one in tensors], count, **given)
        launched([Task(where, tuple(range(len(tensors))), (count, *rest))], tensors)


def largest(self: Tensor, shape: Sequence[int], windows: Windows3d, dims: int) -> tuple[Tensor, Tensor]:
    out, places = empty(shape, self._dtype, self._device), empty(shape, dtypes.int64, self._device)
    compute = DTYPES[self._dtype.name].compute
    least = -np.inf if self._dtype.is_floating_point else np.iinfo(compute).min
    lowest = np.dtype(compute).type(least)
    launch(LARGEST, compute, (out, places, dense(self), table_of(windows, self)), lowest=lowest)
    return out, places


def put_back(grad: Tensor, self: Tensor, indices: Tensor, windows: Windows3d) -> Tensor:
    out, table = empty(self._shape, grad._dtype, self._device), table_of(windows, self)
    compute = accumulating(grad._dtype.name)
    given: dict[str, Any] = {"BY_PLACES": True, "mean_of": MEAN_OF[compute]}
    launch(GATHERED, compute, (out, dense(grad), dense(indices), table), **given)
    return out


def averaged(self: Tensor, windows: Windows3d, shape: Sequence[int], dims: int) -> Tensor:
    out, compute = empty(shape, self._dtype, self._device), accumulating(self._dtype.name)
    mean_of = MEAN_OF[compute]
    launch(MEANS, compute, (out, dense(self), table_of(windows, self)), mean_of=mean_of)
    return out


def shared_out(grad: Tensor, self: Tensor, windows: Windows3d, dims: int) -> Tensor:
    out, table = empty(self._shape, grad._dtype, self._device), table_of(windows, self)
    compute = accumulating(grad._dtype.name)
    given: dict[str, Any] = {"BY_PLACES": False, "mean_of": MEAN_OF[compute]}
    launch(GATHERED, compute, (out, dense(grad), table, table), **given)
    return out


def at_random(self: Tensor, setting: Fractional, samples: Tensor) -> tuple[Tensor, Tensor]:
    """The random numbers stay on the device."""
    out, places = empty(setting.shape, self._dtype, self._device), empty(setting.shape, dtypes.int64, self._device)
    missing = [1] * (3 - setting.dims)
    sizes = [*missing, *setting.sizes, *missing, *setting.counts, *missing, *setting.kernel]
    order = (0, 1, 0) if setting.dims == 2 else (0, 1, 2)  # of the random numbers, for depth, height and width
    tensors = (out, places, dense(self), dense(samples))
    launch(AT_RANDOM, DTYPES[self._dtype.name].compute, tensors, (*sizes, setting.dims, *order))
    return out, places


ELSEWHERE["cuda"] = Loops(largest, at_random, put_back, averaged, shared_out)
as_on_cpu("pooling", *[pool.functional for pool in POOLS])

# --- windows as columns -----------------------------------------------------------------------------------------------


def columns_of_images(out, x, elements, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw):
    """Element (plane, ky, kx, j, i) of the columns: that element of window (j, i), zero outside of the image."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < elements:
        line = divided(index, ow)
        row = divided(line, oh)
        tap_line = divided(row, kw)
        plane = divided(tap_line, kh)
        j, i = line - row * oh, index - line * ow
        at_y = j * sh - ph + (tap_line - plane * kh) * dh
        at_x = i * sw - pw + (row - tap_line * kw) * dw
        value = zero
        if at_y >= 0 and at_y < h and at_x >= 0 and at_x < w:
            value = load_x(x[(plane * h + at_y) * w + at_x])
        out[index] = store_out(value)


def images_of_columns(out, x, elements, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw):
    """Pixel (plane, at_y, at_x) of the images: the sum of what the columns x have of it."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < elements:
        line = divided(index, w)
        plane = divided(line, h)
        at_y, at_x = line - plane * h + ph, index - line * w + pw
        total = zero
        for ky in range(kh):
            from_top = at_y - ky * dh
            j = divided(max(from_top, 0), sh)
            if from_top == j * sh and j < oh:
                for kx in range(kw):
                    from_left = at_x - kx * dw
                    i = divided(max(from_left, 0), sw)
                    if from_left == i * sw and i < ow:
                        total += load_x(x[(((plane * kh + ky) * kw + kx) * oh + j) * ow + i])
        out[index] = store_out(total)


COLUMNS = Written(columns_of_images, ("out", "x"))
IMAGES = Written(images_of_columns, ("out", "x"))


def task(written: Written, out: Tensor, x: Tensor, blocks: Blocks) -> list[Task]:
    """A thread for each element of the result, where there are any."""
    count = out._shape.numel()
    if not count:
        return []
    where = written.spread(accumulating(x._dtype.name), (out._dtype.name, x._dtype.name), count)
    how = (blocks.size, blocks.counts, blocks.kernel, blocks.stride, blocks.padding, blocks.dilation)
    return [Task(where, (0, 1), (count, *(number for pair in how for number in pair)))]


@work_of(im2col.op, dense=("self",))
def columns(out: Tensor, self: Tensor, *how: Any) -> list[Task]:
    return task(COLUMNS, out, self, blocks_of_images(self, *how))


@work_of(col2im.op, dense=("self",))
def added_up(out: Tensor, self: Tensor, *how: Any) -> list[Task]:
    return task(IMAGES, out, self, blocks_of_columns(self, *how))
