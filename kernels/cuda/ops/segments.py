"""Reductions of runs of entries on a GPU, whose lengths differ: a warp for each run, or a thread where many lie side by
side. The gradient is made up of other operators.

Runs are given by where they begin, and where the last one ends. An entry is a row of `inner` numbers: where there are
at least as many as a warp has lanes, neighbouring threads take neighbouring numbers of the same run, and otherwise the
lanes of a warp share the run's entries. Whether the runs fill the axis is looked at by the host, unless the call says
that it is not to be (`unsafe`): the program waits for their lengths, as in PyTorch.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Size, Tensor, dtypes, empty
from redispatch.kernels import DTYPES
from redispatch.kernels.engine.primitives import maximum, minimum
from redispatch.kernels.engine.program import integral, steps
from redispatch.kernels.ops.scans import OF_NOTHING, check_call, check_dtype, runs_of

from ..compiler import CUDA as cuda
from ..elementwise import as_argument
from ..runtime.structured import Task, composite_of, dense, launched
from ..templates import THREADS, WARP, Written, add, multiply, over_lanes
from .searching import below_or_at, counted

aten = ops.aten
int64 = np.int64


COMBINE = {"sum": add, "mean": add, "prod": multiply, "max": maximum, "min": minimum}


@integral
def inside(place, size):
    """A place among so many, or behind them: bad offsets touch no memory."""
    return min(max(place, int64(0)), size)


def reduced_runs(out, x, offsets, outputs, runs, size, inner, start, nothing, averages, empty_mean):
    """Combines `start` and the entries of each run. Lanes that have none of these begin with `nothing`."""
    thread = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    index, lane = thread // LANES, thread % LANES
    if index < outputs:
        run = index // inner
        column, row = index - run * inner, run // runs
        first = inside(offsets[run + row], size)
        last = inside(offsets[run + row + 1], size)
        total = number(start) if lane == 0 else number(nothing)
        for at in steps(first + lane, last, LANES):
            total = combine(total, load_x(x[(row * size + at) * inner + column]))
        total = over_all(total)
        if averages == 1:
            total = total / compute(last - first) if last > first else number(empty_mean)
        if lane == 0:
            out[index] = store_out(total)


RUNS = Written(reduced_runs, ("out", "x", "offsets"))


def offsets_of(given: Any, by_length: bool) -> Any:
    """The starts of runs, and the end of the last one: a row of int64 for each list of runs."""
    if by_length:
        given = aten.constant_pad_nd.default(given.to(dtypes.int64).cumsum(-1), [1, 0])
    return dense(given.to(dtypes.int64).reshape([-1, given._shape[-1]]))


def reduced(data: Tensor, offsets: Tensor, shape: tuple[int, ...], size: int, reduce: str, initial: Any) -> Tensor:
    """A result of this shape, of data whose axis has this size."""
    made, compute = empty(Size(shape), data._dtype, data._device), DTYPES[data._dtype.name].compute
    outputs, (rows, ends) = made._shape.numel(), offsets._shape
    if outputs:
        inner = outputs // (rows * (ends - 1))
        lanes = 1 if inner >= WARP else WARP
        kinds = [data._dtype.name, data._dtype.name, "int64"]
        nothing = OF_NOTHING[reduce]
        start, empty_mean = (nothing, math.nan) if initial is None else (float(initial), float(initial))
        numbers = [as_argument(one, compute) for one in (start, nothing, empty_mean)]
        rest = (outputs, ends - 1, size, inner, *numbers[:2], int(reduce == "mean"), numbers[2])
        launch = RUNS.spread(
            compute,
            kinds,
            outputs * lanes,
            combine=COMBINE[reduce],
            over_all=over_lanes(COMBINE[reduce], lanes),
            LANES=lanes,
        )
        launched([Task(launch, (0, 1, 2), rest)], [made, dense(data), offsets])
    return made


@composite_of("segment_reduce")
def segment_reduce(
    data: Tensor, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, unsafe: bool, initial: Any
) -> Tensor:
    axis, given = check_call(data, reduce, lengths, indices, offsets, axis)
    if not unsafe:
        runs_of(data, axis, given, lengths is not None)
    check_dtype(data)
    ends = offsets_of(given, lengths is not None)
    shape = (*given._shape[:-1], ends._shape[1] - 1, *data._shape[axis + 1 :])
    return reduced(data, ends, shape, data._shape[axis], reduce, initial)


@composite_of("_segment_reduce_backward")
def segment_reduce_backward(
    grad: Any, output: Any, data: Any, reduce: str, lengths: Any, offsets: Any, axis: int, initial: Any
) -> Any:
    """Each entry's share of the gradient of its run; none where it is in no run."""
    axis, given = check_call(data, reduce, lengths, None, offsets, axis)
    check_dtype(data)
    ends = offsets_of(given, lengths is not None)
    rows, runs, size = ends._shape[0], ends._shape[1] - 1, data._shape[axis]
    inner = math.prod(data._shape[axis + 1 :])
    if not data._shape.numel() or not runs:
        return data.new_zeros(list(data._shape))
    place = counted(size, data).expand([rows, size])
    found = below_or_at(ends.narrow(1, 1, runs), place, True)
    in_a_run = ((place >= ends.narrow(1, 0, 1)) & (found < runs)).unsqueeze(2)
    run = found.clamp_max(runs - 1).unsqueeze(2).expand([rows, size, inner])

    def of_run(x: Any) -> Any:
        """A number of each run, for each of its entries."""
        return x.reshape([rows, runs, -1]).expand([rows, runs, inner]).gather(1, run)

    def over_runs(x: Any, how: str, start: Any = None) -> Any:
        return of_run(reduced(x, ends, (rows, runs, inner), size, how, start))

    x, flow = data.reshape([rows, size, inner]), of_run(grad)
    if reduce == "mean":
        flow = flow / of_run(ends.diff(1, 1).to(data._dtype))
    elif reduce == "prod":
        zero = x == 0
        zeros, rest = over_runs(zero.to(data._dtype), "sum"), x.masked_fill(zero, 1)
        others = over_runs(rest, "prod", initial) / rest
        flow = flow * others.masked_fill(zeros > zero, 0)
    elif reduce != "sum":
        result = of_run(output)
        chosen = (x == result) | ((x != x) & (result != result))
        count = over_runs(chosen.to(data._dtype), "sum")
        flow = (flow / count.clamp_min(1)).masked_fill(chosen.logical_not(), 0)
    return flow.masked_fill(in_a_run.logical_not(), 0).reshape(list(data._shape))
