"""The ways of a nest of loops through its arrays: see `nest.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from redispatch.dispatch.tensor.geometry import coalesce, loop_order


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


class Walk:
    """The ways of a nest through its arrays: dimensions as memory lies, those merged that all arrays walk as one.

    outer, inner: the sizes of both parts, outermost first: rows, and elements of a row. Where no row has a value of its
    own, the innermost dimension is the inner part; `flat`: then there may be no other.
    """

    def __init__(self, sizes: Sequence[int], columns: int, arrays: Sequence[Array]) -> None:
        split = len(sizes) - columns
        self.arrays = arrays
        self.outer, outer = merged(sizes[:split], [array.strides[:split] for array in arrays])
        self.inner, inner = merged(sizes[split:], [array.strides[split:] for array in arrays])
        if not columns:
            self.inner, inner = [self.outer[-1]], [steps[-1:] for steps in outer]
            self.outer, outer = self.outer[:-1], [steps[:-1] for steps in outer]
        self.flat = not columns and not self.outer
        self.rows, self.row_size = math.prod(self.outer), math.prod(self.inner)
        self.in_row = "uint64(i)" if len(self.inner) == 1 else f"uint64(run * {self.inner[-1]} + i)"
        self.steps = {id(array): steps[-1] for array, steps in zip(arrays, inner, strict=True)}
        self.rows_of = dict(zip(arrays, outer, strict=True))  # by array: the steps from row to row
        self.begins: dict[int, str] = {}  # by array: the word for where its row begins
        self.words: dict[int, str] = {}  # and for where it begins for the inner loop
        self.lines: dict[str, dict[str, str]] = {"row": {}, "run": {}}  # where each row begins, and each run in it
        for array, over, under in zip(arrays, outer, inner, strict=True):
            own = f"{array.name}_at" if array.name else "0"
            start = own + (f" + {array.offset}" if array.offset else "")
            if self.flat:
                self.words[id(array)] = start
                continue
            name = array.name or "count"
            row = self.begins[id(array)] = self.begin(name, "row", start, self.terms("row", self.outer, over))
            run = self.begin(name, "run", row, self.terms("run", self.inner[:-1], under[:-1]))
            self.words[id(array)] = run if len(self.inner) > 1 else row

    def begin(self, name: str, part: str, start: str, terms: list[str]) -> str:
        """The word for a place, which stands for one or several arrays that begin there."""
        text, known = " + ".join([start, *terms]), self.lines[part]
        for word, other in known.items():
            if other == text:
                return word
        word = f"{name}_{part}" + (str(len(known)) if f"{name}_{part}" in known else "")
        known[word] = text
        return word

    def terms(self, index: str, sizes: Sequence[int], steps: Sequence[int]) -> list[str]:
        """Returns the terms that the number of a row, or of a run, adds to a place."""
        numbers = [index] if len(sizes) == 1 else [f"{index}{d}" for d in range(len(sizes))]
        return [f"{one} * {step}" if step != 1 else one for one, step in zip(numbers, steps, strict=True) if step]

    def row_lines(self) -> list[str]:
        """Lines that find where each array's row begins."""
        return [*divided("row", self.outer), *(f"{word} = {text}" for word, text in self.lines["row"].items())]

    def run_lines(self) -> list[str]:
        """Lines that find where each array's run begins, in a row of several dimensions."""
        return [*divided("run", self.inner[:-1]), *(f"{word} = {text}" for word, text in self.lines["run"].items())]

    def row(self, array: Array) -> str:
        """The place of a row's one element."""
        return f"uint64({self.begins[id(array)]})"

    def at(self, array: Array) -> str:
        """The place of element `i` of the inner loop."""
        step = self.steps[id(array)]
        term = "" if not step else " + i" if step == 1 else f" + i * {step}"
        return f"uint64({self.words[id(array)]}{term})"


def divided(index: str, sizes: Sequence[int]) -> list[str]:
    """Lines that find the index in each dimension, from a number that counts through all."""
    lines, rest = [], index
    for d in range(len(sizes) - 1, 0, -1):
        lines.append(f"{index}{d} = {rest} % {sizes[d]}")
        left = f"{index}0" if d == 1 else f"{index}_{d}"
        lines.append(f"{left} = {rest} // {sizes[d]}")
        rest = left
    return lines


def indented(depth: int, lines: Sequence[str]) -> list[str]:
    return ["    " * depth + line for line in lines]


def merged(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The dimensions, outermost first, as memory lies, those merged that all walk as one."""
    order = loop_order(tuple(sizes), [tuple(one) for one in strides])[::-1]
    return coalesce([sizes[d] for d in order], [[one[d] for d in order] for one in strides])
