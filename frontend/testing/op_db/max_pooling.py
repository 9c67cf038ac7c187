"""Samples of kernels/ops/max_pooling.py; windows of a size and stride are in pooling.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .pooling import IMAGES

# --- the reference ---------------------------------------------------------------------------------------------------


def largest(x: Any, axes: list[Any]) -> tuple[Any, Any]:
    """The largest elements of windows, given as ranges for each axis, and their places in the image."""
    dims = len(axes)
    flat = np.arange(int(np.prod(x.shape[-dims:]))).reshape(x.shape[-dims:])
    out = np.zeros((*x.shape[:-dims], *map(len, axes)), x.dtype)
    places = np.zeros(out.shape, np.int64)
    for at in np.ndindex(*map(len, axes)):
        window = tuple(slice(*axes[d][at[d]]) for d in range(dims))
        elements = x[(..., *window)].reshape(*x.shape[:-dims], -1)
        out[(..., *at)] = elements.max(-1)
        places[(..., *at)] = flat[window].ravel()[elements.argmax(-1)]
    return out, places


def put_back(dims: int, grad: Any, x: Any, places: Any) -> Any:
    out = np.zeros((int(np.prod(x.shape[:-dims])), int(np.prod(x.shape[-dims:]))), grad.dtype)
    for image, (values, at) in enumerate(zip(flat_images(grad, dims), flat_images(places, dims), strict=True)):
        np.add.at(out[image], at, values)
    return out.reshape(x.shape)


def flat_images(x: Any, dims: int) -> Any:
    return x.reshape(int(np.prod(x.shape[:-dims])), -1)


# --- as many windows as are asked for --------------------------------------------------------------------------------


def adaptive(x: Any, counts: Any) -> tuple[Any, Any]:
    sizes = x.shape[-len(counts) :]
    axes = [[(i * n // c, -(-(i + 1) * n // c)) for i in range(c)] for n, c in zip(sizes, counts, strict=True)]
    return largest(x, axes)


def counts(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in IMAGES[dims]:
            yield sample(make.distinct(*shape), [2] * dims)
        if make.thorough:
            yield sample(make.distinct(*IMAGES[dims][0]), [3] + [1] * (dims - 1))

    return samples


def backward(forward: Any, samples: Any) -> Any:
    """(grad, image, ..., places), of the same calls."""

    def made(make: Maker) -> Iterator[SampleInput]:
        for given in samples(make):
            x = given.input.detach()
            numbers = np.array(x.double().tolist()).reshape(tuple(x.shape))
            lists = [one if isinstance(one, list) else np.array(one.double().tolist()) for one in given.args]
            _, places = forward(numbers, *lists)
            lists = [one for one in given.args if isinstance(one, list)]
            keeps = lists if len(given.args) > 1 else []
            yield sample(make(*places.shape), x, *keeps, make.values(places.tolist(), make.index(1, below=1).dtype))

    return made


def no_counts(make: Maker) -> Iterator[ErrorInput]:
    for x, size, text in (
        (make(4, 6), [2, 3], "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got: [4, 6]"),
        (make(1, 2, 4, 6), [2], "adaptive_max_pool2d(): internal error: output_size.size() must be 2"),
        (make(1, 0, 4, 6), [2, 2], "but input has sizes [1, 0, 4, 6] with dimension 1 being empty"),
    ):
        yield ErrorInput(sample(x, size), RuntimeError, text)


# --- windows placed at random ----------------------------------------------------------------------------------------


def fractional(x: Any, kernel: Any, output_size: Any, samples: Any) -> tuple[Any, Any]:
    dims = len(kernel)
    batched = x if x.ndim == dims + 2 else x[None]
    found = []
    for n, c in np.ndindex(*batched.shape[:2]):
        axes = []
        for d in range(dims):
            size, k, count = batched.shape[2 + d], kernel[d], output_size[d]
            shift = samples[n, c, 1 - d if dims == 2 else d]
            step = (size - k) / (count - 1) if count > 1 else 0
            starts = [int((i + shift) * step) - int(shift * step) for i in range(count - 1)] + [size - k]
            axes.append([(start, start + k) for start in starts])
        found.append(largest(batched[n, c], axes))
    shape = (*x.shape[:-dims], *output_size)
    values, places = (np.stack(parts).reshape(shape) for parts in zip(*found, strict=True))
    return values, places


def at_random(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        image, kernel, output_size = (2, 2, 4, 3, 5)[: 2 + dims], [2, 1, 3][:dims], [2, 2, 2][:dims]
        numbers = make.values(np.linspace(0.06, 0.94, 4 * dims).reshape(2, 2, dims).tolist()).detach()
        yield sample(make.distinct(*image), kernel, output_size, numbers)
        yield sample(make.distinct(*image[1:]), kernel, output_size, numbers[:1])

    return samples


def not_at_random(make: Maker) -> Iterator[ErrorInput]:
    x, numbers = make(2, 3, 4, 6), make(2, 3, 2)
    for args, text in (
        (([5, 2], [2, 3], numbers), "fractional_max_pool2d(): pool height 5 too large relative to input height 4"),
        (([2, 2], [2, 6], numbers), "fractional_max_pool2d(): pool width 2 too large relative to input width 6"),
        (([2, 2], [2, 3], numbers[:1]), "Expect _random_samples.size(0) no less then input batch size."),
        (([2, 2], [2, 3], make(2, 3, 3)), "Expect _random_samples.size(2) equals to 2; got 3."),
    ):
        yield ErrorInput(sample(x, *args), RuntimeError, text)


# --- back to where they were -----------------------------------------------------------------------------------------


def unpooled(x: Any, places: Any, output_size: Any, *lists: Any) -> Any:
    dims = len(output_size)
    out = np.zeros((int(np.prod(x.shape[:-dims])), int(np.prod(output_size))), x.dtype)
    for image, (values, at) in enumerate(zip(flat_images(x, dims), flat_images(places, dims), strict=True)):
        out[image, at] = values
    return out.reshape(*x.shape[:-dims], *output_size)


def found(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        lists = ([2] * 3, [0] * 3) if dims == 3 else ()
        for lead in ((2, 2), (2,)):
            places = np.stack([np.arange(2**dims) * 2 + n % 2 for n in range(int(np.prod(lead)))])
            index = make.values(places.reshape(*lead, *[2] * dims).tolist(), make.index(1, below=1).dtype)
            yield sample(make(*index.shape), index, [3, 4, 2][:dims], *lists)

    return samples


def not_found(make: Maker) -> Iterator[ErrorInput]:
    x, index = make(1, 2, 2, 2), make.index(1, 2, 2, 2, below=4)
    far = make.values([[[[0, 1], [2, 3]], [[0, 1], [20, 3]]]], index.dtype)
    for args, text in (
        ((x, index, [4]), "There should be exactly two elements (height, width) in output_size, but got 1 elements."),
        ((x, index[:, :1], [4, 4]), "Expected shape of indices to be same as that of the input tensor ([1, 2, 2, 2])"),
        ((x, far, [4, 4]), "Found an invalid max index: 20 (output volumes are of size 4x4)"),
        ((x, index.int(), [4, 4]), "elements in indices should be type int64 but got: Int"),
    ):
        yield ErrorInput(sample(*args), RuntimeError, text)


def first_and_last(dims: int) -> Any:
    """The gradient does not depend on how the windows were placed."""
    return lambda *args: put_back(dims, args[0], args[1], args[-1])


MAX_POOLING = [
    *(
        info
        for dims in (2, 3)
        for name, other in [(f"adaptive_max_pool{dims}d", f"fractional_max_pool{dims}d")]
        for info in (
            OpInfo(name, counts(dims), adaptive, dtypes=FLOATS, errors=no_counts if dims == 2 else None),
            OpInfo(f"{name}_backward", backward(adaptive, counts(dims)), first_and_last(dims), dtypes=FLOATS),
            OpInfo(other, at_random(dims), fractional, dtypes=FLOATS, errors=not_at_random if dims == 2 else None),
            OpInfo(f"{other}_backward", backward(fractional, at_random(dims)), first_and_last(dims), dtypes=FLOATS),
            OpInfo(f"max_unpool{dims}d", found(dims), unpooled, dtypes=FLOATS, errors=not_found if dims == 2 else None),
        )
    ),
    OpInfo("adaptive_max_pool1d", counts(1), adaptive, dtypes=FLOATS),
]
