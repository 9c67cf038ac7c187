"""Samples of kernels/ops/searching.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, INTEGERS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import RECORDED

NO_META = {"meta": "how many values there are is not known there"}


def few(make: Maker, *shape: int) -> Any:
    """Small whole numbers, of which many are equal."""
    return make.index(*shape, below=4).to(make.dtype)


# --- unique -----------------------------------------------------------------------------------------------------------


def values(*flags: bool) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        yield sample(few(make, 3, 4))
        yield sample(few(make, 9), *flags)
        yield sample(few(make), *flags)
        yield sample(few(make, 0), *flags)

    return samples


def slices(make: Maker) -> Iterator[SampleInput]:
    yield sample(few(make, 6, 2), 0, True, True, True)
    yield sample(few(make, 2, 5), -1, True, True, True)
    yield sample(few(make, 1, 3), 0, True, True, True)


def neighbours(make: Maker) -> Iterator[SampleInput]:
    yield sample(few(make, 12), True, True)
    yield sample(few(make, 3, 3))
    yield sample(few(make, 7, 1), True, True, 0)


def neighbouring_slices(make: Maker) -> Iterator[SampleInput]:
    yield sample(few(make, 7, 1), 0, True, True)


def unique(self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    found, inverse, counts = np.unique(self, return_inverse=True, return_counts=True)
    none = np.zeros(0, np.int64)
    return found, inverse.reshape(self.shape) if return_inverse else none, counts if return_counts else none


def unique_slices(self: Any, dim: int, *flags: bool) -> Any:
    found, inverse, counts = np.unique(self, return_inverse=True, return_counts=True, axis=dim)
    return found, inverse.ravel(), counts


def first_of_runs(self: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None) -> Any:
    lines = self.reshape(-1) if dim is None else self[:, 0]
    starts = [k for k in range(len(lines)) if not k or lines[k] != lines[k - 1]]
    inverse = np.cumsum([k in starts for k in range(len(lines))]) - 1
    counts, none = np.diff([*starts, len(lines)]), np.zeros(0, np.int64)
    if dim is not None:
        return self[starts], inverse, counts
    return lines[starts], inverse.reshape(self.shape) if return_inverse else none, counts if return_counts else none


# --- searchsorted, bucketize, isin ------------------------------------------------------------------------------------


def edges(make: Maker, *shape: int) -> Any:
    return make(*shape).detach().sort().values


def searches(make: Maker) -> Iterator[SampleInput]:
    for options in ({}, {"right": True}, {"side": "right", "out_int32": True}):
        yield sample(edges(make, 4), make(2, 3).detach(), **options)
    yield sample(edges(make, 2, 4), make(2, 3).detach())
    x = make.distinct(4).detach()
    yield sample(x, make(3).detach(), sorter=x.argsort())
    yield sample(edges(make, 3), make().detach())
    yield sample(edges(make, 0), make(2).detach())


def searched(
    sorted_sequence: Any, self: Any, out_int32: bool = False, right: bool = False, side: Any = None, sorter: Any = None
) -> Any:
    lines = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, -1)
    lines = lines if lines.ndim == 1 else lines[..., None, :]
    below = lines <= np.asarray(self)[..., None] if right or side == "right" else lines < np.asarray(self)[..., None]
    return below.sum(-1)


def searches_of_a_number(make: Maker) -> Iterator[SampleInput]:
    yield sample(edges(make, 4), 1)
    yield sample(edges(make, 4), 2, right=True)


def buckets(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3).detach(), edges(make, 4))
    yield sample(make(3).detach(), edges(make, 4), right=True, out_int32=True)


def buckets_of_a_number(make: Maker) -> Iterator[SampleInput]:
    yield sample(1, edges(make, 4))


def search_errors(make: Maker) -> Iterator[ErrorInput]:
    x = make(3).detach()
    text = "torch.searchsorted(): side can only be 'left' or 'right' but got top"
    yield ErrorInput(sample(x, x, side="top"), RuntimeError, text)
    text = "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries"
    yield ErrorInput(sample(make(2, 3).detach(), make(1, 3).detach()), RuntimeError, text)


def bucket_errors(make: Maker) -> Iterator[ErrorInput]:
    x = make(2, 3).detach()
    yield ErrorInput(sample(x, x), RuntimeError, "boundaries tensor must be 1 dimension, but got dim(2)")


def members(make: Maker) -> Iterator[SampleInput]:
    yield sample(few(make, 2, 3), few(make, 2))
    yield sample(few(make, 4), few(make, 2, 1), invert=True)
    yield sample(few(make), few(make, 0))


def among(elements: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(elements, test_elements, invert=invert)


def isin_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "Unsupported input type encountered for isin(): Bool"
    yield ErrorInput(sample(make.mask(2), make.mask(2)), RuntimeError, text)


# --- bincount, histc --------------------------------------------------------------------------------------------------


def counts(make: Maker) -> Iterator[SampleInput]:
    yield sample(few(make, 7))
    yield sample(few(make, 7), minlength=9)
    yield sample(few(make, 5), few(make, 5).double())
    yield sample(few(make, 5), few(make, 5).float())
    yield sample(few(make, 0))


def count_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "bincount only supports 1-d non-negative integral inputs."
    yield ErrorInput(sample(make.values([-1])), RuntimeError, text)
    yield ErrorInput(sample(few(make, 2, 3)), RuntimeError, text)


def bars(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 4).detach(), 5)
    yield sample(make(9).detach(), 4, -1, 2)
    yield sample(make(4, low=2, high=3).detach() * 0, 3)
    yield sample(make(0).detach(), 2)


def histogram(self: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    if min == max and self.size:
        min, max = self.min(), self.max()
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(self, bins, (min, max))[0]


def bar_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "torch.histogram(): bins must be > 0, but got 0 for dimension 0"
    yield ErrorInput(sample(make(3).detach(), 0), RuntimeError, text)
    yield ErrorInput(sample(make(3).detach(), 3, 2, 1), RuntimeError, "torch.histc: max must be larger than min")


PLAIN: Any = {"dtypes": NUMBERS, "gradients": False}
SEARCHING = [
    OpInfo("_unique", values(True, True), lambda *args: unique(*args)[:2], **PLAIN, skips={**NO_META, **RECORDED}),
    OpInfo("_unique2", values(True, True, True), unique, **PLAIN, skips={**NO_META, **RECORDED}),
    OpInfo("unique_dim", slices, unique_slices, **PLAIN, skips={**NO_META, **RECORDED}),
    OpInfo("unique_consecutive", neighbours, first_of_runs, **PLAIN, skips={**NO_META, **RECORDED}),
    OpInfo(
        "unique_dim_consecutive",
        neighbouring_slices,
        lambda self, dim, *flags: first_of_runs(self, *(*flags, dim)),
        **PLAIN,
        skips={**NO_META, **RECORDED},
    ),
    OpInfo("searchsorted.Tensor", searches, searched, **PLAIN, errors=search_errors),
    OpInfo("searchsorted.Scalar", searches_of_a_number, searched, **PLAIN),
    OpInfo(
        "bucketize.Tensor", buckets, lambda x, lines, **rest: searched(lines, x, **rest), **PLAIN, errors=bucket_errors
    ),
    OpInfo("bucketize.Scalar", buckets_of_a_number, lambda x, lines, **rest: searched(lines, x, **rest), **PLAIN),
    OpInfo("isin.Tensor_Tensor", members, among, **PLAIN, errors=isin_errors),
    OpInfo("isin.Tensor_Scalar", lambda make: [sample(few(make, 2, 3), 2)], among, **PLAIN),
    OpInfo("isin.Scalar_Tensor", lambda make: [sample(2, few(make, 2, 3))], among, **PLAIN),
    OpInfo(
        "bincount",
        counts,
        lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength),
        INTEGERS,
        gradients=False,
        errors=count_errors,
        skips=NO_META,
    ),
    OpInfo("histc", bars, histogram, FLOATS, gradients=False, errors=bar_errors),
]
