"""Distances between rows: the p-norm of the difference of each pair.

Rows are dense: a [batch, rows, width], b [batch, others, width], out [batch, rows, others]; of one matrix, each pair of
its rows once, (0, 1), (0, 2), ..., (1, 2), ... What is done with one difference is chosen when a loop is compiled.

Read next: reduce.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from redispatch.dispatch.tensor.operand import Operand

from ..engine.compile import Entry
from ..engine.pool import parallel_for
from ..engine.program import integral
from ..engine.template import Template, zero


def add_count(total, size, p):
    return total + (1 if size != 0 else 0)


def add_size(total, size, p):
    return total + size


def add_square(total, size, p):
    return total + size * size


def keep_largest(total, size, p):
    return size if size > total or size != size else total


def add_power(total, size, p):
    return total + size**p


def as_it_is(total, p):
    return total


def root(total, p):
    return math.sqrt(total)


def root_of_power(total, p):
    return total ** (1 / p)


WAYS: dict[str, tuple[Callable, Callable]] = {
    "count": (add_count, as_it_is),
    "sum": (add_size, as_it_is),
    "euclid": (add_square, root),
    "largest": (keep_largest, as_it_is),
    "power": (add_power, root_of_power),
}
join, finish = WAYS["sum"]  # they stand for those of the way


def way_of(p: float, loop: Template, dtype: str) -> Entry:
    """The loop for the way in which the p-norm is formed; for p = 0 it is how many differences there are."""
    way = "largest" if math.isinf(p) else {0.0: "count", 1.0: "sum", 2.0: "euclid"}.get(p, "power")
    join, finish = WAYS[way]
    return loop(name=f"distances_{loop.name}_{way}", x=dtype, join=join, finish=finish)


@integral
def distance(join, finish, zero, width, p, a, a_at, b, b_at):
    """Between the two rows that begin there."""
    total = zero
    for k in range(width):
        total = join(total, abs(a[a_at + k] - b[b_at + k]), p)
    return finish(total, p)


@integral
def each_loop(lo, hi, rows, others, width, p, out, out_at, a, a_at, b, b_at):
    """Distances lo <= n < hi of each row of `a` to each of `b`, of the same item of the batch."""
    for n in range(lo, hi):
        row, other = n // others, n % others
        item = row // rows
        out[out_at + n] = distance(
            join, finish, zero, width, p, a, a_at + row * width, b, b_at + (item * others + other) * width
        )


@integral
def pairs_loop(lo, hi, rows, width, p, out, out_at, a, a_at):
    """Distances of rows lo <= row < hi to all that come behind them."""
    for row in range(lo, hi):
        to = out_at + row * (2 * rows - row - 1) // 2 - row - 1
        for other in range(row + 1, rows):
            out[to + other] = distance(join, finish, zero, width, p, a, a_at + row * width, a, a_at + other * width)


EACH = Template(each_loop, "x p", "x[] out a b")
PAIRS = Template(pairs_loop, "x p", "x[] out a")


def distances(out: Operand, a: Operand, b: Operand, p: float) -> None:
    """out[batch, rows, others] of a[batch, rows, width] and b[batch, others, width]; float32 or float64, contiguous."""
    (_, rows, width), others = a.shape, b.shape[1]
    arrays = out.array, out.offset, a.array, a.offset, b.array, b.offset
    parallel_for(way_of(p, EACH, a.dtype), math.prod(out.shape), (rows, others, width, p, *arrays), 2 * width)


def distances_of_pairs(out: Operand, a: Operand, p: float) -> None:
    """out[rows (rows - 1) / 2] of a[rows, width]; float32 or float64, contiguous."""
    rows, width = a.shape
    arrays = out.array, out.offset, a.array, a.offset
    parallel_for(way_of(p, PAIRS, a.dtype), rows, (rows, width, p, *arrays), rows * width)
