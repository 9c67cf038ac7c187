"""Samples of kernels/ops/distances.py, sizes.py and constant_pad.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import RECORDED

# --- distances --------------------------------------------------------------------------------------------------------


def norm_of(differences: Any, p: float) -> Any:
    wide = np.abs(np.asarray(differences, np.float64))
    if p == 0:
        return (wide != 0).sum(-1)
    return wide.max(-1, initial=0) if p == float("inf") else (wide**p).sum(-1) ** (1 / p)


def between_rows(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    return norm_of(x1[..., :, None, :] - x2[..., None, :, :], p)


def of_pairs(self: Any, p: float = 2.0) -> Any:
    first, second = np.triu_indices(len(self), 1)
    return norm_of(self[first] - self[second], p)


def rows(*extra: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for p in (2.0, 1.0, 3.0, float("inf")):
            yield sample(make.distinct(3, 2), make.distinct(4, 2), p, *extra)
        yield sample(make(2, 1, 3, 2), make(4, 2, 2), 2.0, *extra)
        yield sample(make(3, 2), make(0, 2), 2.0, *extra)
        yield sample(make(3, 0), make(2, 0), 2.0, *extra)

    return samples


def many_rows(make: Maker) -> Iterator[SampleInput]:
    yield from rows(None)(make)
    yield sample(make(30, 3), make(2, 3), 2.0, None)
    yield sample(make(3, 3), make(2, 3), 2.0, 1)


def one_set(make: Maker) -> Iterator[SampleInput]:
    for p in (2.0, 1.0, 1.5, float("inf")):
        yield sample(make.distinct(4, 3), p)
    yield sample(make(1, 3), 2.0)


def cdist_gradients(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 2), make(2, 3), make(2, 3), 1.0, make(2, 2))


def pdist_gradients(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3), make(3, 2), 1.0, make(3))


def cdist_slope(grad: Any, x1: Any, x2: Any, p: float, cdist: Any) -> Any:
    return (grad[..., None] * np.sign(x1[:, None] - x2[None])).sum(1)


def pdist_slope(grad: Any, self: Any, p: float, pdist: Any) -> Any:
    result = np.zeros_like(self)
    for share, first, second in zip(grad, *np.triu_indices(len(self), 1), strict=True):
        result[first] += share * np.sign(self[first] - self[second])
        result[second] -= share * np.sign(self[first] - self[second])
    return result


def cdist_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "cdist only supports at least 2D tensors, X2 got: 1D"
    yield ErrorInput(sample(make(2, 3), make(3)), RuntimeError, text)
    text = "X1 and X2 must have the same number of columns. X1: 3 X2: 2"
    yield ErrorInput(sample(make(2, 3), make(2, 2)), RuntimeError, text)
    yield ErrorInput(sample(make(2, 3), make(2, 3), -1.0), RuntimeError, "cdist only supports non-negative p values")


def pdist_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(3)), RuntimeError, "pdist only supports 2D tensors, got: 1D")
    yield ErrorInput(sample(make(2, 3), -1.0), RuntimeError, "pdist only supports non-negative p values")


# --- padding ----------------------------------------------------------------------------------------------------------


def pads(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), [1, 2])
    yield sample(make(2, 3), [-1, 1, 0, 2], 1)
    yield sample(make(2, 3), [])
    yield sample(make(3, 2).t(), [1, 0])
    yield sample(make(0, 3), [1, 1, 2, 0], 1)


def padded(self: Any, pad: Any, value: Any = 0) -> Any:
    widths = [(0, 0)] * (self.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    more = np.pad(self, [tuple(max(w, 0) for w in pair) for pair in widths], constant_values=value)
    return more[tuple(slice(max(-a, 0), more.shape[d] - max(-b, 0)) for d, (a, b) in enumerate(widths))]


def pad_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2, 3), [1]), RuntimeError, "Length of pad must be even but instead it equals 1")
    text = "Length of pad should be no more than twice the number of dimensions of the input."
    yield ErrorInput(sample(make(2), [1, 1, 1, 1]), RuntimeError, text)


# --- sizes ------------------------------------------------------------------------------------------------------------


def alone(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3))
    yield sample(make())


def with_dim(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), 0)
    yield sample(make(3, 2).t(), -1)


NARROW = {"bfloat16": "refused, as by PyTorch"}

ABOUT_LAYOUT = {"layouts": "it is a question about the layout"}
DISTANCES = [
    OpInfo("_cdist_forward", many_rows, between_rows, FLOATS, skips=NARROW),
    OpInfo("_cdist_backward", cdist_gradients, cdist_slope, FLOATS, gradients=False, skips=RECORDED | NARROW),
    OpInfo("cdist", rows(), between_rows, FLOATS, errors=cdist_errors),
    OpInfo("_pdist_forward", one_set, of_pairs, FLOATS, skips=NARROW),
    OpInfo("_pdist_backward", pdist_gradients, pdist_slope, FLOATS, gradients=False, skips=RECORDED | NARROW),
    OpInfo("pdist", one_set, of_pairs, FLOATS, errors=pdist_errors),
    OpInfo("constant_pad_nd", pads, padded, errors=pad_errors),
]
SIZES = [
    OpInfo("sym_size.int", with_dim, lambda self, dim: self.shape[dim], FLOATS, gradients=False),
    OpInfo("sym_stride.int", with_dim, None, FLOATS, gradients=False, skips=ABOUT_LAYOUT),
    OpInfo("sym_numel", alone, lambda self: self.size, FLOATS, gradients=False),
    OpInfo("sym_storage_offset", alone, lambda self: 0, FLOATS, gradients=False, skips=ABOUT_LAYOUT),
    OpInfo("sym_is_contiguous", alone, lambda self: True, FLOATS, gradients=False, skips=ABOUT_LAYOUT),
]
