"""Samples of kernels/ops/grid_sampling.py, folding.py and shuffles.py. References: point by point, window by window."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import floor
from typing import Any

import numpy as np

from ..op_info import ALL, FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .resampling import keys

# --- sampling --------------------------------------------------------------------------------------------------------


def places(at: float, size: int, mode: int, padding: int, align: bool) -> dict[int, float]:
    """The elements along an axis that count for a point at the coordinate `at`, and their weights."""
    at = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
    if mode == 2:
        found: dict[int, float] = {}
        for whole in range(floor(at) - 1, floor(at) + 3):
            place = int(inside(whole, size, padding, align))
            found[place] = found.get(place, 0) + keys(at - whole, -0.75)
    else:
        at = inside(at, size, padding, align)
        found = {round(at): 1.0} if mode == 1 else {floor(at): 1 - at % 1, floor(at) + 1: at % 1}
    return {place: weight for place, weight in found.items() if 0 <= place < size}


def inside(at: float, size: int, padding: int, align: bool) -> float:
    if padding == 2:
        low, span = (0, size - 1) if align else (-0.5, size)
        at = low + abs((at - low + span) % (2 * span) - span) if span else 0
    return min(max(at, 0), size - 1) if padding else at


def sampled(x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for n, *point in np.ndindex(*grid.shape[:-1]):
        axes = [
            places(float(at), size, mode, padding, align).items()
            for at, size in zip(grid[(n, *point)][::-1], x.shape[2:], strict=True)
        ]
        for terms in product(*axes):
            weight = np.prod([one for _, one in terms])
            out[(n, slice(None), *point)] += weight * x[(n, slice(None), *(place for place, _ in terms))]
    return out


def sampled_back(grad: Any, x: Any, grid: Any, mode: int, padding: int, align: bool, mask: Any) -> tuple[Any, Any]:
    """By sampling images that are 1 at one element; by differences in the grid."""
    of_input = np.zeros_like(x)
    for where in np.ndindex(*x.shape[2:]):
        one = np.zeros((x.shape[0], 1, *x.shape[2:]))
        one[(slice(None), 0, *where)] = 1
        weights = sampled(one, grid, mode, padding, align)
        of_input[(..., *where)] = (weights * grad).reshape(*x.shape[:2], -1).sum(-1)
    of_grid, step = np.zeros(grid.shape), 1e-6
    for axis in range(grid.shape[-1]):
        moved = np.zeros(grid.shape)
        moved[..., axis] = step
        wide = [sampled(x.astype(np.float64), grid + sign * moved, mode, padding, align) for sign in (1, -1)]
        of_grid[..., axis] = ((wide[0] - wide[1]) / (2 * step) * grad).sum(1)
    return of_input, of_grid.astype(grid.dtype)


def points(make: Maker, *shape: int) -> Any:
    """A grid with points in the image and around it, none at a bend; 0 and 1 where there are no fractions."""
    numbers: Any = 1.37 * np.sin(1.7 * np.arange(1, 1 + int(np.prod(shape))))
    if not (make.dtype.is_floating_point or make.dtype.is_complex):
        numbers = (numbers > 0).astype(int)
    return make.values(numbers.reshape(shape).tolist())


MODES = {2: (0, 1, 2), 3: (0, 1)}


def samplings(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        image, grid = ((2, 2, 3, 4), (2, 2, 3, 2)) if dims == 2 else ((1, 2, 3, 2, 4), (1, 2, 1, 3, 3))
        for mode, padding in product(MODES[dims], (0, 1, 2)):
            yield sample(make(*image), points(make, *grid), mode, padding, (mode + padding) % 2 == 1)

    return samples


def samplings_back(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for given in samplings(dims)(make):
            grid, *how = given.args
            grad = make(*given.input.shape[:2], *grid.shape[1:-1])
            yield sample(grad, given.input, grid, *how, [True, True])

    return samples


def fallback_back(make: Maker) -> Iterator[SampleInput]:
    for given in samplings_back(2)(make):
        yield sample(given.input, *given.args[:-1])


def no_grid(make: Maker) -> Iterator[ErrorInput]:
    x = make(2, 3, 4, 5)
    for grid, text in (
        (make(1, 3, 3, 2), "expected grid and input to have same batch size, but got input with sizes [2, 3, 4, 5]"),
        (make(2, 3, 3, 3), "grid_sampler(): expected grid to have size 2 in last dimension, but got grid with sizes"),
    ):
        yield ErrorInput(sample(x, grid, 0, 0, False), RuntimeError, text)
    text = "but input has sizes [2, 3, 0, 5] with dimension 2 being empty"
    yield ErrorInput(sample(make(2, 3, 0, 5), make(2, 3, 3, 2), 0, 0, False), RuntimeError, text)


def no_cubic(make: Maker) -> Iterator[ErrorInput]:
    text = "grid_sampler(): bicubic interpolation only supports 4D input"
    yield ErrorInput(sample(make(1, 2, 3, 4, 5), make(1, 2, 2, 2, 3), 2, 0, False), RuntimeError, text)


def both(make: Maker) -> Iterator[SampleInput]:
    for dims in (2, 3):
        yield next(samplings(dims)(make))


def affine(theta: Any, size: Any, align: bool) -> Any:
    out = np.zeros((size[0], *size[2:], len(size) - 2), theta.dtype)
    for at in np.ndindex(*out.shape[:-1]):
        out[at] = theta[at[0]] @ [*coordinates(at[1:], size[2:], align)[::-1], 1]
    return out


def coordinates(place: Any, size: Any, align: bool) -> list[float]:
    if align:
        return [2 * i / (n - 1) - 1 if n > 1 else 0 for i, n in zip(place, size, strict=True)]
    return [(2 * i + 1) / n - 1 for i, n in zip(place, size, strict=True)]


def affine_back(grad: Any, size: Any, align: bool) -> Any:
    axes = len(size) - 2
    out = np.zeros((size[0], axes, axes + 1), grad.dtype)
    for at in np.ndindex(*grad.shape[:-1]):
        out[at[0]] += np.outer(grad[at], [*coordinates(at[1:], size[2:], align)[::-1], 1])
    return out


def affine_maps(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 2, 3), [2, 1, 3, 4], False)
    yield sample(make(2, 2, 3), [2, 1, 1, 4], True)
    yield sample(make(1, 3, 4), [1, 1, 2, 3, 2], True)


def affine_gradients(make: Maker) -> Iterator[SampleInput]:
    for given in affine_maps(make):
        size, align = given.args
        yield sample(make(size[0], *size[2:], len(size) - 2), size, align)


def no_affine(make: Maker) -> Iterator[ErrorInput]:
    text = "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs."
    yield ErrorInput(sample(make(2, 2, 3), [2, 1, 4], False), RuntimeError, text)


GRIDS = [
    *(
        info
        for dims, errors in ((2, no_grid), (3, no_cubic))
        for name in [f"grid_sampler_{dims}d"]
        for info in (
            OpInfo(name, samplings(dims), sampled, dtypes=FLOATS, errors=errors),
            OpInfo(
                f"{name}_backward",
                samplings_back(dims),
                sampled_back,
                dtypes=FLOATS,
                # The reference's own differences are good to so many digits.
                tolerance={"float64": (1e-6, 1e-6), "float32": (1e-4, 1e-4)},
                skips={"bfloat16": "in 8 bits points come to lie on bends, where differences mean nothing"},
            ),
        )
    ),
    OpInfo("_grid_sampler_2d_cpu_fallback", samplings(2), sampled, dtypes=FLOATS, errors=no_grid),
    OpInfo(
        "_grid_sampler_2d_cpu_fallback_backward",
        fallback_back,
        lambda grad, x, grid, mode, padding, align: sampled_back(grad, x, grid, mode, padding, align, [True, True]),
        dtypes=FLOATS,
        tolerance={"float64": (1e-6, 1e-6), "float32": (1e-4, 1e-4)},  # as above
        skips={"bfloat16": "in 8 bits points come to lie on bends, where differences mean nothing"},
    ),
    OpInfo("grid_sampler", both, sampled, dtypes=FLOATS, errors=no_cubic),
    OpInfo("affine_grid_generator", affine_maps, affine, dtypes=FLOATS, errors=no_affine),
    OpInfo("affine_grid_generator_backward", affine_gradients, affine_back, dtypes=FLOATS),
]

# --- columns ---------------------------------------------------------------------------------------------------------

HOWS: list[Any] = [([2, 3], [1, 1], [0, 0], [1, 1]), ([2, 2], [1, 2], [1, 1], [2, 1])]


def cells(size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> list[list[tuple[int, int]]]:
    """For each element of a window, the places that it has in all windows; outside of the image, too."""
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    ]
    return [
        [
            (y * stride[0] - padding[0] + i * dilation[0], x * stride[1] - padding[1] + j * dilation[1])
            for y, x in np.ndindex(*counts)
        ]
        for i, j in np.ndindex(*kernel)
    ]


def unfolded(x: Any, *how: Any) -> Any:
    height, width = x.shape[-2:]
    columns = cells((height, width), *how)
    out = np.zeros((*x.shape[:-2], len(columns), len(columns[0])), x.dtype)
    for row, column in np.ndindex(*out.shape[-2:]):
        i, j = columns[row][column]
        if 0 <= i < height and 0 <= j < width:
            out[..., row, column] = x[..., i, j]
    return out.reshape(*x.shape[:-3], x.shape[-3] * len(columns), len(columns[0]))


def folded(x: Any, size: Any, *how: Any) -> Any:
    columns = cells(size, *how)
    x = x.reshape(*x.shape[:-2], x.shape[-2] // len(columns), len(columns), x.shape[-1])
    out = np.zeros((*x.shape[:-2], *size), x.dtype)
    for row, column in np.ndindex(*x.shape[-2:]):
        i, j = columns[row][column]
        if 0 <= i < size[0] and 0 <= j < size[1]:
            out[..., i, j] += x[..., row, column]
    return out


def blocks(make: Maker) -> Iterator[SampleInput]:
    for how in HOWS:
        yield sample(make(2, 2, 3, 4), *how)
    yield sample(make(2, 3, 4), *HOWS[0])
    if make.thorough:
        yield sample(make(0, 2, 3, 4), *HOWS[0])


def columns_of(make: Maker) -> Iterator[SampleInput]:
    for given in blocks(make):
        shape = unfolded(np.zeros(tuple(given.input.shape)), *given.args).shape
        yield sample(make(*shape), [3, 4], *given.args)


def no_blocks(make: Maker) -> Iterator[ErrorInput]:
    x = make(2, 3, 4, 5)
    for args, text in (
        (([2], [1, 1], [0, 0], [1, 1]), "It is expected kernel_size equals to 2, but got size 1"),
        (([0, 2], [1, 1], [0, 0], [1, 1]), "kernel size should be greater than zero, but got kernel_height: 0"),
        (([2, 2], [1, 1], [-1, 0], [1, 1]), "padding should be non-negative, but got pad_height: -1 pad_width: 0"),
        (([2, 2], [1, 1], [0, 0], [0, 1]), "stride should be greater than zero, but got stride_height: 0"),
        (([7, 2], [1, 1], [0, 0], [1, 1]), "calculated shape of the array of sliding blocks as (-2, 4)"),
    ):
        yield ErrorInput(sample(x, *args), RuntimeError, text)
    text = "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input"
    yield ErrorInput(sample(make(2, 0, 4, 5), *HOWS[0]), RuntimeError, text)


def no_columns(make: Maker) -> Iterator[ErrorInput]:
    x = make(2, 12, 12)
    for size, kernel, text in (
        ([4], [2, 2], "It is expected output_size equals to 2, but got size 1"),
        ([4, 5], [5, 2], "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got"),
        ([4, 4], [2, 2], "to match the calculated number of sliding blocks 3 * 3 = 9, but got input.size(2)=12."),
    ):
        yield ErrorInput(sample(x, size, kernel, [1, 1], [0, 0], [1, 1]), RuntimeError, text)


FOLDING = [
    OpInfo("im2col", blocks, unfolded, dtypes=FLOATS, errors=no_blocks),
    OpInfo("col2im", columns_of, folded, dtypes=FLOATS, errors=no_columns),
]

# --- shuffles --------------------------------------------------------------------------------------------------------


def shuffle(x: Any, r: int) -> Any:
    *lead, channels, height, width = x.shape
    split = x.reshape(*lead, channels // r**2, r, r, height, width)
    n = len(lead)
    turned = split.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return turned.reshape(*lead, channels // r**2, height * r, width * r)


def unshuffle(x: Any, r: int) -> Any:
    parts = [x[..., i::r, j::r] for i in range(r) for j in range(r)]
    return np.stack(parts, -3).reshape(*x.shape[:-3], -1, x.shape[-2] // r, x.shape[-1] // r)


def channels(x: Any, groups: int) -> Any:
    return np.concatenate([x[:, i :: x.shape[1] // groups] for i in range(x.shape[1] // groups)], 1)


def pixels(*shapes: tuple[int, ...]) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in shapes:
            yield sample(make(*shape), 2)

    return samples


def no_shuffle(make: Maker) -> Iterator[ErrorInput]:
    for x, r, text in (
        (make(2, 2), 2, "pixel_shuffle expects input to have at least 3 dimensions, but got input with 2 dimension(s)"),
        (make(4, 2, 2), 0, "pixel_shuffle expects a positive upscale_factor, but got 0"),
        (make(8, 2, 2), 3, "but input.size(-3)=8 is not divisible by 9"),
    ):
        yield ErrorInput(sample(x, r), RuntimeError, text)


def no_unshuffle(make: Maker) -> Iterator[ErrorInput]:
    text = "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=3 is not divisible"
    yield ErrorInput(sample(make(1, 3, 4), 2), RuntimeError, text)


def no_groups(make: Maker) -> Iterator[ErrorInput]:
    for x, groups, text in (
        (make(4, 4), 2, "channel_shuffle expects input with > 2 dims, but got input with sizes [4, 4]"),
        (make(1, 4, 4), 3, "Number of channels must be divisible by groups. Got 4 channels and 3 groups."),
    ):
        yield ErrorInput(sample(x, groups), RuntimeError, text)


SHUFFLES = [
    OpInfo("pixel_shuffle", pixels((2, 4, 2, 3), (8, 2, 1), (1, 2, 4, 1, 2)), shuffle, dtypes=ALL, errors=no_shuffle),
    OpInfo("pixel_unshuffle", pixels((2, 1, 4, 6), (2, 2, 4)), unshuffle, dtypes=ALL, errors=no_unshuffle),
    OpInfo("channel_shuffle", pixels((2, 4, 3), (1, 6, 2, 2)), channels, dtypes=ALL, errors=no_groups),
    OpInfo("native_channel_shuffle", pixels((2, 4, 3), (1, 6, 2, 2)), channels, dtypes=ALL, errors=no_groups),
]
