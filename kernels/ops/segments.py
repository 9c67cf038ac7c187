"""segment_reduce: sums, means, products and extremes over runs of entries along a dimension.

The runs are given by their `lengths`, or by the `offsets` of their ends; dimensions before the axis have runs of their
own. An empty run gives `initial`, or what the reduction of nothing is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor import Size, Tensor, as_numpy, empty, shown, wrap_dim

from ..declare.operator import kernel
from ..declare.structured import not_implemented

_RUNS = "Tensor? lengths=None, {}Tensor? offsets=None, int axis=0"

UFUNCS: dict[str, Any] = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
OF_NOTHING = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


class Runs(NamedTuple):
    """Where the runs lie among the entries along the axis, all dimensions before it flattened."""

    starts: np.ndarray
    lengths: np.ndarray
    shape: tuple[int, ...]  # of the runs, before the dimensions behind the axis


def check_call(data: Tensor, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int) -> tuple[int, Tensor]:
    """(the axis from the front, the lengths or offsets)"""
    axis = wrap_dim(axis, len(data._shape))
    if reduce not in UFUNCS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    given = lengths if lengths is not None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if axis != len(given._shape) - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    if len(data._shape) <= axis:
        raise RuntimeError("Expected data.dim() >= lengths_value.dim() to be true, but got false.")
    if tuple(given._shape[:-1]) != tuple(data._shape[:axis]):
        raise RuntimeError(
            f"segment_reduce(): Expected the shape of lengths, {list(given._shape)}, to be that of data before the "
            f"axis, {list(data._shape[:axis])}"
        )
    return axis, given


def runs_of(data: Tensor, axis: int, given: Tensor, by_length: bool) -> Runs:
    """The runs; RuntimeError where they do not lie inside the axis."""
    if given._dtype.name not in ("int32", "int64"):
        raise not_implemented("_segment_reduce_lengths_cpu_kernel1", given._dtype)
    size = data._shape[axis]
    numbers = shown(given).reshape(-1, given._shape[-1]).astype(np.int64)
    if by_length:
        if (numbers < 0).any():
            raise RuntimeError("lengths contains negative value!")
        # in Python's integers: a sum that wraps around would look right
        if any(sum(row) != size for row in numbers.tolist()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
        ends = numbers.cumsum(1)
        starts, lengths = ends - numbers, numbers
    else:
        if (numbers < 0).any() or (numbers > size).any() or (np.diff(numbers) < 0).any():
            raise RuntimeError(f"segment_reduce(): Expected offsets to increase from 0 to at most {size}")
        starts, lengths = numbers[:, :-1], np.diff(numbers)
    rows = np.arange(len(numbers))[:, None] * size
    return Runs((starts + rows).reshape(-1), lengths.reshape(-1), (*given._shape[:-1], lengths.shape[1]))


def entries(x: Tensor, axis: int) -> np.ndarray:
    """The data as a table in float64: a row for each entry along the axis."""
    count = math.prod(x._shape[: axis + 1])
    return as_numpy(x).astype(np.float64).reshape(count, math.prod(x._shape[axis + 1 :]))


def reduced(x: np.ndarray, runs: Runs, reduce: str, start: float) -> np.ndarray:
    """For each run what `start` and its entries add up to, or the like."""
    ufunc = UFUNCS[reduce]
    result = np.full((len(runs.lengths), x.shape[1]), start)
    full = np.flatnonzero(runs.lengths)
    if len(full):
        # reduceat goes from each index to the next: from a start to the end; what follows up to the next is dropped
        bounds = np.stack([runs.starts[full], runs.starts[full] + runs.lengths[full]], 1).reshape(-1)
        padded = np.concatenate([x, np.zeros((1, x.shape[1]))])
        result[full] = ufunc(result[full], ufunc.reduceat(padded, bounds)[::2])
    return result


def check_dtype(data: Tensor) -> None:
    if not data._dtype.is_floating_point:
        raise not_implemented("_segment_reduce_cpu", data._dtype)


@kernel(
    f"segment_reduce(Tensor data, str reduce, *, {_RUNS.format('Tensor? indices=None, ')}, bool unsafe=False, "
    "Scalar? initial=None) -> Tensor",
    "CPU",
    out="out",
    refuses="whole complex",
    batching="other",
    derivative=lambda grad, result, data, reduce, lengths, offsets, axis, initial: (
        segment_reduce_backward_op.functional(
            grad, result, data, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial
        )
    ),
    method=False,
)
def segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    """Returns the sum, mean, maximum, minimum or product of each segment."""
    axis, given = check_call(data, reduce, lengths, indices, offsets, axis)
    runs = runs_of(data, axis, given, lengths is not None)
    check_dtype(data)
    with np.errstate(all="ignore"):
        found = reduced(entries(data, axis), runs, reduce, OF_NOTHING[reduce] if initial is None else float(initial))
        if reduce == "mean":
            some = runs.lengths[:, None] > 0
            empty_mean = math.nan if initial is None else float(initial)
            found = np.where(some, found / np.maximum(runs.lengths, 1)[:, None], empty_mean)
        return stored(found, (*runs.shape, *data._shape[axis + 1 :]), data)


segment_reduce_op = segment_reduce.op


@segment_reduce_op.kernel("Meta")
def segment_reduce_meta(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    axis, given = check_call(data, reduce, lengths, indices, offsets, axis)
    count = given._shape[-1] - (lengths is None)
    shape = (*given._shape[:-1], count, *data._shape[axis + 1 :])
    return empty(Size(shape), data._dtype, data._device)


def stored(values: np.ndarray, shape: tuple[int, ...], like: Tensor) -> Tensor:
    made = empty(Size(shape), like._dtype, like._device)
    as_numpy(made)[...] = values.reshape(shape)
    return made


@kernel(
    f"_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, {_RUNS.format('')}, "
    "Scalar? initial=None) -> Tensor",
    "CPU",
    out="out",
    refuses="whole complex",
    batching="other",
)
def segment_reduce_backward_op(grad, output, data, reduce, lengths, offsets, axis, initial):
    """Each entry's share of the gradient of its run; none where it is in no run."""
    axis, given = check_call(data, reduce, lengths, None, offsets, axis)
    runs = runs_of(data, axis, given, lengths is not None)
    check_dtype(data)
    x = entries(data, axis)
    run = np.repeat(np.arange(len(runs.lengths)), runs.lengths)  # of each entry that is in one
    within = np.arange(len(run)) - np.repeat(runs.lengths.cumsum() - runs.lengths, runs.lengths)
    entry = runs.starts[run] + within
    flow, values = entries(grad, axis)[run], x[entry]
    with np.errstate(all="ignore"):
        if reduce == "mean":
            flow = flow / runs.lengths[run][:, None]
        elif reduce == "prod":
            flow = flow * products_of_others(x, runs, values, run, 1.0 if initial is None else float(initial))
        elif reduce != "sum":
            result = entries(output, axis)[run]
            chosen = (values == result) | (np.isnan(values) & np.isnan(result))
            counts = np.zeros((len(runs.lengths), x.shape[1]))
            np.add.at(counts, run, chosen)
            flow = np.where(chosen, flow / np.maximum(counts[run], 1), 0)
        gradient = np.zeros_like(x)
        gradient[entry] = flow
        return stored(gradient, tuple(data._shape), data)


def products_of_others(x: np.ndarray, runs: Runs, values: np.ndarray, run: np.ndarray, initial: float) -> np.ndarray:
    """For each entry the product of `initial` and the others in its run, zeros among them or not."""
    zero = values == 0
    zeros = reduced((x == 0).astype(np.float64), runs, "sum", 0.0)[run]
    others = reduced(np.where(x == 0, 1.0, x), runs, "prod", initial)[run] / np.where(zero, 1.0, values)
    return np.where((zeros == 0) | ((zeros == 1) & zero), others, 0)


@segment_reduce_backward_op.kernel("Meta")
def segment_reduce_backward_meta(grad, output, data, *rest):
    return empty(data._shape, data._dtype, data._device)
