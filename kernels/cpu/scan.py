"""Scans: running sums, products, log-sum-exps and extremes along one dimension.

Each line along the dimension is worked out from its first element to its last, in one of two loops:

- lines: one line after the other. Where the accumulator is wider than the elements, four of them are put together
  first: then only every fourth operation waits for the one before it;
- columns: many neighbouring lines at once, each with an accumulator of its own, where memory runs across the dimension.

Floats accumulate in float64, integers in int64. Read next: `argreduce.py`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand, scratch

from ..engine.convert import CONVERT, as_is, load
from ..engine.elementwise import offset_of
from ..engine.pool import ready
from ..engine.template import Template, given, load_x, store_out
from ..maths.vecmath import exp, log
from .reduce import chain, line_walk

STRIP = 1024  # accumulators of the columns loop
uint64 = np.uint64

# --- the loops. These names stand for those of a `Scan`. --------------------------------------------------------------

combine = nothing = value_of = reaches = given


def lines_loop(lo, hi, kept, to, from_, line, out, out_at, x, x_at):
    """Lines lo <= i < hi. line: how many elements one has, and their steps in `out` and `x`."""
    size, step_to, step = line[0], line[1], line[2]
    for i in range(lo, hi):
        at, target = x_at + offset_of(i, len(kept), kept, from_, 0), out_at + offset_of(i, len(kept), kept, to, 0)
        acc = nothing()
        for _ in range(size):
            acc = combine(acc, load_x(x[uint64(at)]))
            out[uint64(target)] = store_out(value_of(acc))
            at += step
            target += step_to


def lines_by_four_loop(lo, hi, kept, to, from_, line, out, out_at, x, x_at):
    """`lines_loop` for an operation that may be done in another order."""
    size, step_to, step = line[0], line[1], line[2]
    for i in range(lo, hi):
        at, target = x_at + offset_of(i, len(kept), kept, from_, 0), out_at + offset_of(i, len(kept), kept, to, 0)
        acc = nothing()
        for _ in range(size // 4):
            a = load_x(x[uint64(at)])
            b = combine(a, load_x(x[uint64(at + step)]))
            c = combine(b, load_x(x[uint64(at + 2 * step)]))
            d = combine(c, load_x(x[uint64(at + 3 * step)]))
            out[uint64(target)] = store_out(combine(acc, a))
            out[uint64(target + step_to)] = store_out(combine(acc, b))
            out[uint64(target + 2 * step_to)] = store_out(combine(acc, c))
            acc = combine(acc, d)
            out[uint64(target + 3 * step_to)] = store_out(acc)
            at += 4 * step
            target += 4 * step_to
        for _ in range(size % 4):
            acc = combine(acc, load_x(x[uint64(at)]))
            out[uint64(target)] = store_out(value_of(acc))
            at += step
            target += step_to


def columns_loop(lo, hi, kept, to, from_, line, out, out_at, x, x_at, accs):
    """Strips lo <= s < hi of STRIP neighbouring lines; the innermost kept dimension has step 1 in `x` and `out`."""
    size, step_to, step = line[0], line[1], line[2]
    dims = len(kept) - 1
    width = kept[dims]
    strips = (width + STRIP - 1) // STRIP
    for s in range(lo, hi):
        group = s // strips
        first = (s - group * strips) * STRIP
        count = min(STRIP, width - first)
        at = x_at + first + offset_of(group, dims, kept, from_, 0)
        target = out_at + first + offset_of(group, dims, kept, to, 0)
        for j in range(count):
            accs[uint64(j)] = nothing()
        for _ in range(size):
            for j in range(count):
                acc = combine(accs[uint64(j)], load_x(x[uint64(at + j)]))
                accs[uint64(j)] = acc
                out[uint64(target + j)] = store_out(value_of(acc))
            at += step
            target += step_to


def extremes_loop(lo, hi, kept, to, places_to, from_, line, values, values_at, places, places_at, x, x_at):
    """The largest elements so far and where they stand; of equal ones the last, and of NaNs. line: the steps in
    `values`, `places` and `x` come last."""
    size, step_to, step_places, step = line[0], line[1], line[2], line[3]
    for i in range(lo, hi):
        at = x_at + offset_of(i, len(kept), kept, from_, 0)
        target = values_at + offset_of(i, len(kept), kept, to, 0)
        place_at = places_at + offset_of(i, len(kept), kept, places_to, 0)
        j = 0
        while j < size:  # one round for each new best: what is compared with is then no result of a comparison
            stored, place = x[uint64(at)], j
            best = load_x(stored)
            while True:
                values[uint64(target)] = stored
                places[uint64(place_at)] = place
                at += step
                target += step_to
                place_at += step_places
                j += 1
                if j == size:
                    break
                value = load_x(x[uint64(at)])
                if reaches(value, best) or value != value:
                    break


LINES = Template(lines_loop, "int64[] kept to from_ line", "out[] out", "x[] x")
LINES_BY_FOUR = Template(lines_by_four_loop, "int64[] kept to from_ line", "out[] out", "x[] x")
COLUMNS = Template(columns_loop, "int64[] kept to from_ line", "out[] out", "x[] x", "wide[] accs")
EXTREMES = Template(extremes_loop, "int64[] kept to places_to from_ line places", "x[] values x")

# --- operations ------------------------------------------------------------------------------------------------------


def add(acc, x):
    return acc + x


def multiply(acc, x):
    return acc * x


@cache
def number(dtype: str, value: float) -> Callable:
    """Returns a function that makes a number of that dtype."""
    start = np.dtype(dtype).type(value)

    def constant():
        return start

    return constant


def no_exponentials():
    return -np.inf, 0.0


def with_exponential(acc, x):
    """log(sum(exp(x))) as `top + log(total)`: `total` is the sum of exp(x - top), `top` the largest.

    An infinite `top` needs no care: equal elements count as 1, and exp(-inf) is 0 for all others.
    """
    top, total = acc
    if x == top:
        return top, total + 1.0
    if x < top:
        return top, total + exp(x - top)
    return x, total * exp(top - x) + 1.0  # NaN, too, which then stays


def log_of_sum(acc):
    return acc[0] + log(acc[1])


def no_complex_exponentials():
    return complex(-np.inf, 0.0), complex(0.0, 0.0)


def with_complex_exponential(acc, x):
    """Adds exp(x) of a complex number: `top` has the largest real part, which decides how large exp(x) is."""
    top, total = acc
    if x.real == top.real:
        return top, total + exp(complex(0.0, x.imag - top.imag))
    if x.real < top.real:
        return top, total + exp(x - top)
    return x, total * exp(top - x) + 1.0


def is_at_least(x, best):
    return x >= best


def is_at_most(x, best):
    return x <= best


# --- scans -----------------------------------------------------------------------------------------------------------

_WIDEST = {"bool": "int64", "uint": "int64", "int": "int64", "float": "float64", "complex": "complex128"}


class Scan(NamedTuple):
    """A running operation: what is carried along, how an element joins it, and the result that it stands for.

    nothing: what is carried at first, as a function, by the dtype that it is carried in. plain: whether that is a
    number, which may be joined with others in any brackets.
    """

    name: str
    combine: Callable
    nothing: Callable[[str], Callable]
    value_of: Callable = as_is
    plain: bool = True

    def ready(self, out: Operand, x: Operand, dim: int) -> Callable[..., object]:
        """Prepares the loop that fills `out`, of the shape of `x`, with the results up to each element along `dim`:
        `f(out, out_at, x, x_at)` for all operands of such metadata."""
        walk, line = line_walk(x, dim, out)
        wide = _WIDEST[DTYPES[x.dtype].kind]
        (to,) = walk.kept_outs
        columns = self.plain and walk.kept[-1] > 1 and to[-1] == walk.kept_in[-1] == 1 and line[2] > 1
        by_four = self.plain and (wide != x.dtype or wide == "int64")  # else their order could make a number infinite
        loop = COLUMNS if columns else LINES_BY_FOUR if by_four else LINES
        entry = loop(
            name=f"{self.name}_{loop.name}",
            x=x.dtype,
            out=out.dtype,
            wide=wide,
            load_x=chain(load(x.dtype), CONVERT[wide]),
            combine=self.combine,
            nothing=self.nothing(wide),
            value_of=self.value_of,
        )
        if not columns:
            cost, tables = (8 if self.plain else 32) * walk.elements, (walk.kept, to, walk.kept_in, line)
            return ready(entry, walk.results if walk.elements else 0, tables, cost)
        width = int(walk.kept[-1])

        def strips(lo: int, hi: int, *arrays: Any) -> None:
            entry(lo, hi, walk.kept, to, walk.kept_in, line, *arrays, scratch(min(STRIP, width), wide))

        count = -(-width // STRIP) * (walk.results // width) if walk.elements else 0
        return ready(strips, count, (), walk.elements * min(STRIP, width))


CUMSUM = Scan("cumsum", add, lambda wide: number(wide, 0))
CUMPROD = Scan("cumprod", multiply, lambda wide: number(wide, 1))
LOGCUMSUMEXP = Scan("logcumsumexp", with_exponential, lambda wide: no_exponentials, log_of_sum, plain=False)
COMPLEX_LOGCUMSUMEXP = LOGCUMSUMEXP._replace(
    combine=with_complex_exponential, nothing=lambda wide: no_complex_exponentials
)


def ready_cumulative_extreme(
    values: Operand, places: Operand, x: Operand, dim: int, *, largest: bool
) -> Callable[..., object]:
    """The largest (or smallest) element up to each, and its index along `dim`, int64; NaN wins over all.

    It is called as `f(values, values_at, places, places_at, x, x_at)`.
    """
    walk, line = line_walk(x, dim, values, places)
    name, reached = ("cummax", is_at_least) if largest else ("cummin", is_at_most)
    tables = (walk.kept, *walk.kept_outs, walk.kept_in, line)
    entry = EXTREMES(name=name, x=x.dtype, reaches=reached)
    return ready(entry, walk.results if walk.elements else 0, tables, 8 * walk.elements)
