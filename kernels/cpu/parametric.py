"""Random numbers by parameters that are tensors, as PyTorch's CPU generator makes them, in memory without gaps.

A loop that meets a parameter which is none draws nothing and returns WRONG, so that its caller finds out what to say.
The length of its range is the work, by which a short loop keeps the GIL (twister.py).

Read next: random.py, the numbers that go by position.
"""

from collections.abc import Callable
from inspect import isbuiltin
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.geometry import is_contiguous, numel
from redispatch.dispatch.tensor.operand import Operand

from ..engine.template import Template, load_out, load_x, load_y, one, store_out, store_x, zero
from . import twisted_numbers as numbers
from .mersenne import draw_words, is_taken
from .sampling import poisson_number
from .twisted_numbers import exponential_number, pair_of, unit_float64
from .twister import CHUNK, FEW, TWISTER, Twister, normal

float64, int64, uint64 = np.float64, np.int64, np.uint64
TAKEN, WRONG = 1, 2  # what a loop returns that has drawn nothing
FEW_PLACES = 32  # so many are found one after another, by looking through all
unit, by = numbers.unit_float64, 2  # a function of twisted_numbers.py, and how many words it takes
distinct = 0  # or 1


def chance_loop(lo, hi, held, state, scratch, values, out, out_at, x, x_at):
    """Fills with ones, each with the probability in its place, and zeros."""
    if is_taken(state, held):
        return TAKEN
    for i in range(lo, hi):
        p = load_x(x[uint64(x_at + i)])
        if not (p >= 0 and p <= 1):
            return WRONG
    while lo < hi:
        some = min(hi - lo, CHUNK)
        draw_words(state, scratch, some * by)
        for k in range(some):
            if by == 1:
                u = unit(uint64(scratch[uint64(k)]))
            else:
                u = unit(pair_of(scratch, 2 * k))
            out[uint64(out_at + lo + k)] = store_out(u < load_x(x[uint64(x_at + lo + k)]))
        lo += some
    return 0


def counts_loop(lo, hi, held, state, scratch, values, out, out_at, x, x_at):
    """Fills with Poisson numbers, each of the rate in its place."""
    if is_taken(state, held):
        return TAKEN
    for i in range(lo, hi):
        if not load_x(x[uint64(x_at + i)]) >= 0:
            return WRONG
    for i in range(lo, hi):
        rate = float64(load_x(x[uint64(x_at + i)]))
        out[uint64(out_at + i)] = store_out(poisson_number(state, scratch, rate, float64(0)))
    return 0


def deviations_loop(lo, hi, y, y_at):
    """Tells whether one of the standard deviations is none."""
    for i in range(lo, hi):
        if not load_y(y[uint64(y_at + i)]) >= 0:
            return True
    return False


def moved_loop(lo, hi, out, out_at, x, x_at, y, y_at):
    """Multiplies normal numbers by their standard deviations and adds their means; each step is rounded."""
    for i in range(lo, hi):
        scaled = load_out(store_out(load_out(out[uint64(out_at + i)]) * load_y(y[uint64(y_at + i)])))
        out[uint64(out_at + i)] = store_out(scaled + load_x(x[uint64(x_at + i)]))


def places_loop(lo, hi, held, state, scratch, values, out, out_at, x, x_at, rows, n, count):
    """For each row of `n` weights `count` places, each of which may come again, or is `distinct`."""
    if is_taken(state, held):
        return TAKEN
    for row in range(rows):
        total = zero
        for j in range(n):
            weight = load_x(x[uint64(x_at + row * n + j)])
            if not (weight >= 0 and weight < np.inf):
                return WRONG
            total += weight
        if not total > 0:
            return WRONG
    for row in range(rows):
        total = zero
        for j in range(n):
            weight = load_x(x[uint64(x_at + row * n + j)])
            if distinct == 1:  # the largest quotients of weights and exponential numbers, rounded as in tensors
                draw_words(state, scratch, 2)
                divisor = load_x(store_x(exponential_number(pair_of(scratch, 0), float64(-1), float64(0))))
                key = load_x(store_x(weight / divisor))
                values[uint64(j)] = key if key == key else zero - one  # 0 / 0 comes last
            else:
                total += weight
                values[uint64(j)] = total
        if distinct == 0:
            for j in range(n):
                values[uint64(j)] = values[uint64(j)] / total
        for k in range(count):
            first: Any = int64(0)
            last = n - 1
            if distinct == 1:
                for j in range(1, n):
                    if values[uint64(j)] > values[uint64(first)]:
                        first = j
                values[uint64(first)] = zero - one - one
            else:
                draw_words(state, scratch, 2)
                u = unit_float64(pair_of(scratch, 0))
                while first < last:  # the first place up to which the weights are u of all, or more
                    middle = (first + last) >> 1
                    if values[uint64(middle)] < u:
                        first = middle + 1
                    else:
                        last = middle
            out[uint64(out_at + row * count + k)] = first
    return 0


WORDS = TWISTER[0], TWISTER[1], "x.compute[] values"
CHANCE = Template(chance_loop, *WORDS, "out[] out", "x[] x", nogil=FEW)
COUNTS = Template(counts_loop, *WORDS, "out[] out", "x[] x", nogil=FEW)
DEVIATIONS = Template(deviations_loop, "y[] y")
MOVED = Template(moved_loop, "out[] out", "x[] x", "y[] y")
PLACES = Template(places_loop, *WORDS, "int64[] out", "x[] x", nogil=FEW)

# Takes a twister, and flat arrays and offsets of result and parameters; tells whether one of the parameters is WRONG.
Drawing = Callable[..., bool]


def lie_alike(*operands: Operand) -> bool:
    return all(x.shape == operands[0].shape and is_contiguous(x.shape, x.strides) for x in operands)


def prepared(entry: Any, work: int, n: int, *sizes: int) -> Drawing:
    """A loop over so much work, with memory for `n` numbers, which takes these sizes last."""

    def choose(twister: Twister, out: Any, out_at: int, x: Any, x_at: int) -> bool:
        with twister.lock as held:
            values = twister.values if n <= CHUNK else np.empty(n)
            status = entry(0, work, held, twister.state, twister.scratch, values, out, out_at, x, x_at, *sizes)
            return bool(status == WRONG)

    if work > FEW or n > CHUNK or not isbuiltin(entry):
        return choose

    def choose_at_once(twister: Twister, out: Any, out_at: int, x: Any, x_at: int) -> bool:
        status = entry(0, work, 0, twister.state, twister.scratch, twister.values, out, out_at, x, x_at, *sizes)
        return status != 0 and (status == WRONG or choose(twister, out, out_at, x, x_at))

    return choose_at_once


def chances(out: Operand, p: Operand) -> Drawing | None:
    """Prepares ones and zeros with these probabilities; None where they do not lie as `out` does."""
    if not lie_alike(out, p):
        return None
    given: Any = (
        {"unit": numbers.unit_float64, "by": 2} if p.dtype == "float64" else {"unit": numbers.unit_float32, "by": 1}
    )
    return prepared(CHANCE(x=p.dtype, out=out.dtype, **given), numel(out.shape), 0)


def counts(out: Operand, rates: Operand) -> Drawing | None:
    """Prepares Poisson numbers of these rates; None where they do not lie as `out` does."""
    return prepared(COUNTS(x=rates.dtype, out=out.dtype), numel(out.shape), 0) if lie_alike(out, rates) else None


def normals(out: Operand, mean: Operand, std: Operand) -> Drawing | None:
    """Prepares normal numbers of these means and standard deviations; None where they do not lie as `out` does."""
    if not lie_alike(out, mean, std):
        return None
    count, fill, wrong = numel(out.shape), normal(out), DEVIATIONS(y=std.dtype)
    moved = MOVED(out=out.dtype, x=mean.dtype, y=std.dtype)

    def draw(twister: Twister, array: Any, at: int, x: Any, x_at: int, y: Any, y_at: int) -> bool:
        if wrong(0, count, y, y_at):
            return True
        fill(twister, array, at)
        moved(0, count, array, at, x, x_at, y, y_at)
        return False

    return draw


def places(out: Operand, weights: Operand, replacement: bool) -> Drawing | None:
    """Prepares the choice of places in rows of weights; None for weights with gaps, and for many distinct places."""
    n, count = weights.shape[-1], out.shape[-1]
    if not is_contiguous(weights.shape, weights.strides) or not (replacement or count <= FEW_PLACES):
        return None
    rows = numel(weights.shape[:-1])
    work = rows * (n + count) * (1 if replacement else 1 + count // 8)
    return prepared(PLACES(x=weights.dtype, distinct=int(not replacement)), work, n, rows, n, count)
