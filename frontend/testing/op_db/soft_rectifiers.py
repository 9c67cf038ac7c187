"""Samples of kernels/ops/soft_rectifiers.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, Maker, OpInfo, SampleInput, sample
from .common import unary
from .elementary import sigmoid, slopes


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    wide = np.asarray(x, np.float64) * beta
    return np.where(wide > threshold, x, np.logaddexp(wide, 0) / beta)


def softplusses(make: Maker) -> Iterator[SampleInput]:
    yield from unary()(make)
    yield sample(make(2, 3), beta=2.0, threshold=1.5)


def softplus_slope(grad: Any, self: Any, beta: float, threshold: float) -> Any:
    return grad * np.where(self * beta > threshold, 1, sigmoid(self * beta))


def mish_slope(grad: Any, self: Any) -> Any:
    t = np.tanh(softplus(self))
    return grad * (t + self * (1 - t * t) * sigmoid(self))


def log_sigmoid_slopes(make: Maker) -> Iterator[SampleInput]:
    """The buffer is what log_sigmoid_forward keeps: no input that one may choose."""
    for shape in ((2, 3), (), (0, 3)):
        self = make(*shape).detach()
        yield sample(make(*shape), self, (-self.abs()).exp() if self.dtype.is_floating_point else self)


SOFT_RECTIFIERS = [
    OpInfo("softplus", softplusses, softplus, FLOATS, function="nn.functional.softplus"),
    OpInfo("softplus_backward", slopes(1.5, 2), softplus_slope, FLOATS),
    OpInfo("log_sigmoid", unary(), lambda self: -softplus(-self), FLOATS, function="nn.functional.logsigmoid"),
    OpInfo("log_sigmoid_forward", unary(), lambda self: (-softplus(-self), np.exp(-np.abs(self))), FLOATS),
    OpInfo("log_sigmoid_backward", log_sigmoid_slopes, lambda grad, self, buffer: grad * sigmoid(-self), FLOATS),
    OpInfo("mish", unary(), lambda self: self * np.tanh(softplus(self)), FLOATS, function="nn.functional.mish"),
    OpInfo("mish_backward", slopes(), mish_slope, FLOATS),
]
