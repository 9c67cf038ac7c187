"""Reductions on a GPU: the recipes of the CPU's `Reduction`, combined by lanes, warps and blocks.

Three forms. In each, a thread first combines many elements by itself, one step of the whole block apart:

- rows: a block for each result. The lanes of a warp combine by shuffles, the warps by shared memory. Where rows are
  dense and aligned, a thread reads 16 bytes at once.
- columns: 32 neighbouring results a block, one a lane, so that a warp reads memory in order although the reduced
  dimension is not the innermost; the block's warps share the elements out.
- pieces: one large result, cut among many blocks, each of which leaves an accumulator; `rows` combines those.

Accuracy: float32 and 16-bit floats accumulate in float32, over a tree of partial sums as wide as the block; integers in
int64. A GPU's double precision is slow, and no kernel uses it but for float64. Read next: `../../backends/cuda/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..convert import CONVERT, real_type
from ..operand import DTYPES, Operand
from ..reduce import Recipe, ReducePlan, Reduction, reduce_plan
from .compiler import Source
from .driver import Driver, current_stream
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
PIECE = 1 << 15  # elements of a piece, when one large result is cut
int64, uint64 = np.int64, np.uint64
Run = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Form:
    """What a reduction's kernel is compiled for."""

    kind: str  # "rows", "columns", "pieces", "total"
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
    text = writer.columns(name) if form.kind == "columns" else writer.rows(name)
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
        self.dims = [f"{group}_{word}{d}" for group, d, word in self._dims()]

    def _dims(self) -> list[tuple[str, int, str]]:
        found = []
        for group, count, operands in (("kept", self.form.kept, ("out", "x")), ("reduced", self.form.reduced, ("x",))):
            for d in range(count):
                found += [(group, d, word) for word in ("size", "magic", "shift")]
                found += [(f"{operand}_{group}", d, "step") for operand in operands]
        return found

    def signature(self) -> tuple[str, ...]:
        out = self.kind if self.form.kind == "pieces" else storage_type(self.form.out)
        x = self.kind if self.form.kind == "total" else storage_type(self.form.dtype)
        return (f"{out}*", f"{x}*", *["int64"] * (3 + len(self.dims)))

    def named(self, functions: Sequence[Callable], value: str) -> str:
        for function in functions:
            self.given[function.__name__] = function
            value = f"{function.__name__}({value})"
        return value

    def loaded(self, value: str) -> str:
        if self.form.kind == "total":
            return value
        given = [*loading(self.form.dtype)]
        if self.recipe.load.__name__ != "as_is":
            given.append(self.recipe.load)
        elements = self.named(given, value)
        return self.named([CONVERT[self.kind]], elements)

    def finished(self, value: str) -> str:
        """What is stored: a finished result, or the accumulator of a piece."""
        if self.form.kind == "pieces":
            return value
        self.given["finish_one"] = self.recipe.finish
        real = {"complex64": "float32", "complex128": "float64"}.get(self.kind, self.kind)
        total = self.named([CONVERT[real]], "total") if real in ("float32", "float64") else "total"
        return self.named(storing(self.form.out), f"finish_one({value}, {total})")

    def head(self, name: str) -> list[str]:
        """The parameters, and who this thread is. `count` elements go into a result, `per_block` into a piece."""
        return [
            f"def {name}({', '.join(['out', 'x', 'results', 'count', 'total', *self.dims])}):",
            "    thread = int64(cuda.threadIdx.x)",
            "    lane, warp = thread & 31, thread >> 5",
            f"    parts = cuda.shared.array({WARP if self.form.kind != 'columns' else THREADS}, '{self.kind}')",
        ]

    def base(self, result: str, indent: str) -> list[str]:
        """Where a result's elements begin, and where it goes."""
        lines = places(result, self.form.kept, ("out", "x"), "kept_")
        return [indent + line for line in [*lines, "first, to = x_at, out_at"]]

    def rows(self, name: str) -> str:
        form, width = self.form, self.form.width
        lines = [*self.head(name), "    block = int64(cuda.blockIdx.x)", "    acc = start"]
        if form.kind == "pieces":
            lines += ["    first, to = int64(0), block"]
            lines += [f"    j = block * {PIECE} + thread * {width}", f"    end = min(count, (block + 1) * {PIECE})"]
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
        lines = [
            *self.head(name),
            f"    result = int64(cuda.blockIdx.x) * {WARP} + lane",
            "    acc = start",
            "    to = int64(0)",
        ]
        lines += [
            "    if result < results:",
            *self.base("result", "        "),
            "        j = warp",
            "        while j < count:",
        ]
        lines += [f"            {line}" for line in places("j", self.form.reduced, ("x",), "reduced_")]
        lines += [f"            acc = combine(acc, {self.loaded('x[first + x_at]')})", f"            j += {WARPS}"]
        lines += ["    parts[thread] = acc", "    cuda.syncthreads()", "    if warp == 0 and result < results:"]
        lines += [f"        acc = combine(acc, parts[lane + {WARP * k}])" for k in range(1, WARPS)]
        lines += [f"        out[to] = {self.finished('acc')}"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Step:
    """A launch, and what it is told behind the addresses of its output and its input."""

    where: Launch
    rest: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The launches for operands that look alike: one, or two with accumulators of `scratch` bytes between them.

    mask: the bits that the input's address may not have.
    """

    steps: tuple[Step, ...]
    mask: int = 0
    scratch: int = 0

    def ready(self, driver: Driver) -> list[Run]:
        """The launches for one driver: each is a `run(output, input, stream, scratch)`, told three addresses."""
        if len(self.steps) == 1:
            return [bound(self.steps[0], driver)]
        first, last = (step.where.on(driver) for step in self.steps)
        before, after = (step.rest for step in self.steps)
        return [
            lambda out, at, stream, parts=0: first((parts, at, *before), stream),
            lambda out, at, stream, parts=0: last((out, parts, *after), stream),
        ]


def bound(step: Step, driver: Driver) -> Run:
    start, rest = step.where.on(driver), step.rest

    def run(out: int, at: int, stream: int, parts: int = 0) -> None:
        start((out, at, *rest), stream)

    return run


class OnCUDA:
    """The CUDA kernels of a `Reduction`: `launch(out, x, dims, scratch)`; `prepared` for callers that remember it."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.kernels: dict[Form, Kernel] = {}

    def launch(self, out: Operand, x: Operand, dims: Sequence[int], scratch: Callable[[int], Memory]) -> None:
        """Reduces `dims` of `x` into `out`, as `Reduction.run` does; `scratch(nbytes)` is memory for a while."""
        prepared = self.prepared(out, x, dims)
        if prepared is not None:
            memory = memory_of(out)
            parts = scratch(prepared.scratch).address if prepared.scratch else 0
            for run in prepared.ready(memory.driver):
                run(address_of(out), address_of(x), current_stream(memory.device), parts)

    def prepared(self, out: Operand, x: Operand, dims: Sequence[int]) -> Prepared | None:
        """The launches for operands that look so, where `x` is as much aligned; None where there are no results."""
        walk = reduce_plan(x.shape, x.strides, tuple(dims), (out.strides,))
        if walk.results == 0:
            return None
        if walk.elements >= MOST or walk.results >= MOST:
            raise NotImplementedError(
                f"{self.reduction.name}: so many elements are more than one CUDA launch counts yet"
            )
        if walk.elements > 2 * PIECE and walk.results == 1:
            return self._in_pieces(out, x, walk)
        kind = "columns" if walk.columns else "rows"
        width = 1 if walk.columns else row_width(x, walk)
        form = Form(kind, width, len(walk.kept), len(walk.reduced), out.dtype, x.dtype)
        blocks = -(-walk.results // WARP) if walk.columns else walk.results
        return Prepared((self._step(form, blocks, walk),), VECTOR - 1 if width > 1 else 0)

    def _in_pieces(self, out: Operand, x: Operand, walk: ReducePlan) -> Prepared:
        pieces = -(-walk.elements // PIECE)
        kind = np.dtype(accumulator(self.reduction.recipe(x.dtype)))
        form = Form("pieces", row_width(x, walk), 0, len(walk.reduced), out.dtype, x.dtype)
        last = walk._replace(kept=ONE, kept_in=ONE, reduced=np.array([pieces]), reduced_in=ONE, elements=pieces)
        total = Form("total", 1, 1, 1, out.dtype, x.dtype)
        steps = self._step(form, pieces, walk), self._step(total, 1, last, walk.elements)
        return Prepared(steps, VECTOR - 1 if form.width > 1 else 0, pieces * kind.itemsize)

    def _step(self, form: Form, blocks: int, walk: ReducePlan, total: int | None = None) -> Step:
        kernel = self.kernels.get(form)
        if kernel is None:
            kernel = self.kernels[form] = Kernel(lambda: source(self.reduction, form))
        given = [walk.results, walk.elements, walk.elements if total is None else total]
        if form.kept:
            kept_out = walk.kept_outs[0].tolist()
            given += dimension_tables(walk.kept.tolist(), [kept_out, walk.kept_in.tolist()])
        given += dimension_tables(walk.reduced.tolist(), [walk.reduced_in.tolist()])
        return Step(Launch(kernel, (blocks, 1, 1), (THREADS, 1, 1)), tuple(given))


ONE = np.ones(1, np.int64)


def row_width(x: Operand, walk: ReducePlan) -> int:
    """How many elements a thread reads at once: 16 bytes, where each run of elements is dense, aligned, and divides."""
    info = DTYPES[x.dtype]
    width = VECTOR // info.storage.itemsize
    if info.kind == "complex" or width == 1 or walk.reduced_in[-1] != 1 or address_of(x) % VECTOR:
        return 1
    divided = [walk.reduced[-1], *walk.reduced_in[:-1], *walk.kept_in]
    return width if all(int(step) % width == 0 for step in divided) else 1
