"""Samples of kernels/ops/elementary.py, special.py and activations.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import numpy as np

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import binary, quiet, unary

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


def slopes(*args: Any) -> Any:
    """A gradient, and what a slope is taken at."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in ((2, 3), (), (0, 3)):
            yield sample(make(*shape), make(*shape), *args)
        yield sample(make(2, 3), make(3, 2).t(), *args)

    return samples


def logit_slopes(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 3, low=0.1, high=0.9))
    yield sample(make(2, 3), make(2, 3, low=0.1, high=0.9), 0.05)
    yield sample(make(2, 3), make(2, 3, low=1.1, high=1.9), 0.05)
    for shape in ((), (0, 3)):
        yield sample(make(*shape), make(*shape, low=0.1, high=0.9))
    yield sample(make(2, 3).detach(), make(2, 3, low=1.1, high=1.9).detach())


def logit_slope(grad: Any, self: Any, eps: float | None = None) -> Any:
    low = 0 if eps is None else eps
    inside = (self >= low) & (self <= 1 - low)
    return np.where(inside, grad / (self * (1 - self)), math.nan if eps is None else 0)


def silu_slope(grad: Any, self: Any) -> Any:
    share = sigmoid(self)
    return grad * share * (1 + self * (1 - share))


def sigmoid(self: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(self, np.float64)))


def floats(function: Any) -> Any:
    """numpy computes whole numbers in float64, and bool in float16, which is too coarse."""
    return quiet(lambda self: function(np.asarray(self, self.dtype if self.dtype.kind == "f" else np.float64)))


def each(function: Any) -> Any:
    """A function of one number, for arrays; in float64."""
    return np.vectorize(function, otypes=[float])


def erfinv(y: float) -> float:
    return NormalDist().inv_cdf((y + 1) / 2) / math.sqrt(2)


def digamma(x: float) -> float:
    """By its recurrence and the first terms of the series at infinity; -inf at 0."""
    if x == 0:
        return -math.inf
    total = 0.0
    while x < 20:
        total, x = total - 1 / x, x + 1
    return total + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6)


def trigamma(n: int, x: Any) -> Any:
    """The slope of digamma, by a central difference, which is good to eight digits."""
    assert n == 1
    return each(lambda x: (digamma(x + 1e-4) - digamma(x - 1e-4)) / 2e-4)(x)


def polygammas(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(1, make(*shape, low=1))


def polygammas_in_place(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=1).detach(), 1)


def multivariate(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape, low=3, high=6), 3)


def mvlgamma(x: Any, p: int) -> Any:
    return p * (p - 1) / 4 * math.log(math.pi) + sum(each(math.lgamma)(np.asarray(x, float) - j / 2) for j in range(p))


def no_dimension(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2), 0), RuntimeError, "p has to be greater than or equal to 1")


def logits(make: Maker) -> Iterator[SampleInput]:
    yield from unary(low=0.1, high=0.9)(make)
    yield sample(make(2, 3, low=-0.5, high=1.5), 0.125)


def logit(x: Any, eps: float | None = None) -> Any:
    wide = np.asarray(x, np.float64)
    wide = wide if eps is None else np.clip(wide, eps, 1 - eps)
    return np.log(wide / (1 - wide))


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
    OpInfo("asin", unary(low=-0.9, high=0.9), floats(np.arcsin)),
    OpInfo("acos", unary(low=-0.9, high=0.9), floats(np.arccos)),
    OpInfo("atan", unary(), floats(np.arctan)),
    OpInfo("atan2", binary(exclude_zero=True), lambda y, x: np.arctan2(np.asarray(y, float), np.asarray(x, float))),
    OpInfo("sinh", unary(), floats(np.sinh)),
    OpInfo("cosh", unary(), floats(np.cosh)),
    OpInfo("tanh", unary(), floats(np.tanh)),
    OpInfo("asinh", unary(), floats(np.arcsinh)),
    OpInfo("acosh", unary(low=2), floats(np.arccosh)),
    OpInfo("atanh", unary(low=-0.9, high=0.9), floats(np.arctanh)),
    OpInfo("erf", unary(), erf),
    OpInfo("erfc", unary(), each(math.erfc)),
    OpInfo("erfinv", unary(low=-0.9, high=0.9), each(erfinv)),
    OpInfo("lgamma", unary(low=1), each(lambda x: math.lgamma(x) if x else math.inf)),
    OpInfo("digamma", unary(low=1), each(digamma)),
    OpInfo("polygamma", polygammas, trigamma, FLOATS, tolerance={"float64": (1e-7, 1e-7)}),  # of the difference
    OpInfo(
        "polygamma_",
        polygammas_in_place,
        lambda x, n: trigamma(n, x),
        FLOATS,
        tolerance={"float64": (1e-7, 1e-7)},  # as for polygamma
        skips=dict.fromkeys(("gradients", "second_gradients"), "a leaf cannot be written over; polygamma is checked"),
    ),
    OpInfo("mvlgamma", multivariate, mvlgamma, NUMBERS, errors=no_dimension),
    OpInfo("exp2", unary(), floats(np.exp2)),
    OpInfo("sigmoid", unary(), sigmoid),
    OpInfo("logit", logits, quiet(logit), FLOATS),
    OpInfo("relu", unary(), lambda self: np.maximum(self, 0), NUMBERS),
    OpInfo("silu", unary(), lambda self: self * sigmoid(self), FLOATS, function="nn.functional.silu"),
    OpInfo("gelu", gelus, gelu, FLOATS, function="nn.functional.gelu", representative=True),
    OpInfo("threshold_backward", threshold_gradients, lambda grad, self, threshold: grad * (self > threshold), NUMBERS),
    OpInfo("gelu_backward", gelu_gradients, gelu_slope, FLOATS),
    OpInfo("sigmoid_backward", slopes(), lambda grad, output: grad * (1 - output) * output, FLOATS),
    OpInfo("tanh_backward", slopes(), lambda grad, output: grad * (1 - output * output), FLOATS),
    OpInfo("silu_backward", slopes(), silu_slope, FLOATS),
    OpInfo("logit_backward", logit_slopes, quiet(logit_slope), FLOATS),
]
