"""Samples of kernels/ops/pair_losses.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import not_broadcastable
from .loss import MEAN, NONE, SUM, shrunk


def pairs(*numbers: Any, low: float = -3, high: float = 4) -> Any:
    """Two tensors, each reduction, and these numbers behind it."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for reduction in (NONE, MEAN, SUM):
            yield sample(make(2, 3, low=low, high=high), make(2, 3, low=low, high=high), reduction, *numbers)
        yield sample(make(low=low, high=high), make(low=low, high=high), MEAN, *numbers)
        yield sample(make(0, 3), make(0, 3), SUM, *numbers)

    return samples


def pair_gradients(*numbers: Any, low: float = -3, high: float = 4) -> Any:
    """The same for `<name>_backward(grad_output, self, target, ...)`."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for reduction in (NONE, MEAN, SUM):
            grad = make(2, 3) if reduction == NONE else make()
            yield sample(
                grad, make(2, 3, low=low, high=high), make(2, 3, low=low, high=high).detach(), reduction, *numbers
            )

    return samples


def own_share(x: Any, reduction: int) -> Any:
    return 1 / x.size if reduction == MEAN else 1


def mse(self: Any, target: Any, reduction: int = MEAN) -> Any:
    return shrunk((self - target) ** 2, reduction)


def mse_gradient(grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    return 2 * (self - target) * grad_output * own_share(self, reduction)


def absolute(self: Any, target: Any, reduction: int = MEAN) -> Any:
    return shrunk(np.abs(self - target), reduction)


def huber(self: Any, target: Any, reduction: int = MEAN, delta: float = 1.0) -> Any:
    size = np.abs(self - target)
    return shrunk(np.where(size <= delta, size**2 / 2, delta * (size - delta / 2)), reduction)


def huber_gradient(grad_output: Any, self: Any, target: Any, reduction: int, delta: float) -> Any:
    return np.clip(self - target, -delta, delta) * grad_output * own_share(self, reduction)


def smooth(self: Any, target: Any, reduction: int = MEAN, beta: float = 1.0) -> Any:
    return huber(self, target, reduction, beta) / beta


def smooth_gradient(grad_output: Any, self: Any, target: Any, reduction: int, beta: float) -> Any:
    return huber_gradient(grad_output, self, target, reduction, beta) / beta


def needs_a_positive_delta(make: Maker) -> Iterator[ErrorInput]:
    text = "huber_loss does not support non-positive values for delta."
    yield ErrorInput(sample(make(2), make(2), MEAN, 0.0), RuntimeError, text)


def needs_a_beta(make: Maker) -> Iterator[ErrorInput]:
    text = "smooth_l1_loss does not support negative values for beta."
    yield ErrorInput(sample(make(2), make(2), MEAN, -1.0), RuntimeError, text)


# --- 1 or -1 ----------------------------------------------------------------------------------------------------------


def signs(make: Maker, x: Any) -> Any:
    """1 and -1, in the shape of a tensor and in its dtype."""
    return make.values(np.where(np.arange(x.numel()) % 2, 1, -1).reshape(x.shape).tolist()).detach()


def signed(make: Maker) -> Iterator[SampleInput]:
    for s in pairs()(make):
        x, target, reduction = s.arguments
        if x.numel():
            yield sample(x, signs(make, target), reduction)


def signed_gradients(make: Maker) -> Iterator[SampleInput]:
    for s in pair_gradients()(make):
        grad, x, target, reduction = s.arguments
        yield sample(grad, x, signs(make, target), reduction)


def soft_margin(self: Any, target: Any, reduction: int = MEAN) -> Any:
    return shrunk(np.log1p(np.exp(-self * target)), reduction)


def soft_margin_gradient(grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    return -target / (1 + np.exp(self * target)) * grad_output * own_share(self, reduction)


# --- probabilities ----------------------------------------------------------------------------------------------------


def chances(make: Maker) -> Iterator[SampleInput]:
    for s in pairs(low=0.1, high=0.9)(make):
        x, target, reduction = s.arguments
        yield sample(x, target, None, reduction)
    weight = make(3, low=0.5, high=2).detach()
    yield sample(make(2, 3, low=0.1, high=0.9), make(2, 3, low=0.1, high=0.9), weight, MEAN)


def chance_gradients(make: Maker) -> Iterator[SampleInput]:
    for s in pair_gradients(low=0.1, high=0.9)(make):
        grad, x, target, reduction = s.arguments
        yield sample(grad, x, target, make(3, low=0.5, high=2).detach() if reduction else None, reduction)


def binary(self: Any, target: Any, weight: Any = None, reduction: int = MEAN) -> Any:
    losses = -(target * np.log(self) + (1 - target) * np.log1p(-self))
    return shrunk(losses * (1 if weight is None else weight), reduction)


def binary_gradient(grad_output: Any, self: Any, target: Any, weight: Any = None, reduction: int = MEAN) -> Any:
    slope = (self - target) / (self * (1 - self)) * (1 if weight is None else weight)
    return slope * grad_output * own_share(self, reduction)


def no_probabilities(make: Maker) -> Iterator[ErrorInput]:
    good, bad = make.values([0.5, 0.5]), make.values([0.5, 1.5])
    for args, name in (((bad, good), "input"), ((good, bad), "target")):
        yield ErrorInput(sample(*args), RuntimeError, f"all elements of {name} should be between 0 and 1")


def logits(make: Maker) -> Iterator[SampleInput]:
    for reduction in (NONE, MEAN, SUM):
        yield sample(make(2, 3), make(2, 3, low=0, high=1).detach(), None, None, reduction)
    weight, positive = make(3, low=0.5, high=2).detach(), make(3, low=0.5, high=2).detach()
    yield sample(make(2, 3), make(2, 3, low=0, high=1).detach(), weight, positive, MEAN)
    yield sample(make(2, 3), make(2, 3, low=0, high=1).detach(), None, positive, NONE)


def binary_entropy(self: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = MEAN) -> Any:
    log = -np.log1p(np.exp(-self))
    losses = -(target * log * (1 if pos_weight is None else pos_weight) + (1 - target) * (log - self))
    return shrunk(losses * (1 if weight is None else weight), reduction)


def divergences(make: Maker) -> Iterator[SampleInput]:
    yield from pairs(low=0.1, high=1)(make)
    yield sample(make(2, 3), make(2, 3), MEAN, log_target=True)


def divergence(self: Any, target: Any, reduction: int = MEAN, log_target: bool = False) -> Any:
    if log_target:
        return shrunk(np.exp(target) * (target - self), reduction)
    return shrunk(target * (np.log(target) - self), reduction)


def counts(make: Maker) -> Iterator[SampleInput]:
    for reduction in (NONE, MEAN, SUM):
        yield sample(make(2, 3), make(2, 3, low=0.5, high=4).detach(), True, reduction != NONE, 1e-8, reduction)
        yield sample(make(2, 3, low=0.5, high=2), make(2, 3, low=0, high=4).detach(), False, False, 1e-8, reduction)


def poisson(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    losses = np.exp(input) - target * input if log_input else input - target * np.log(input + eps)
    if full:
        stirling = target * np.log(target) - target + 0.5 * np.log(2 * np.pi * target)
        losses = losses + np.where(target <= 1, 0, stirling)
    return shrunk(losses, reduction)


PAIR_LOSSES = [
    OpInfo("mse_loss", pairs(), mse, FLOATS, errors=not_broadcastable),
    OpInfo("mse_loss_backward", pair_gradients(), mse_gradient, FLOATS),
    OpInfo("l1_loss", pairs(), absolute, FLOATS),
    OpInfo("huber_loss", pairs(1.5), huber, FLOATS, errors=needs_a_positive_delta),
    OpInfo("huber_loss_backward", pair_gradients(1.5), huber_gradient, FLOATS),
    OpInfo("smooth_l1_loss", pairs(0.5), smooth, FLOATS, errors=needs_a_beta),
    OpInfo("smooth_l1_loss_backward", pair_gradients(0.5), smooth_gradient, FLOATS),
    OpInfo("soft_margin_loss", signed, soft_margin, FLOATS),
    OpInfo("soft_margin_loss_backward", signed_gradients, soft_margin_gradient, FLOATS),
    OpInfo("binary_cross_entropy", chances, binary, FLOATS, errors=no_probabilities),
    OpInfo("binary_cross_entropy_backward", chance_gradients, binary_gradient, FLOATS),
    OpInfo("binary_cross_entropy_with_logits", logits, binary_entropy, FLOATS),
    OpInfo("kl_div", divergences, divergence, FLOATS),
    OpInfo("poisson_nll_loss", counts, poisson, FLOATS),
]
