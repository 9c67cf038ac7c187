"""Reductions of runs of entries on a GPU, whose lengths differ: a warp for each run, or a thread where many lie side by
side.

Runs are given by where they begin, and where the last one ends. An entry is a row of `inner` numbers: where there are
at least as many as a warp has lanes, neighbouring threads take neighbouring numbers of the same run, and otherwise the
lanes of a warp share the run's entries. Read next: `runtime/segments.py`.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import numpy as np

from ..engine.primitives import maximum, minimum
from ..engine.program import integral
from .compiler import CUDA as cuda
from .intrinsics import shuffle_down
from .templates import THREADS, Written

int64 = np.int64


def add(x, y):
    return x + y


def multiply(x, y):
    return x * y


COMBINE = {"sum": add, "mean": add, "prod": multiply, "max": maximum, "min": minimum}


@integral
def inside(place, size):
    """A place among so many, or behind them: bad offsets touch no memory."""
    return min(max(place, int64(0)), size)


def reduced_runs(out, x, offsets, outputs, runs, size, inner, start, nothing, averages, empty_mean):
    """What `start` and the entries of each run come to. Lanes that have none of these begin with `nothing`."""
    thread = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    index, lane = thread // LANES, thread % LANES
    if index < outputs:
        run = index // inner
        column, row = index - run * inner, run // runs
        first = inside(offsets[run + row], size)
        last = inside(offsets[run + row + 1], size)
        total = number(start) if lane == 0 else number(nothing)
        at = first + lane
        while at < last:
            total = combine(total, load_x(x[(row * size + at) * inner + column]))
            at += LANES
        if LANES > 1:
            total = combine(total, shuffle_down(total, 16))
            total = combine(total, shuffle_down(total, 8))
            total = combine(total, shuffle_down(total, 4))
            total = combine(total, shuffle_down(total, 2))
            total = combine(total, shuffle_down(total, 1))
        if averages == 1:
            total = total / compute(last - first) if last > first else number(empty_mean)
        if lane == 0:
            out[index] = store_out(total)


RUNS = Written(reduced_runs, ("out", "x", "offsets"))
