"""Convolutions on a GPU, each a product of matrices of which one factor is gathered as it is read: no columns are laid
out in memory.

                    rows              columns             inner              a           b
    correlate       channels out      images, positions   channels in, taps  weight      image
    spread          channels in       images, pixels      channels out, taps weight      gradient
    correlations    channels out      channels in, taps   images, positions  gradient    image

`correlate` is the convolution, and the gradient of a transposed one; `spread` is the transposed one, and the gradient
for the image; `correlations` is the gradient for the weight. Three functions say where an element of each matrix lies,
-1 outside of the image. Everything is dense, and has three dimensions of space, some of them of size 1; a result's
channels may come last.

A block makes a tile, as in matmul.py; where there are few rows or columns (in a depthwise convolution there is one), a
thread makes a result. Read next: windows.py.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_a, store_out, zero are put there by `Written`.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor import Tensor, channels_last_strides, dtypes, empty
from redispatch.kernels.engine.program import integral, steps
from redispatch.kernels.ops import convolution
from redispatch.kernels.ops.convolution import Setting, is_channels_last

from ..compiler import CUDA as cuda
from ..elementwise import MOST
from ..launch import Launch
from ..runtime.copies import laid
from ..runtime.structured import Task, dense, kernel_of, launched, work_of
from ..templates import THREADS, Written, accumulating, divided
from .matmul import ROW, SHARED, STEP, TILE, tile_of

int64 = np.int64
FEW = 8  # rows or columns: with fewer, most of a tile would be idle
ENOUGH, SHORTEST = 512, 16 * STEP  # blocks that keep a GPU busy, and products worth a block of their own

# --- where elements lie -----------------------------------------------------------------------------------------------


@integral
def pixel_of(g, position, tap):
    """The pixel under a tap of the window at a position; -1 outside."""
    d, h, w, od, oh, ow, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, into, made, groups = g
    line, depth, tap_line = divided(position, ow), divided(position, ow * oh), divided(tap, kw)
    tap_depth = divided(tap_line, kh)
    z = depth * sd - pd + tap_depth * dd
    y = (line - depth * oh) * sh - ph + (tap_line - tap_depth * kh) * dh
    x = (position - line * ow) * sw - pw + (tap - tap_line * kw) * dw
    inside = z >= 0 and z < d and y >= 0 and y < h and x >= 0 and x < w
    return (z * h + y) * w + x if inside else int64(-1)


@integral
def stepped(number, step, count):
    """number / step, where it is a whole number below `count`; -1 elsewhere."""
    found = divided(number, step) if number >= 0 else int64(-1)
    return found if number >= 0 and found * step == number and found < count else int64(-1)


@integral
def position_of(g, pixel, tap):
    """The position whose window has this tap on a pixel; -1 if there is none."""
    d, h, w, od, oh, ow, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, into, made, groups = g
    line, depth, tap_line = divided(pixel, w), divided(pixel, w * h), divided(tap, kw)
    tap_depth = divided(tap_line, kh)
    z = stepped(depth + pd - tap_depth * dd, sd, od)
    y = stepped(line - depth * h + ph - (tap_line - tap_depth * kh) * dh, sh, oh)
    x = stepped(pixel - line * w + pw - (tap - tap_line * kw) * dw, sw, ow)
    return (z * oh + y) * ow + x if z >= 0 and y >= 0 and x >= 0 else int64(-1)


@integral
def weight_of_row(g, group, row, at):
    """Channel out `row`, channel in and tap `at`."""
    return (group * g[19] + row) * g[18] * g[6] * g[7] * g[8] + at


@integral
def weight_of_inner(g, group, row, at):
    """Channel in `row`, channel out and tap `at`."""
    taps = g[6] * g[7] * g[8]
    channel = divided(at, taps)
    return ((group * g[19] + channel) * g[18] + row) * taps + at - channel * taps


@integral
def gradient_of_row(g, group, row, at):
    """Channel out `row`, image and position `at`; also where a result of `correlate` lies."""
    positions = g[3] * g[4] * g[5]
    image = divided(at, positions)
    return ((image * g[20] + group) * g[19] + row) * positions + at - image * positions


@integral
def pixel_of_row(g, group, row, column):
    """Channel in `row`, image and pixel `column`: where a result of `spread` lies."""
    pixels = g[0] * g[1] * g[2]
    image = divided(column, pixels)
    return ((image * g[20] + group) * g[18] + row) * pixels + column - image * pixels


@integral
def gradient_of_row_last(g, group, row, at):
    """Returns the place of a gradient in a tensor whose channels come last."""
    return at * g[19] * g[20] + group * g[19] + row


@integral
def pixel_of_row_last(g, group, row, column):
    """Returns the place of a pixel in a tensor whose channels come last."""
    return column * g[18] * g[20] + group * g[18] + row


@integral
def image_at_window(g, group, at, column):
    """Channel in and tap `at`, image and position `column`."""
    positions, taps, pixels = g[3] * g[4] * g[5], g[6] * g[7] * g[8], g[0] * g[1] * g[2]
    image, channel = divided(column, positions), divided(at, taps)
    pixel = pixel_of(g, column - image * positions, at - channel * taps)
    return ((image * g[20] + group) * g[18] + channel) * pixels + pixel if pixel >= 0 else int64(-1)


@integral
def gradient_at_pixel(g, group, at, column):
    """Channel out and tap `at`, image and pixel `column`."""
    positions, taps, pixels = g[3] * g[4] * g[5], g[6] * g[7] * g[8], g[0] * g[1] * g[2]
    image, channel = divided(column, pixels), divided(at, taps)
    position = position_of(g, column - image * pixels, at - channel * taps)
    return ((image * g[20] + group) * g[19] + channel) * positions + position if position >= 0 else int64(-1)


@integral
def image_at_position(g, group, at, column):
    """Image and position `at`, channel in and tap `column`."""
    return image_at_window(g, group, column, at)


# --- kernels ----------------------------------------------------------------------------------------------------------


def gathered_tiles(
    out, a, b, added, rows, columns, inner, share, adds, d, h, w, od, oh, ow, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd,
    dh, dw, into, made, groups,
):  # fmt: skip
    """A block makes a tile of TILE x WIDTH for one group, as `tiled_product` does, of a share of what is added up."""
    g = (d, h, w, od, oh, ow, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, into, made, groups)
    left = cuda.shared.array(SHARED, compute)
    right = cuda.shared.array(SHARED, compute)
    sums = cuda.local.array(SUMS, compute)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    down, across = (rows + (TILE - 1)) // TILE, (columns + (WIDTH - 1)) // WIDTH
    group = block // (down * across)
    block -= group * down * across
    begin = group // groups * share
    end = min(begin + share, inner)
    made_before = group // groups * rows * columns * groups
    group %= groups
    top = block // across * TILE
    side = (block - block // across * across) * WIDTH
    i, j = thread >> 4, thread & 15
    for part in range(SUMS):
        sums[part] = zero
    for start in steps(begin, end, STEP):
        for part in range(4):
            element = thread + part * THREADS
            at, row = element & 15, element >> 4
            value = zero
            if top + row < rows and start + at < end:
                value = load_a(a[place_a(g, group, top + row, start + at)])
            left[at * ROW + row] = value
        for part in range(EACH):
            element = thread + part * THREADS
            at, column = element >> SHIFT, element & (WIDTH - 1)
            value = zero
            if side + column < columns and start + at < end:
                place = place_b(g, group, start + at, side + column)
                if place >= 0:
                    value = load_b(b[place])
            right[at * ROW + column] = value
        cuda.syncthreads()
        for at in range(STEP):
            row, column = at * ROW + i, at * ROW + j
            x0, x1, x2, x3 = left[row], left[row + 16], left[row + 32], left[row + 48]
            for part in range(EACH):
                y = right[column + part * 16]
                sums[part] += x0 * y
                sums[part + EACH] += x1 * y
                sums[part + 2 * EACH] += x2 * y
                sums[part + 3 * EACH] += x3 * y
        cuda.syncthreads()
    for part in range(SUMS):
        row, column = top + i + part // EACH * 16, side + j + part % EACH * 16
        if row < rows and column < columns:
            total = sums[part]
            if adds == 1:
                total += load_added(added[group * rows + row])
            out[made_before + place_out(g, group, row, column)] = store_out(total)


def gathered_sums(
    out, a, b, added, rows, columns, inner, share, adds, d, h, w, od, oh, ow, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd,
    dh, dw, into, made, groups,
):  # fmt: skip
    """A thread makes a result, of a share of what is added up."""
    g = (d, h, w, od, oh, ow, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw, into, made, groups)
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    of_share = index // (rows * columns * groups)
    begin = of_share * share
    if begin < inner or index < rows * columns * groups:
        rest = index - of_share * rows * columns * groups
        group = rest // (rows * columns)
        rest -= group * rows * columns
        row = rest // columns
        column = rest - row * columns
        total = zero
        for at in range(begin, min(begin + share, inner)):
            place = place_b(g, group, at, column)
            if place >= 0:
                total += load_a(a[place_a(g, group, row, at)]) * load_b(b[place])
        if adds == 1:
            total += load_added(added[group * rows + row])
        out[of_share * rows * columns * groups + place_out(g, group, row, column)] = store_out(total)


ARRAYS = ("out", "a", "b", "added")
TILES, SUMS_ALONE = Written(gathered_tiles, ARRAYS), Written(gathered_sums, ARRAYS)
PLACES: dict[str, dict[str, Callable]] = {
    "correlate": {"place_a": weight_of_row, "place_b": image_at_window, "place_out": gradient_of_row},
    "spread": {"place_a": weight_of_inner, "place_b": gradient_at_pixel, "place_out": pixel_of_row},
    "correlations": {"place_a": gradient_of_row, "place_b": image_at_position, "place_out": weight_of_row},
}


CHANNELS_LAST = {"correlate": gradient_of_row_last, "spread": pixel_of_row_last}  # where results lie so


class Geometry(NamedTuple):
    """Windows over images: sizes in three dimensions each, channels per group, and groups."""

    image: tuple[int, ...]
    counts: tuple[int, ...]  # of positions
    window: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    into: int  # channels in, of a group
    made: int  # channels out, of a group
    groups: int

    def numbers(self) -> tuple[int, ...]:
        """Returns its numbers as kernels take them."""
        lists = (self.image, self.counts, self.window, self.stride, self.padding, self.dilation)
        return (*(number for one in lists for number in one), self.into, self.made, self.groups)


def gathered(
    what: str, dtype: str, batch: int, g: Geometry, adds: bool = False, last: bool = False, shares: bool = False
) -> tuple[Launch, tuple[int, ...], int]:
    """Returns a launch for "correlate", "spread" or "correlations" of so many images, and what it is told.

    Behind the addresses of out, a, b and what is added to each channel, that is. `last`: the result's channels come
    last in memory. `shares`: a result may come as several to be added up, in the type that is computed in; their count
    is the third that is returned.
    """
    taps, positions, pixels = math.prod(g.window), math.prod(g.counts), math.prod(g.image)
    rows, columns, inner = {
        "correlate": (g.made, batch * positions, g.into * taps),
        "spread": (g.into, batch * pixels, g.made * taps),
        "correlations": (g.made, g.into * taps, batch * positions),
    }[what]
    results = rows * columns * g.groups
    if max(columns, inner, results) >= MOST:
        raise NotImplementedError("convolution: so many elements are more than one CUDA launch counts yet")
    compute = accumulating(dtype)
    shape = tile_of(compute)
    alone = min(rows, columns) < FEW
    blocks = -(-results // THREADS) if alone else g.groups * -(-rows // TILE) * -(-columns // shape["WIDTH"])
    wanted = max(1, min(ENOUGH // blocks, inner // SHORTEST)) if shares else 1
    share = -(-inner // (wanted * STEP)) * STEP
    count = max(1, -(-inner // max(share, 1)))
    kinds = (dtype if count == 1 else compute, *(dtype,) * 3)
    rest = (rows, columns, inner, share, int(adds), *g.numbers())
    given: dict[str, object] = {**PLACES[what], **({"place_out": CHANNELS_LAST[what]} if last else {})}
    if alone:
        return SUMS_ALONE.spread(compute, kinds, results * count, **given), rest, count
    return TILES.launch(compute, kinds, blocks * count, **given, **shape), rest, count


def geometry(setting: Setting, input: Tensor, weight: Tensor, made: Sequence[int]) -> Geometry:
    """The windows: over the input, or, of a transposed convolution, over what it makes."""
    image, counts = (made[2:], input._shape[2:]) if setting.transposed else (input._shape[2:], made[2:])

    def full(values: Sequence[int], filler: int) -> tuple[int, ...]:
        """With three dimensions, whatever there are."""
        return (filler,) * (3 - setting.dims) + tuple(values)

    sizes = full(image, 1), full(counts, 1), full(weight._shape[2:], 1)
    how = full(setting.stride, 1), full(setting.padding, 0), full(setting.dilation, 1)
    return Geometry(*sizes, *how, weight._shape[1], weight._shape[0] // setting.groups, setting.groups)


def gradient(what: str, g: Geometry, like: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Returns a gradient of the shape and dtype of `like`, which lies row by row.

    That of a weight has few elements, each a sum over all images: blocks make shares of it.
    """
    batch = (b if what == "correlations" else like)._shape[0]
    if not like._shape.numel():
        return empty(like._shape, like._dtype, like._device)
    launch, rest, shares = gathered(what, like._dtype.name, batch, g, shares=what == "correlations")
    computed = getattr(dtypes, accumulating(like._dtype.name)) if shares > 1 else like._dtype
    out = empty((shares, *like._shape) if shares > 1 else like._shape, computed, like._device)
    launched([Task(launch, (0, 1, 2, 3), rest)], [out, dense(a), dense(b), None])
    return out.sum(0).to(like._dtype) if shares > 1 else out


@work_of(convolution.convolution.op, dense=("input", "weight", "bias"))
def convolution_work(out: Tensor, input: Tensor, weight: Tensor, bias: Any, *how: Any) -> list[Task]:
    """`convolution`"""
    if not out._shape.numel():
        return []
    setting = Setting(input, weight, None, *how)
    g = geometry(setting, input, weight, out._shape)
    what = "spread" if setting.transposed else "correlate"
    last = is_channels_last(out)
    launch, rest, _ = gathered(what, out._dtype.name, out._shape[0], g, bias is not None, last)
    return [Task(launch, (0, 2, 1, 3), rest)]


def like_images(x: Tensor, *given: Tensor) -> Tensor:
    """Channels last, if one of the arguments lies so."""
    return laid(x, channels_last_strides(x._shape) if any(map(is_channels_last, given)) else None)


@kernel_of("convolution_backward")
def convolution_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Any, *how_and_mask: Any
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias, those that are asked for."""
    *how, output_mask = how_and_mask
    setting = Setting(input, weight, None, *how)
    made = convolution.check_gradient(grad_output, setting, input, weight)
    g = geometry(setting, input, weight, made)
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        found = gradient("correlate" if setting.transposed else "spread", g, input, weight, grad_output)
        of_input = like_images(found, input, weight)
    if output_mask[1]:
        pair = (input, grad_output) if setting.transposed else (grad_output, input)
        of_weight = like_images(gradient("correlations", g, weight, *pair), weight, input)
    if output_mask[2]:
        of_bias = grad_output.sum([d for d in range(len(made)) if d != 1])
    return of_input, of_weight, of_bias
