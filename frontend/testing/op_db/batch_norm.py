"""Samples of kernels/ops/batch_norm.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample

EPS = 1e-5


def stats(make: Maker, channels: int) -> tuple[Any, Any]:
    return make(channels).detach(), make(channels, low=0.5, high=2).detach()


def batches(*trained: bool, running: bool = True) -> Any:
    """Inputs with and without weights; `trained`: with which values of `training`."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for training in trained:
            given = [] if not running else [None, None] if training else [*stats(make, 3)]
            yield sample(make(4, 3), make(3), make(3), *given, training, 0.1, EPS)
            given = given if training else [*stats(make, 2)]
            yield sample(make(2, 2, 3, 2), None, None, *given, training, 0.1, EPS)

    return samples


def legit(make: Maker) -> Iterator[SampleInput]:
    for training in (True, False):
        yield sample(make(4, 3), make(3), make(3), *stats(make, 3), training, 0.1, EPS)
        yield sample(make(2, 2, 3, 2), None, None, *stats(make, 2), training, 0.1, EPS)


def no_training(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(4, 3), make(3), make(3), *stats(make, 3), 0.1, EPS)
    yield sample(make(2, 2, 3, 2), None, None, *stats(make, 2), 0.1, EPS)


def whole(make: Maker) -> Iterator[SampleInput]:
    for s in batches(True, False)(make):
        yield sample(*s.arguments, False)


def along_channels(x: Any, ndim: int) -> Any:
    return x.reshape([-1 if d == 1 else 1 for d in range(ndim)])


def scaled(standard: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        standard = standard * along_channels(weight, standard.ndim) + along_channels(bias, standard.ndim)
    return standard


def batch_normed(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    x = np.asarray(input, np.float64)
    if not training:
        root = np.sqrt(along_channels(var, x.ndim) + eps)
        return scaled((x - along_channels(mean, x.ndim)) / root, weight, bias), np.zeros(0), np.zeros(0)
    axes = tuple(d for d in range(x.ndim) if d != 1)
    mean, root = x.mean(axes), np.sqrt(x.var(axes) + eps)
    standard = (x - along_channels(mean, x.ndim)) / along_channels(root, x.ndim)
    return scaled(standard, weight, bias), mean, 1 / root


def batch_gradients(make: Maker) -> Iterator[SampleInput]:
    for training in (True, False):
        x = make(4, 3).detach() if training else make(4, 3)  # its mean and deviation are given, and do not move with it
        wide = x.detach() if make.dtype.is_complex else x.detach().double()
        mean, rstd = wide.mean(0), (wide.var(0, correction=0) + EPS).rsqrt()
        given = mean.to(make.dtype), rstd.to(make.dtype)
        yield sample(make(4, 3), x, make(3), *stats(make, 3), *given, training, EPS, [True, True, True])


def batch_gradient(
    grad: Any, x: Any, weight: Any, mean: Any, var: Any, saved: Any, root: Any, train: bool, eps: float, mask: Any
) -> Any:
    mean, rstd = (saved, root) if train else (mean, 1 / np.sqrt(var + eps))
    standard, g = (x - mean) * rstd, grad * weight
    back = g - g.mean(0) - standard * (g * standard).mean(0) if train else g
    return back * rstd, (grad * standard).sum(0), grad.sum(0)


def images(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3, 4), None, None, None, None, True, 0.1, EPS, False)
    yield sample(make(2, 3, 2, 2), make(3), make(3), *stats(make, 3), False, 0.1, EPS, False)


def instance_normed(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, own: bool, momentum: float, eps: float, cudnn: bool
) -> Any:
    if not own:
        return batch_normed(input, weight, bias, mean, var, False, momentum, eps)[0]
    axes = tuple(range(2, input.ndim))
    x = np.asarray(input, np.float64)
    standard = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return scaled(standard, weight, bias)


def groups(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 4, 3), make(4), make(4), 2, 4, 3, 2, EPS)
    yield sample(make(2, 4, 2, 2), None, None, 2, 4, 4, 1, EPS)
    yield sample(make(3, 2), make(2), None, 3, 2, 1, 1, EPS)


def few_groups(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 4, 3), 2, make(4), make(4), EPS)
    yield sample(make(2, 4, 2, 2), 1)


def group_normed(input: Any, weight: Any, bias: Any, n: int, channels: int, size: int, group: int, eps: float) -> Any:
    rows = np.asarray(input, np.float64).reshape(n, group, -1)
    mean, rstd = rows.mean(-1), 1 / np.sqrt(rows.var(-1) + eps)
    standard = ((rows - mean[..., None]) * rstd[..., None]).reshape(input.shape)
    if weight is not None:
        standard = standard * along_channels(weight, input.ndim)
    if bias is not None:
        standard = standard + along_channels(bias, input.ndim)
    return standard, mean, rstd


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = EPS) -> Any:
    n, channels, *image = input.shape
    return group_normed(input, weight, bias, n, channels, 0, num_groups, eps)[0]


def group_gradients(make: Maker) -> Iterator[SampleInput]:
    x = make(2, 4, 3)
    yield sample(make(2, 4, 3), x, make(2, 2), make(2, 2, low=0.5), make(4), 2, 4, 3, 2, [True, True, True])


def group_gradient(
    grad: Any, x: Any, mean: Any, rstd: Any, weight: Any, n: int, c: int, size: int, group: int, mask: Any
) -> Any:
    rows = (n, group, c // group, -1)
    mean, rstd = mean[..., None, None], rstd[..., None, None]
    standard, g = (x.reshape(rows) - mean) * rstd, (grad * weight[None, :, None]).reshape(rows)
    axes = {"axis": (2, 3), "keepdims": True}
    back = (g - g.mean(**axes) - standard * (g * standard).mean(**axes)) * rstd
    whole = grad * standard.reshape(grad.shape)
    return back.reshape(x.shape), whole.sum((0, 2)), grad.sum((0, 2))


def group_errors(make: Maker) -> Iterator[ErrorInput]:
    text = (
        "Expected number of channels in input to be divisible by num_groups, but got input of shape [2, 3] and "
        "num_groups=2"
    )
    yield ErrorInput(sample(make(2, 3), 2), RuntimeError, text)
    text = "Dimension out of range (expected to be in range of [-1, 0], but got 1)"
    yield ErrorInput(sample(make(3), 1), IndexError, text)


def batch_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "running_mean should contain 3 elements not 2"
    yield ErrorInput(sample(make(4, 3), None, None, make(2), make(3), False, 0.1, EPS, False), RuntimeError, text)
    text = "running_mean must be defined in evaluation mode"
    yield ErrorInput(sample(make(4, 3), None, None, None, None, False, 0.1, EPS, False), RuntimeError, text)


def roots(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3, low=1), [3])
    yield sample(make(2, 3, 2), [3, 2], make(3, 2), 0.1)


def rms_normed(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    x = np.asarray(input, np.float64)
    axes = tuple(range(-len(normalized_shape), 0))
    eps = np.finfo(input.dtype).eps if eps is None else eps
    standard = x / np.sqrt((x * x).mean(axes, keepdims=True) + eps)
    return standard if weight is None else standard * weight


REAL = {"complex_gradients": "PyTorch's kernel takes no complex numbers"}
ROUNDED = {"bfloat16": "each of its steps is rounded"}
NO_FORMULA = {**dict.fromkeys(("gradients", "second_gradients"), "PyTorch has no derivative of it, either"), **ROUNDED}
BATCH_NORM = [
    OpInfo("native_batch_norm", batches(True, False), batch_normed, FLOATS),
    OpInfo("_native_batch_norm_legit", legit, batch_normed, FLOATS),
    OpInfo(
        "_native_batch_norm_legit.no_stats",
        batches(True, running=False),
        lambda x, w, b, *rest: batch_normed(x, w, b, None, None, *rest),
        FLOATS,
    ),
    OpInfo(
        "_native_batch_norm_legit_no_training",
        no_training,
        lambda x, w, b, mean, var, *rest: batch_normed(x, w, b, mean, var, False, *rest),
        FLOATS,
    ),
    OpInfo("native_batch_norm_backward", batch_gradients, batch_gradient, FLOATS, skips={**ROUNDED, **REAL}),
    OpInfo("batch_norm", whole, lambda *args: batch_normed(*args[:-1])[0], FLOATS, errors=batch_errors),
    OpInfo("instance_norm", images, instance_normed, FLOATS),
    OpInfo("native_group_norm", groups, group_normed, FLOATS),
    OpInfo("native_group_norm_backward", group_gradients, group_gradient, FLOATS, skips=NO_FORMULA),
    OpInfo("group_norm", few_groups, group_norm, FLOATS, errors=group_errors),
    OpInfo("rms_norm", roots, rms_normed, FLOATS),
]
