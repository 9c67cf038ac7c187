"""Scans: running sums, products, log-sum-exps and extremes along one dimension; and which element is an extreme.

Each line along the dimension is worked out from its first element to its last, in one of two loops:

- lines: one line after the other. Where the accumulator is wider than the elements, four of them are put together
  first: then only every fourth operation waits for the one before it;
- columns: many neighbouring lines at once, each with an accumulator of its own, where memory runs across the dimension.

Floats accumulate in float64, integers in int64.

argmax and argmin, and max and min with indices: the first of equal elements wins, and NaN wins over everything, the
first NaN over the others. The best of each block of elements is found by a loop that vectorises; only in the block that
won is the element looked for. Read next: `normalize.py`.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand, memory

from ..engine.convert import CONVERT, as_is, load, order
from ..engine.elementwise import offset_of
from ..engine.pool import ready
from ..engine.template import Template, given, load_x, store_out
from ..maths.vecmath import exp, log
from .reduce import BLOCK, chain, line_walk, ready_strips, reduce_plan

STRIP = 1024  # accumulators of the columns loop
uint64 = np.uint64

# --- the loops. These names stand for those of a `Scan`. --------------------------------------------------------------

combine = nothing = value_of = reaches = given
in_any_order = True


def lines_loop(lo, hi, kept, to, from_, line, out, out_at, x, x_at):
    """Lines lo <= i < hi. line: how many elements one has, and their steps in `out` and `x`."""
    size, step_to, step = line[0], line[1], line[2]
    for i in range(lo, hi):
        at, target = x_at + offset_of(i, len(kept), kept, from_, 0), out_at + offset_of(i, len(kept), kept, to, 0)
        acc = nothing()
        rest = size
        if in_any_order:
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
            rest = size % 4
        for _ in range(rest):
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


def log_add_exp_of_complex(a, b):
    """Returns log(exp(a) + exp(b)); the one with the larger real part is taken out."""
    most, least = (a, b) if b.real < a.real else (b, a)
    return most if least.real == most.real and least.real - least.real != 0 else most + log(1.0 + exp(least - most))


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
        loop = COLUMNS if columns else LINES
        entry = loop(
            name=f"{self.name}_{loop.name}",
            x=x.dtype,
            out=out.dtype,
            wide=wide,
            load_x=chain(load(x.dtype), CONVERT[wide]),
            combine=self.combine,
            nothing=self.nothing(wide),
            value_of=self.value_of,
            in_any_order=by_four,
        )
        tables = (walk.kept, to, walk.kept_in, line)
        if columns:
            return ready_strips(entry, walk, tables, STRIP, [wide])
        return ready(entry, walk.results if walk.elements else 0, tables, (8 if self.plain else 32) * walk.elements)


CUMSUM = Scan("cumsum", add, lambda wide: number(wide, 0))
CUMPROD = Scan("cumprod", multiply, lambda wide: number(wide, 1))
LOGCUMSUMEXP = Scan("logcumsumexp", with_exponential, lambda wide: no_exponentials, log_of_sum, plain=False)
COMPLEX_LOGCUMSUMEXP = Scan(
    "logcumsumexp", log_add_exp_of_complex, lambda wide: number(wide, -np.inf), plain=False
)  # as in PyTorch one term after the other, which decides around which of them the phase turns


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


# --- the position of an extreme ---------------------------------------------------------------------------------------

FEW = 64  # elements of which one is looked for by itself
pick, beats, worst = order("float64", True)  # they stand for those of the dtype


def argreduce_loop(
    lo, hi, kept, value_to, index_to, kept_in, reduced, reduced_in, values, values_at, indices, indices_at, x, x_at
):
    """Results lo <= i < hi: the best value, and its row-major position among the reduced elements."""
    kept_dims, dims = len(kept), len(reduced)
    inner, step = reduced[dims - 1], reduced_in[dims - 1]
    runs = 1
    for d in range(dims - 1):
        runs *= reduced[d]
    for i in range(lo, hi):
        base = x_at + offset_of(i, kept_dims, kept, kept_in, 0)
        best, best_run, j = worst, -1, 0
        for run in range(runs):
            at = base + offset_of(run, dims - 1, reduced, reduced_in, 0)
            for block in range(0, inner, BLOCK):
                stop = min(block + BLOCK, inner)
                top = worst
                if step == 1:
                    for k in range(block, stop):
                        top = pick(top, load_x(x[uint64(at + k)]))
                else:
                    for k in range(block, stop):
                        top = pick(top, load_x(x[uint64(at + k * step)]))
                if best_run < 0 or beats(top, best):
                    best, best_run, j = top, run, block
        at = base + offset_of(best_run, dims - 1, reduced, reduced_in, 0)
        is_nan = best != best
        while j + FEW <= inner:
            found = False
            for k in range(j, j + FEW):
                value = load_x(x[uint64(at + k * step)])
                found |= (value == best) | (is_nan & (value != value))
            if found:
                break
            j += FEW
        while j < inner - 1:
            value = load_x(x[uint64(at + j * step)])
            if value == best or (is_nan and value != value):
                break
            j += 1
        values[uint64(values_at + offset_of(i, kept_dims, kept, value_to, 0))] = x[uint64(at + j * step)]
        indices[uint64(indices_at + offset_of(i, kept_dims, kept, index_to, 0))] = best_run * inner + j


ARGREDUCE = Template(
    argreduce_loop, "int64[] kept value_to index_to kept_in reduced reduced_in indices", "x[] values x"
)


def ready_extreme(
    values: Operand | None, indices: Operand, x: Operand, dims: Sequence[int], *, largest: bool
) -> Callable[..., object]:
    """Prepares the loop for all operands of this metadata, for callers that remember it.

    It is called as `f(values, values_at, indices, indices_at, x, x_at)`, without the first two where nobody looks.
    """
    nobody: tuple = ()
    if values is None:  # let every value land in one cell
        cell = memory(1, DTYPES[x.dtype].storage)
        values, nobody = Operand(cell, x.dtype, indices.shape, (0,) * len(indices.shape)), (cell, 0)
    walk = reduce_plan(x.shape, x.strides, tuple(dims), (values.strides, indices.strides), True)
    leading = (walk.kept, *walk.kept_outs, walk.kept_in, walk.reduced, walk.reduced_in, *nobody)
    how = order(x.dtype, largest)._asdict()
    entry = ARGREDUCE(name="argmax" if largest else "argmin", x=x.dtype, **how)
    return ready(entry, walk.results, leading, 2 * walk.elements)
