"""A graph's nest of loops as one kernel of a GPU: the same values, in threads instead of loops.

Three forms, by what the nest computes (`kernels/graphs/nest.py`):

- elements: a thread for each element, where nothing is reduced.
- rows: a block for each row. Its threads walk the row together; a reduction's result is combined over the block, so
  that all of them have it for the next walk. What is kept from walk to walk lies in the block's shared memory, as far
  as a row fits; else it is computed again.
- columns: accumulators of outer dimensions. A lane has a result, so that a warp reads memory in order, and the warps of
  a block share its elements out; they meet in shared memory.

In the first two, a thread takes as many neighbours as fill 16 bytes, and reads and writes them in one access each,
where all operands are dense or the same along a row and rows begin aligned (`width`); each call looks at the addresses.

An index beyond its array reads nothing: the device's error words learn of it (`indexing.py`), of which the host is told
when it next waits. A sum is one of a tree of partial sums as wide as the block, in the type that a GPU accumulates in
(`reduce.py`); so it may differ from the CPU's in its last bits. Everything else has the CPU's bits. Read next:
`translation.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache as once
from functools import cached_property
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES

from ..cpu.reduce import chain
from ..engine.convert import CONVERT, array_type, as_is, real_type
from ..engine.program import Program
from ..engine.translate import Unknown
from ..graphs.nest import Accumulate, Nest, Pick, Reduce, Value
from ..graphs.walk import Array, Walk, indented
from .compiler import CUDA, Source
from .elementwise import VECTOR
from .indexing import report
from .intrinsics import LOADS, STORES
from .launch import Kernel, Launch
from .reduce import accumulator
from .templates import over_block, threads_for
from .translation import GPUUnit

THREADS, WARP = 256, 32
MOST_WARPS = 32  # of a block that has columns
SHARED = 40 << 10  # bytes of a block's shared memory that hold what a row keeps; the rest is for partial sums


@dataclass(frozen=True, slots=True)
class NestSource(Source):
    """A nest's kernel. reals: the type of literals in its functions, by word."""

    reals: Any

    def program(self) -> Program:
        program = Program(self.real)
        program.add_text(self.name, self.text, {**self.given, "cuda": CUDA}, self.reals)
        return program


@dataclass(eq=False)
class GridNest(Nest):
    """A nest as a kernel for a grid of blocks. wide: whether a thread may take several neighbours."""

    wide: bool = False

    @property
    def width(self) -> int:
        """The elements that a thread takes at once."""
        walk = self.walk
        if not self.wide or self.accumulates or len(walk.inner) > 1:
            return 1
        width = VECTOR // max((np.dtype(DTYPES[one.dtype].storage).itemsize for one in self.arrays), default=VECTOR)
        for one, strides in walk.rows_of.items():
            known = [one.offset, *strides] if walk.steps[id(one)] == 1 else []
            if walk.steps[id(one)] not in (0, 1) or (one.name and any(step % width for step in known)):
                return 1
        return width if walk.row_size % width == 0 else 1

    def written(self) -> str:
        self.given |= {"uint64": np.uint64, "int64": np.int64}
        parameters = [array.name for array in self.arrays]
        if self.picks:
            self.word("report", report)
            parameters += ["error", *(f"{word}{pick.number}" for pick in self.picks for word in ("operator", "dim"))]
        reduces = any(isinstance(value, Reduce) for value in self.values)
        body = list(self.by_columns() if self.accumulates else self.by_rows() if reduces else self.by_elements())
        begins = [f"    {array.name}_at = 0" for array in self.arrays]
        return "\n".join([f"def {self.name}({', '.join(parameters)}):", *begins, *body]) + "\n"

    # Elements ---------------------------------------------------------------------------------------------------------

    def by_elements(self) -> Iterator[str]:
        """A thread for each element."""
        walk = self.walk
        self.loops, self.known = [self.wanted(0)], {}
        width = self.width
        each, total = walk.row_size // width, walk.rows * walk.row_size // width
        self.threads, self.blocks = THREADS, -(-total // THREADS)
        yield f"    at = int64(cuda.blockIdx.x) * {THREADS} + int64(cuda.threadIdx.x)"
        yield f"    if at < {total}:"
        yield from indented(2, [f"row = at // {each}", f"j = at - row * {each}"])
        if width > 1:
            yield f"        j *= {width}"
        if not walk.flat:
            yield from indented(2, walk.row_lines())
        yield from self.row_values(0)
        yield from indented(2, self.places())
        yield from self.neighbours(0, "        ")[0]

    def places(self) -> list[str]:
        """Lines that find element `j` of a row."""
        inner = self.walk.inner
        if len(inner) == 1:
            return ["i = j"]
        return [f"run = j // {inner[-1]}", f"i = j - run * {inner[-1]}", *self.walk.run_lines()]

    def element(self, level: int, indent: str) -> tuple[list[str], list[str], dict[Value, str]]:
        """The lines that compute what a walk wants of one element, and those that store it; its values' names."""
        lines: list[str] = []
        stores: list[str] = []
        known = dict(self.known)
        for value in self.needed(level):
            lines += self.computed(value, known, indent, level)
            if value in self.spilled and self.spilled[value][1] == level:
                stores.append(f"{indent}{self.spilled[value][0]}[{self.walk.in_row}] = {known[value]}")
        for array, value in self.outputs:
            if self.levels[value] == level and not self.row_output(array, value) and not isinstance(value, Accumulate):
                stores.append(
                    f"{indent}{array.name}[{self.walk.at(array)}] = {self.stored(array, known[value], value)}"
                )
        return lines, stores, known

    def neighbours(self, level: int, indent: str) -> tuple[list[str], list[dict[Value, str]]]:
        """The lines for the elements that a thread takes at once: first all are read, then all are stored."""
        lines, stores, known = self.element(level, indent)
        if self.width == 1:
            return [*lines, *stores], [known]
        own = {match[1] for line in lines if (match := OWN.match(line))}
        load, store = (self.word("", table[self.width]) for table in (LOADS, STORES))
        vectors: dict[str, str] = {}  # what is read in one access -> its name

        def element_of(match: re.Match[str]) -> str:
            return vectors.setdefault(match[0], f"all{len(vectors)}") + "[K]"

        lines = [VECTORS.sub(element_of, line) for line in lines]
        found = [f"{indent}{word} = {load}({place_of(text)})" for text, word in vectors.items()]
        names = []
        for k in range(self.width):
            found += [f"{indent}i_{k} = j + {k}", *(numbered(line, own, k) for line in lines)]
            names.append({value: numbered(name, own, k) for value, name in known.items()})
        for line in stores:
            where, _, value = line.strip().partition(" = ")
            each = [numbered(value, own, k) for k in range(self.width)]
            if VECTORS.fullmatch(where):
                found.append(f"{indent}{store}({place_of(where)}, ({', '.join(each)}))")
            else:
                found += [f"{indent}{numbered(where, own, k)} = {one}" for k, one in enumerate(each)]
        return found, names

    def row_values(self, level: int) -> Iterator[str]:
        """Computes what is the same for a row, once it is known; one thread stores it where it is an output."""
        lines = list(super().row_values(level))
        stores = {f"{array.name}[" for array, _ in self.outputs}
        for line in lines:
            if line.strip().partition("[")[0] + "[" in stores and " = " in line:
                yield from ("        if j == 0:", f"    {line}")
            else:
                yield line

    # Rows -------------------------------------------------------------------------------------------------------------

    def by_rows(self) -> Iterator[str]:
        """A block for each row."""
        walk = self.walk
        self.threads, self.blocks = threads_for(walk.row_size // self.width), walk.rows
        walk.in_row = "uint64(j)"
        last = max(self.levels[v] for v in self.values if isinstance(v, Reduce))
        self.loops, self.room, self.parts = [self.wanted(level) for level in range(last + 1)], SHARED, dict[str, str]()
        body = list(self.rows_text(last))
        yield f"    row, j = int64(cuda.blockIdx.x), {self.first}"
        for kind, name in self.parts.items():
            yield f"    {name} = cuda.shared.array({WARP}, '{kind}')"
        for value, (name, _) in self.spilled.items():
            kind = DTYPES[value.dtype].compute
            aligned = max(VECTOR, self.width * np.dtype(kind).itemsize)
            yield f"    {name} = cuda.shared.array({walk.row_size}, '{kind}', {aligned})"
        yield f"    if row < {walk.rows}:"
        yield from indented(2, walk.row_lines())
        yield from body

    def loop(self, level: int) -> Iterator[str]:
        """One walk of a block over its row."""
        reduces = [v for v in self.values if isinstance(v, Reduce) and self.levels[v] == level + 1]
        totals = [Total(self, value) for value in reduces]
        for one in totals:
            yield f"        {one.acc} = {one.start}"
        yield f"        while j < {self.walk.row_size}:"
        yield from indented(3, self.places())
        lines, names = self.neighbours(level, "            ")
        yield from lines
        for value, one in zip(reduces, totals, strict=True):
            yield from (f"            {one.acc} = {one.combined(known[value.of])}" for known in names)
        yield f"            j += {self.threads * self.width}"
        yield f"        j = {self.first}"
        for value, one in zip(reduces, totals, strict=True):
            name = self.known[value] = f"r{len(self.known)}"
            yield f"        {one.acc} = {one.over_block(self.parts)}"
            yield f"        {name} = {self.through(self.rounding(value.dtype), one.finished(self.walk.row_size))}"

    @property
    def first(self) -> str:
        """The first element of a row that a thread takes."""
        return "int64(cuda.threadIdx.x)" + f" * {self.width}" * (self.width > 1)

    def needed(self, level: int) -> list[Value]:
        """The values of elements that a walk computes; what does not fit into shared memory is not kept."""
        before, here = set(self.spilled), super().needed(level)
        for value in [value for value in self.spilled if value not in before]:
            size = self.walk.row_size * np.dtype(DTYPES[value.dtype].compute).itemsize
            if size > getattr(self, "room", 0):
                del self.spilled[value]
            else:
                self.room -= size
        return here

    # Columns ----------------------------------------------------------------------------------------------------------

    def by_columns(self) -> Iterator[str]:
        """A lane for each accumulator."""
        self.walk = walk = turned(self.walk, self.sizes, self.accumulates[0][0].strides)
        self.loops, self.known = [self.wanted(0)], {}
        warps = min(MOST_WARPS, 1 << max(walk.row_size // 8, 1).bit_length() - 1)
        self.threads, self.blocks = WARP * warps, -(-walk.rows // WARP)
        lane = "row = int64(cuda.blockIdx.x) * 32 + (int64(cuda.threadIdx.x) & 31)"
        yield from indented(1, [lane, "warp = int64(cuda.threadIdx.x) >> 5"])
        accs = {value: f"acc{k}" for k, (_, value) in enumerate(self.accumulates)}
        for value, acc in accs.items():
            start = self.word("start", CONVERT[value.dtype](value.reduction.recipe(value.of.dtype).start))
            yield f"    {acc}_parts = cuda.shared.array({self.threads}, '{value.dtype}')"
            yield f"    {acc} = {start}"
        yield f"    if row < {walk.rows}:"
        yield from indented(2, walk.row_lines())
        yield from indented(2, ["j = warp", f"while j < {walk.row_size}:"])
        yield from indented(3, self.places())
        lines, (known,) = self.neighbours(0, "            ")
        yield from lines
        for array, value in self.accumulates:
            yield f"            {accs[value]} = {self.entering(array, value, accs[value], known)}"
        yield f"            j += {warps}"
        yield from (f"    {acc}_parts[int64(cuda.threadIdx.x)] = {acc}" for acc in accs.values())
        yield from ("    cuda.syncthreads()", f"    if warp == 0 and row < {walk.rows}:")
        yield from indented(2, walk.row_lines())
        yield from indented(2, [f"j = {WARP}", f"while j < {self.threads}:"])
        for value, acc in accs.items():
            recipe, real = value.reduction.recipe(value.of.dtype), real_type(value.of.dtype)
            part = f"{acc}_parts[j + (int64(cuda.threadIdx.x) & 31)]"
            yield f"            {acc} = {self.word('combine', recipe.combine, real)}({acc}, {part})"
        yield f"            j += {WARP}"
        for array, value in self.accumulates:
            yield f"        {array.name}[{walk.row(array)}] = {accs[value]}"

    # What a GPU does otherwise ----------------------------------------------------------------------------------------

    def checked(self, value: Pick, known: dict[Value, str], indent: str) -> Iterator[str]:
        """Lines that report an index beyond the array, and take the first element instead."""
        at = f"at{self.values.index(value)}"
        yield f"{indent}{at} = {known[value.index]}"
        yield f"{indent}if {at} < 0 or {at} >= {value.size}:"
        yield f"{indent}    report(error, operator{value.number}, {at}, {value.size}, dim{value.number})"
        yield f"{indent}    {at} = int64(0)"

    def signature(self) -> tuple[str, ...]:
        words = [f"{array_type(array.dtype)[:-2]}*" for array in self.arrays]
        return (*words, *["int64*"][: len(self.picks)], *["int64"] * 2 * len(self.picks))

    def source_on_device(self) -> NestSource:
        """The kernel, to be compiled."""
        return NestSource(self.name, self.text, self.given, self.signature(), None, is_own=True, reals=self.reals)

    @cached_property
    def wider(self) -> GridNest | None:
        """Nest of the same outputs, whose threads take several neighbours; None where they cannot."""
        found = None if self.wide else GridNest(self.name, self.sizes, self.columns, self.outputs, wide=True)
        return found if found is not None and found.width > 1 else None

    def widened(self) -> Launch | None:
        """The kernel for aligned addresses, if it is another one."""
        return None if self.wider is None else self.wider.launch()

    def launch(self) -> Launch | None:  # type: ignore[override]  # a device is told otherwise
        """The kernel with its grid; None where there is nothing to compute."""
        if not self.turns:
            return None
        return Launch(Kernel(self.source_on_device), (self.blocks, 1, 1), (self.threads, 1, 1))


OWN = re.compile(r"\s*(v\d+|at\d+) = ")
VECTORS = re.compile(r"(\w+)\[uint64\((?:(\w+) \+ i|j)\)\]")  # an element whose neighbours lie beside it


def place_of(text: str) -> str:
    """The arguments by which neighbours are read or written at once."""
    found = VECTORS.fullmatch(text)
    assert found is not None
    return f"{found[1]}, " + (f"{found[2]} + j" if found[2] else "j")


def numbered(text: str, own: set[str], k: int) -> str:
    """Lines of one element as those of a thread's element k, which has names of its own."""
    text = re.sub(r"\b(?:v|at)\d+\b", lambda found: f"{found[0]}_{k}" if found[0] in own else found[0], text)
    return re.sub(r"\+ i(?=[ )])", f"+ i_{k}", text).replace("[K]", f"[{k}]")


class Total:
    """One reduction of a row: the words for a thread's accumulator, and expressions."""

    def __init__(self, nest: GridNest, value: Reduce) -> None:
        self.nest, self.real = nest, real_type(value.of.dtype)
        self.recipe = value.reduction.recipe(value.of.dtype)
        self.kind = accumulator(self.recipe)
        number = nest.values.index(value)
        self.acc = f"acc{number}"
        self.start = nest.word(f"start{number}", np.dtype(self.kind).type(self.recipe.start))
        self.prepare = chain(as_is, self.recipe.load)

    def combined(self, element: str) -> str:
        """The accumulator with one more element."""
        text = self.nest.through([CONVERT[self.kind]], self.nest.through([self.prepare], element, self.real))
        return f"{self.nest.word('combine', self.recipe.combine, self.real)}({self.acc}, {text})"

    def over_block(self, parts: dict[str, str]) -> str:
        """Combines what all threads of the block have."""
        name = parts.setdefault(self.kind, f"parts_{self.kind}")
        return f"{self.nest.word('total', block_of(self.recipe.combine), self.real)}({self.acc}, {name})"

    def finished(self, count: int) -> str:
        """The result."""
        real = {"complex64": "float32", "complex128": "float64"}.get(self.kind, self.kind)
        total = self.nest.word("count", np.dtype(real).type(count)) if real in ("float32", "float64") else str(count)
        return f"{self.nest.word('finish', self.recipe.finish, self.real)}({self.acc}, {total})"


@once
def block_of(combine: Callable) -> Callable:
    """`combined(value, parts)` of a block's threads."""
    return over_block(combine)


def turned(walk: Walk, sizes: Sequence[int], strides: Sequence[int]) -> Walk:
    """A walk whose rows are the dimensions in which an accumulator has strides, and whose elements are the others."""
    kept = [d for d, step in enumerate(strides) if step]
    order = [*kept, *(d for d, step in enumerate(strides) if not step)]
    arrays = [Array(one.name, one.dtype, tuple(one.strides[d] for d in order), one.offset) for one in walk.arrays]
    found = Walk([sizes[d] for d in order], len(order) - len(kept), arrays)
    tables: list[dict[int, Any]] = [found.steps, found.begins, found.words]
    for known in tables:
        known.update(
            {id(own): known[id(one)] for own, one in zip(walk.arrays, arrays, strict=True) if id(one) in known}
        )
    found.arrays = [*walk.arrays, *arrays]  # as ids are those of living objects
    return found


@once
def is_known(body: Callable, compute: str, takes: tuple[str, ...]) -> bool:
    """Whether a scalar function is translated for a GPU."""
    words = ", ".join(f"x{k}" for k in range(len(takes)))
    program = Program(None)
    name = program.add_text(
        "one", f"def one({words}):\n    return body({words})\n", {"body": body}, {"body": real_type(compute)}
    )
    try:
        GPUUnit().function(program, name, tuple(DTYPES[one].compute for one in takes))
    except Unknown:
        return False
    return True
