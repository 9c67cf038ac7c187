"""Reductions on a GPU: the recipes of the CPU's `Reduction`, combined by lanes, warps and blocks.

Two forms. In each, a thread first combines many elements by itself, one step of the whole block apart:

- rows: a block for each result. The lanes of a warp combine by shuffles, the warps by shared memory. Where rows are
  dense and aligned, a thread reads 16 bytes at once.
- columns: 32 neighbouring results a block, one a lane, so that a warp reads memory in order although the reduced
  dimension is not the innermost; the block's warps share the elements out.

Where results are too few for all of a card, but large, each is cut among several blocks (*pieces*), which leave
accumulators; a second launch of the same form combines these (*total*).

Accuracy: float32 and 16-bit floats accumulate in float32, over a tree of partial sums as wide as the block; integers in
int64. A GPU's double precision is slow, and no kernel uses it but for float64. Read next: `runtime/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides
from redispatch.dispatch.tensor.operand import DTYPES, Operand

from ..cpu.reduce import Recipe, ReducePlan, Reduction, reduce_plan
from ..engine.convert import CONVERT, real_type
from .compiler import Source
from .elementwise import (
    MOST,
    VECTOR,
    address_of,
    dimension_tables,
    loading,
    memory_of,
    places,
    storage_type,
    storing,
)
from .intrinsics import LOADS, shuffle_down
from .launch import Kernel, Launch, Memory

WARP, WARPS = 32, 8
THREADS = WARP * WARPS
PIECE, LARGE = 1 << 12, 1 << 15  # elements of a piece at least; of a reduction that is cut
BLOCKS = 512  # as many as a large card runs at once, or a few more
int64, uint64 = np.int64, np.uint64


@dataclass(frozen=True, slots=True)
class Form:
    """The version of a reduction's kernel."""

    kind: str  # "rows", "columns"; "row_pieces", "row_total" and the like where results are cut
    width: int  # elements that a thread reads at once
    kept: int  # dimensions
    reduced: int
    out: str
    dtype: str


def accumulator(recipe: Recipe) -> str:
    """The type in which a GPU accumulates: that of the CPU's inner blocks."""
    name = recipe.block or recipe.start.dtype.name
    return "int32" if name == "bool" else name


def source(reduction: Reduction, form: Form) -> Source:
    """The kernel of a form."""
    recipe = reduction.recipe(form.dtype)
    kind = accumulator(recipe)
    writer = _Writer(recipe, form, kind)
    name = f"{reduction.name}_{form.kind}"
    text = writer.columns(name) if form.kind.startswith("column") else writer.rows(name)
    return Source(name, text, writer.given, writer.signature(), real_type(form.dtype))


class _Writer:
    def __init__(self, recipe: Recipe, form: Form, kind: str) -> None:
        self.recipe, self.form, self.kind = recipe, form, kind
        start = recipe.start.item() if kind != "int32" or recipe.start.dtype != bool else int(recipe.start)
        self.given: dict[str, object] = {
            "combine": recipe.combine,
            "shuffle_down": shuffle_down,
            "start": np.dtype(kind).type(start),
            "int64": int64,
            "uint64": uint64,
        }
        self.cut, self.last = form.kind.endswith("pieces"), form.kind.endswith("total")
        self.dims = [f"{group}_{word}{d}" for group, d, word in self._dims()]

    def _dims(self) -> list[tuple[str, int, str]]:
        found = []
        for group, count, operands in (("kept", self.form.kept, ("out", "x")), ("reduced", self.form.reduced, ("x",))):
            for d in range(count):
                found += [(group, d, word) for word in ("size", "magic", "shift")]
                found += [(f"{operand}_{group}", d, "step") for operand in operands]
        return found

    def signature(self) -> tuple[str, ...]:
        out = self.kind if self.cut else storage_type(self.form.out)
        x = self.kind if self.last else storage_type(self.form.dtype)
        return (f"{out}*", f"{x}*", *["int64"] * (3 + len(self.dims)))

    def named(self, functions: Sequence[Callable], value: str) -> str:
        for function in functions:
            self.given[function.__name__] = function
            value = f"{function.__name__}({value})"
        return value

    def loaded(self, value: str) -> str:
        if self.last:
            return value
        given = [*loading(self.form.dtype)]
        if self.recipe.load.__name__ != "as_is":
            given.append(self.recipe.load)
        elements = self.named(given, value)
        return self.named([CONVERT[self.kind]], elements)

    def finished(self, value: str) -> str:
        """Writes what is stored: a finished result, or the accumulator of a piece."""
        if self.cut:
            return value
        self.given["finish_one"] = self.recipe.finish
        real = {"complex64": "float32", "complex128": "float64"}.get(self.kind, self.kind)
        total = self.named([CONVERT[real]], "total") if real in ("float32", "float64") else "total"
        return self.named(storing(self.form.out), f"finish_one({value}, {total})")

    def head(self, name: str) -> list[str]:
        """The parameters, and who this thread is. `count` elements go into a result; `total` of them are in each piece,
        or, where a result is finished, in the whole of it."""
        return [
            f"def {name}({', '.join(['out', 'x', 'results', 'count', 'total', *self.dims])}):",
            "    thread = int64(cuda.threadIdx.x)",
            "    lane, warp = thread & 31, thread >> 5",
            f"    parts = cuda.shared.array({THREADS if self.form.kind.startswith('column') else WARP}, '{self.kind}')",
        ]

    def base(self, result: str, indent: str) -> list[str]:
        """The start of a result's elements, and the place where it goes."""
        lines = places(result, self.form.kept, ("out", "x"), "kept_")
        return [indent + line for line in [*lines, "first, to = x_at, out_at"]]

    def rows(self, name: str) -> str:
        form, width = self.form, self.form.width
        lines = [*self.head(name), "    block = int64(cuda.blockIdx.x)", "    acc = start"]
        if self.cut:
            lines += ["    pieces = (count + total - 1) // total", "    result = block // pieces"]
            lines += [*self.base("result", "    "), "    low = (block - result * pieces) * total", "    to = block"]
            lines += [f"    j = low + thread * {width}", "    end = min(count, low + total)"]
        else:
            lines += [*self.base("block", "    "), f"    j = thread * {width}", "    end = count"]
        lines += ["    while j < end:"]
        lines += [f"        {line}" for line in places("j", form.reduced, ("x",), "reduced_")]
        if width > 1:
            self.given[f"load_{width}"] = LOADS[width]
            lines += [f"        many = load_{width}(x, first + x_at)"]
            lines += [f"        acc = combine(acc, {self.loaded(f'many[{k}]')})" for k in range(width)]
        else:
            lines += [f"        acc = combine(acc, {self.loaded('x[first + x_at]')})"]
        lines += [f"        j += {THREADS * width}"]
        lines += [f"    acc = combine(acc, shuffle_down(acc, {d}))" for d in (16, 8, 4, 2, 1)]
        lines += ["    if lane == 0:", "        parts[warp] = acc", "    cuda.syncthreads()", "    if warp == 0:"]
        lines += [f"        acc = parts[lane] if lane < {WARPS} else start"]
        lines += [f"        acc = combine(acc, shuffle_down(acc, {d}))" for d in (4, 2, 1)]
        lines += ["        if lane == 0:", f"            out[to] = {self.finished('acc')}"]
        return "\n".join(lines) + "\n"

    def columns(self, name: str) -> str:
        lines = [*self.head(name), "    acc = start", "    to, low, end = int64(0), int64(0), count"]
        if self.cut:
            lines += [f"    groups = (results + {WARP - 1}) // {WARP}", "    piece = int64(cuda.blockIdx.x) // groups"]
            lines += [f"    result = (int64(cuda.blockIdx.x) - piece * groups) * {WARP} + lane"]
            lines += ["    low, end = piece * total, min(count, (piece + 1) * total)"]
        else:
            lines += [f"    result = int64(cuda.blockIdx.x) * {WARP} + lane"]
        lines += ["    if result < results:", *self.base("result", "        ")]
        lines += ["        to = piece * results + result"] if self.cut else []
        lines += ["        j = low + warp", "        while j < end:"]
        lines += [f"            {line}" for line in places("j", self.form.reduced, ("x",), "reduced_")]
        lines += [f"            acc = combine(acc, {self.loaded('x[first + x_at]')})", f"            j += {WARPS}"]
        lines += ["    parts[thread] = acc", "    cuda.syncthreads()", "    if warp == 0 and result < results:"]
        lines += [f"        acc = combine(acc, parts[lane + {WARP * k}])" for k in range(1, WARPS)]
        lines += [f"        out[to] = {self.finished('acc')}"]
        return "\n".join(lines) + "\n"


Step = tuple[Launch, tuple[int, ...]]  # a launch, and what it is told behind the addresses of its output and its input


class OnCUDA:
    """The CUDA kernels of a `Reduction`: `launch(out, x, dims, scratch)`."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.kernels: dict[Form, Kernel] = {}

    def launch(self, out: Operand, x: Operand, dims: Sequence[int], scratch: Callable[[int], Memory]) -> None:
        """Reduces `dims` of `x` into `out`, as `Reduction.run` does; `scratch(nbytes)` is memory for a while."""
        memory, (steps, nbytes) = memory_of(out), self.steps(out, x, dims)
        places = [address_of(x), address_of(out)]
        if len(steps) == 2:
            places.insert(1, scratch(nbytes).address)
        for (where, rest), source, target in zip(steps, places, places[1:], strict=False):
            where.start(memory, (target, source, *rest))

    def steps(self, out: Operand, x: Operand, dims: Sequence[int]) -> tuple[list[Step], int]:
        """The launches, none where there are no results; where they are two, accumulators of so many bytes lie between
        them."""
        walk = reduce_plan(x.shape, x.strides, tuple(dims), (out.strides,))
        if walk.results == 0:
            return [], 0
        if walk.elements >= MOST or walk.results >= MOST:
            raise NotImplementedError(
                f"{self.reduction.name}: so many elements are more than one CUDA launch counts yet"
            )
        if walk.columns:
            kind, width, blocks = "column", 1, -(-walk.results // WARP)
        else:
            kind, width, blocks = "row", row_width(x, walk), walk.results
        form = Form(f"{kind}s", width, len(walk.kept), len(walk.reduced), out.dtype, x.dtype)
        if walk.elements * min(walk.results, WARP if walk.columns else 1) < LARGE or 2 * blocks > BLOCKS:
            return [self._step(form, blocks, walk, walk.elements)], 0
        least = PIECE // WARP if walk.columns else PIECE  # a block has a warp's columns
        per = max(least, -(-walk.elements * blocks // (BLOCKS * least)) * least)
        pieces = -(-walk.elements // per)
        cut = self._step(replace(form, kind=f"{kind}_pieces"), blocks * pieces, walk, per)
        steps = contiguous_strides(tuple(walk.kept.tolist()))
        apart, between = (1, walk.results) if walk.columns else (pieces, 1)
        last = walk._replace(
            kept_in=apart * np.array(steps, np.int64), reduced=np.array([pieces]), reduced_in=np.array([between]),
            elements=pieces,
        )  # fmt: skip
        total = replace(form, kind=f"{kind}_total", width=1, reduced=1)
        kind_of = np.dtype(accumulator(self.reduction.recipe(x.dtype)))
        finish = self._step(total, blocks, last, walk.elements)
        return [cut, finish], pieces * walk.results * kind_of.itemsize

    def _step(self, form: Form, blocks: int, walk: ReducePlan, total: int) -> Step:
        kernel = self.kernels.get(form)
        if kernel is None:
            kernel = self.kernels[form] = Kernel(lambda: source(self.reduction, form))
        given = [walk.results, walk.elements, total]
        given += dimension_tables(walk.kept.tolist(), [walk.kept_outs[0].tolist(), walk.kept_in.tolist()])
        given += dimension_tables(walk.reduced.tolist(), [walk.reduced_in.tolist()])
        return Launch(kernel, (blocks, 1, 1), (THREADS, 1, 1)), tuple(given)


def row_width(x: Operand, walk: ReducePlan) -> int:
    """The number of elements that a thread reads at once: 16 bytes, where each run is dense, aligned, and divides."""
    info = DTYPES[x.dtype]
    width = VECTOR // info.storage.itemsize
    if info.kind == "complex" or width == 1 or walk.reduced_in[-1] != 1 or address_of(x) % VECTOR:
        return 1
    divided = [walk.reduced[-1], *walk.reduced_in[:-1], *walk.kept_in]
    return width if all(int(step) % width == 0 for step in divided) else 1
