"""Samples of kernels/ops/pooling.py. The reference looks at each window by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import ceil
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample


def places(size: int, k: int, step: int, p: int, d: int, ceil_mode: bool) -> list[list[int]]:
    """For each window along an axis the places of its elements, those in the padding too."""
    count = (ceil if ceil_mode else int)((size + 2 * p - d * (k - 1) - 1) / step) + 1
    begins = [i * step - p for i in range(count) if i * step - p < size]
    return [[begin + d * j for j in range(k)] for begin in begins]


def pooled(x: Any, axes: list[list[list[int]]], reduce: Callable[[Any, list[Any]], Any]) -> Any:
    """reduce(elements, places) for each window; elements[..., all in the window]."""
    dims = len(axes)
    sizes = x.shape[-dims:]
    out = np.zeros((*x.shape[:-dims], *map(len, axes)), x.dtype)
    for at in np.ndindex(*map(len, axes)):
        whole = list(product(*(axes[i][at[i]] for i in range(dims))))
        inside = [one for one in whole if all(0 <= one[i] < sizes[i] for i in range(dims))]
        elements: Any = np.stack([x[(..., *one)] for one in inside], -1)
        out[(..., *at)] = reduce(elements, whole)
    return out


def each(values: Any, dims: int) -> list[int]:
    return list(values) * (dims if len(values) == 1 else 1)


def largest(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    dims = len(kernel)
    how = zip(
        x.shape[-dims:], kernel, each(stride or kernel, dims), each(padding, dims), each(dilation, dims), strict=True
    )
    axes = [places(*one, ceil_mode) for one in how]
    sizes = x.shape[-dims:]
    flat = np.arange(int(np.prod(sizes))).reshape(sizes)
    found, at = pooled(x, axes, lambda e, _: e.max(-1)), pooled(np.zeros(x.shape, np.int64), axes, lambda e, _: 0)
    for window in np.ndindex(*map(len, axes)):
        whole = list(product(*(axes[i][window[i]] for i in range(dims))))
        inside = [one for one in whole if all(0 <= one[i] < sizes[i] for i in range(dims))]
        chosen = np.stack([x[(..., *one)] for one in inside], -1).argmax(-1)
        at[(..., *window)] = np.array([flat[one] for one in inside])[chosen]
    return found, at


def mean(
    x: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_padding: bool = True, divisor: Any = None
) -> Any:
    dims = len(kernel)
    sizes, paddings = x.shape[-dims:], each(padding, dims)
    how = zip(sizes, kernel, each(stride or kernel, dims), paddings, [1] * dims, strict=True)

    def reduce(elements: Any, whole: list[Any]) -> Any:
        counted = [one for one in whole if all(one[i] < sizes[i] + paddings[i] for i in range(dims))]
        return elements.sum(-1) / (divisor or (len(counted) if count_padding else elements.shape[-1]))

    return pooled(x, [places(*one, ceil_mode) for one in how], reduce)


def adaptive(x: Any, output_size: Any) -> Any:
    dims = len(output_size)
    axes = [
        [list(range(i * size // n, -(-(i + 1) * size // n))) for i in range(n)]
        for size, n in zip(x.shape[-dims:], output_size, strict=True)
    ]
    return pooled(x, axes, lambda elements, _: elements.mean(-1))


IMAGES: dict[int, list[tuple[int, ...]]] = {1: [(2, 2, 5), (2, 4)], 2: [(2, 2, 5, 4), (2, 4, 4)], 3: [(1, 2, 3, 4, 3)]}


def windows(dims: int, dilated: bool, more: Any = ()) -> Any:
    """Calls with the sizes of windows; `more` arguments at the end, once in each way."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        dilation = ([1] * dims,) if dilated else ()
        for shape in IMAGES[dims]:
            yield sample(make.distinct(*shape), [2] * dims, [], [0] * dims, *dilation, False, *(one[0] for one in more))
        if make.thorough:
            first = make.distinct(*IMAGES[dims][0])
            yield sample(first, [3] * dims, [2] * dims, [1] * dims, *dilation, True, *(one[-1] for one in more))
            if dilated:
                yield sample(first, [2] * dims, [1] * dims, [1] * dims, [2] * dims, False)

    return samples


def backward_of(forward: Any, samples: Any, with_places: bool) -> Any:
    def made(make: Maker) -> Iterator[SampleInput]:
        for given in samples(make):
            found = forward(np.asarray(given.input.detach().numpy()), *given.args)
            shape = found[0].shape if with_places else found.shape
            more: tuple[Any, ...] = ()
            if with_places:
                more = (make.values(found[1].tolist(), make.index(1, below=1).dtype),)
            yield sample(make(*shape), given.input.detach(), *given.args, *more)

    return made


def counts(dims: int, plain: bool) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in IMAGES[dims]:
            yield sample(make(*shape), [2] * dims)
            yield sample(make(*shape), [3] + [1] * (dims - 1))
        if plain:
            yield sample(make(*IMAGES[dims][0]), [1] * dims)

    return samples


def backward_of_adaptive(dims: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for given in counts(dims, False)(make):
            shape = given.input.shape
            yield sample(make(*shape[:-dims], *given.args[0]), given.input.detach())

    return samples


def wrong(make: Maker) -> Iterator[ErrorInput]:
    x = make(1, 1, 4, 4)
    for args, text in (
        (([2, 2], [], [2, 2], [1, 1], False), "pad should be at most half of effective kernel size"),
        (([2, 2], [0, 0], [0, 0], [1, 1], False), "stride should not be zero"),
        (([2, 2], [], [0, 0], [0, 0], False), "dilation should be greater than zero"),
        (([5, 5], [], [0, 0], [1, 1], False), "Output size is too small"),
    ):
        yield ErrorInput(sample(x, *args), RuntimeError, text)
    yield ErrorInput(sample(make(4), [2], [], [0], [1], False), RuntimeError, "tensor expected for input")


COUNTING = [(True, False)]
DIVIDING = [(True, False), (None, 3)]

REAL = {"complex_gradients": "its derivative is the pooling itself, which refuses complex numbers"}

POOLING = [
    *(
        info
        for dims, errors in ((2, wrong), (3, None))
        for name in [f"max_pool{dims}d"]
        for info in (
            OpInfo(
                f"{name}_with_indices", windows(dims, True), largest, dtypes=FLOATS, errors=wrong if dims == 2 else None
            ),
            OpInfo(f"{name}_with_indices_backward", backward_of(largest, windows(dims, True), True), dtypes=FLOATS),
            OpInfo(name, windows(dims, True), lambda *a: largest(*a)[0], dtypes=FLOATS),
        )
    ),
    OpInfo("max_pool1d_with_indices", windows(1, True), largest, dtypes=FLOATS),
    OpInfo("max_pool1d", windows(1, True), lambda *a: largest(*a)[0], dtypes=FLOATS),
    *(
        info
        for dims in (2, 3)
        for name in [f"avg_pool{dims}d"]
        for info in (
            OpInfo(name, windows(dims, False, DIVIDING), mean, dtypes=FLOATS),
            OpInfo(
                f"{name}_backward", backward_of(mean, windows(dims, False, DIVIDING), False), dtypes=FLOATS, skips=REAL
            ),
        )
    ),
    OpInfo("avg_pool1d", windows(1, False, COUNTING), mean, dtypes=FLOATS),
    *(
        info
        for dims in (2, 3)
        for name in [f"adaptive_avg_pool{dims}d"]
        for info in (
            OpInfo(f"_{name}", counts(dims, False), adaptive, dtypes=FLOATS),
            OpInfo(f"_{name}_backward", backward_of_adaptive(dims), dtypes=FLOATS, skips=REAL),
            OpInfo(name, counts(dims, True), adaptive, dtypes=FLOATS),
        )
    ),
    OpInfo("adaptive_avg_pool1d", counts(1, True), adaptive, dtypes=FLOATS),
]
