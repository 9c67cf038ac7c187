"""Samples of kernels/ops/rectifiers.py and gates.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import quiet, unary

SHAPES = ((2, 3), (), (0, 3))


def each_shape(*calls: Any, low: float = -5, high: float = 5) -> Any:
    """One tensor of each shape with the first of the arguments given, a matrix with each of the others."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in SHAPES:
            yield sample(make(*shape, low=low, high=high), *calls[0])
        for args in calls[1:]:
            yield sample(make(2, 3, low=low, high=high), *args)

    return samples


def gradients(*calls: Any, low: float = -5, high: float = 5) -> Any:
    """The same for `<name>_backward(grad_output, self, ...)`."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in SHAPES:
            yield sample(make(*shape), make(*shape, low=low, high=high), *calls[0])
        for args in calls[1:]:
            yield sample(make(2, 3), make(2, 3, low=low, high=high), *args)

    return samples


def elu(self: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    return np.where(self > 0, scale * self, scale * alpha * np.expm1(np.minimum(self, 0) * input_scale))


def elu_gradients(make: Maker) -> Iterator[SampleInput]:
    for shape in SHAPES:
        yield sample(make(*shape), 1.5, 2, 0.5, False, make(*shape))
    yield sample(make(2, 3), 0.5, 1, 1, True, make(2, 3, low=-0.4, high=2))


def elu_slope(grad: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Any) -> Any:
    below = x + alpha * scale if is_result else alpha * scale * np.exp(input_scale * np.minimum(x, 0))
    return grad * np.where(x > 0, scale, input_scale * below)


def in_place_elu_needs_a_positive_slope(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(
        sample(make(2), -1.0, 1, 1, True, make(2)),
        RuntimeError,
        "In-place elu backward calculation is triggered with a negative slope which is not supported.",
    )


def prelus(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(1))
    yield sample(make(2, 3), make(3))
    yield sample(make(2, 3, 2), make(3))
    yield sample(make(3), make(1))
    yield sample(make(), make(1))
    yield sample(make(0, 3), make(3))
    yield sample(make(2, 3), make())


def prelu(self: Any, weight: Any) -> Any:
    if self.ndim and weight.ndim:
        weight = weight.reshape([-1 if d == 1 else 1 for d in range(self.ndim)])
    return np.where(self > 0, self, weight * self).reshape(self.shape)


def prelu_gradients(make: Maker) -> Iterator[SampleInput]:
    for inputs in pairs(make):
        yield sample(make(*inputs.input.shape), inputs.input, *inputs.args)


def prelu_slopes(grad: Any, self: Any, weight: Any) -> Any:
    return np.where(self > 0, grad, grad * weight), np.where(self > 0, 0, grad * self)


def prelu_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "Mismatch of parameter numbers and input channel size. Found parameter numbers = 2 and channel size = 3."
    yield ErrorInput(sample(make(2, 3), make(2)), RuntimeError, text)


def pairs(make: Maker) -> Iterator[SampleInput]:
    for one, other in (((2, 3), (1, 3)), ((), ()), ((0, 3), (1, 3))):
        yield sample(make(*one), make(*other))


def no_lambda_below_zero(make: Maker) -> Iterator[ErrorInput]:
    text = "lambda must be in range [0, 1.79769e+308] for input dtype Double, but found -1"
    yield ErrorInput(sample(make(2), -1), RuntimeError, text)


def celu_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2), 0), RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU")


def hardtanh(self: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    return np.clip(self, min_val, max_val)


def hardsigmoid(self: Any) -> Any:
    return np.clip(self + 3, 0, 6) / 6


def hardshrink(self: Any, lambd: Any = 0.5) -> Any:
    return np.where(np.abs(self) <= lambd, 0, self)


def softshrink(self: Any, lambd: Any = 0.5) -> Any:
    return np.sign(self) * np.maximum(np.abs(self) - lambd, 0)


def gated(self: Any, dim: int = -1) -> Any:
    x, gate = np.split(np.asarray(self, np.float64), 2, dim)
    return x / (1 + np.exp(-gate))


def glu_slope(grad: Any, self: Any, dim: int) -> Any:
    x, gate = np.split(np.asarray(self, np.float64), 2, dim)
    share = 1 / (1 + np.exp(-gate))
    return np.concatenate([grad * share, grad * x * share * (1 - share)], dim)


def to_be_halved(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 4))
    yield sample(make(4, 3), 0)
    yield sample(make(0, 2))


def glu_gradients(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 2), make(2, 4), -1)
    yield sample(make(2, 3), make(4, 3), 0)


def glu_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "Halving dimension must be even, but dimension 1 is size 3"
    yield ErrorInput(sample(make(2, 3)), RuntimeError, text)
    text = "glu does not support 0-dimensional tensors"
    yield ErrorInput(sample(make()), RuntimeError, text)


RECTIFIERS = [
    OpInfo("elu", each_shape((), (0.5, 2, 1.5)), elu, FLOATS),
    OpInfo("elu_backward", elu_gradients, elu_slope, FLOATS, errors=in_place_elu_needs_a_positive_slope),
    OpInfo(
        "celu",
        each_shape((), (2.0,), (-1.5,)),
        lambda self, alpha=1.0: (
            np.maximum(self, 0) + np.minimum(0, alpha * np.expm1(self / alpha))
            if alpha > 0
            else np.where(self > 0, self, alpha * np.expm1(self / alpha))
        ),
        FLOATS,
        errors=celu_errors,
    ),
    OpInfo("selu", unary(), lambda self: elu(self, 1.6732632423543772, 1.0507009873554805), FLOATS),
    OpInfo(
        "leaky_relu",
        each_shape((), (0.5,)),
        lambda self, slope=0.01: np.where(self > 0, self, slope * self),
        FLOATS,
        function="nn.functional.leaky_relu",
    ),
    OpInfo(
        "leaky_relu_backward",
        gradients((0.5, False)),
        lambda grad, self, slope, of_result: grad * np.where(self > 0, 1, slope),
        FLOATS,
    ),
    OpInfo(
        "threshold",
        each_shape((1, 2), (-1, 0)),
        lambda self, threshold, value: np.where(self <= threshold, value, self),
        NUMBERS,
    ),
    OpInfo("prelu", prelus, prelu, FLOATS, errors=prelu_errors),
    OpInfo("_prelu_kernel", pairs, lambda self, weight: np.where(self > 0, self, weight * self), FLOATS),
    OpInfo("_prelu_kernel_backward", prelu_gradients, prelu_slopes, FLOATS),
    OpInfo("hardtanh", each_shape((), (-2, 0)), hardtanh, NUMBERS, function="nn.functional.hardtanh"),
    OpInfo(
        "hardtanh_backward",
        gradients((-1, 2)),
        lambda grad, self, low, high: grad * ((self > low) & (self < high)),
        FLOATS,
    ),
    OpInfo("relu6", unary(low=-3, high=9), lambda self: np.clip(self, 0, 6), NUMBERS, function="nn.functional.relu6"),
    OpInfo("hardsigmoid", each_shape(()), hardsigmoid, FLOATS, function="nn.functional.hardsigmoid"),
    OpInfo("hardsigmoid_backward", gradients(()), lambda grad, self: grad * (np.abs(self) < 3) / 6, FLOATS),
    OpInfo(
        "hardswish", each_shape(()), lambda self: self * hardsigmoid(self), FLOATS, function="nn.functional.hardswish"
    ),
    OpInfo(
        "hardswish_backward",
        gradients(()),
        lambda grad, self: grad * np.where(np.abs(self) < 3, self / 3 + 0.5, self > 0),
        FLOATS,
    ),
    OpInfo("hardshrink", each_shape((), (2,)), hardshrink, FLOATS),
    OpInfo("hardshrink_backward", gradients((2,)), lambda grad, x, lambd: grad * (np.abs(x) > lambd), FLOATS),
    OpInfo(
        "softshrink",
        each_shape((), (2,)),
        quiet(softshrink),
        FLOATS,
        function="nn.functional.softshrink",
        errors=no_lambda_below_zero,
    ),
    OpInfo("glu", to_be_halved, gated, FLOATS, function="nn.functional.glu", errors=glu_errors),
    OpInfo("glu_backward", glu_gradients, glu_slope, FLOATS),
    OpInfo("softshrink_backward", gradients((2,)), lambda grad, x, lambd: grad * (np.abs(x) > lambd), FLOATS),
]
