"""A routine: nests, products and kernels, one after the other, in one function; Python is not entered between them.

    routine = Routine("step", [mm, relu, mm_1], {"mm": Place("memory_float32", 0), "relu": Place(...)})
    routine.entry()(x, x_at, w, w_at, out, out_at, memory_float32)

What only its own steps read lies in memory that is one array of each dtype: two results share a place if the last step
that reads the one comes before the first that writes the other (`placed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import dataclass
from redispatch.dispatch.tensor.operand import DTYPES

from ..cpu.blas import gemm
from ..engine.compile import Entry, Kernel
from ..engine.convert import array_type
from .nest import Nest
from .product import Product
from .recorded import Recorded
from .walk import indented

LINE = 64  # bytes: places in memory begin at a multiple
QUICK = 1 << 16  # cheap operations, up to which a routine keeps Python's lock: giving it up takes 30 ns


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an array that is no parameter: its memory, and its first element there."""

    memory: str
    offset: int


class Routine:
    """The steps, and the text that runs them. places: by name, of the arrays that are no parameters."""

    def __init__(self, name: str, steps: Sequence[Step], places: Mapping[str, Place]) -> None:
        self.name, self.steps, self.places = name, steps, places
        arrays = {array.name: array for step in steps for array in step.arrays}
        self.arrays = [array for array in arrays.values() if array.name not in places]
        self.has_status = any(step.picks if isinstance(step, Nest) else has_status(step) for step in steps)
        self.scratch = max_of(need for step in steps if isinstance(step, Nest) for need in memory_of(step))
        self.dtypes = {array.name: array.dtype for array in arrays.values()}
        for step in steps:
            if isinstance(step, Recorded):
                self.dtypes |= {name: dtype for name, (dtype, _) in step.memories.items()}
        self.given: dict[str, Any] = {}
        self.tables: dict[str, dict[bytes, np.ndarray]] = {}  # constant arrays: by the dtype, by what is in them
        body = list(self.body())
        self.text = "\n".join([self.head(), *indented(1, body)]) + "\n"

    def head(self) -> str:
        """The first line of the text."""
        memories = sorted({place.memory for place in self.places.values()})
        self.memories = {word: next(n for n, place in self.places.items() if place.memory == word) for word in memories}
        words = [word for array in self.arrays for word in (array.name, f"{array.name}_at")]
        words += [*self.memories, *["status"][: self.has_status], *(f"row_{dtype}" for dtype in self.scratch)]
        words += [f"constants_{dtype}" for dtype in self.tables]
        return f"def {self.name}({', '.join(words)}):"

    def body(self) -> Iterator[str]:
        """The other lines."""
        for step in self.steps:
            if isinstance(step, Nest):
                yield from self.nest_lines(step)
            elif isinstance(step, Product):
                yield from self.product_lines(step)
            else:
                yield from step.lines(self.word, self.at, self.table)

    def word(self, name: str, meant: Any) -> str:
        """Makes a function or a number known to the text; returns its name there."""
        for known, one in self.given.items():
            if one is meant or (isinstance(one, np.generic) and same_number(one, meant)):
                return known
        taken = {*self.given, *self.dtypes, *(f"{array.name}_at" for array in self.arrays)}
        word, number = name, 2
        while word in taken:
            word, number = f"{name}_{number}", number + 1
        self.given[word] = meant
        return word

    def table(self, array: np.ndarray) -> str:
        """The words for a constant array."""
        dtype, start = array.dtype.name, 0
        known = self.tables.setdefault(dtype, {})
        key = array.tobytes()
        known.setdefault(key, array)
        for other, one in known.items():
            if other == key:
                break
            start += one.size
        return f"constants_{dtype}[{start} : {start + array.size}]"

    def constants(self) -> dict[str, np.ndarray]:
        """The arrays for the last parameters, by dtype."""
        return {dtype: np.concatenate([*map(np.ravel, known.values())]) for dtype, known in self.tables.items()}

    def at(self, name: str) -> tuple[str, str]:
        """The words for an array, and for where it begins in it."""
        place = self.places.get(name)
        return (name, f"{name}_at") if place is None else (place.memory, str(place.offset))

    def nest_lines(self, nest: Nest) -> list[str]:
        if not nest.turns:
            return ["pass"]
        self.given[nest.name] = nest.part()
        words = [word for array in nest.arrays for word in self.at(array.name)]
        words += ["status"][: len(nest.picks)]
        used: dict[str, int] = {}
        for size, dtype in nest.scratches:
            begin = used.get(dtype, 0)
            words.append(f"row_{dtype}[{begin}:]" if begin else f"row_{dtype}")
            used[dtype] = begin + size
        return [f"{nest.name}({', '.join(['0', str(nest.turns), *words])})"]

    def product_lines(self, product: Product) -> list[str]:
        external = gemm(product.out.dtype)
        assert external is not None
        word = external.symbol.rpartition(".")[2]
        self.given[word] = external
        return list(product.lines(word, self.at))

    @property
    def work(self) -> int:
        """The cost of all, in cheap operations."""
        return sum(step.work * (step.turns if isinstance(step, Nest) else 1) for step in self.steps)

    def kernel(self) -> Kernel:
        """The kernel of the text."""
        return Kernel(self.text, name=self.name, given=self.given, nogil=self.work > QUICK, one_program=True)

    def signature(self) -> tuple[str, ...]:
        """The types of its parameters."""
        words = [word for array in self.arrays for word in (array_type(array.dtype), "int64")]
        memories = [array_type(self.dtypes[name]) for name in self.memories.values()]
        words += [*memories, *["int64[]"][: self.has_status]]
        return (*words, *(f"{dtype}[]" for dtype in self.scratch), *(f"{dtype}[]" for dtype in self.tables))

    def entry(self) -> Entry:
        """The compiled function."""
        return self.kernel().entry(*self.signature())


Step = Nest | Product | Recorded


def has_status(step: Step) -> bool:
    """Whether a step looks at indices."""
    return isinstance(step, Recorded) and step.has_status


def same_number(a: Any, b: Any) -> bool:
    """Whether two are one number of numpy, of the same bits."""
    return isinstance(b, np.generic) and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def memory_of(nest: Nest) -> Iterator[tuple[str, int]]:
    """The memory that a nest needs for a row: dtype, and how many elements."""
    total: dict[str, int] = {}
    for size, dtype in nest.scratches:
        total[dtype] = total.get(dtype, 0) + size
    yield from total.items()


def max_of(needs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The largest number for each word."""
    found: dict[str, int] = {}
    for word, size in needs:
        found[word] = max(size, found.get(word, 0))
    return found


def placed(wanted: Mapping[str, tuple[str, int, int, int]]) -> tuple[dict[str, Place], dict[str, tuple[str, int]]]:
    """Places for arrays of which each is given as (dtype, elements, first step, last step).

    Returns (the places, the dtype and size of each memory). An array takes the first gap among those that are there at
    the same time.
    """
    places: dict[str, Place] = {}
    memories: dict[str, tuple[str, int]] = {}
    ends: dict[str, tuple[int, int, int]] = {}  # by name: where it ends, its steps
    for name, (dtype, size, first, last) in sorted(wanted.items(), key=lambda item: item[1][2]):
        storage = DTYPES[dtype].storage
        memory, line = f"memory_{storage.name}", max(1, LINE // storage.itemsize)
        size = -(-max(size, 1) // line) * line
        others = sorted(
            (places[other].offset, end)
            for other, (end, begins, ceases) in ends.items()
            if places[other].memory == memory and begins <= last and first <= ceases
        )
        offset = 0
        for start, end in others:
            if offset + size <= start:
                break
            offset = max(offset, end)
        places[name], ends[name] = Place(memory, offset), (offset + size, first, last)
        memories[memory] = (storage.name, max(offset + size, memories.get(memory, ("", 0))[1]))
    return places, memories
