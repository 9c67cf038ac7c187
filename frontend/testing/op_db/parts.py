"""Samples of kernels/ops/parts.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import ALL, FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import binary, unary


def with_infinities(make: Maker) -> Iterator[SampleInput]:
    """NaN, infinities and signed zeros, where the dtype has them."""
    yield from unary()(make)
    if make.dtype.is_floating_point:
        yield sample(make.values([-0.0, 0.0, math.inf, -math.inf, math.nan, 1.5]))


def numbers_for_nan(make: Maker) -> Iterator[SampleInput]:
    yield from with_infinities(make)
    if make.dtype.is_floating_point:
        yield sample(make.values([math.inf, -math.inf, math.nan, 1.5]), 1.0, posinf=2.0, neginf=-3.0)


def nan_to_num(self: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    return np.nan_to_num(self, nan=nan, posinf=posinf, neginf=neginf)


def frexp_samples(make: Maker) -> Iterator[SampleInput]:
    yield from unary()(make)
    if make.dtype.is_floating_point:
        yield sample(make.values([0.0, math.inf, -8.5, 0.1]))


def not_floating(make: Maker) -> Iterator[ErrorInput]:
    whole = make.index(2, below=3)
    yield ErrorInput(sample(whole), RuntimeError, "torch.frexp() only supports floating-point dtypes")


def exponents(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape), make(*shape, low=-3, high=4))
    yield sample(make(2, 3), make.index(3, below=5))


def ldexp(self: Any, other: Any) -> Any:
    return np.asarray(self, np.float64) * np.exp2(np.asarray(other, np.float64))


def neighbours(make: Maker) -> Iterator[SampleInput]:
    yield from binary()(make)
    yield sample(make.values([0.0, 1.0, 1.0, 2.0]), make.values([-1.0, 1.0, 2.0, -2.0]))


def decimals(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape), decimals=2)
    yield sample(make(2, 3, low=-300, high=300), decimals=-2)


def round_decimals(self: Any, decimals: int) -> Any:
    return np.round(self, decimals)


def degrees(function: Any) -> Any:
    return lambda self: function(np.asarray(self, self.dtype if self.dtype.kind == "f" else np.float64))


def no_bools_for_complex(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        x = make.values([1j], dtype=dtypes.complex64)
        yield ErrorInput(sample(x), RuntimeError, f"{name} does not support complex inputs.")

    return errors


JUMPS = {
    "gradients": "a difference across a jump is not the gradient",
    "second_gradients": "a difference across a jump is not the gradient",
}

PARTS = [
    OpInfo("frac", unary(), lambda self: self - np.trunc(self), FLOATS),
    OpInfo("sgn", unary(), lambda self: self if self.dtype == bool else np.sign(self), ALL),
    OpInfo(
        "signbit",
        with_infinities,
        lambda self: np.zeros_like(self) if self.dtype == bool else np.signbit(self),
        gradients=False,
    ),
    OpInfo(
        "isposinf",
        with_infinities,
        lambda self: self == np.inf,
        gradients=False,
        errors=no_bools_for_complex("isposinf"),
    ),
    OpInfo(
        "isneginf",
        with_infinities,
        lambda self: self == -np.inf,
        gradients=False,
        errors=no_bools_for_complex("isneginf"),
    ),
    OpInfo("isreal", unary(), np.isreal, gradients=False),
    OpInfo("nan_to_num", numbers_for_nan, nan_to_num, NUMBERS, skips=JUMPS),
    OpInfo("frexp.Tensor", frexp_samples, np.frexp, FLOATS, errors=not_floating, skips=JUMPS),
    OpInfo("ldexp.Tensor", exponents, ldexp, NUMBERS),
    OpInfo("nextafter", neighbours, np.nextafter, FLOATS, skips=JUMPS | {"bfloat16": "its neighbours are others"}),
    OpInfo("round.decimals", decimals, round_decimals, FLOATS, skips=JUMPS),
    OpInfo("deg2rad", unary(), degrees(np.deg2rad)),
    OpInfo("rad2deg", unary(), degrees(np.rad2deg)),
    OpInfo("sinc", unary(), degrees(np.sinc), tolerance={"float32": (1e-5, 1e-6)}),  # pi x is rounded before its sine
]
