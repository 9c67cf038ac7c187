"""What a plan runs, written out: launches with all that they are told but for addresses.

    def run(addresses, stream):
        block = allocate(1024, on)
        at0 = block.address + 0
        start0((64, at0, addresses[0], 17), stream)
        start1((64, addresses[2], at0, addresses[1] + 16), stream)

A function of its own for each plan: to put such tuples together from a list of what goes where takes as long as all
else that a planned call does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch.tensor import device
from redispatch.kernels.cuda import TAPES, Start

from .async_errors import late_errors
from .launch_recorder import Told, keep
from .memory import CachingAllocator

Run = Callable[[list[int], int], None]  # (addresses, stream)
ALIGNED = 512  # bytes, of pieces of memory


class Life(NamedTuple):
    """Between which launches a piece of memory is somebody's; to the end where `until` is None."""

    since: int
    until: int | None


class Writer:
    """Writes a `run`. Places are numbers; `given` says which address belongs to which; `kept` lives as long."""

    def __init__(self, allocator: CachingAllocator, on: device, given: Mapping[int, int], kept: Any = None) -> None:
        self.allocator, self.index, self.errors = allocator, on.index or 0, late_errors(allocator.driver)
        self.names = {k: f"addresses[{i}]" for k, i in given.items()}
        self.scope: dict[str, Any] = {"allocate": allocator.allocate, "on": on, "kept": kept}
        self.lines: list[str] = []
        self.asks = False

    def function(self) -> Run:
        """What was written."""
        if self.asks:  # the device is to be asked for errors later
            self.scope["asked"] = self.errors.asked.add
            self.lines.append(f"asked({self.index})")
        if self.scope["kept"]:
            self.lines.insert(0, "if tapes: keep(kept)")
            self.scope |= {"tapes": TAPES, "keep": keep}
        text = "\n    ".join(["def run(addresses, stream):", *(self.lines or ["pass"])])
        exec(compile(text, "<launches of a plan>", "exec"), self.scope)
        run: Run = self.scope["run"]
        return run

    def launch(self, start: Start, told: Sequence[Told]) -> None:
        words = self.errors.words.get(self.index)
        self.asks = self.asks or any(one.place is None and one.number == words for one in told)
        name = self.named("start", start)
        self.lines.append(f"{name}(({''.join(self.text(one) + ', ' for one in told)}), stream)")

    def named(self, hint: str, value: Any) -> str:
        name = f"{hint}{len(self.scope)}"
        self.scope[name] = value
        return name

    def text(self, told: Told) -> str:
        if told.place is not None:
            return f"{self.names[told.place]} + {told.number}" if told.number else self.names[told.place]
        return str(told.number) if type(told.number) is int else self.named("number", told.number)

    def draw(self, generator: Any, count: int, place: int) -> None:
        """Seed and offset of so many random numbers are told as this place, and the next one."""
        self.names |= {place: f"seed{place}", place + 1: f"offset{place}"}
        self.lines.append(f"seed{place}, offset{place} = {self.named('take', generator.take)}({count})")

    def scratch(self, places: Sequence[int], sizes: Sequence[int], lives: Sequence[Any]) -> None:
        """Memory for as long as the launches run: one block in which pieces lie, also where others lay before.

        A driver that is told who has what is asked for each piece, so that it sees where it ends.
        """
        if self.allocator.told:
            for k, size in zip(places, sizes, strict=True):
                self.names[k] = f"at{k}"
                self.lines += [f"block{k} = allocate({size}, on)", f"at{k} = block{k}.address"]
        elif places:
            starts, whole = packed(sizes, lives)
            self.lines += [f"block = allocate({whole}, on)", "at = block.address"]
            self.names |= {k: f"at + {start}" if start else "at" for k, start in zip(places, starts, strict=True)}


def packed(sizes: Sequence[int], lives: Sequence[Any]) -> tuple[list[int], int]:
    """Where each of these pieces begins in one block, and the block's size; what never lives at once may overlap.

    lives: with fields `since` and `until`, as in `Life`.
    """
    taken: list[tuple[int, int, Any]] = []
    for size, life in zip(sizes, lives, strict=True):
        at = 0
        for low, high, other in sorted(taken, key=lambda one: one[0]):
            apart = ends(other) <= life.since or ends(life) <= other.since
            if not apart and at < high and low < at + size:
                at = high
        taken.append((at, at + -(-max(size, 1) // ALIGNED) * ALIGNED, life))
    return [low for low, _, _ in taken], max((high for _, high, _ in taken), default=0)


def ends(life: Any) -> float:
    return float("inf") if life.until is None else life.until
