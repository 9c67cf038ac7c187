"""A nest of loops that computes several operators at once: their values, and the text of the kernel.

    x = Read("float32", array)
    e = Apply("float32", exp_body, (x,), ("float32",))
    total = Reduce("float32", SUM, e)                       # one for each row
    nest = Nest("softmax_tail", (rows, columns), 1, [(out, Apply("float32", div_body, (e, total), ...))])
    print(nest.source())

An element of every operator is a local name of the inner loop: nothing but what is read from outside, and what others
want, is in memory. The scalar functions are those of the operators themselves, and what they return is rounded to the
operator's dtype: so a nest without reductions has the very bits of its operators, one after the other.

Note [Loops of a row]
Operators that reduce their innermost dimensions, and those on their results, share a nest: a row is walked several
times, while it is in the cache. A loop ends where a reduction's result is needed. What takes long is kept from loop to
loop: in an output, if it is one, else in memory for one row; everything else is computed again.

Note [Columns]
A reduction of other dimensions than the innermost adds each element to an accumulator of its own, in memory: who wants
the results finishes them in a nest behind (`finished`). Such a nest is not shared out among threads.

Note [Usual elements]
A few elements, such as large angles, want another way of computing, which is no vector's (`usually`, elementwise.py). A
block of elements is computed as if none were among them; where one is, the block is computed once more, each element in
its way. So a loop that is walked again must not have changed what it reads: accumulators in memory want the slow way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES

from ..cpu.reduce import BLOCK, Reduction, chain
from ..engine.compile import Entry, Kernel
from ..engine.convert import CONVERT, array_type, as_is, conversion, load, real_type, store
from ..engine.elementwise import has_usual
from ..engine.program import Part
from .launch import Launch
from .walk import Walk, indented

DEAR = 4  # cheap operations, from which on a value is kept and not computed again


@dataclass(frozen=True, eq=False, slots=True)
class Array:
    """An array that a nest reads or writes: strides for each of its dimensions, 0 where one element serves all.

    offset: from where a call says that the array begins. Without a name it is in no memory, and only counts
    (`Position`).
    """

    name: str
    dtype: str
    strides: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """An element's value, or a row's: of which dtype."""

    dtype: str

    @property
    def operands(self) -> tuple[Value, ...]:
        """The values of which it is computed."""
        return ()

    @property
    def per_row(self) -> bool:
        """Whether it is the same for all elements of a row."""
        return all(one.per_row for one in self.operands)


@dataclass(frozen=True, eq=False, slots=True)
class Number(Value):
    """A number that does not change."""

    number: Any


@dataclass(frozen=True, eq=False, slots=True)
class Read(Value):
    """An element of an array. `columns`: of how many inner dimensions a row consists."""

    array: Array
    columns: int = 0

    @property
    def per_row(self) -> bool:
        return self.columns > 0 and not any(self.array.strides[-self.columns :])


@dataclass(frozen=True, eq=False, slots=True)
class Position(Read):
    """The place itself of an array without memory: with strides 0, ..., 1, ..., 0 an index in one dimension."""


@dataclass(frozen=True, eq=False, slots=True)
class Pick(Read):
    """An element of an array that lies `index` steps of `step` behind a place; an index beyond `size` is an error.

    number: by which `status` says that this was the one with such an index.
    """

    index: Value = Value("int64")
    step: int = 1
    size: int = 1
    number: int = 0

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.index,)

    @property
    def per_row(self) -> bool:
        return False


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Value):
    """A scalar function's value; `takes` has the dtype to which each operand is converted first."""

    body: Callable
    given: tuple[Value, ...]
    takes: tuple[str, ...]
    compute: str = ""  # the dtype of which its literals are
    cost: int = 1

    @property
    def operands(self) -> tuple[Value, ...]:
        return self.given

    @property
    def computes(self) -> str:
        """The dtype of its literals."""
        return self.compute or self.dtype


@dataclass(frozen=True, eq=False, slots=True)
class Reduce(Value):
    """A row's value: its elements, combined."""

    reduction: Reduction
    of: Value

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.of,)

    @property
    def per_row(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, slots=True)
class Accumulate(Value):
    """Accumulators' values, one for many elements: an output whose array has stride 0 along what is reduced.

    The array is dense, has `count` elements, and the dtype is that of the accumulators. Note [Columns]
    """

    reduction: Reduction
    of: Value
    count: int

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.of,)

    @property
    def per_row(self) -> bool:
        return False


@dataclass(eq=False)
class Nest:
    """Loops over all elements of `sizes` that store each output's value. `columns`: the inner dimensions of a row."""

    name: str
    sizes: tuple[int, ...]
    columns: int
    outputs: Sequence[tuple[Array, Value]]
    lines: list[str] = field(default_factory=list, init=False)
    given: dict[str, Any] = field(default_factory=dict, init=False)
    reals: dict[str, str | None] = field(default_factory=dict, init=False)
    spilled: dict[Value, tuple[str, int]] = field(default_factory=dict, init=False)  # its memory's word, the loop

    def __post_init__(self) -> None:
        self.values = ordered([value for _, value in self.outputs])
        walked = [*(array for array, _ in self.outputs), *(v.array for v in self.values if isinstance(v, Read))]
        self.arrays = list({array.name: array for array in walked if array.name}.values())
        self.picks = [value for value in self.values if isinstance(value, Pick)]
        self.accumulates = [(array, value) for array, value in self.outputs if isinstance(value, Accumulate)]
        self.inputs = [array for array in self.arrays if array.name not in {one.name for one, _ in self.outputs}]
        self.walk = Walk(self.sizes, self.columns, walked)
        self.levels: dict[Value, int] = {}
        for value in self.values:
            behind = max((self.levels[one] for one in value.operands), default=0)
            self.levels[value] = behind + isinstance(value, Reduce)
        self.text = self.written()

    # The text ---------------------------------------------------------------------------------------------------------

    def word(self, name: str, function: Any, real: str | None = None) -> str:
        """Makes a function or number known to the text; returns its name there."""
        if function is as_is:
            return ""
        for known, one in self.given.items():
            if one is function and self.reals.get(known) == real:
                return known
        name = getattr(function, "__name__", name)
        while name in self.given or any(name == array.name for array in self.arrays):
            name += "_"
        self.given[name], self.reals[name] = function, real
        return name

    def through(self, functions: Sequence[Callable], text: str, real: str | None = None) -> str:
        """An expression behind these functions."""
        for function in functions:
            word = self.word("f", function, real)
            text = f"{word}({text})" if word else text
        return text

    def written(self) -> str:
        """The text of the kernel."""
        parameters = [word for array in self.arrays for word in (array.name, f"{array.name}_at")]
        last = max((self.levels[v] for v in self.values if isinstance(v, Reduce)), default=0)
        self.loops = [self.wanted(level) for level in range(last + 1)]
        body = list(self.rows_text(last))
        head = [] if self.walk.flat else ["    for row in range(lo, hi):", *indented(2, self.walk.row_lines())]
        spills = [*["status"][: len(self.picks)], *(word for word, _ in self.spilled.values())]
        self.given |= {"uint64": np.uint64, "int64": np.int64}
        lines = [f"def {self.name}({', '.join(['lo', 'hi', *parameters, *spills])}):", *self.starts(), *head, *body]
        return "\n".join(lines) + "\n"

    def starts(self) -> Iterator[str]:
        """Gives accumulators in memory their first value."""
        for array, value in self.accumulates:
            start = self.word("start", CONVERT[value.dtype](value.reduction.recipe(value.of.dtype).start))
            yield from ("    if lo == 0:", f"        for i in range({value.count}):")
            yield f"            {array.name}[uint64({array.name}_at + i)] = {start}"

    def wanted(self, level: int) -> list[Value]:
        """The values that the loop of a level has to have: those it reduces, and outputs that it is first to know."""
        reduced = [v.of for v in self.values if isinstance(v, Reduce) and self.levels[v] == level + 1]
        stored = [v for array, v in self.outputs if self.levels[v] == level and not self.row_output(array, v)]
        return [*reduced, *(v.of if isinstance(v, Accumulate) else v for v in stored)]

    def row_output(self, array: Array, value: Value) -> bool:
        """Whether an output has one element for each row."""
        alone = self.row_value(value) and not isinstance(value, Accumulate)
        return alone and not any(array.strides[-self.columns :])

    def row_value(self, value: Value) -> bool:
        """Whether it is known outside of the loops over a row's elements."""
        return self.columns > 0 and value.per_row

    def rows_text(self, last: int) -> Iterator[str]:
        """The lines of one row: loops, and between them the values of the row."""
        self.known: dict[Value, str] = {}
        yield from self.row_values(0)
        for level in range(last + 1):
            if self.loops[level]:
                yield from self.loop(level)
            yield from self.row_values(level + 1)

    def row_values(self, level: int) -> Iterator[str]:
        """Computes what is the same for a row, once it is known, and stores it where it is an output."""
        if not self.columns:
            return
        for value in self.values:
            if self.row_value(value) and self.levels[value] == level and value not in self.known:
                if not isinstance(value, Reduce):
                    yield from self.computed(value, self.known, "        ", None)
        for array, value in self.outputs:
            if self.row_output(array, value) and self.levels[value] == level:
                yield f"        {array.name}[{self.walk.row(array)}] = {self.stored(array, self.known[value], value)}"

    def loop(self, level: int) -> Iterator[str]:
        """One loop over a row's elements, or over all elements where there are no rows."""
        reduces = [v for v in self.values if isinstance(v, Reduce) and self.levels[v] == level + 1]
        recipes = {v: Recipes(self, v) for v in reduces}
        walk = self.walk
        depth = 1 if walk.flat else 2
        indent = "    " * depth
        for recipe in recipes.values():
            yield f"{indent}{recipe.acc} = {recipe.start}"
        if len(walk.inner) > 1:
            yield f"{indent}for run in range({walk.row_size // walk.inner[-1]}):"
            depth, indent = depth + 1, indent + "    "
            yield from indented(depth, walk.run_lines())
        bounds = ("lo", "hi") if walk.flat else ("0", str(walk.inner[-1]))
        here = self.needed(level)
        blocked = [recipe for recipe in recipes.values() if recipe.block]
        guesses = self.guesses(level, here)
        if blocked or guesses:
            yield f"{indent}for block in range({bounds[0]}, {bounds[1]}, {BLOCK}):"
            depth, indent = depth + 1, indent + "    "
            bounds = ("block", f"min(block + {BLOCK}, {bounds[1]})")
        starts = [f"{indent}{recipe.part} = {recipe.narrow(recipe.start)}" for recipe in blocked]
        yield from starts
        if guesses:
            others = [recipe.acc for recipe in recipes.values() if not recipe.block]
            yield from (f"{indent}{acc}_before = {acc}" for acc in others)
            yield from (f"{indent}strange = False", f"{indent}for i in range({bounds[0]}, {bounds[1]}):")
            yield from self.elements_lines(level, here, recipes, indent + "    ", True)
            yield f"{indent}if strange:"
            yield from (f"    {line}" for line in starts)
            yield from (f"{indent}    {acc} = {acc}_before" for acc in others)
            indent += "    "
        yield f"{indent}for i in range({bounds[0]}, {bounds[1]}):"
        yield from self.elements_lines(level, here, recipes, indent + "    ", False)
        indent = "    " * depth
        for recipe in blocked:
            yield f"{indent}{recipe.acc} = {recipe.combined(recipe.acc, recipe.widen(recipe.part))}"
        for reduce, recipe in recipes.items():
            name = self.known[reduce] = f"r{len(self.known)}"
            finished = recipe.finished(f"{recipe.acc}, {walk.row_size}")
            yield f"        {name} = {self.through(self.rounding(reduce.dtype), finished)}"

    def guesses(self, level: int, here: Sequence[Value]) -> bool:
        """Whether a loop first takes all elements of a block for usual ones. Note [Usual elements]"""
        adds = any(isinstance(value, Accumulate) and self.levels[value] == level for _, value in self.outputs)
        return not adds and any(is_sorted(value) and not self.kept(value, level) for value in here)

    def elements_lines(
        self, level: int, here: Sequence[Value], recipes: dict[Reduce, Recipes], indent: str, guess: bool
    ) -> Iterator[str]:
        """The lines for one element: values, outputs, what is reduced. guess: take it for a usual one, and count it as
        strange if it is not."""
        known = dict(self.known)
        for value in here:
            if is_sorted(value) and guess and not self.kept(value, level):
                usual, when = self.usual_and_when(value, known)
                yield f"{indent}strange = strange | (not {when})"
                known[value] = f"v{self.values.index(value)}"
                yield f"{indent}{known[value]} = {self.through(self.rounding(value.dtype), usual)}"
            else:
                yield from self.computed(value, known, indent, level)
            if value in self.spilled and self.spilled[value][1] == level:
                yield f"{indent}{self.spilled[value][0]}[{self.walk.in_row}] = {known[value]}"
        for array, value in self.outputs:
            if self.levels[value] == level and not self.row_output(array, value):
                place = f"{array.name}[{self.walk.at(array)}]"
                yield f"{indent}{place} = {self.entering(array, value, place, known)}"
        for reduce, recipe in recipes.items():
            into = recipe.part if recipe.block else recipe.acc
            yield f"{indent}{into} = {recipe.combined(into, recipe.prepared(known[reduce.of]))}"

    def entering(self, array: Array, value: Value, place: str, known: dict[Value, str]) -> str:
        """The expression for what an output's element becomes."""
        if not isinstance(value, Accumulate):
            return self.stored(array, known[value], value)
        recipe, real = value.reduction.recipe(value.of.dtype), real_type(value.of.dtype)
        text = self.through([chain(as_is, recipe.load)], known[value.of], real)
        text = self.through(conversion(value.of.dtype, value.dtype), text)
        return f"{self.word('combine', recipe.combine, real)}({place}, {text})"

    # Which values a loop computes -------------------------------------------------------------------------------------

    def needed(self, level: int) -> list[Value]:
        """The values of elements that a loop computes or reads, in order; decides what it keeps for later loops."""
        found = self.elements(self.loops[level], lambda value: self.kept(value, level))
        here = [value for value in self.values if value in found]
        later = self.elements([value for loop in self.loops[level + 1 :] for value in loop])
        stored = {value for _, value in self.outputs}
        for value in here:
            if isinstance(value, Apply) and value.cost >= DEAR and value in later and not self.kept(value, level):
                if value not in stored:
                    self.spilled[value] = f"kept{len(self.spilled)}", level
        return here

    def elements(self, wanted: Sequence[Value], ends: Callable[[Value], bool] = lambda value: False) -> set[Value]:
        """These values and those of elements of which they are computed, up to where it `ends`."""
        found: set[Value] = set()
        pending = list(wanted)
        while pending:
            value = pending.pop()
            if value not in found and not self.row_value(value):
                found.add(value)
                if not ends(value):
                    pending += value.operands
        return found

    def kept(self, value: Value, level: int) -> bool:
        """Whether an earlier loop has left this value in memory. What is read is read again."""
        if not isinstance(value, Apply):
            return False
        stored = any(one is value for _, one in self.outputs) and self.levels[value] < level
        return stored or (value in self.spilled and self.spilled[value][1] < level)

    def computed(self, value: Value, known: dict[Value, str], indent: str, level: int | None) -> Iterator[str]:
        """The line that gives a value a name, if it needs one. `level`: of the loop, None outside of one."""
        if value in known:
            return
        if isinstance(value, Pick):
            yield from self.checked(value, known, indent)
        text = self.expression(value, known, level)
        known[value] = text if isinstance(value, Number) else f"v{self.values.index(value)}"
        if not isinstance(value, Number):
            yield f"{indent}{known[value]} = {text}"

    def expression(self, value: Value, known: dict[Value, str], level: int | None) -> str:
        """The expression for a value of values that have names."""
        if isinstance(value, Number):
            return self.word("number", value.number)
        if isinstance(value, Position):
            return (
                f"int64({self.walk.at(value.array)})" if level is not None else f"int64({self.walk.row(value.array)})"
            )
        if isinstance(value, Pick):
            place = self.walk.at(value.array).removesuffix(")")
            return self.through(
                [load(value.dtype)], f"{value.array.name}[{place} + at{self.values.index(value)} * {value.step})]"
            )
        if isinstance(value, Read):
            place = self.walk.row(value.array) if level is None else self.walk.at(value.array)
            return self.through([load(value.dtype)], f"{value.array.name}[{place}]")
        assert isinstance(value, Apply)
        if level is not None and self.kept(value, level):
            if value in self.spilled:
                return f"{self.spilled[value][0]}[{self.walk.in_row}]"
            array = next(array for array, one in self.outputs if one is value)
            return self.through([load(value.dtype)], f"{array.name}[{self.walk.at(array)}]")
        given, real = self.given_to(value, known), real_type(value.computes)
        body = self.word("body", value.body, real)
        text = f"{body}({', '.join(given)})" if body else given[0]
        if is_sorted(value):
            usual, when = self.usual_and_when(value, known)
            text = f"{usual} if {when} else {text}"
        return self.through(self.rounding(value.dtype), text)

    def given_to(self, value: Apply, known: dict[Value, str]) -> list[str]:
        """The expressions of a scalar function's arguments."""
        pairs = zip(value.given, value.takes, strict=True)
        return [self.through(conversion(one.dtype, takes), known[one]) for one, takes in pairs]

    def usual_and_when(self, value: Any, known: dict[Value, str]) -> list[str]:
        """The expressions for a value of usual elements, and for whether this is one."""
        passed = ", ".join(self.given_to(value, known))
        functions = (getattr(value.body, name) for name in ("usual", "when"))
        return [f"{self.word('f', function, real_type(value.computes))}({passed})" for function in functions]

    def checked(self, value: Pick, known: dict[Value, str], indent: str) -> Iterator[str]:
        """Lines that note an index beyond the array, and take the first element instead."""
        at = f"at{self.values.index(value)}"
        yield f"{indent}{at} = {known[value.index]}"
        yield f"{indent}if {at} < 0 or {at} >= {value.size}:"
        yield f"{indent}    status[uint64(0)] = {value.number}"
        yield f"{indent}    status[uint64(1)] = {at}"
        yield f"{indent}    {at} = 0"

    def rounding(self, dtype: str) -> list[Callable]:
        """The functions that make a computed number one that a tensor of this dtype could hold."""
        return [store(dtype), load(dtype)]

    def stored(self, array: Array, text: str, value: Value) -> str:
        """The expression to store for a value: a rounded one as it is, but for 16-bit floats."""
        assert value.dtype == array.dtype
        return self.through([as_is if load(array.dtype) is as_is else store(array.dtype)], text)

    # The kernel -------------------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """The kernel of the text, where arrays have numbers for names: nests that are alike share one."""
        flags = frozenset().union(*(v.reduction.fastmath for v in self.values if isinstance(v, Reduce)))
        name = self.name.rstrip("0123456789").rstrip("_") or self.name
        renamed = {array.name: f"x{k}" for k, array in enumerate(self.arrays)} | {self.name: name}
        words = "|".join(map(re.escape, renamed))
        text = re.sub(rf"\b({words})(?=(?:_at|_(?:row|run)\d*)?\b)", lambda found: renamed[found[1]], self.text)
        return Kernel(text, name=name, given=self.given, reals=self.reals, fastmath=flags, apart=True, one_program=True)

    def signature(self) -> tuple[str, ...]:
        """The types of its parameters."""
        words = [word for array in self.arrays for word in (array_type(array.dtype), "int64")]
        spills = [f"{DTYPES[value.dtype].compute}[]" for value in self.spilled]
        return ("int64", "int64", *words, *["int64[]"][: len(self.picks)], *spills)

    def part(self) -> Part:
        """The nest, for a program that calls it."""
        kernel = self.kernel()
        return Part(kernel.program(), kernel.fastmath)

    @property
    def scratches(self) -> list[tuple[int, str]]:
        """The memory in which it keeps what it computes of a row: how many elements, of which dtype."""
        return [(self.walk.row_size, DTYPES[value.dtype].compute) for value in self.spilled]

    @property
    def turns(self) -> int:
        """The number of turns of its outer loop."""
        walk = self.walk
        return walk.row_size if walk.flat else walk.rows if walk.row_size else 0

    @property
    def work(self) -> int:
        """The cost of a turn, in cheap operations."""
        cost = sum(value.cost if isinstance(value, Apply) else 1 for value in self.values)
        return cost if self.walk.flat else cost * self.walk.row_size

    def entry(self) -> Entry | None:
        """The compiled kernel, unless there is nothing to do."""
        return self.kernel().entry(*self.signature()) if self.turns else None

    @property
    def launch(self) -> Launch:
        """The way it is run; large ones are shared out among threads. Note [Columns]"""
        return Launch(self.turns, self.work, self.scratches, bool(self.accumulates))

    def ready(self) -> Callable[..., object]:
        """The nest as `f(array, at, ...)`, of `arrays` in order."""
        return self.launch.of(self.entry())

    def source(self) -> str:
        """The text, with the scalar functions."""
        return self.kernel().source()


class Recipes:
    """One reduction of a nest: the words for its accumulators, and expressions."""

    def __init__(self, nest: Nest, reduce: Reduce) -> None:
        self.nest, self.real = nest, real_type(reduce.of.dtype)
        recipe = reduce.reduction.recipe(reduce.of.dtype)
        number = nest.values.index(reduce)
        self.acc, self.part = f"acc{number}", f"part{number}"
        self.block = recipe.block
        self.start = nest.word(f"start{number}", recipe.start)
        self.recipe, self.accumulator = recipe, recipe.start.dtype.name
        self.prepare = chain(as_is, recipe.load)

    def narrow(self, text: str) -> str:
        """A number of the accumulator's type, in that of a block."""
        return self.nest.through([CONVERT[self.block]], text)  # type: ignore[index]  # asked for blocks alone

    def widen(self, text: str) -> str:
        """A block's number in the accumulator's type."""
        return self.nest.through([CONVERT[self.accumulator]], text)

    def prepared(self, text: str) -> str:
        """An element as it is combined."""
        return self.nest.through([self.prepare], text, self.real)

    def combined(self, acc: str, text: str) -> str:
        """An accumulator with one more element."""
        return f"{self.nest.word('combine', self.recipe.combine, self.real)}({acc}, {text})"

    def finished(self, text: str) -> str:
        """The result."""
        word = self.nest.word("finish", self.recipe.finish, self.real)
        return f"{word}({text})"


def is_sorted(value: Value) -> bool:
    """Whether a value is computed in another way for usual elements."""
    return isinstance(value, Apply) and has_usual(value.body, value.computes)


def ordered(values: Sequence[Value]) -> list[Value]:
    """These values and all of which they are computed, each behind its operands."""
    found: dict[Value, None] = {}
    pending = [(value, False) for value in reversed(values)]
    while pending:
        value, ready = pending.pop()
        if ready:
            found[value] = None
        elif value not in found:
            pending.append((value, True))
            pending += [(one, False) for one in reversed(value.operands)]
    return list(found)
