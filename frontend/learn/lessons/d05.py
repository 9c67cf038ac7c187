"""D05, the loops: a contiguous fast path, its tail, and the rest."""

from __future__ import annotations

from collections import namedtuple
from math import prod
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import geometry
from redispatch.dispatch.tensor.operand import Operand
from redispatch.kernels import Elementwise

from ..lesson import Lesson, Part, Wrong, same

TEXT = """
# One body, three loops

What happens to one element is a line; what makes it fast is the loop around it. A processor computes several
neighbours at once (here: 4), if they *are* neighbours. So one body gets several loops, and the walk (lesson D21)
decides which:

- **flat**: one dimension is left, and every step in it is 1, or 0 for an input that is one element all along. One index
  serves all: vectors of 4 as long as they fit, then the *tail*, 0 to 3 single elements. The tail is computed one by
  one: a whole vector would read and write beyond the end, and one that begins earlier would compute elements twice,
  which shows where the output is an input.
- **rows**: the innermost steps are 0 or 1, but there are outer dimensions. Each row is a flat loop, with its own tail.
- **strided**: anything else, one by one.

An output with step 0 is never flat. How each input is read is its letter in the *layout*: `a` an array, `0` an element
that is read once before the (inner) loop, `n` a Python number, `=` through the output itself, for in-place operators:
the compiler only vectorises where it sees that they are one array.

All loops take a range `(lo, hi)` of elements, counted row-major: so a large one can be cut into pieces for several
threads. A piece may begin and end in the middle of a row. It may begin at any element, and need not be a multiple of 4.

The library writes these loops as text, `kernels/engine/elementwise.py`, and LLVM makes vectors of the flat ones;
PyTorch has `cpu_kernel_vec` with two bodies, one of them for vectors, as you do here. An example: 3 rows of 5, the
range (3, 11): of row 0 two single elements, of row 1 a vector and a single one, of row 2 a single one.
"""

DEMO = """
from timeit import repeat

import redispatch as rd

x, out = rd.randn(1000, 1000), rd.empty(500, 1000)
for name, y, z in (("flat", x[:500], out), ("rows", x[:500, :999], out[:, :999]), ("strided", x[:, ::2], out.T)):
    z = z if z.shape == y.shape else rd.empty(y.shape)
    best = min(repeat(lambda: rd.mul(y, 2, out=z), number=1, repeat=30))
    print(f"{name:<8} {tuple(y.shape)} strides {y.stride()}: {best * 1e3:.2f} ms")
"""

TEMPLATE = '''"""D05: one body, three loops. `python -m redispatch learn D05` has the text.

Array(memory, offset, strides): where an operand lies; `memory` is a number that says in which memory. Inputs are Arrays
or Python numbers. sizes: those of the walk, outermost first. machine: functions that touch memory and compute,

    machine.load(memory, address)     an element          machine.load4(memory, address)          4 neighbours, a list
    machine.store(memory, address, x)                     machine.store4(memory, address, xs)
    machine.body(x, y, ...)           of one element      machine.body4(xs, ys, ...)              of 4, each a list
Only the machine knows what the body computes. The letters of a layout are as in the text, one for each input.
"""


def choose(sizes, out, inputs):
    """Returns (loop, layout), two strings: "flat", "rows" or "strided", and a letter for each input.

    "=" where an input has memory, offset and strides of `out`; "0" only in flat and rows. sizes is never empty.
    """
    raise NotImplementedError


def flat(lo, hi, layout, out, inputs, machine):
    """Computes elements lo <= i < hi: vectors from lo on, then the tail. What is "0" is loaded once."""
    raise NotImplementedError


def rows(lo, hi, sizes, layout, out, inputs, machine):
    """Computes elements lo <= i < hi, row by row. What is "0" is loaded once for each (piece of a) row."""
    raise NotImplementedError


def strided(lo, hi, sizes, layout, out, inputs, machine):
    """Computes elements lo <= i < hi, one by one."""
    raise NotImplementedError


def run(sizes, out, inputs, machine, chunk):
    """Computes all elements by the loop that was chosen, in pieces of `chunk` elements (the last may be smaller)."""
    raise NotImplementedError
'''

HINTS = (
    "flat is the heart: write it first, and rows as: for each row, the same loop with other offsets.",
    "The address of element i: divide by the sizes from the innermost on; the remainders are the indices, each times "
    "its stride. A row begins at index (i // inner) of the outer sizes.",
    "rows: row, first = divmod(lo, inner); while left: last = min(inner, first + left); offsets of the row by outer "
    "sizes; flat(first, last, ...) on arrays whose offset is that of the row.",
)

Array = namedtuple("Array", "memory offset strides")
Machine = namedtuple("Machine", "load load4 store store4 body body4")


class Found(Exception):
    """Says which loop the library has chosen."""


class Probe(Elementwise):
    """Tells the choice instead of compiling it."""

    def entry(self, loop: str, layout: str, *rest: Any, **options: Any) -> Any:
        raise Found(loop, layout)


def body(*values: Any) -> Any:
    return sum((k + 3) * (x * x + 5 * x) for k, x in enumerate(values)) % 10007 + 1


class Memory:
    """The memories and the counts of a run. Wrong where something outside is touched."""

    def __init__(self, question: str, sizes: list[int], arrays: list[Any]) -> None:
        self.question, self.counts = question, dict.fromkeys(Machine._fields, 0)
        self.cells: dict[int, list[int]] = {}
        for one in arrays:
            reach = one.offset + sum((n - 1) * s for n, s in zip(sizes, one.strides, strict=True)) + 1
            self.cells[one.memory] = [0] * max(reach, len(self.cells.get(one.memory, ())))
        for memory, cells in self.cells.items():
            cells[:] = [(7 * i + 13 * memory) % 101 for i in range(len(cells))]
        self.loads: dict[Any, int] = {}

    def touch(self, what: str, memory: int, address: int, count: int) -> list[int]:
        self.counts[what] += 1
        cells = self.cells.get(memory, [])
        if not (isinstance(address, int) and 0 <= address <= len(cells) - count):
            raise Wrong(
                f"{self.question}\nyours   {what}({memory}, {address})\nright   memory {memory} ends at {len(cells)}"
            )
        return cells

    def machine(self) -> Machine:
        def loading(what: str, count: int) -> Any:
            def load(memory: int, address: int) -> Any:
                cells = self.touch(what, memory, address, count)
                self.loads[memory] = self.loads.get(memory, 0) + 1
                return cells[address] if count == 1 else cells[address : address + count]

            return load

        def store(memory: int, address: int, value: int) -> None:
            self.touch("store", memory, address, 1)[address] = value

        def store4(memory: int, address: int, values: Any) -> None:
            self.touch("store4", memory, address, 4)[address : address + 4] = self.vector(values)

        def single(*values: Any) -> Any:
            self.counts["body"] += 1
            return body(*values)

        def body4(*vectors: Any) -> Any:
            self.counts["body4"] += 1
            return [body(*one) for one in zip(*map(self.vector, vectors), strict=True)]

        return Machine(loading("load", 1), loading("load4", 4), store, store4, single, body4)

    def vector(self, values: Any) -> list[Any]:
        if not isinstance(values, list | tuple) or len(values) != 4:
            raise Wrong(f"{self.question}\nyours   a vector that is {values!r}\nright   a list of 4")
        return list(values)


def case_of(rng: Any, loop: str = "") -> Any:
    """Draws (sizes, out, inputs, lo, hi) of a walk that cannot be merged further, whose loop is `loop`."""
    while True:
        rank = 1 if loop == "flat" else rng.choice([1, 2, 2, 3])
        sizes = [rng.choice([2, 3, 5, 6, 7]) for _ in range(rank)]
        if rank == 1:
            sizes = [rng.randint(1, 7) if not loop else rng.randint(1, 22)]
        arrays: list[Any] = []
        for k in range(rng.randint(2, 3)):
            strides, step = [0] * rank, 1
            for d in reversed(range(rank)):
                if d == rank - 1 and rng.random() < (0.1 if loop == "flat" else 0.25):
                    step = 2
                strides[d] = 0 if rng.random() < (0.25 if k else 0.05) else step
                step = max(step, strides[d] * sizes[d]) + rng.choice([0, 0, 1])
            arrays.append(Array(k, rng.randint(0, 2), strides))
        out, *inputs = arrays
        if rng.random() < 0.4:
            inputs[0] = rng.choice(
                [out, out, out._replace(strides=inputs[0].strides), out._replace(offset=out.offset + 1)]
            )
        if loop and inputs[0] != out and getattr(inputs[0], "memory", 1) == out.memory:
            continue  # overlaps otherwise: the library makes a copy before
        if rng.random() < 0.2:
            inputs[-1] = rng.randint(2, 9)
        walked = tuple(tuple(one.strides) for one in arrays_of(out, inputs))
        walk = geometry.plan(tuple(sizes), walked)
        if walk.sizes.tolist() != sizes or walk.strides.tolist() != [s for one in walked for s in one]:
            continue
        if sizes == [1] and out.strides != [1]:
            continue
        if not loop or (right_choice(sizes, out, inputs)[0] == loop and all(out.strides)):
            count = prod(sizes)
            lo = rng.choice([0, rng.randint(0, count)])
            return sizes, out, inputs, lo, rng.choice([count, rng.randint(lo, count)])


def arrays_of(out: Any, inputs: Any) -> list[Any]:
    return [one for one in (out, *inputs) if isinstance(one, Array)]


ZEROS = [np.zeros(4000, np.float64) for _ in range(4)]


def right_choice(sizes: Any, out: Any, inputs: Any) -> tuple[str, str]:
    """The library's choice."""
    operands = [
        Operand(ZEROS[one.memory], "float64", tuple(sizes), tuple(one.strides), one.offset)
        if isinstance(one, Array)
        else one
        for one in (out, *inputs)
    ]
    try:
        Probe("probe", body).run(operands[0], *operands[1:], dtype="float64")
    except Found as found:
        return found.args
    raise AssertionError


def check_choose(student: Any, draw: Any) -> None:
    for sizes, out, inputs, *_ in draw.cases(case_of, 500):
        right = right_choice(sizes, out, inputs)
        same(f"choose({sizes}, {out}, {inputs})", student("choose", sizes, out, inputs), right)


def pieces(loop: str, lo: int, hi: int, inner: int) -> list[int]:
    """The number of elements of each inner loop."""
    if loop == "flat":
        return [hi - lo] if hi > lo else []
    edges = [lo, *range(lo - lo % inner + inner, hi, inner), hi]
    return [b - a for a, b in zip(edges, edges[1:], strict=False) if b > a]


def judge(question: str, memory: Memory, case: Any, spans: list[tuple[int, int]], loop: str, layout: str) -> None:
    """Compares what is in memory, and what was counted, with what is right."""
    sizes, out, inputs, *_ = case
    right = Memory("", sizes, arrays_of(out, inputs))
    for index in (i for lo, hi in spans for i in range(lo, hi)):
        places = [
            one.offset + sum(i * s for i, s in zip(np.unravel_index(index, sizes), one.strides, strict=True))
            if isinstance(one, Array) else one
            for one in (out, *inputs)
        ]  # fmt: skip
        values = [
            right.cells[one.memory][int(at)] if isinstance(one, Array) else one
            for one, at in zip(inputs, places[1:], strict=True)
        ]
        right.cells[out.memory][int(places[0])] = body(*values)
    for name, cells in memory.cells.items():
        for at, (yours, theirs) in enumerate(zip(cells, right.cells[name], strict=True)):
            if yours != theirs:
                raise Wrong(f"{question}\nmemory {name} at {at}\nyours   {yours}\nright   {theirs}")
    inner = [n for lo, hi in spans for n in pieces(loop, lo, hi, sizes[-1])]
    fours = 0 if loop == "strided" else sum(n // 4 for n in inner)
    ones = sum(inner) - 4 * fours
    calls = (memory.counts["body4"], memory.counts["body"])
    if calls != (fours, ones):
        raise Wrong(f"{question}\nyours   {calls[0]} calls of body4, {calls[1]} of body\nright   {fours} and {ones}")
    for how, one in zip(layout, inputs, strict=True):
        if how == "0" and memory.loads.get(one.memory, 0) != len(inner):
            raise Wrong(
                f"{question}\nyours   {memory.loads.get(one.memory, 0)} loads from memory {one.memory}, which is '0'"
                f"\nright   {len(inner)}: one for each inner loop"
            )


def check_loop(loop: str, count: int) -> Any:
    def check(student: Any, draw: Any) -> None:
        for case in draw.cases(lambda rng: case_of(rng, loop), count):
            sizes, out, inputs, lo, hi = case
            layout = right_choice(sizes, out, inputs)[1]
            shown = "" if loop == "flat" else f"{sizes}, "
            question = f"{loop}({lo}, {hi}, {shown}{layout!r}, {out}, {inputs}, machine)"
            memory = Memory(question, sizes, arrays_of(out, inputs))
            given = () if loop == "flat" else (sizes,)
            student(loop, lo, hi, *given, layout, out, inputs, memory.machine())
            judge(question, memory, case, [(lo, hi)], loop, layout)

    return check


def check_run(student: Any, draw: Any) -> None:
    """The right loop does it, in pieces."""

    def make(rng: Any) -> Any:
        return (*case_of(rng, rng.choice(["flat", "rows", "strided"])), rng.choice([3, 6, 9, 100]))

    for *case, chunk in draw.cases(make, 60):
        sizes, out, inputs, *_ = case
        loop, layout = right_choice(sizes, out, inputs)
        question = f"run({sizes}, {out}, {inputs}, machine, {chunk}), which is {loop!r}, {layout!r}"
        memory = Memory(question, sizes, arrays_of(out, inputs))
        student("run", sizes, out, inputs, memory.machine(), chunk)
        count = prod(sizes)
        judge(question, memory, case, [(a, min(count, a + chunk)) for a in range(0, count, chunk)], loop, layout)


LESSON = Lesson(
    row="D05",
    title="One body, three loops",
    reading=7,
    writing=60,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("choose", 2, check_choose),
        Part("flat", 3, check_loop("flat", 150)),
        Part("rows", 3, check_loop("rows", 60)),
        Part("strided", 2, check_loop("strided", 60)),
        Part("run", 2, check_run),
    ),
    hints=HINTS,
    needs=("D21",),
    records=(Array, Machine),
)
