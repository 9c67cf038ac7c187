"""The launch of a compiled nest: all of it that is known without the text of its loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ..engine.compile import Entry
from ..engine.pool import in_scratch, nothing_to_do, ready, serial_for


class Launch(NamedTuple):
    """`turns` of the outer loop, each of so much `work`. scratches: the memory for a row; in_order: whether threads
    must not share the turns."""

    turns: int
    work: int
    scratches: list[tuple[int, str]]
    in_order: bool

    def of(self, entry: Entry | None) -> Callable[..., object]:
        """The function of the arrays, from a loop's entry; a loop without turns has none."""
        if entry is None:
            return nothing_to_do
        if self.in_order:
            entry = in_scratch(entry, self.scratches) if self.scratches else entry
            return partial(in_turn, entry, self.turns, self.work)
        return ready(entry, self.turns, (), self.work, self.scratches)


def in_turn(entry: Entry, turns: int, work: int, *args: object) -> None:
    """Runs all turns of a loop on this thread."""
    serial_for(entry, turns, args, work)
