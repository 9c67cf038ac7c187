"""Samples of kernels/ops/reductions.py, scans.py, extremes.py and moments.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import axes, bad_dim, binary, call, not_broadcastable, reductions

WHOLE_TENSOR = (call((2, 3)), call(()), call((0, 3)))
ALONG = (
    call((2, 3), 1),
    call((2, 3, 2), -2, True),
    call((), 0),
    call((0, 3), 0),
)
ALONG_FILLED = (call((2, 3), 1), call((2, 3, 2), -2, True), call((), 0), call((0, 3), 1))
ALONG_LISTS = (
    call((2, 3), [1]),
    call((2, 3, 2), [0, -1], True),
    call((2, 3), None),
    call((), [0]),
    call((0, 3), [0]),
)


def reduced(function: Any) -> Any:
    """numpy's reduction under our argument names."""

    def reference(self: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        with np.errstate(all="ignore"):
            self = np.asarray(self) if dtype is None else np.asarray(self, dtype)
            if not self.ndim:
                return function(self)
            return function(self, axis=axes(dim), keepdims=keepdim)

    return reference


def with_dtype(samples: Any) -> Any:
    def more(make: Maker) -> Iterator[SampleInput]:
        yield from samples(make)
        yield sample(make(2, 3), *([[1]] if samples is LISTS else []), dtype=dtypes.float64)

    return more


def with_dtype_along(samples: Any) -> Any:
    def more(make: Maker) -> Iterator[SampleInput]:
        yield from samples(make)
        yield sample(make(2, 3), 1, dtype=dtypes.float64)

    return more


WHOLE = reductions(*WHOLE_TENSOR)
LISTS = reductions(*ALONG_LISTS)
ONE_DIM = reductions(*ALONG)


def counted(self: Any, dim: Any = None) -> Any:
    return np.count_nonzero(self, axis=axes(dim)) if self.ndim else np.count_nonzero(self)


def cumulated(function: Any) -> Any:
    """numpy's running operation; a result without dimensions is the element itself."""

    def reference(self: Any, dim: int, dtype: Any = None) -> Any:
        wide = np.int64 if dtype is None and self.dtype.kind in "bui" else dtype
        return function(self, axis=dim, dtype=wide) if self.ndim else np.asarray(self, wide)

    return reference


def log_of_running_sums(self: Any, dim: int) -> Any:
    return np.log(np.cumsum(np.exp(self, dtype=np.float64), axis=dim)) if self.ndim else self


def running_extreme(ufunc: Any) -> Any:
    """The extremes so far, and the last place where each stood."""

    def reference(self: Any, dim: int) -> Any:
        if not self.ndim:
            return self, np.zeros((), np.int64)
        values = ufunc.accumulate(self, axis=dim)
        steps = np.arange(self.shape[dim]).reshape([-1 if d == dim % self.ndim else 1 for d in range(self.ndim)])
        return values, np.maximum.accumulate(np.where(self == values, steps, 0), axis=dim)

    return reference


def sum_sizes(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), [1, 3])
    yield sample(make(2, 2, 3), [2, 1])
    yield sample(make(), [])


def summed_to(self: Any, size: Any) -> Any:
    lead = self.ndim - len(size)
    summed = self.sum(axis=tuple(range(lead)))
    return summed.sum(axis=tuple(i for i, n in enumerate(size) if n == 1), keepdims=True).reshape(size)


def twice(make: Maker) -> Iterator[ErrorInput]:
    yield from bad_dim()(make)
    yield ErrorInput(sample(make(2, 3), [0, 0]), RuntimeError, "dim 0 appears multiple times in the list of dims")


def mean_errors(make: Maker) -> Iterator[ErrorInput]:
    text = (
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long"
    )
    yield ErrorInput(sample(make.index(2, below=3)), RuntimeError, text)


REDUCTIONS = [
    OpInfo("sum", with_dtype(WHOLE), reduced(np.sum)),
    OpInfo("sum.dim_IntList", with_dtype(LISTS), reduced(np.sum), errors=twice),
    OpInfo("sum_to_size", sum_sizes, summed_to, NUMBERS),
    OpInfo("mean", WHOLE, reduced(np.mean), FLOATS, errors=mean_errors),
    OpInfo("mean.dim", LISTS, reduced(np.mean), FLOATS, errors=twice),
    OpInfo("prod", WHOLE, reduced(np.prod)),
    OpInfo("prod.dim_int", ONE_DIM, reduced(np.prod), errors=bad_dim()),
    OpInfo("all", WHOLE, reduced(np.all), gradients=False),
    OpInfo("all.dim", ONE_DIM, reduced(np.all), gradients=False),
    OpInfo("all.dims", LISTS, reduced(np.all), gradients=False),
    OpInfo("any", WHOLE, reduced(np.any), gradients=False),
    OpInfo("any.dim", ONE_DIM, reduced(np.any), gradients=False),
    OpInfo("any.dims", LISTS, reduced(np.any), gradients=False),
    OpInfo(
        "count_nonzero", reductions(call((2, 3)), call((2, 3), 1), call(()), call((0, 3), 0)), counted, gradients=False
    ),
    OpInfo("count_nonzero.dim_IntList", reductions(call((2, 3), [0, 1]), call((0, 3), [0])), counted, gradients=False),
]

# --- scans ------------------------------------------------------------------------------------------------------------

LINES = (call((2, 3), 1), call((2, 3), -2), call((3, 2, 2), 1), call((), 0), call((0, 3), 0))


def with_zeros(make: Maker) -> Iterator[SampleInput]:
    yield from reductions(*LINES)(make)
    for places in ([1], [0, 2]):
        x = make(2, 4)
        values = x.detach()
        values[0, places] = 0
        yield sample(values.requires_grad_(x.requires_grad), 1)


def not_a_float(make: Maker) -> Iterator[ErrorInput]:
    text = "\"logcumsumexp_out_cpu\" not implemented for 'Long'"
    yield ErrorInput(sample(make.index(2, below=3), 0), NotImplementedError, text)


def not_the_dim_of_a_scalar(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield from bad_dim()(make)
        text = f"{name}(): Expected reduction dim -1 or 0 for scalar but got 1"
        yield ErrorInput(sample(make(), 1), IndexError, text)

    return errors


SCANS = [
    OpInfo("cumsum", with_dtype_along(reductions(*LINES)), cumulated(np.cumsum), errors=bad_dim()),
    OpInfo("cumprod", with_dtype_along(with_zeros), cumulated(np.cumprod), errors=bad_dim()),
    OpInfo("logcumsumexp", reductions(*LINES), log_of_running_sums, FLOATS, errors=not_a_float),
    OpInfo(
        "cummax",
        reductions(*LINES, distinct=True),
        running_extreme(np.maximum),
        NUMBERS,
        errors=not_the_dim_of_a_scalar("cummax"),
    ),
    OpInfo(
        "cummin",
        reductions(*LINES, distinct=True),
        running_extreme(np.minimum),
        NUMBERS,
        errors=not_the_dim_of_a_scalar("cummin"),
    ),
]

# --- extremes ---------------------------------------------------------------------------------------------------------


def distinct(*calls: Any) -> Any:
    return reductions(*calls, distinct=True)


def extreme_and_place(function: Any, place: Any) -> Any:
    def reference(self: Any, dim: int, keepdim: bool = False) -> Any:
        if not self.ndim:
            return self, np.zeros((), np.int64)
        return function(self, axis=dim, keepdims=keepdim), place(self, axis=dim, keepdims=keepdim)

    return reference


def places(place: Any) -> Any:
    def reference(self: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return place(self, axis=dim, keepdims=keepdim) if self.ndim else np.zeros((), np.int64)

    return reference


def both(self: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    extremes = [reduced(function)(self, dim, keepdim) for function in (np.min, np.max)]
    return tuple(extremes)


def empty_extremes(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        text = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        yield ErrorInput(sample(make(0)), IndexError if name.startswith("arg") else RuntimeError, text)

    return errors


FILLED = (call((2, 3)), call(()))
TO_PLACES = distinct(call((2, 3)), call((2, 3), 1), call((2, 3), 0, True), call(()), call((0, 3), 1, True))
TO_EXTREMES = distinct(call((2, 3)), call((2, 3), [1]), call((2, 3, 2), [0, 2], True), call(()), call((0, 3), [1]))

EXTREMES = [
    OpInfo("amax", TO_EXTREMES, reduced(np.max), NUMBERS, errors=empty_extremes("amax")),
    OpInfo("amin", TO_EXTREMES, reduced(np.min), NUMBERS, errors=empty_extremes("amin")),
    OpInfo("max", distinct(*FILLED), reduced(np.max), errors=empty_extremes("max")),
    OpInfo("min", distinct(*FILLED), reduced(np.min), errors=empty_extremes("min")),
    OpInfo("max.dim", distinct(*ALONG_FILLED), extreme_and_place(np.max, np.argmax), NUMBERS, errors=bad_dim()),
    OpInfo("min.dim", distinct(*ALONG_FILLED), extreme_and_place(np.min, np.argmin), NUMBERS, errors=bad_dim()),
    OpInfo("max.other", binary(), np.maximum, errors=not_broadcastable),
    OpInfo("min.other", binary(), np.minimum, errors=not_broadcastable),
    OpInfo("argmax", TO_PLACES, places(np.argmax), NUMBERS, gradients=False, errors=empty_extremes("argmax")),
    OpInfo("argmin", TO_PLACES, places(np.argmin), NUMBERS, gradients=False, errors=empty_extremes("argmin")),
    OpInfo(
        "aminmax",
        distinct(call((2, 3)), call((2, 3), dim=1), call((2, 3), dim=0, keepdim=True), call(())),
        both,
        NUMBERS,
    ),
]

# --- moments ----------------------------------------------------------------------------------------------------------


def spread(function: Any) -> Any:
    """numpy's variance or deviation. `unbiased` and `correction` say what is taken from the count."""

    def reference(
        self: Any, dim: Any = None, unbiased: Any = True, keepdim: bool = False, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):  # var(unbiased)
            dim, unbiased = None, dim
        less = correction if correction is not None else int(unbiased)
        return function(self, axis=axes(dim), keepdims=keepdim, ddof=less)

    return reference


SPREADS = reductions(call((2, 3)), call((2, 3), False))
SPREADS_ALONG = reductions(call((2, 3), [1]), call((2, 3, 2), [0, 2], False, True), call((2, 3), None))
SPREADS_CORRECTED = reductions(
    call((2, 3)), call((2, 3), [1], correction=0), call((3, 2), [0], correction=2, keepdim=True)
)


def norm(self: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    wide = np.abs(np.asarray(self, np.float64))
    where = {"axis": axes(dim), "keepdims": keepdim} if wide.ndim else {}
    if ord == float("inf"):
        return wide.max(**where)
    if ord == 0:
        return (wide != 0).sum(**where)
    return (wide**ord).sum(**where) ** (1 / ord)


NORMS = reductions(
    call((2, 3)),
    call((2, 3), 1),
    call((2, 3), 2, [1], True),
    call((2, 3), 3),
    call((2, 3), float("inf"), [0]),
    call(()),
    call((0, 3)),
)


def log_of_sums(self: Any, dim: Any, keepdim: bool = False) -> Any:
    wide = np.asarray(self, np.float64)
    where = {"axis": axes(dim), "keepdims": keepdim} if wide.ndim else {}
    with np.errstate(divide="ignore"):
        return np.log(np.exp(wide).sum(**where))


MOMENTS = [
    OpInfo("var", SPREADS, spread(np.var), FLOATS),
    OpInfo("var.dim", SPREADS_ALONG, spread(np.var), FLOATS),
    OpInfo("var.correction", SPREADS_CORRECTED, spread(np.var), FLOATS, errors=bad_dim()),
    OpInfo("std", SPREADS, spread(np.std), FLOATS),
    OpInfo("std.dim", SPREADS_ALONG, spread(np.std), FLOATS),
    OpInfo("std.correction", SPREADS_CORRECTED, spread(np.std), FLOATS, errors=bad_dim()),
    OpInfo("linalg_vector_norm", NORMS, norm, FLOATS),
    OpInfo(
        "logsumexp",
        reductions(call((2, 3), [1]), call((2, 3, 2), [0, 2], True), call((), [0]), call((0, 3), [0])),
        log_of_sums,
        FLOATS,
    ),
]
