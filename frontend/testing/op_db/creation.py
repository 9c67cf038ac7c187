"""Samples of kernels/ops/creation.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import channels_last, dtypes

from ..op_info import NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import UNINITIALISED

# Where no tensor comes in, no gradient flows, no layout matters and a subclass is not met.
FRESH = {name: "it takes no tensor" for name in ("layouts", "subclass")}
UNKNOWN = UNINITIALISED | FRESH


def sizes(*args: Any) -> Any:
    """A size, then these arguments."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for size in ([2, 3], [], [0, 3]):
            yield sample(size, *args, dtype=make.dtype)

    return samples


def strided_sizes(make: Maker) -> Iterator[SampleInput]:
    yield sample([2, 3], [1, 2], dtype=make.dtype)
    yield sample([], [], dtype=make.dtype)
    yield sample([0, 3], [3, 1], dtype=make.dtype)


def like(*args: Any) -> Any:
    """A tensor to be like, then these arguments; a transposed one, too, since its strides are kept."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for x in (make(2, 3), make(2, 3).detach().t(), make(), make(0, 3)):
            yield sample(x, *args)
        yield sample(make(2, 3), *args, dtype=dtypes.int64)
        yield sample(make(1, 2, 2, 2), *args, memory_format=channels_last)

    return samples


def new(*args: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        yield sample(make(2), [2, 3], *args)
        yield sample(make(2), [], *args)
        yield sample(make(2), [0], *args, dtype=dtypes.float64)

    return samples


def new_strided(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2), [2, 3], [1, 2])


def scalars(make: Maker) -> Iterator[SampleInput]:
    for value in (1, 0):
        yield sample(value, dtype=make.dtype)
    yield sample(True)
    yield sample(2)
    yield sample(0.5)


def ends(make: Maker) -> Iterator[SampleInput]:
    yield sample(5)
    yield sample(2.5)
    yield sample(0)
    yield sample(4, dtype=make.dtype)


def starts(make: Maker) -> Iterator[SampleInput]:
    yield sample(1, 5)
    yield sample(-1, 3, dtype=make.dtype)
    yield sample(2, 2)


def steps(make: Maker) -> Iterator[SampleInput]:
    yield sample(1, 8, 3, dtype=make.dtype)
    yield sample(0, 1, 0.25)
    yield sample(5, 0, -2)


def arange_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(0, 5, 0), RuntimeError, "step must be nonzero")
    yield ErrorInput(sample(0, 5, -1), RuntimeError, "upper bound and lower bound inconsistent with step sign")


def spaces(make: Maker) -> Iterator[SampleInput]:
    for count in (5, 1, 0):
        yield sample(-1, 3, count, dtype=make.dtype)


def linspace_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(0, 1, -1), RuntimeError, "number of steps must be non-negative")


def squares(make: Maker) -> Iterator[SampleInput]:
    for n in (3, 0):
        yield sample(n, dtype=make.dtype)


def rectangles(make: Maker) -> Iterator[SampleInput]:
    for n, m in ((2, 3), (3, 2), (0, 2)):
        yield sample(n, m, dtype=make.dtype)


def negative_size(text: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield ErrorInput(sample([-1]), RuntimeError, text)

    return errors


def ranged(*bounds: Any, dtype: Any = None) -> Any:
    return np.arange(*bounds, dtype=dtype)


def filled(self: Any, value: Any, dtype: Any = None, memory_format: Any = None) -> Any:
    return np.full(np.shape(self), value, dtype or self.dtype)


CREATION = [
    OpInfo(
        "empty.memory_format",
        sizes(),
        None,
        gradients=False,
        skips=UNKNOWN,
        errors=negative_size("Trying to create tensor with negative dimension -1: [-1]"),
    ),
    OpInfo("empty_strided", strided_sizes, None, gradients=False, skips=UNKNOWN),
    OpInfo(
        "zeros",
        sizes(),
        np.zeros,
        gradients=False,
        skips=FRESH,
        errors=negative_size("zeros: Dimension size must be non-negative."),
    ),
    OpInfo("ones", sizes(), np.ones, gradients=False, skips=FRESH),
    OpInfo("full", sizes(1), np.full, gradients=False, skips=FRESH),
    OpInfo("scalar_tensor", scalars, np.asarray, gradients=False, skips=FRESH),
    OpInfo("empty_like", like(), None, gradients=False, skips=UNINITIALISED),
    OpInfo("zeros_like", like(), lambda self, **options: filled(self, 0, **options), gradients=False),
    OpInfo("ones_like", like(), lambda self, **options: filled(self, 1, **options), gradients=False),
    OpInfo("full_like", like(1), filled, gradients=False),
    OpInfo("new_empty", new(), None, gradients=False, skips=UNINITIALISED),
    OpInfo("new_zeros", new(), lambda self, size, dtype=None: np.zeros(size), gradients=False),
    OpInfo("new_ones", new(), lambda self, size, dtype=None: np.ones(size), gradients=False),
    OpInfo("new_full", new(1), lambda self, size, value, dtype=None: np.full(size, value), gradients=False),
    OpInfo("new_empty_strided", new_strided, None, gradients=False, skips=UNINITIALISED),
    OpInfo("arange", ends, ranged, NUMBERS, gradients=False, skips=FRESH),
    OpInfo("arange.start", starts, ranged, NUMBERS, gradients=False, skips=FRESH),
    OpInfo("arange.start_step", steps, ranged, NUMBERS, gradients=False, skips=FRESH, errors=arange_errors),
    OpInfo("linspace", spaces, np.linspace, NUMBERS, gradients=False, skips=FRESH, errors=linspace_errors),
    OpInfo("eye", squares, np.eye, gradients=False, skips=FRESH),
    OpInfo("eye.m", rectangles, np.eye, gradients=False, skips=FRESH),
]
