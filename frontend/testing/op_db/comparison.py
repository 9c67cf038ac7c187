"""Samples of kernels/ops/comparison.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import WHOLE, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import binary, not_broadcastable, some_number, unary, with_number


def near(make: Maker) -> Iterator[SampleInput]:
    """Values of which some are equal."""
    yield sample(make.values([[0, 1, 2], [1, 1, 0]]), make.values([[0, 2, 1], [1, 0, 0]]))
    yield from binary()(make)


def special(make: Maker) -> Iterator[SampleInput]:
    if make.dtype.is_floating_point:
        yield sample(make.values([0.0, -0.0, float("nan"), float("inf"), -float("inf")]))
    yield from unary()(make)


def conditions(make: Maker) -> Iterator[SampleInput]:
    yield sample(make.mask(2, 3), make(2, 3), make(2, 3))
    yield sample(make.mask(), make(), make())
    if make.thorough:
        yield sample(make.mask(2, 1), make(3), make())
    yield sample(make.mask(0, 3), make(3), make(1, 3))


def condition_errors(make: Maker) -> Iterator[ErrorInput]:
    integer = make.index(2, below=2)
    yield ErrorInput(
        sample(integer, make(2), make(2)),
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype Long",
    )


def condition_and_numbers(kinds: str) -> Any:
    """`where(condition, self, other)` with a number ("n") or a tensor ("t") for each of the two."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        number = some_number(make)
        for shape in ((2, 3), (), (0, 3)):
            yield sample(make.mask(*shape), *(number if kind == "n" else make(*shape) for kind in kinds))

    return samples


def only_condition(make: Maker) -> Iterator[SampleInput]:
    yield sample(make.values([[0, 1, 0], [2, 0, 3]]))
    yield sample(make(0, 3))


def compared(name: str, function: Any) -> list[OpInfo]:
    return [
        OpInfo(
            f"{name}.Tensor", near, function, gradients=False, errors=not_broadcastable, representative=name == "lt"
        ),
        OpInfo(f"{name}.Scalar", with_number(some_number), function, gradients=False),
    ]


def bitwise(name: str, function: Any) -> list[OpInfo]:
    return [
        OpInfo(f"{name}.Tensor", near, function, WHOLE, gradients=False),
        OpInfo(f"{name}.Scalar", with_number(some_number), function, WHOLE, gradients=False),
    ]


COMPARISON = [
    *compared("eq", np.equal),
    *compared("ne", np.not_equal),
    *compared("lt", np.less),
    *compared("le", np.less_equal),
    *compared("gt", np.greater),
    *compared("ge", np.greater_equal),
    OpInfo("logical_and", near, np.logical_and, gradients=False),
    OpInfo("logical_or", near, np.logical_or, gradients=False),
    OpInfo("logical_xor", near, np.logical_xor, gradients=False),
    OpInfo("logical_not", unary(), np.logical_not, gradients=False),
    *bitwise("bitwise_and", np.bitwise_and),
    *bitwise("bitwise_or", np.bitwise_or),
    *bitwise("bitwise_xor", np.bitwise_xor),
    OpInfo("bitwise_not", unary(), np.invert, WHOLE, gradients=False),
    OpInfo("isnan", special, np.isnan, gradients=False),
    OpInfo("isinf", special, np.isinf, gradients=False),
    OpInfo("isfinite", special, np.isfinite, gradients=False),
    OpInfo("where.self", conditions, np.where, errors=condition_errors, representative=True),
    OpInfo("where.ScalarSelf", condition_and_numbers("nt"), np.where),
    OpInfo("where.ScalarOther", condition_and_numbers("tn"), np.where),
    OpInfo("where.Scalar", condition_and_numbers("nn"), np.where, gradients=False),
    OpInfo("where", only_condition, np.nonzero, gradients=False, skips={"meta": "its shape depends on the data"}),
]
