"""Samples of kernels/ops/older_forms.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .convolution import convolved
from .shape import lists
from .views import calls, failing


def norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    others = None if dim == -1 else tuple(d for d in range(v.ndim) if d != dim % v.ndim)
    return (np.abs(v) ** pow).sum(others, keepdims=dim != -1) ** (1 / pow)


def weights(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2, 2), make(3, 1, 1))
    yield sample(make(3, 2, 2), make(1, 2, 1), 1)
    yield sample(make(3, 2), make(), -1)


def vectors(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(10), [make(2, 3), make(0, 2), make(4)])
    yield sample(make(8), [make(2, 3)])


def parts(flat: Any, tensors: Any) -> Any:
    ends = np.cumsum([0, *(x.size for x in tensors)])
    return [flat[i:j].reshape(x.shape) for i, j, x in zip(ends, ends[1:], tensors, strict=False)]


def too_short(make: Maker) -> Iterator[ErrorInput]:
    text = "start (6) + length (4) exceeds dimension size (9)."
    yield ErrorInput(sample(make(9), [make(2, 3), make(4)]), RuntimeError, text)


def convolutions(ndim: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        size, kernel = [5, 4, 4][:ndim], [3, 2, 1][:ndim]
        yield sample(make(2, 3, *size), make(4, 3, *kernel), kernel)
        yield sample(make(2, 3, *size), make(4, 3, *kernel), kernel, make(4), [2] * ndim, [1] * ndim)

    return samples


def other_kernels(ndim: int) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        size = [5] * ndim
        dims = f"Expected {ndim + 2}D input tensor, but got: {[3, *size]}"
        yield ErrorInput(sample(make(3, *size), make(4, 3, *[3] * ndim), [3] * ndim), RuntimeError, dims)
        kernel = f"Expected a weight of shape {[4, 3, *[2] * ndim]}, or one row for each output, but got: "
        yield ErrorInput(sample(make(2, 3, *size), make(4, 3, *[3] * ndim), [2] * ndim), RuntimeError, kernel)

    return errors


def sized(x: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0) -> Any:
    return convolved(x, weight, bias, stride, padding, 1, False, 0, 1)


OLDER_FORMS = [
    OpInfo(
        "norm_except_dim",
        calls([(3, 2, 4)], [(3, 2, 4), 2, 1], [(3, 2, 4), 2, 2], [(3, 2, 4), 2, -1], [(3, 2), 1]),
        norm_except_dim,
        FLOATS,
        errors=failing(
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)", (2, 3), 2, 2, error=IndexError
        ),
    ),
    OpInfo("_weight_norm", weights, lambda v, g, dim=0: v * (g / norm_except_dim(v, 2, dim)), FLOATS),
    OpInfo("flatten_dense_tensors", lists([[(2, 3), (4,), (0,)]]), lambda x: np.concatenate([y.ravel() for y in x])),
    OpInfo("unflatten_dense_tensors", vectors, parts, errors=too_short),
    OpInfo("thnn_conv2d", convolutions(2), sized, FLOATS, errors=other_kernels(2)),
    OpInfo("slow_conv3d", convolutions(3), sized, FLOATS, errors=other_kernels(3)),
]
