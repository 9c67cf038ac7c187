"""Samples of kernels/ops/number_forms.py and blends.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import quiet, some_number, with_number


def with_alpha(make: Maker) -> Iterator[SampleInput]:
    yield from with_number(some_number)(make)
    yield sample(make(2, 3), 2, 3)


def rounding(make: Maker) -> Iterator[SampleInput]:
    for mode in ("trunc", "floor"):
        yield sample(make(2, 3), 2, rounding_mode=mode)
    yield sample(make(), 2, rounding_mode="floor")
    yield sample(make(0, 3), 2, rounding_mode="trunc")


def rounded(self: Any, other: Any, rounding_mode: str) -> Any:
    return np.floor(self / other) if rounding_mode == "floor" else np.trunc(self / other)


def bounds(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 3), make(2, 3))
    yield sample(make(2, 3), make(3), make(2, 1))
    yield sample(make(2, 3), min=make(2, 3))
    yield sample(make(2, 3), None, make(3))
    yield sample(make(), make(), make())
    yield sample(make(0, 3), make(3), make(1))


def bounded(self: Any, min: Any = None, max: Any = None) -> Any:
    above = self if min is None else np.maximum(self, min)
    return above if max is None else np.minimum(above, max)


def no_bound(make: Maker) -> Iterator[ErrorInput]:
    text = "torch.clamp: At least one of 'min' or 'max' must not be None"
    yield ErrorInput(sample(make(2)), RuntimeError, text)


def two(make: Maker) -> Iterator[SampleInput]:
    for one, other in (((2, 3), (2, 3)), ((), ()), ((0, 3), (1, 3)), ((2, 3), (3,))):
        yield sample(make(*one), make(*other))


NUMBER_FORMS = [
    OpInfo("add.Scalar", with_alpha, lambda self, other, alpha=1: self + alpha * other, NUMBERS),
    OpInfo("sub.Scalar", with_alpha, lambda self, other, alpha=1: self - alpha * other, NUMBERS),
    OpInfo("mul.Scalar", with_number(some_number), np.multiply, NUMBERS),
    OpInfo("div.Scalar_mode", rounding, rounded, NUMBERS),
    OpInfo("clamp.Tensor", bounds, bounded, NUMBERS, errors=no_bound),
    OpInfo("clamp_min.Tensor", two, np.maximum, NUMBERS),
    OpInfo("clamp_max.Tensor", two, np.minimum, NUMBERS),
]

# --- blends -----------------------------------------------------------------------------------------------------------


def three(low: float = -3, **kwargs: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for shapes in (((2, 3),) * 3, ((),) * 3, ((0, 3), (1, 3), (3,)), ((2, 3), (2, 1), (3,))):
            a, b, c = shapes
            yield sample(make(*a), make(*b), make(*c, low=low))
        yield sample(make(2, 3), make(2, 3), make(2, 3, low=low), **kwargs)

    return samples


def not_of_integers(make: Maker) -> Iterator[ErrorInput]:
    whole = make.index(2, below=3)
    yield ErrorInput(sample(whole, whole, whole), RuntimeError, "Integer division with addcdiv is no longer supported")


def lerps(make: Maker) -> Iterator[SampleInput]:
    for weight in (0.25, 0.75, 2):
        yield sample(make(2, 3), make(2, 3), weight)
    yield sample(make(), make(), 0.5)
    yield sample(make(0, 3), make(1, 3), 0.5)


def of_two_kinds(make: Maker) -> Iterator[ErrorInput]:
    other = make(2).float().detach()
    text = "expected dtype double for `end` but got dtype float"
    yield ErrorInput(sample(make(2), other, 0.5), RuntimeError, text)


def lerp(self: Any, end: Any, weight: Any) -> Any:
    return self + weight * (end - self)


BLENDS = [
    OpInfo("addcmul", three(value=2), lambda self, a, b, value=1: self + value * a * b, NUMBERS),
    OpInfo(
        "addcdiv",
        three(low=1, value=2),
        quiet(lambda self, a, b, value=1: self + value * a / b),
        FLOATS,
        errors=not_of_integers,
    ),
    OpInfo("lerp.Scalar", lerps, lerp, FLOATS, errors=of_two_kinds),
    OpInfo("lerp.Tensor", three(), lerp, FLOATS, tolerance={"float32": (1e-5, 1e-5)}),  # it starts at the nearer end
]
