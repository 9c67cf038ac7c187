"""Samples of ops/elementary.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, NUMBERS, Maker, OpInfo, SampleInput, sample
from .common import quiet, unary

erf = np.vectorize(math.erf, otypes=[float])


def gelu(self: Any, approximate: str = "none") -> Any:
    wide = np.asarray(self, np.float64)
    if approximate == "tanh":
        return 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    return 0.5 * wide * (1 + erf(wide / math.sqrt(2)))


def gelu_slope(grad_output: Any, self: Any, approximate: str = "none") -> Any:
    """By a central difference, which is good to ten digits in float64."""
    wide, step = np.asarray(self, np.float64), 1e-5
    return grad_output * (gelu(wide + step, approximate) - gelu(wide - step, approximate)) / (2 * step)


def gelus(make: Maker) -> Iterator[SampleInput]:
    yield from unary()(make)
    yield from unary(approximate="tanh")(make)


def gelu_gradients(make: Maker) -> Iterator[SampleInput]:
    for approximate in ("none", "tanh"):
        yield sample(make(2, 3), make(2, 3), approximate=approximate)
    yield sample(make(), make())
    yield sample(make(0, 3), make(0, 3))


def threshold_gradients(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape), make(*shape), 0)


def sigmoid(self: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(self, np.float64)))


def floats(function: Any) -> Any:
    """numpy computes whole numbers in float64, and bool in float16, which is too coarse."""
    return quiet(lambda self: function(np.asarray(self, self.dtype if self.dtype.kind == "f" else np.float64)))


# Rounded results differ from the mathematical ones by a step; a step more is allowed to whoever rounds otherwise.
ROUNDING = [
    OpInfo("neg", unary(), np.negative, NUMBERS),
    OpInfo("abs", unary(), np.abs, NUMBERS),
    OpInfo("sign", unary(), lambda self: self if self.dtype == bool else np.sign(self)),
    OpInfo("floor", unary(), np.floor, NUMBERS),
    OpInfo("ceil", unary(), np.ceil, NUMBERS),
    OpInfo("trunc", unary(), np.trunc, NUMBERS),
    OpInfo("round", unary(), np.round, NUMBERS),
]

ELEMENTARY = [
    *ROUNDING,
    OpInfo("sqrt", unary(low=1), floats(np.sqrt)),
    OpInfo("rsqrt", unary(low=1), floats(lambda x: 1 / np.sqrt(x))),
    OpInfo("reciprocal", unary(low=1), floats(lambda x: 1 / x)),
    OpInfo("exp", unary(), floats(np.exp), representative=True),
    OpInfo("expm1", unary(), floats(np.expm1)),
    OpInfo("log", unary(low=1), floats(np.log)),
    OpInfo("log2", unary(low=1), floats(np.log2)),
    OpInfo("log10", unary(low=1), floats(np.log10)),
    OpInfo("log1p", unary(low=0), floats(np.log1p)),
    OpInfo("sin", unary(), floats(np.sin)),
    OpInfo("cos", unary(), floats(np.cos)),
    OpInfo("tan", unary(low=-1, high=1.5), floats(np.tan)),
    OpInfo("tanh", unary(), floats(np.tanh)),
    OpInfo("erf", unary(), erf),
    OpInfo("sigmoid", unary(), sigmoid),
    OpInfo("relu", unary(), lambda self: np.maximum(self, 0), NUMBERS),
    OpInfo("silu", unary(), lambda self: self * sigmoid(self), FLOATS, function="nn.functional.silu"),
    OpInfo("gelu", gelus, gelu, FLOATS, function="nn.functional.gelu", representative=True),
    OpInfo("threshold_backward", threshold_gradients, lambda grad, self, threshold: grad * (self > threshold), NUMBERS),
    OpInfo("gelu_backward", gelu_gradients, gelu_slope, FLOATS),
]
