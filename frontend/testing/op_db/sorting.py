"""Samples of kernels/ops/sorting.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..op_info import NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import bad_dim, call, reductions


def distinct(*calls: Any) -> Any:
    """Of equal elements any may be named first."""
    return reductions(*calls, distinct=True)


def ordered(self: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    if not self.ndim:
        return self, np.zeros((), np.int64)
    order = np.argsort(self, axis=dim, kind="stable")
    order = np.flip(order, dim) if descending else order
    return np.take_along_axis(self, order, dim), order


def top(self: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if not self.ndim:
        return self, np.zeros((), np.int64)
    return tuple(np.take(one, range(k), dim) for one in ordered(self, dim, largest))


def of_rank(self: Any, k: int, dim: int, keepdim: bool) -> Any:
    if not self.ndim:
        return self, np.zeros((), np.int64)
    chosen = [np.take(one, [k], dim) for one in ordered(self, dim)]
    return tuple(one if keepdim else one.squeeze(dim) for one in chosen)


def kth(self: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return of_rank(self, k - 1, dim, keepdim)


def middle(self: Any, dim: int = -1, keepdim: bool = False) -> Any:
    return of_rank(self, (self.shape[dim] - 1) // 2 if self.ndim else 0, dim, keepdim)


def middle_of_all(self: Any) -> Any:
    return np.sort(self, None)[(self.size - 1) // 2]


def with_nan(make: Maker) -> Iterator[SampleInput]:
    """A third of the numbers are none, and one row has no other."""
    yield from distinct(call((2, 3), 1), call((), 0))(make)
    if make.dtype.is_floating_point:
        x = make.distinct(3, 5).detach()
        x[0, 1] = x[1, 0] = x[1, 3] = float("nan")
        yield sample(x.requires_grad_(make.requires_grad), 1)


def middle_without_nan(self: Any, dim: int, keepdim: bool = False) -> Any:
    numbers = (~np.isnan(self)).sum(dim) if self.ndim and self.dtype.kind == "f" else None
    if numbers is None:
        return middle(self, dim, keepdim)
    values, places = ordered(self, dim)
    rank = np.maximum(numbers - 1, 0)[..., None] // 2
    return np.take_along_axis(values, rank, dim)[..., 0], np.take_along_axis(places, rank, dim)[..., 0]


def most_frequent(self: Any, dim: int = -1, keepdim: bool = False) -> Any:
    if not self.ndim:
        return self, np.zeros((), np.int64)

    def of_line(line: Any) -> Any:
        values, counts = np.unique(line, return_counts=True)
        best = values[counts.argmax()]
        return best, np.flatnonzero(line == best)[-1]

    lines = np.moveaxis(self, dim, -1)
    found = [of_line(line) for line in lines.reshape(-1, lines.shape[-1])]
    shape = np.sum(self[None], axis=dim if dim < 0 else dim + 1, keepdims=keepdim).shape[1:]
    return tuple(np.array([pair[k] for pair in found]).reshape(shape) for k in (0, 1))


SORTS = (call((2, 3)), call((3, 4), 0), call((2, 50), -1, True), call((), 0), call((0, 3), 0), call((2, 1)))
STABLE = (
    call((2, 3), stable=True),
    call((3, 4), stable=False, dim=0),
    call((2, 50), stable=True, descending=True),
    call((), stable=None),
    call((0, 3), stable=True),
)


def with_ties(make: Maker) -> Iterator[SampleInput]:
    """Whole numbers from a small range, so that many are equal, in lines short and long; floats with two zeros."""
    yield from distinct(*STABLE)(make)
    if not make.requires_grad:  # numerical differences would tear ties apart
        yield sample(make.index(2, 30, below=4).to(make.dtype), stable=True)
        yield sample(make.index(1, 300, below=9).to(make.dtype), stable=True)
        yield sample(make.values([0, -0.0, 1, -0.0, 0]) if make.dtype.is_floating_point else make(3), stable=True)


def frequent(make: Maker) -> Iterator[SampleInput]:
    yield from distinct(call((2, 3)), call((3, 2), 0, True), call((), 0))(make)
    if not make.requires_grad:
        yield sample(make.index(3, 9, below=3).to(make.dtype))
        yield sample(make.distinct(2, 60), 1)


def sort_errors(make: Maker) -> Iterator[ErrorInput]:
    yield from bad_dim()(make)


def topk_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2, 3), 4), RuntimeError, "selected index k out of range")
    yield ErrorInput(sample(make(2, 3), -1), RuntimeError, "selected index k out of range")
    yield ErrorInput(sample(make.mask(3), 1), RuntimeError, "topk does not support bool dtypes on CPU")


def kth_errors(make: Maker) -> Iterator[ErrorInput]:
    for k in (0, 4):
        text = "kthvalue(): selected number k out of range for dimension 1"
        yield ErrorInput(sample(make(2, 3), k), RuntimeError, text)
    text = "kthvalue(): Expected reduction dim 0 to have non-zero size."
    yield ErrorInput(sample(make(0, 3), 1, 0), IndexError, text)


def empty_line(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield from bad_dim()(make)
        yield ErrorInput(
            sample(make(0, 3), 0), IndexError, f"{name}(): Expected reduction dim 0 to have non-zero size."
        )

    return errors


def no_median_of_bool(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make.mask(3)), NotImplementedError, "\"median_cpu\" not implemented for 'Bool'")


TOPS = (
    call((2, 3), 2),
    call((4, 3), 2, 0, False),
    call((2, 60), 5),
    call((2, 60), 20, -1, True, True),
    call((), 1),
    call((0, 3), 2),
    call((2, 3), 0),
)
MIDDLES = (call((2, 3), 1), call((4, 3), 0, True), call((2, 60), 1), call((), 0), call((0, 3), 1))
KTHS = (call((2, 3), 2), call((4, 3), 1, 0, True), call((2, 60), 33), call((), 1), call((0, 3), 2))

SORTING = [
    OpInfo("sort", distinct(*SORTS), ordered, NUMBERS, errors=sort_errors),
    OpInfo("sort.stable", with_ties, ordered, NUMBERS),
    OpInfo("argsort", distinct(*SORTS), lambda *args: ordered(*args)[1], NUMBERS, gradients=False),
    OpInfo(
        "argsort.stable",
        with_ties,
        lambda *args, **kwargs: ordered(*args, **kwargs)[1],
        NUMBERS,
        gradients=False,
    ),
    OpInfo("msort", distinct(call((3, 2)), call((0, 3))), lambda self: np.sort(self, 0), NUMBERS),
    OpInfo("topk", distinct(*TOPS), top, NUMBERS, errors=topk_errors),
    OpInfo("kthvalue", distinct(*KTHS), kth, NUMBERS, errors=kth_errors),
    OpInfo("median", distinct(call((2, 3)), call((3, 3)), call(())), middle_of_all, NUMBERS, errors=no_median_of_bool),
    OpInfo("nanmedian", distinct(call((2, 3)), call((3, 3)), call(())), middle_of_all, NUMBERS),
    OpInfo("median.dim", distinct(*MIDDLES), middle, NUMBERS, errors=empty_line("median")),
    OpInfo("nanmedian.dim", with_nan, middle_without_nan, NUMBERS, errors=empty_line("median")),
    OpInfo("mode", frequent, most_frequent, NUMBERS, errors=empty_line("mode")),
]
