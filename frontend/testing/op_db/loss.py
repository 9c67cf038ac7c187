"""Samples of kernels/ops/loss.py and normalization.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample

NONE, MEAN, SUM = 0, 1, 2
IGNORED = -100


def shrunk(losses: Any, reduction: int, total: Any = None) -> Any:
    """What the reduction makes of the losses; a weighted mean divides by the total weight."""
    if reduction == NONE:
        return losses
    if reduction == SUM:
        return losses.sum()
    with np.errstate(all="ignore"):
        return losses.sum() / (losses.size if total is None else total)


# --- negative log likelihood ------------------------------------------------------------------------------------------


def likelihoods(*shape: int) -> Any:
    """Log-probabilities of shape (N, C, ...), with targets, of which one is ignored, and weights."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        target_shape = (shape[0], *shape[2:])
        for reduction in (NONE, MEAN, SUM):
            weight = make(shape[1], low=0.5, high=2).detach() if reduction else None
            target = make.index(*target_shape, below=shape[1])
            target.reshape(-1)[0].fill_(IGNORED)
            yield sample(make(*shape, low=-4, high=-0.5), target, weight, reduction, IGNORED)

    return samples


def vectors(make: Maker) -> Iterator[SampleInput]:
    yield from likelihoods(3, 4)(make)
    yield sample(make(4, low=-4, high=-0.5), make.index(below=4), None, MEAN, IGNORED)
    yield sample(make(0, 4), make.index(0, below=4), None, SUM, IGNORED)


def any_rank(make: Maker) -> Iterator[SampleInput]:
    yield from vectors(make)
    yield from likelihoods(2, 3, 2, 2)(make)


def chosen(x: Any, target: Any) -> Any:
    """x[n, target[n, ...], ...]; what is ignored gets the first class."""
    classes = 1 if x.ndim > 1 else 0
    return np.take_along_axis(x, np.expand_dims(np.where(target == IGNORED, 0, target), classes), classes).squeeze(
        classes
    )


def weighted(x: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any]:
    """(the losses, their weights)"""
    weights = np.ones_like(target, x.dtype) if weight is None else weight[np.where(target == ignore_index, 0, target)]
    weights = np.where(target == ignore_index, 0, weights)
    return -chosen(x, target) * weights, weights


def nll(x: Any, target: Any, weight: Any = None, reduction: int = MEAN, ignore_index: int = IGNORED) -> Any:
    losses, weights = weighted(x, target, weight, ignore_index)
    return shrunk(losses, reduction, weights.sum())


def nll_and_total(x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    losses, weights = weighted(x, target, weight, ignore_index)
    total = weights.sum() if reduction != NONE or x.ndim == 1 else 0
    return shrunk(losses, reduction, weights.sum()), np.asarray(total, x.dtype)


def nll_gradients(samples: Any) -> Any:
    """The samples of the backward operator, from those of the forward one."""

    def backward(make: Maker) -> Iterator[SampleInput]:
        for s in samples(make):
            x, target, weight, reduction, ignore_index = s.arguments
            if x.numel() == 0 or x.dim() == 1:
                continue
            shape = target.shape if reduction == NONE else ()
            weights = None if weight is None else weight.double().numpy()
            _, taken = weighted(x.detach().double().numpy(), target.numpy(), weights, ignore_index)
            total = make.values(float(taken.sum()), make.dtype).detach()
            yield sample(make(*shape), x.detach(), target, weight, reduction, ignore_index, total)

    return backward


def nll_gradient(grad: Any, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total: Any) -> Any:
    _, weights = weighted(x, target, weight, ignore_index)
    result = np.zeros_like(x)
    share = weights / total if reduction == MEAN else weights
    index = np.expand_dims(np.where(target == ignore_index, 0, target), 1)
    np.put_along_axis(result, index, np.expand_dims(-share * grad, 1), 1)
    return result


def target_errors(make: Maker) -> Iterator[ErrorInput]:
    integer = make.index(1, below=2).dtype
    far = make.values([4, 0], integer)
    yield ErrorInput(sample(make(2, 3), far, None, MEAN, IGNORED), IndexError, "Target 4 is out of bounds.")


# --- cross entropy ----------------------------------------------------------------------------------------------------


def entropies(make: Maker) -> Iterator[SampleInput]:
    yield from vectors(make)
    yield sample(make(3, 4), make.index(3, below=4), None, MEAN, IGNORED, 0.2)
    yield sample(make(2, 3), make(2, 3, low=0, high=1).detach(), None, MEAN, IGNORED, 0.0)


def entropy(
    x: Any, target: Any, weight: Any = None, reduction: int = MEAN, ignore_index: int = IGNORED, smoothing: float = 0.0
) -> Any:
    classes = 1 if x.ndim > 1 else 0
    shifted = x - x.max(classes, keepdims=True, initial=-np.inf)
    logs = shifted - np.log(np.exp(shifted).sum(classes, keepdims=True))
    if target.dtype.kind == "f":
        losses = -(logs * target).sum(classes)
        return shrunk(losses, reduction)
    sharp = nll(logs, target, weight, reduction, ignore_index)
    if not smoothing:
        return sharp
    return (1 - smoothing) * sharp + smoothing * shrunk(-logs.mean(classes), reduction)


# --- layer norm -------------------------------------------------------------------------------------------------------


def layers(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), [3], make(3), make(3), 1e-5)
    yield sample(make(2, 2, 3), [2, 3], None, None, 1e-3)
    yield sample(make(2, 3), [3], make(3), None, 1e-5)
    yield sample(make(0, 3), [3], make(3), make(3), 1e-5)


def layers_and_statistics(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    mean = x.mean(dims, keepdims=True)
    rstd = 1 / np.sqrt(x.var(dims, keepdims=True) + eps)
    scaled = (x - mean) * rstd * (1 if weight is None else weight) + (0 if bias is None else bias)
    return scaled, mean, rstd


def layer_gradients(make: Maker) -> Iterator[SampleInput]:
    x = make(2, 3).detach()
    wide = x.double()
    mean = wide.mean(1, True)
    rstd = (wide.var(1, correction=0, keepdim=True) + 1e-5).rsqrt()
    mean, rstd = mean.to(make.dtype), rstd.to(make.dtype)
    yield sample(make(2, 3), x, [3], mean, rstd, make(3).detach(), make(3).detach(), [True, True, True])
    yield sample(make(2, 3), x, [3], mean, rstd, None, None, [True, False, False])


def layer_gradient(grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any) -> Any:
    normal = (x - mean) * rstd
    inner = grad * (1 if weight is None else weight)
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    back = rstd * (inner - inner.mean(dims, keepdims=True) - normal * (inner * normal).mean(dims, keepdims=True))
    return back, (grad * normal).sum(0) if mask[1] else None, grad.sum(0) if mask[2] else None


LOSS = [
    OpInfo("nll_loss_forward", vectors, nll_and_total, FLOATS, errors=target_errors),
    OpInfo("nll_loss_backward", nll_gradients(vectors), nll_gradient, FLOATS),
    OpInfo("nll_loss2d_forward", likelihoods(2, 3, 2, 2), nll_and_total, FLOATS),
    OpInfo("nll_loss2d_backward", nll_gradients(likelihoods(2, 3, 2, 2)), nll_gradient, FLOATS),
    OpInfo("nll_loss", vectors, nll, FLOATS, errors=target_errors),
    OpInfo("nll_loss2d", likelihoods(2, 3, 2, 2), nll, FLOATS),
    OpInfo("nll_loss_nd", any_rank, nll, FLOATS),
    OpInfo("cross_entropy_loss", entropies, entropy, FLOATS, errors=target_errors),
    OpInfo("native_layer_norm", layers, layers_and_statistics, FLOATS),
    OpInfo("native_layer_norm_backward", layer_gradients, layer_gradient, FLOATS),
    OpInfo("layer_norm", layers, lambda *args: layers_and_statistics(*args)[0], FLOATS),
]
