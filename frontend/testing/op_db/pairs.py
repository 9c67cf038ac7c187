"""Samples of kernels/ops/pairs.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, INTEGERS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import binary, quiet, some_number, with_number


def wide(function: Any) -> Any:
    """numpy's function in float64."""
    return quiet(lambda self, other: function(np.asarray(self, np.float64), np.asarray(other, np.float64)))


def xlogy(self: Any, other: Any) -> Any:
    return np.where(self == 0, 0, self * np.log(other))


def with_zeros(make: Maker) -> Iterator[SampleInput]:
    yield from binary()(make)
    yield sample(make.values([0, 0, 1]).detach(), make.values([2, 3, 4]).detach())


def of_two_kinds(make: Maker) -> Iterator[ErrorInput]:
    text = "heaviside is not yet implemented for tensors with different dtypes."
    yield ErrorInput(sample(make(2), make.index(2, below=2)), RuntimeError, text)


def refused(kernel: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        text = f"\"{kernel}\" not implemented for 'Bool'"
        yield ErrorInput(sample(make.mask(2), make.mask(2)), NotImplementedError, text)

    return errors


def powers(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=1), 2)


def number_first(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(2, make(*shape, low=1))


SHIFTS = binary(low=0, high=5)
WHOLE: Any = {"dtypes": INTEGERS, "gradients": False}
PAIRS = [
    OpInfo("copysign.Tensor", binary(exclude_zero=True), wide(np.copysign), NUMBERS),
    OpInfo("copysign.Scalar", with_number(-2), wide(np.copysign), NUMBERS),
    OpInfo("hypot", binary(), np.hypot, FLOATS, errors=refused("hypot_cpu")),
    OpInfo("heaviside", binary(exclude_zero=True), np.heaviside, FLOATS, errors=of_two_kinds),
    OpInfo("xlogy.Tensor", binary(low=1), wide(xlogy), NUMBERS),
    OpInfo("xlogy.Scalar_Other", powers, wide(xlogy), NUMBERS),
    OpInfo("xlogy.Scalar_Self", number_first, wide(xlogy), NUMBERS),
    OpInfo("logaddexp", binary(), np.logaddexp, FLOATS, errors=refused("logaddexp_cpu")),
    OpInfo("logaddexp2", binary(), np.logaddexp2, FLOATS, errors=refused("logaddexp2_cpu")),
    OpInfo("fmax", binary(), np.fmax, NUMBERS),
    OpInfo("fmin", binary(), np.fmin, NUMBERS),
    OpInfo("gcd", with_zeros, np.gcd, **WHOLE, errors=refused("gcd_cpu")),
    OpInfo("lcm", with_zeros, np.lcm, **WHOLE, errors=refused("lcm_cpu")),
    OpInfo("bitwise_left_shift.Tensor", SHIFTS, np.left_shift, **WHOLE, errors=refused("lshift_cpu")),
    OpInfo("bitwise_right_shift.Tensor", SHIFTS, np.right_shift, **WHOLE, errors=refused("rshift_cpu")),
    OpInfo("bitwise_left_shift.Tensor_Scalar", with_number(some_number), np.left_shift, **WHOLE),
    OpInfo("bitwise_right_shift.Tensor_Scalar", with_number(some_number), np.right_shift, **WHOLE),
    OpInfo("__lshift__.Tensor", SHIFTS, np.left_shift, **WHOLE),
    OpInfo("__rshift__.Tensor", SHIFTS, np.right_shift, **WHOLE),
    OpInfo("__lshift__.Scalar", with_number(some_number), np.left_shift, **WHOLE),
    OpInfo("__rshift__.Scalar", with_number(some_number), np.right_shift, **WHOLE),
    OpInfo("float_power.Tensor_Scalar", powers, wide(np.power), NUMBERS),
    OpInfo("float_power.Scalar", number_first, wide(np.power), NUMBERS),
    OpInfo("float_power.Tensor_Tensor", binary(low=1), wide(np.power), NUMBERS),
]
