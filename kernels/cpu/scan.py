"""Scans: running sums, products, log-sum-exps and extremes along one dimension.

Each line along the dimension is worked out from its first element to its last, in one of two loops:

- lines: one line after the other. Where the accumulator is wider than the elements, four of them are put together
  first: then only every fourth operation waits for the one before it;
- columns: many neighbouring lines at once, each with an accumulator of its own, where memory runs across the dimension.

Floats accumulate in float64, integers in int64. Read next: `argreduce.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Operand
from redispatch.dispatch.tensor.target import ByTarget, scratch

from ..engine.compile import Entry, Kernel
from ..engine.convert import CONVERT, array_type, load, store
from ..engine.elementwise import offset_of
from ..engine.pool import ready
from ..maths.vecmath import exp, log
from .reduce import ReducePlan, chain, reduce_plan

STRIP = 1024  # accumulators of the columns loop
uint64 = np.uint64

# --- the loops. The names right below stand for what is passed to `Kernel(given=...)`. --------------------------------


def load_one(x):
    return x


def store_one(x):
    return x


def combine(acc, x):
    return x


def reaches(x, best):
    return True


start = np.float64(0)


def lines_loop(lo, hi, kept, to, from_, line, out, out_at, x, x_at):
    """Lines lo <= i < hi. line: how many elements one has, and their steps in `out` and `x`."""
    size, step_to, step = line[0], line[1], line[2]
    for i in range(lo, hi):
        at, target = x_at + offset_of(i, len(kept), kept, from_, 0), out_at + offset_of(i, len(kept), kept, to, 0)
        acc = start
        for _ in range(size):
            acc = combine(acc, load_one(x[uint64(at)]))
            out[uint64(target)] = store_one(acc)
            at += step
            target += step_to


def lines_by_four_loop(lo, hi, kept, to, from_, line, out, out_at, x, x_at):
    """`lines_loop` for an operation that may be done in another order."""
    size, step_to, step = line[0], line[1], line[2]
    for i in range(lo, hi):
        at, target = x_at + offset_of(i, len(kept), kept, from_, 0), out_at + offset_of(i, len(kept), kept, to, 0)
        acc = start
        for _ in range(size // 4):
            a = load_one(x[uint64(at)])
            b = combine(a, load_one(x[uint64(at + step)]))
            c = combine(b, load_one(x[uint64(at + 2 * step)]))
            d = combine(c, load_one(x[uint64(at + 3 * step)]))
            out[uint64(target)] = store_one(combine(acc, a))
            out[uint64(target + step_to)] = store_one(combine(acc, b))
            out[uint64(target + 2 * step_to)] = store_one(combine(acc, c))
            acc = combine(acc, d)
            out[uint64(target + 3 * step_to)] = store_one(acc)
            at += 4 * step
            target += 4 * step_to
        for _ in range(size % 4):
            acc = combine(acc, load_one(x[uint64(at)]))
            out[uint64(target)] = store_one(acc)
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
            accs[uint64(j)] = start
        for _ in range(size):
            for j in range(count):
                acc = combine(accs[uint64(j)], load_one(x[uint64(at + j)]))
                accs[uint64(j)] = acc
                out[uint64(target + j)] = store_one(acc)
            at += step
            target += step_to


def log_sum_exp_loop(lo, hi, kept, to, from_, line, out, out_at, x, x_at):
    """`lines_loop` for log(sum(exp(x))), as `top + log(total)`: `total` is the sum of exp(x - top), `top` the largest.

    An infinite `top` needs no care: equal elements count as 1, and exp(-inf) is 0 for all others.
    """
    size, step_to, step = line[0], line[1], line[2]
    for i in range(lo, hi):
        at, target = x_at + offset_of(i, len(kept), kept, from_, 0), out_at + offset_of(i, len(kept), kept, to, 0)
        top, total = -np.inf, 0.0
        for _ in range(size):
            value = load_one(x[uint64(at)])
            if value == top:
                total += 1.0
            elif value < top:
                total += exp(value - top)
            else:  # NaN, too, which then stays
                total = total * exp(top - value) + 1.0
                top = value
            out[uint64(target)] = store_one(top + log(total))
            at += step
            target += step_to


def complex_log_sum_exp_loop(lo, hi, kept, to, from_, line, out, out_at, x, x_at):
    """`log_sum_exp_loop` for complex numbers: `top` has the largest real part, which decides how large exp(x) is."""
    size, step_to, step = line[0], line[1], line[2]
    for i in range(lo, hi):
        at, target = x_at + offset_of(i, len(kept), kept, from_, 0), out_at + offset_of(i, len(kept), kept, to, 0)
        top, total = complex(-np.inf, 0.0), complex(0.0, 0.0)
        for _ in range(size):
            value = load_one(x[uint64(at)])
            if value.real == top.real:
                total += exp(complex(0.0, value.imag - top.imag))
            elif value.real < top.real:
                total += exp(value - top)
            else:  # NaN, too, which then stays
                total = total * exp(top - value) + 1.0
                top = value
            out[uint64(target)] = store_one(top + log(total))
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
            best = load_one(stored)
            while True:
                values[uint64(target)] = stored
                places[uint64(place_at)] = place
                at += step
                target += step_to
                place_at += step_places
                j += 1
                if j == size:
                    break
                value = load_one(x[uint64(at)])
                if reaches(value, best) or value != value:
                    break


# --- scans -----------------------------------------------------------------------------------------------------------


def _add(acc, x):
    return acc + x


def _multiply(acc, x):
    return acc * x


_WIDEST = {"bool": "int64", "uint": "int64", "int": "int64", "float": "float64", "complex": "complex128"}


class Scan(NamedTuple):
    """A running operation. `ready(out, x, dim)` returns `f(out, out_at, x, x_at)` for all operands that look so."""

    name: str
    combine: Callable
    identity: int

    def ready(self, out: Operand, x: Operand, dim: int) -> Callable[..., object]:
        """What fills `out`, of the shape of `x`, with the results up to each element along `dim`."""
        walk, line = _walk(x, dim, out)
        wide = _WIDEST[DTYPES[x.dtype].kind]
        (to,) = walk.kept_outs
        columns = walk.kept[-1] > 1 and to[-1] == walk.kept_in[-1] == 1 and line[2] > 1
        by_four = wide != x.dtype or wide == "int64"  # else the order of operations could make a number infinite
        loop = columns_loop if columns else lines_by_four_loop if by_four else lines_loop
        given = {
            "load_one": chain(load(x.dtype), CONVERT[wide]),
            "store_one": store(out.dtype),
            "combine": self.combine,
            "start": np.dtype(wide).type(self.identity),
        }
        signature = _signature(out.dtype, x.dtype)
        if not columns:
            entry = _entry(self.name, loop, given, signature)
            return ready(entry, walk.results if walk.elements else 0, (walk.kept, to, walk.kept_in, line), 8 * line[0])
        entry, width = _entry(self.name, loop, given, (*signature, f"{wide}[]")), int(walk.kept[-1])

        def strips(lo: int, hi: int, *arrays: Any) -> None:
            entry(lo, hi, walk.kept, to, walk.kept_in, line, *arrays, scratch(min(STRIP, width), wide))

        count = -(-width // STRIP) * (walk.results // width) if walk.elements else 0
        return ready(strips, count, (), walk.elements * min(STRIP, width))


def is_at_least(x, best):
    return x >= best


def is_at_most(x, best):
    return x <= best


CUMSUM = Scan("cumsum", _add, 0)
CUMPROD = Scan("cumprod", _multiply, 1)


def ready_logcumsumexp(out: Operand, x: Operand, dim: int) -> Callable[..., object]:
    """The same for the logarithm of the sum of exponentials; floating and complex dtypes."""
    walk, line = _walk(x, dim, out)
    kind = DTYPES[x.dtype].kind
    loop = complex_log_sum_exp_loop if kind == "complex" else log_sum_exp_loop
    given = {"load_one": chain(load(x.dtype), CONVERT[_WIDEST[kind]]), "store_one": store(out.dtype)}
    entry = _entry("logcumsumexp", loop, given, _signature(out.dtype, x.dtype))
    tables = (walk.kept, *walk.kept_outs, walk.kept_in, line)
    return ready(entry, walk.results if walk.elements else 0, tables, 32 * walk.elements)


def ready_cumulative_extreme(
    values: Operand, places: Operand, x: Operand, dim: int, *, largest: bool
) -> Callable[..., object]:
    """The largest (or smallest) element up to each, and its index along `dim`, int64; NaN wins over all.

    It is called as `f(values, values_at, places, places_at, x, x_at)`.
    """
    walk, line = _walk(x, dim, values, places)
    given = {"load_one": load(x.dtype), "reaches": is_at_least if largest else is_at_most}
    array = array_type(x.dtype)
    signature = (*["int64[]"] * 5, array, "int64", "int64[]", "int64", array, "int64")
    entry = _entry("cummax" if largest else "cummin", extremes_loop, given, signature)
    tables = (walk.kept, *walk.kept_outs, walk.kept_in, line)
    return ready(entry, walk.results if walk.elements else 0, tables, 8 * walk.elements)


def _walk(x: Operand, dim: int, *outs: Operand) -> tuple[ReducePlan, np.ndarray]:
    """The dimensions that are not scanned, and what the loops are told of a line."""
    if not x.shape:
        x, *outs = (one._replace(shape=(1,), strides=(1,)) for one in (x, *outs))  # type: ignore[assignment]  # a list
    walk = reduce_plan(x.shape, x.strides, (dim,), tuple(out.strides for out in outs), True)
    return walk, np.array([walk.elements, *(out.strides[dim] for out in outs), x.strides[dim]], np.int64)


def _signature(out_dtype: str, dtype: str) -> tuple[str, ...]:
    return (*["int64[]"] * 4, array_type(out_dtype), "int64", array_type(dtype), "int64")


_ENTRIES = ByTarget()


def _entry(name: str, loop: Callable, given: dict[str, Any], signature: tuple[str, ...]) -> Entry:
    key = (name, loop, given["load_one"].__name__, given.get("store_one"), signature)
    entry = _ENTRIES.get(key)
    if entry is None:
        kernel = Kernel(loop, name=f"{name}_{loop.__name__.removesuffix('_loop')}", given=given)
        entry = _ENTRIES[key] = kernel.entry("int64", "int64", *signature)
    return entry
