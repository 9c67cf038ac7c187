"""Samples of kernels/ops/padding.py and upsampling.py. The reference writes each axis as a dense matrix, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import floor
from typing import Any

import numpy as np

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample

# --- padding ---------------------------------------------------------------------------------------------------------

IMAGES: dict[int, list[tuple[int, ...]]] = {1: [(2, 2, 4), (2, 4)], 2: [(2, 2, 3, 4), (2, 3, 4)], 3: [(1, 2, 2, 3, 4)]}
WIDTHS = ([1, 2, 2, 0, 1, 1], [-1, 1, 0, -1, 0, 0])


def padded(mode: Any) -> Any:
    def reference(x: Any, widths: Sequence[int]) -> Any:
        dims = len(widths) // 2
        pairs = [(widths[2 * d], widths[2 * d + 1]) for d in reversed(range(dims))]
        wider = np.pad(x, [(0, 0)] * (x.ndim - dims) + [(max(a, 0), max(b, 0)) for a, b in pairs], mode=mode)
        inside: Any = [slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, wider.shape[-dims:], strict=True)]
        return wider[(..., *inside)]

    return reference


def unpadded(mode: Any) -> Any:
    """The gradient: what went to a place, added up, by way of a padded image of places."""

    def reference(grad: Any, x: Any, widths: Sequence[int]) -> Any:
        places = padded(mode)(np.arange(x.size).reshape(x.shape), widths)
        found = np.zeros(x.size, grad.dtype)
        np.add.at(found, places.ravel(), grad.ravel())
        return found.reshape(x.shape)

    return reference


def paddings(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in IMAGES[dims]:
            yield sample(make(*shape), WIDTHS[0][: 2 * dims])
        if make.thorough:
            yield sample(make(*IMAGES[dims][0]), WIDTHS[1][: 2 * dims])
            yield sample(make(0, *IMAGES[dims][0][1:]), WIDTHS[0][: 2 * dims])

    return samples


def paddings_back(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for given in paddings(dims)(make):
            (widths,) = given.args
            shape = list(given.input.shape)
            for d in range(dims):
                shape[-1 - d] += widths[2 * d] + widths[2 * d + 1]
            yield sample(make(*shape), given.input.detach(), widths)

    return samples


def wrong_reflection(make: Maker) -> Iterator[ErrorInput]:
    x = make(1, 2, 4, 5)
    for args, text in (
        ((x, [1, 1, 1]), "padding size is expected to be 4, but got: 3"),
        ((x, [5, 1, 0, 0]), "got: padding (5, 1) at dimension 3 of input [1, 2, 4, 5]"),
        ((x, [1, 1, 0, 4]), "Argument #6: Padding size should be less than the corresponding input dimension"),
        ((make(4, 5), [1, 1, 1, 1]), "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size"),
        ((make(1, 0, 4, 5), [1, 1, 1, 1]), "and other non-zero dimensions for input, but got: [1, 0, 4, 5]"),
    ):
        yield ErrorInput(sample(*args), RuntimeError, text)


def wrong_replication(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2, 5), [1]), RuntimeError, "padding size is expected to be 2")
    text = "input (W: 5) is too small. Calculated output W: 0"
    yield ErrorInput(sample(make(2, 5), [-3, -2]), RuntimeError, text)


def wrong_gradient(make: Maker) -> Iterator[ErrorInput]:
    text = "gradOutput width unexpected. Expected: 7, Got: 5"
    yield ErrorInput(sample(make(1, 2, 6, 5), make(1, 2, 4, 5), [1, 1, 1, 1]), RuntimeError, text)


def every_mode(make: Maker) -> Iterator[SampleInput]:
    for mode in ("reflect", "replicate", "circular", "constant"):
        yield sample(make(2, 2, 4), [1, 2], mode)
        yield sample(make(2, 3, 4), [1, 0, 2, 1], mode)
    yield sample(make(2, 3), [1, -1], "constant", 2.0)
    if make.thorough:
        yield sample(make(1, 2, 2, 3, 4), [1, 1, 0, 1, 1, 0], "circular")
        yield sample(make(2, 2, 4), [-1, 2], "circular")


MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def in_mode(x: Any, widths: Any, mode: str = "constant", value: Any = None) -> Any:
    if mode == "constant":
        pairs = [(0, 0)] * (x.ndim - len(widths) // 2)
        pairs += [(widths[2 * d], widths[2 * d + 1]) for d in reversed(range(len(widths) // 2))]
        wider = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], constant_values=value or 0)
        return wider[tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, wider.shape, strict=True))]
    if mode == "circular":  # as np.pad does it, of the image that negative widths leave
        cut = padded("edge")(x, [min(width, 0) for width in widths])
        return padded("wrap")(cut, [max(width, 0) for width in widths])
    return padded(MODES[mode])(x, widths)


def no_mode(make: Maker) -> Iterator[ErrorInput]:
    x = make(2, 3, 4, 5)
    for args, error, text in (
        (([1],), RuntimeError, "Padding length must be divisible by 2"),
        (([1] * 10,), RuntimeError, "two times the input dimension but got padding length 10 and input of dimension 4"),
        (([1, 1], "mirror"), NotImplementedError, "Unrecognised padding mode mirror"),
        (([1, 1], "reflect"), NotImplementedError, "Padding size 2 is not supported for 4D input tensor."),
        (([1, 1], "reflect", 1.0), RuntimeError, 'Padding mode "reflect" doesn\'t take in value argument'),
        (([6, 0, 0, 0], "circular"), RuntimeError, "Padding value causes wrapping around more than once."),
        (([-4, -2, 0, 0], "circular"), RuntimeError, "Negative padding value is resulting in an empty dimension"),
    ):
        yield ErrorInput(sample(x, *args), error, text)


def circular(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 2, 4), [1, 2])
    yield sample(make(2, 3, 4), [1, 0, 2, 1])


def by_number(make: Maker) -> Iterator[SampleInput]:
    for mode in range(4):
        yield sample(make(2, 2, 4), [1, 2], mode)


PADDING = [
    *(
        info
        for kind, mode in (("reflection", "reflect"), ("replication", "edge"))
        for dims in (1, 2, 3)
        for name in [f"{kind}_pad{dims}d"]
        for errors in [{"reflection_pad2d": wrong_reflection, "replication_pad1d": wrong_replication}.get(name)]
        for info in (
            OpInfo(name, paddings(dims), padded(mode), dtypes=NUMBERS, errors=errors),
            OpInfo(
                f"{name}_backward",
                paddings_back(dims),
                unpadded(mode),
                dtypes=FLOATS,
                errors=wrong_gradient if dims == 2 else None,
            ),
        )
    ),
    OpInfo("pad", every_mode, in_mode, dtypes=NUMBERS, function="nn.functional.pad", errors=no_mode),
    OpInfo("_pad_circular", circular, lambda x, widths: in_mode(x, widths, "circular"), dtypes=NUMBERS),
    OpInfo(
        "_pad_enum",
        by_number,
        lambda x, widths, mode: in_mode(x, widths, ["reflect", "replicate", "circular", "constant"][mode]),
        dtypes=NUMBERS,
    ),
]

# --- resizing --------------------------------------------------------------------------------------------------------

Row = Callable[[int, int, float, bool], dict[int, float]]  # i, size, step, align_corners -> {place: weight}


def nearest(i: int, size: int, step: float, align: bool) -> dict[int, float]:
    return {min(floor(i * step), size - 1): 1.0}


def nearest_exact(i: int, size: int, step: float, align: bool) -> dict[int, float]:
    return {min(floor((i + 0.5) * step), size - 1): 1.0}


def line(i: int, size: int, step: float, align: bool) -> dict[int, float]:
    at = min(max(i * step if align else (i + 0.5) * step - 0.5, 0), size - 1)
    found = {floor(at): 1 - at % 1}
    found[min(floor(at) + 1, size - 1)] = found.get(min(floor(at) + 1, size - 1), 0) + at % 1
    return found


def keys(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0


def cubic(i: int, size: int, step: float, align: bool) -> dict[int, float]:
    at = i * step if align else (i + 0.5) * step - 0.5
    found: dict[int, float] = {}
    for place in range(floor(at) - 1, floor(at) + 3):
        inside = min(max(place, 0), size - 1)
        found[inside] = found.get(inside, 0) + keys(at - place, -0.75)
    return found


def under(hill: Callable[[float], float], radius: int) -> Row:
    def row(i: int, size: int, step: float, align: bool) -> dict[int, float]:
        width, middle = max(step, 1), (i + 0.5) * step
        near = [p for p in range(size) if abs(p + 0.5 - middle) < radius * width]
        weights = {place: hill((place + 0.5 - middle) / width) for place in near}
        return {place: weight / sum(weights.values()) for place, weight in weights.items()}

    return row


def matrix(row: Row, size: int, count: int, scale: Any, align: bool) -> Any:
    step = (size - 1) / max(count - 1, 1) if align else 1 / scale if scale else size / count
    made = np.zeros((count, size))
    for i in range(count):
        for place, weight in row(i, size, step, align).items():
            made[i, place] = weight
    return made


def resized(row: Row, aligns: bool) -> Any:
    def reference(x: Any, output_size: Any, *how: Any) -> Any:
        align, scales = (how[0], how[1:]) if aligns else (False, how)
        for d, count in enumerate(output_size):
            scale = scales[d] if scales else None
            x = np.moveaxis(np.tensordot(x, matrix(row, x.shape[2 + d], count, scale, align), (2 + d, 1)), -1, 2 + d)
        return x

    return reference


def resized_back(row: Row, aligns: bool) -> Any:
    def reference(grad: Any, output_size: Any, input_size: Any, *how: Any) -> Any:
        align, scales = (how[0], how[1:]) if aligns else (False, how)
        for d, count in enumerate(output_size):
            turned = matrix(row, input_size[2 + d], count, scales[d] if scales else None, align)
            grad = np.moveaxis(np.tensordot(grad, turned, (2 + d, 0)), -1, 2 + d)
        return grad

    return reference


def resized_by_list(row: Row, aligns: bool) -> Any:
    def reference(x: Any, output_size: Any, *how: Any) -> Any:
        *align, factors = how
        counts = output_size or [int(n * factor) for n, factor in zip(x.shape[2:], factors, strict=True)]
        return resized(row, aligns)(x, counts, *align, *(factors or []))

    return reference


SIZES = ((3, 2, 4), (5, 7, 3))


def resizings(dims: int, aligns: bool, always: bool = True) -> Any:
    """To two sizes, by factors, and with the corners aligned where there is that choice."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        shape, plain = (2, 2, *(4, 3, 5)[:dims]), [False] * aligns
        for size in SIZES:
            yield sample(make(*shape), list(size[:dims]), *plain)
        yield sample(make(*shape), [6, 4, 7][:dims], *plain, *[1.5, 1.5, 1.5][:dims])
        if aligns and always:
            yield sample(make(*shape), list(SIZES[1][:dims]), True)
        if make.thorough:
            yield sample(make(*shape), [1] * dims, *plain)

    return samples


def resizings_back(dims: int, aligns: bool, always: bool = True) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for given in resizings(dims, aligns, always)(make):
            size, *how = given.args
            shape = list(given.input.shape)
            yield sample(make(*shape[:2], *size), size, shape, *how)

    return samples


def resizings_by_list(dims: int, aligns: bool) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        shape, plain = (2, 2, *(4, 3, 5)[:dims]), [False] * aligns
        yield sample(make(*shape), list(SIZES[1][:dims]), *plain, None)
        yield sample(make(*shape), None, *plain, [1.5, 2.0, 0.5][:dims])

    return samples


def no_images(make: Maker) -> Iterator[ErrorInput]:
    for x, size, text in (
        (make(1, 2, 4, 5), [3], "It is expected output_size equals to 2, but got size 1"),
        (make(2, 4, 5), [3, 3], "It is expected input_size equals to 4, but got size 3"),
        (make(1, 2, 4, 5), [0, 3], "Input and output sizes should be greater than 0, but got input (H: 4, W: 5)"),
        (make(1, 0, 4, 5), [2, 3], "Non-empty 4D data tensor expected but got a tensor with sizes [1, 0, 4, 5]"),
    ):
        yield ErrorInput(sample(x, size), RuntimeError, text)


def no_gradient(make: Maker) -> Iterator[ErrorInput]:
    text = "Expected grad_output to have the same shape as output; output.size(3) = 4 but got grad_output.size(3) = 5"
    yield ErrorInput(sample(make(1, 2, 4, 5), [4, 4], [1, 2, 2, 2]), RuntimeError, text)
    text = "Expected grad_output to be a tensor of dimension 4 but got: dimension 3"
    yield ErrorInput(sample(make(2, 4, 5), [4, 5], [1, 2, 2, 2]), RuntimeError, text)


def no_choice(make: Maker) -> Iterator[ErrorInput]:
    text = "Must specify exactly one of output_size and scale_factors"
    yield ErrorInput(sample(make(1, 2, 4, 5), [3, 3], [2.0, 2.0]), RuntimeError, text)
    yield ErrorInput(sample(make(1, 2, 4, 5), None, None), RuntimeError, text)


def lanczos(x: float) -> float:
    return float(np.sinc(x) * np.sinc(x / 3))


WAYS: list[tuple[str, int, Row, bool]] = [
    *((f"upsample_nearest{dims}d", dims, nearest, False) for dims in (1, 2, 3)),
    *((f"_upsample_nearest_exact{dims}d", dims, nearest_exact, False) for dims in (1, 2, 3)),
    ("upsample_linear1d", 1, line, True),
    ("upsample_bilinear2d", 2, line, True),
    ("upsample_trilinear3d", 3, line, True),
    ("upsample_bicubic2d", 2, cubic, True),
    ("_upsample_bilinear2d_aa", 2, under(lambda x: 1 - abs(x), 1), True),
    ("_upsample_bicubic2d_aa", 2, under(lambda x: keys(x, -0.5), 2), True),
    ("_upsample_lanczos2d_aa", 2, under(lanczos, 3), True),
]

NO_HALVES = {"bfloat16": "PyTorch's filters take no 16-bit floats"}

UPSAMPLING = [
    info
    for name, dims, row, aligns in WAYS
    for always in [not name.endswith("_aa")]  # with a filter, aligned corners only change the factor
    for skips in [{} if always else NO_HALVES]
    for first in [name == "upsample_nearest2d"]
    for info in (
        OpInfo(
            name,
            resizings(dims, aligns, always),
            resized(row, aligns),
            dtypes=FLOATS,
            errors=no_images if first else None,
            skips=skips,
        ),
        OpInfo(
            f"{name}_backward",
            resizings_back(dims, aligns, always),
            resized_back(row, aligns),
            dtypes=FLOATS,
            errors=no_gradient if first else None,
            skips=skips,
        ),
        OpInfo(
            f"{name}.vec",
            resizings_by_list(dims, aligns),
            resized_by_list(row, aligns),
            dtypes=FLOATS,
            errors=no_choice if first else None,
            skips=skips,
        ),
    )
]
