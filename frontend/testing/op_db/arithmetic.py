"""Samples of kernels/ops/arithmetic.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import RECORDED, binary, not_broadcastable, quiet, some_number, unary, with_number


def with_alpha(make: Maker) -> Iterator[SampleInput]:
    yield from binary()(make)
    if make.dtype.name != "bool":
        yield sample(make(2, 3), make(3), alpha=2)


def add_errors(make: Maker) -> Iterator[ErrorInput]:
    yield from not_broadcastable(make)
    yield ErrorInput(
        sample(make(3), make(2, 3)),
        RuntimeError,
        "output with shape [3] doesn't match the broadcast shape [2, 3]",
        form="inplace",
    )


def sub_errors(make: Maker) -> Iterator[ErrorInput]:
    yield from not_broadcastable(make)
    yield ErrorInput(
        sample(make.mask(2), make.mask(2)),
        RuntimeError,
        "Subtraction, the `-` operator, with two bool tensors is not supported.",
    )


def rounding(make: Maker) -> Iterator[SampleInput]:
    for mode in (None, "trunc", "floor"):
        if mode is not None or make.dtype.is_floating_point:
            yield sample(make(2, 3), make(2, 3, low=1, high=5), rounding_mode=mode)
    yield sample(make(), make(low=1, high=5), rounding_mode="floor")
    yield sample(make(0, 3), make(3, low=1), rounding_mode="trunc")


def divided(self: Any, other: Any, rounding_mode: str | None = None) -> Any:
    quotient = np.true_divide(self, other)
    if rounding_mode is None:
        return quotient
    return np.floor(quotient) if rounding_mode == "floor" else np.trunc(quotient)


def powers(make: Maker) -> Iterator[SampleInput]:
    exponents: tuple[float, ...] = (2, 3, 0, 1) if not make.dtype.is_floating_point else (2, 3, 0.5, -1, 0)
    exponents = exponents if make.thorough else exponents[1:3]
    for exponent in exponents:
        yield sample(make(2, 3, low=1, high=4), exponent)
    yield sample(make(low=1), 2)
    yield sample(make(0, 3), 2)


def tensor_powers(make: Maker) -> Iterator[SampleInput]:
    for s in binary(low=1)(make):
        yield sample(s.input, s.args[0])


def number_powers(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(2, make(*shape, low=0, high=4))
    yield sample(1, make(2, low=0, high=4))


def clamps(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), -1, 2)
    yield sample(make(2, 3), min=0)
    yield sample(make(), max=1)
    yield sample(make(0, 3), 0, 1)


def clamp_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2)), RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None")


def division_by_zero(make: Maker) -> Iterator[ErrorInput]:
    zero = sample(make.values([1, 2], dtype=make.index(1, below=2).dtype), make.index(2, low=0, below=1))
    yield ErrorInput(zero, RuntimeError, "ZeroDivisionError")


POSITIVE = binary(low=1, high=5)

ARITHMETIC = [
    OpInfo(
        "add.Tensor",
        with_alpha,
        lambda self, other, alpha=1: self + alpha * other,
        errors=add_errors,
        representative=True,
    ),
    OpInfo("sub.Tensor", with_alpha, lambda self, other, alpha=1: self - alpha * other, NUMBERS, errors=sub_errors),
    OpInfo("rsub.Tensor", with_alpha, lambda self, other, alpha=1: other - alpha * self, NUMBERS),
    OpInfo("rsub.Scalar", with_number(some_number), lambda self, other, alpha=1: other - alpha * self, NUMBERS),
    OpInfo("mul.Tensor", binary(), np.multiply, errors=not_broadcastable, representative=True),
    OpInfo("div.Tensor", binary(exclude_zero=True), quiet(np.true_divide), errors=not_broadcastable),
    OpInfo("div.Scalar", with_number(some_number), np.true_divide),
    OpInfo("div.Tensor_mode", rounding, divided, NUMBERS),
    OpInfo(
        "floor_divide",
        POSITIVE,
        np.floor_divide,
        NUMBERS,
        gradients=False,
        errors=division_by_zero,
        skips=RECORDED,
    ),
    OpInfo("remainder.Tensor", POSITIVE, np.remainder, NUMBERS),
    OpInfo("remainder.Scalar", with_number(some_number), np.remainder, NUMBERS),
    OpInfo("fmod.Tensor", POSITIVE, np.fmod, NUMBERS),
    OpInfo("fmod.Scalar", with_number(some_number), np.fmod, NUMBERS),
    OpInfo("pow.Tensor_Scalar", powers, lambda self, exponent: self ** np.asarray(exponent), NUMBERS),
    OpInfo("pow.Tensor_Tensor", tensor_powers, np.power, NUMBERS, representative=True),
    OpInfo("pow.Scalar", number_powers, np.power, NUMBERS),
    OpInfo("square", unary(), np.square, NUMBERS),
    OpInfo("maximum", binary(), np.maximum),
    OpInfo("minimum", binary(), np.minimum),
    OpInfo("clamp", clamps, lambda self, min=None, max=None: np.clip(self, min, max), NUMBERS, errors=clamp_errors),
    OpInfo("clamp_min", with_number(0), np.maximum, NUMBERS),
    OpInfo("clamp_max", with_number(1), np.minimum, NUMBERS),
]
