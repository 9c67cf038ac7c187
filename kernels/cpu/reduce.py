"""Reductions: many elements into one, along any dimensions.

A `Reduction` is an identity, a way to combine an accumulator with an element, and a finish. The dimensions fall into
those kept and those reduced, each group merged as far as the strides allow, and one of three loops runs:

- runs: one result after the other, each a run over elements one step apart: most reductions, and all small ones;
- rows: the same with any number of dimensions, which it is given as tables;
- columns: many neighbouring results at once, each element added to its own accumulator, so that memory is read in
  order although the reduced dimension is not the innermost.

Accuracy: a float32 sum adds blocks of 512 in float32 (as vectors, whose lanes are themselves partial sums), and the
blocks in float64; 16-bit floats accumulate in float32, integers and bools in int64. Read next: `scan.py`.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.geometry import Ints, coalesce, loop_order, numel
from redispatch.dispatch.tensor.operand import DTYPES, TARGET, ByTarget, Operand, memory

from ..engine.compile import Entry
from ..engine.convert import CONVERT, as_is, load, order
from ..engine.elementwise import offset_of
from ..engine.pool import get_num_threads, parallel_for, ready
from ..engine.template import Template, given, load_x, store_out, zero

BLOCK = 512  # elements that the inner loop combines before the accumulator is widened
STRIP = 1024  # accumulators that a column loop holds at once: 8 kB, a quarter of a first-level cache
FEW = 1 << 10  # so many elements are read column by column in less time than accumulators take to be allocated
PIECE = 1 << 17  # a full reduction of more than two of these is cut into such pieces, one result each
float32, float64, uint64 = np.float32, np.float64, np.uint64

# --- the loops. These names stand for those of a `Reduction`. ---------------------------------------------------------

narrow = widen = combine = finish_one = given
start = zero


def rows_loop(lo, hi, kept, kept_out, kept_in, reduced, reduced_in, total, out, out_at, x, x_at):
    """Results lo <= i < hi, one after the other."""
    kept_dims, dims = len(kept), len(reduced)
    inner, step = reduced[dims - 1], reduced_in[dims - 1]
    runs = 1
    for d in range(dims - 1):
        runs *= reduced[d]
    for i in range(lo, hi):
        base = x_at + offset_of(i, kept_dims, kept, kept_in, 0)
        acc = start
        for run in range(runs):
            at = base + offset_of(run, dims - 1, reduced, reduced_in, 0)
            for block in range(0, inner, BLOCK):
                part = narrow(start)
                stop = min(block + BLOCK, inner)
                if step == 1:
                    for j in range(block, stop):
                        part = combine(part, load_x(x[uint64(at + j)]))
                else:
                    for j in range(block, stop):
                        part = combine(part, load_x(x[uint64(at + j * step)]))
                acc = combine(acc, widen(part))
        out[out_at + offset_of(i, kept_dims, kept, kept_out, 0)] = store_out(finish_one(acc, total))


def runs_loop(lo, hi, walk, out, out_at, x, x_at):
    """Results lo <= i < hi of `rows_loop` where there is one kept and one reduced dimension at most.

    All that is said of them stands in one table: whatever is passed, array or number, costs a small call 10 ns. A long
    run is reduced piece by piece, as threads would share it out, so that their number does not show in the result.
    """
    out_step, kept_step, size, step, total = walk[0], walk[1], walk[2], walk[3], walk[4]
    for i in range(lo, hi):
        base = x_at + i * kept_step
        whole = start
        for piece in range(0, size, PIECE):
            acc = start
            end = min(piece + PIECE, size)
            for block in range(piece, end, BLOCK):
                part = narrow(start)
                stop = min(block + BLOCK, end)
                if step == 1:
                    for j in range(block, stop):
                        part = combine(part, load_x(x[uint64(base + j)]))
                else:
                    for j in range(block, stop):
                        part = combine(part, load_x(x[uint64(base + j * step)]))
                acc = combine(acc, widen(part))
            whole = combine(whole, acc)
        out[uint64(out_at + i * out_step)] = store_out(finish_one(whole, total))


def columns_loop(lo, hi, kept, kept_out, kept_in, reduced, reduced_in, total, out, out_at, x, x_at, accs):
    """Strips lo <= s < hi of STRIP neighbouring results; the innermost kept dimension has step 1 in `x`.

    Eight rows are combined before they meet the accumulators, which are then read and written an eighth as often.
    """
    kept_dims, dims = len(kept), len(reduced)
    width, out_step = kept[kept_dims - 1], kept_out[kept_dims - 1]
    inner, step = reduced[dims - 1], reduced_in[dims - 1]
    strips = (width + STRIP - 1) // STRIP
    runs = 1
    for d in range(dims - 1):
        runs *= reduced[d]
    for s in range(lo, hi):
        group = s // strips
        first = (s - group * strips) * STRIP
        size = min(STRIP, width - first)
        base = x_at + first + offset_of(group, kept_dims - 1, kept, kept_in, 0)
        to = out_at + first * out_step + offset_of(group, kept_dims - 1, kept, kept_out, 0)
        for j in range(size):
            accs[uint64(j)] = start
        for run in range(runs):
            at = base + offset_of(run, dims - 1, reduced, reduced_in, 0)
            for _ in range(inner // 8):
                a, b, c, d = at, at + step, at + 2 * step, at + 3 * step
                e, f, g, h = at + 4 * step, at + 5 * step, at + 6 * step, at + 7 * step
                for j in range(size):
                    ab = combine(load_x(x[uint64(a + j)]), load_x(x[uint64(b + j)]))
                    cd = combine(load_x(x[uint64(c + j)]), load_x(x[uint64(d + j)]))
                    ef = combine(load_x(x[uint64(e + j)]), load_x(x[uint64(f + j)]))
                    gh = combine(load_x(x[uint64(g + j)]), load_x(x[uint64(h + j)]))
                    part = combine(combine(ab, cd), combine(ef, gh))
                    accs[uint64(j)] = combine(accs[uint64(j)], widen(part))
                at += 8 * step
            for _ in range(inner % 8):
                for j in range(size):
                    accs[uint64(j)] = combine(accs[uint64(j)], widen(load_x(x[uint64(at + j)])))
                at += step
        for j in range(size):
            out[uint64(to + j * out_step)] = store_out(finish_one(accs[uint64(j)], total))


# --- the walk ------------------------------------------------------------------------------------------------------


class ReducePlan(NamedTuple):
    """Kept and reduced dimensions, merged, outermost first; int64 arrays. `results` of `elements` each."""

    results: int
    elements: int
    kept: np.ndarray
    kept_outs: tuple[np.ndarray, ...]  # the strides of each output
    kept_in: np.ndarray
    reduced: np.ndarray
    reduced_in: np.ndarray
    columns: bool


@lru_cache(4096)
def reduce_plan(shape: Ints, strides: Ints, dims: Ints, outs: tuple[Ints, ...], ordered: bool = False) -> ReducePlan:
    """Plans how to reduce `dims` of an input. Each of `outs`, strides, has an entry per kept dimension, or dimension.

    `ordered` keeps the row-major order of the reduced dimensions, for results that say which element won.
    """
    reduced = sorted({d % len(shape) for d in dims} if shape else ())
    kept = [d for d in range(len(shape)) if d not in reduced]
    to = [[out[d] for d in kept] if len(out) == len(shape) else list(out) for out in outs]
    from_ = [strides[d] for d in kept]
    order = loop_order(tuple(shape[d] for d in kept), [tuple(from_)])[::-1]
    kept_sizes, (kept_in, *kept_outs) = coalesce(
        [shape[kept[k]] for k in order], [[steps[k] for k in order] for steps in (from_, *to)]
    )
    if not ordered:
        run = loop_order(tuple(shape[d] for d in reduced), [tuple(strides[d] for d in reduced)])[::-1]
        reduced = [reduced[k] for k in run]
    sizes, (steps,) = coalesce([shape[d] for d in reduced], [[strides[d] for d in reduced]])
    results, count = numel(shape[d] for d in kept), numel(shape[d] for d in reduced)
    columns = (
        results > 1 and kept_in[-1] == 1 and kept_sizes[-1] > 1 and count > 1 and (steps[-1] != 1 or sizes[-1] < 4)
    )
    sizes_kept, steps_in, reduced_sizes, reduced_in, *to_each = (
        np.array(numbers, np.int64) for numbers in (kept_sizes, kept_in, sizes, steps, *kept_outs)
    )
    return ReducePlan(results, count, sizes_kept, tuple(to_each), steps_in, reduced_sizes, reduced_in, columns)


def line_walk(x: Operand, dim: int, *outs: Operand) -> tuple[ReducePlan, np.ndarray]:
    """The dimensions beside `dim`, and what loops over lines along it are told: a line's size, its steps in the outputs
    and in `x`. An output may lack the dimension."""
    if not x.shape:
        x, *outs = (one._replace(shape=(1,), strides=(1,)) for one in (x, *outs))  # type: ignore[assignment]  # a list
    walk = reduce_plan(x.shape, x.strides, (dim,), tuple(out.strides for out in outs), True)
    steps = [out.strides[dim] if len(out.strides) == len(x.shape) else 0 for out in outs]
    return walk, np.array([walk.elements, *steps, x.strides[dim]], np.int64)


def ready_strips(
    entry: Entry, walk: ReducePlan, tables: tuple, strip: int, scratches: Sequence[Any], cost: int = 1
) -> Callable[..., object]:
    """Prepares a loop over strips of neighbouring results, in memory of these dtypes for each chunk of strips."""
    width = int(walk.kept[-1])
    size, count = min(strip, width), -(-width // strip) * (walk.results // width) if walk.elements else 0
    return ready(entry, count, tables, cost * walk.elements * size, [(size, dtype) for dtype in scratches])


# --- reductions ----------------------------------------------------------------------------------------------------


class Recipe(NamedTuple):
    """Holds all that varies in the loops above, for one input dtype."""

    load: Callable  # from a loaded element to the type of `start`
    start: np.generic  # the identity, in the accumulator's type
    combine: Callable
    finish: Callable  # (accumulator, number of elements) -> a number to store
    block: str | None = None  # a narrower type in which blocks accumulate


class Reduction:
    """`run(out, x, dims)` reduces; what happens per dtype is said by `recipe(dtype)`.

    fastmath: LLVM flags for float accumulation, see `SUM`.
    """

    def __init__(self, name: str, recipe: Callable[[str], Recipe], *, fastmath: frozenset[str] = frozenset()) -> None:
        self.name, self.recipe, self.fastmath = name, recipe, fastmath
        self._entries = ByTarget()

    def run(self, out: Operand, x: Operand, dims: Sequence[int]) -> None:
        """Reduce `dims` of `x` into `out`, whose shape keeps them as 1 or leaves them out. () reduces nothing.

        Without elements a result is the identity (0 for sum); for amax and amin there is none, so callers raise first.
        """
        target = TARGET.get()
        if target is not None:
            return target.reduce(self, out, x, dims)
        self.ready(out, x, dims)(out.array, out.offset, x.array, x.offset)

    def ready(self, out: Operand, x: Operand, dims: Sequence[int]) -> Callable[..., object]:
        """Prepares `run` for operands of such metadata: `f(out, out_at, x, x_at)`."""
        walk = reduce_plan(x.shape, x.strides, tuple(dims), (out.strides,))
        (kept_out,) = walk.kept_outs
        if walk.results == 1 and len(walk.reduced) == 1 and walk.elements > 2 * PIECE:
            return self._in_pieces(out.dtype, x.dtype, walk)
        single = len(walk.kept) == len(walk.reduced) == 1
        tables = (walk.kept, kept_out, walk.kept_in, walk.reduced, walk.reduced_in, walk.elements)
        if walk.columns and not (single and walk.results * walk.elements <= FEW):
            entry, accumulator = self._entry("columns", x.dtype, out.dtype), self.recipe(x.dtype).start.dtype
            return ready_strips(entry, walk, tables, STRIP, [accumulator])
        work = max(1, walk.elements)
        if single:
            loop = "wide runs" if walk.columns and self.recipe(x.dtype).block else "runs"
            table = run_table(kept_out[0], walk.kept_in[0], walk.reduced[0], walk.reduced_in[0], walk.elements)
            return ready(self._entry(loop, x.dtype, out.dtype), walk.results, (table,), work)
        return ready(self._entry("rows", x.dtype, out.dtype), walk.results, tables, work)

    def _in_pieces(self, out_dtype: str, dtype: str, walk: ReducePlan) -> Callable[..., object]:
        """One large result: on several threads the pieces first, and then the pieces' accumulators."""
        step, (pieces, rest) = int(walk.reduced_in[0]), divmod(walk.elements, PIECE)
        count, accumulator = pieces + (rest > 0), self.recipe(dtype).start.dtype
        alone = self._entry("runs", dtype, out_dtype)
        run = run_table(1, 1, walk.elements, step, walk.elements)
        each = run_table(1, PIECE * step, PIECE, step, walk.elements)
        remaining = run_table(1, 1, rest, step, walk.elements)
        total = run_table(1, 1, count, 1, walk.elements)

        def reduce(out: np.ndarray, out_at: int, x: np.ndarray, x_at: int) -> None:
            if get_num_threads() == 1:
                alone(0, 1, run, out, out_at, x, x_at)
                return
            first, last = self._entry("pieces", dtype, out_dtype), self._entry("total", dtype, out_dtype)
            parts = memory(count, accumulator)
            parallel_for(first, pieces, (each, parts, 0, x, x_at), PIECE)
            if rest:
                first(0, 1, remaining, parts, pieces, x, x_at + pieces * PIECE * step)
            last(0, 1, total, out, out_at, parts, 0)

        return reduce

    def _entry(self, loop: str, dtype: str, out_dtype: str) -> Entry:
        key = (loop, dtype, out_dtype)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = self._build(*key)
        return entry

    def _build(self, loop: str, dtype: str, out_dtype: str) -> Entry:
        recipe = self.recipe(dtype)
        accumulator = recipe.start.dtype.name
        block = recipe.block if loop not in ("columns", "wide runs") else None
        given: dict[str, Any] = {
            "x": dtype,
            "source": dtype,
            "out": out_dtype,
            "acc": accumulator,
            "load_x": chain(load(dtype), recipe.load),
            "narrow": CONVERT[block] if block else as_is,
            "widen": CONVERT[accumulator] if recipe.block else as_is,
            "combine": recipe.combine,
            "finish_one": recipe.finish,
            "start": recipe.start,
        }
        if loop == "pieces":
            given |= {"out": accumulator, "finish_one": _keep, "store_out": as_is}
        elif loop == "total":
            given |= {"source": accumulator, "load_x": as_is, "narrow": as_is, "widen": as_is}
        flags = self.fastmath if loop != "total" else frozenset[str]()  # there the order is that of `runs_loop`
        template = {"rows": ROWS, "columns": COLUMNS}.get(loop, RUNS)
        return template.compiled(f"{self.name}_{loop.replace(' ', '_')}", given, flags)


ROWS = Template(rows_loop, "int64[] kept kept_out kept_in reduced reduced_in", "out[] out", "source[] x")
RUNS = Template(runs_loop, "int64[] walk", "out[] out", "source[] x")
COLUMNS = Template(
    columns_loop, "int64[] kept kept_out kept_in reduced reduced_in", "out[] out", "source[] x", "acc[] accs"
)


def run_table(*numbers: int) -> np.ndarray:
    """Returns the table for `runs_loop`: out_step, kept_step, size, step, total."""
    return np.array(numbers, np.int64)


def _keep(acc, total):
    return acc


@cache
def chain(first: Callable, second: Callable) -> Callable:
    """`second(first(x))` as a function that a program can hold."""
    if first is as_is:
        return second
    if second is as_is:
        return first

    def load_and_prepare(x):
        return second(first(x))

    return load_and_prepare


def _add(acc, x):
    return acc + x


def _multiply(acc, x):
    return acc * x


def _either(acc, x):
    return acc | x


def _both(acc, x):
    return acc & x


def _divide(acc, total):
    return acc / total


def _divide_complex(acc, total):
    return complex(acc.real / total, acc.imag / total)  # Python's own division raises where the total is zero


ACCUMULATOR = {"bool": "int64", "int": "int64", "uint": "int64"}


def _number_32(x):
    return x if x == x else float32(0)


def _number_64(x):
    return x if x == x else float64(0)


ZERO_FOR_NAN = {"float32": _number_32, "float64": _number_64}  # by the type that elements are loaded as


def _arithmetic(
    combine: Callable, identity: int, finish: Callable = _keep, skip_nan: bool = False
) -> Callable[[str], Recipe]:
    def recipe(dtype: str) -> Recipe:
        info = DTYPES[dtype]
        accumulator = ACCUMULATOR.get(info.kind, info.compute)
        block = None
        if dtype == "float32":
            accumulator, block = "float64", "float32"
        elif dtype == "complex64":
            accumulator, block = "complex128", "complex64"
        loading = CONVERT[accumulator] if info.kind in ACCUMULATOR else as_is
        if skip_nan and info.kind not in ACCUMULATOR:
            loading = ZERO_FOR_NAN[info.compute]
        last = _divide_complex if finish is _divide and info.kind == "complex" else finish
        return Recipe(loading, np.dtype(accumulator).type(identity), combine, last, block)

    return recipe


def _extreme(largest: bool) -> Callable[[str], Recipe]:
    def recipe(dtype: str) -> Recipe:
        pick, _, worst = order(dtype, largest)
        return Recipe(as_is, worst, pick, _keep)

    return recipe


def _truth(combine: Callable, identity: bool) -> Callable[[str], Recipe]:
    return lambda dtype: Recipe(CONVERT["bool"], np.bool_(identity), combine, _keep)


# "reassoc" alone: without it LLVM may not add the lanes of a vector in another order than the loop's, and the loop
# stays scalar (10 times slower). It changes nothing for NaN and inf.
REASSOCIATE = frozenset({"reassoc"})

SUM = Reduction("sum", _arithmetic(_add, 0), fastmath=REASSOCIATE)
NANSUM = Reduction("nansum", _arithmetic(_add, 0, skip_nan=True), fastmath=REASSOCIATE)
MEAN = Reduction("mean", _arithmetic(_add, 0, _divide), fastmath=REASSOCIATE)
PROD = Reduction("prod", _arithmetic(_multiply, 1), fastmath=REASSOCIATE)
AMAX = Reduction("amax", _extreme(True))
AMIN = Reduction("amin", _extreme(False))
ANY = Reduction("any", _truth(_either, False))
ALL = Reduction("all", _truth(_both, True))
