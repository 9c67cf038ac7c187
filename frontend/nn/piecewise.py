"""Activations made of pieces, as functions: `functional.leaky_relu(input, 0.1)`, which names them with the others.

Those that can write over their input take `inplace`.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import activations, gates
from redispatch.kernels.ops import rrelu as randomly_leaking

prelu = activations.prelu
hardshrink = activations.hardshrink
softshrink = activations.softshrink
celu_ = activations.celu.inplace
elu_ = activations.elu.inplace
hardtanh_ = activations.hardtanh.inplace
leaky_relu_ = activations.leaky_relu.inplace
selu_ = activations.selu.inplace
threshold_ = activations.threshold.inplace
rrelu_ = randomly_leaking.rrelu_


def _in_place_or_not(operator: Any, input: Tensor, inplace: bool, *args: Any) -> Tensor:
    return operator.inplace(input, *args) if inplace else operator(input, *args)


@overridable_function
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x) - 1) below, elementwise."""
    return _in_place_or_not(activations.elu, input, inplace, alpha)


@overridable_function
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x / alpha) - 1) below, elementwise."""
    return _in_place_or_not(activations.celu, input, inplace, alpha)


@overridable_function
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu scaled so that mean 0 and variance 1 stay what they are."""
    return _in_place_or_not(activations.selu, input, inplace)


@overridable_function
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope x below, elementwise."""
    return _in_place_or_not(activations.leaky_relu, input, inplace, negative_slope)


@overridable_function
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu with a slope drawn from [lower, upper) for each element; without `training` by the mean of the two."""
    operator = randomly_leaking.rrelu_ if inplace else randomly_leaking.rrelu
    return operator(input, lower, upper, training)


@overridable_function
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above the threshold, `value` up to it, elementwise."""
    return _in_place_or_not(activations.threshold, input, inplace, threshold, value)


@overridable_function
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x, but no less than `min_val` and no more than `max_val`.

    Errors: ValueError where `min_val` is above `max_val`.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _in_place_or_not(activations.hardtanh, input, inplace, min_val, max_val)


@overridable_function
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6), elementwise."""
    return _in_place_or_not(activations.relu6, input, inplace)


@overridable_function
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6, elementwise."""
    return _in_place_or_not(activations.hardsigmoid, input, inplace)


@overridable_function
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x hardsigmoid(x), elementwise."""
    return _in_place_or_not(activations.hardswish, input, inplace)


@overridable_function
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `dim` times the sigmoid of the second.

    Errors: RuntimeError where there are no two halves.
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return gates.glu(input, dim)


@overridable_function
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x), elementwise."""
    return input - input.tanh()


@overridable_function
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|), elementwise."""
    return input / (input.abs() + 1)
