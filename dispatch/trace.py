"""Traces: every hop that calls really took, as a tree.

    with trace() as hops:
        a + b
    print(hops)

A hop is one step of the interpreter: an operator, the key at which it stopped, who answered by which rule and where
that was registered. What a kernel calls in turn hangs below it. The present hop is part of the dispatch state, so
that threads and tasks each grow their own branch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from .operator import OpOverload, describe_value
from .state import STATE, Setting, within
from .table import Entry


class Hop:
    """One hop, and those that it led to (`children`). `seconds` includes them; `error` is what it raised, if it did."""

    def __init__(self, op: OpOverload | None = None, entry: Entry | None = None, keyset: int = 0) -> None:
        self.op, self.entry, self.keyset = op, entry, keyset
        self.arguments: str = ""
        self.result: str = ""
        self.error: BaseException | None = None
        self.seconds = 0.0
        self.children: list[Hop] = []
        self.notes: list[str] = []  # what the layer says of itself: the mode that it asks

    def hop(self, op: OpOverload, entry: Entry, keyset: int, stack: list[Any]) -> Any:
        """What the interpreter calls instead of the kernel while this hop is the present one."""
        child = Hop(op, entry, keyset)
        child.arguments = ", ".join(map(describe_value, stack))
        self.children.append(child)
        start = time.perf_counter()
        try:
            with within(STATE.get().replace(tracer=child)):
                result = entry.kernel.boxed(op, keyset, stack)
            child.result = describe_value(result)
            return result
        except BaseException as error:
            child.error = error
            raise
        finally:
            child.seconds = time.perf_counter() - start

    @property
    def key(self) -> str:
        return self.entry.key.name if self.entry else ""

    @property
    def answered(self) -> str:
        """Who answered: the kernel's name and the rule by which it was found."""
        if self.entry is None:
            return ""
        notes = f", {', '.join(self.notes)}" if self.notes else ""
        return f"{self.entry.kernel.label} ({self.entry.rule}){notes}"

    def __iter__(self) -> Iterator[Hop]:
        """This hop's descendants, in the order in which they were taken."""
        pending = self.children[::-1]
        while pending:
            hop = pending.pop()
            yield hop
            pending += hop.children[::-1]

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        """A hop shows its own line; the root, which is what `trace` hands out, the whole tree."""
        return self.text() if self.op is None else self._line(places=False, times=False)

    def text(self, places: bool = False, times: bool = False) -> str:
        """The tree as text: a line for each hop, indented by depth; with file:line and microseconds where asked."""
        lines = []
        pending = [(child, 0) for child in self.children[::-1]]
        while pending:
            hop, depth = pending.pop()
            lines.append("  " * depth + hop._line(places, times))
            pending += [(child, depth + 1) for child in hop.children[::-1]]
        return "\n".join(lines)

    def _line(self, places: bool, times: bool) -> str:
        outcome = f"{type(self.error).__name__}" if self.error is not None else self.result
        line = f"{self.op}  [{self.key}]  {self.answered}  ({self.arguments}) -> {outcome}"
        if places and self.entry is not None:
            line += f"  at {self.entry.kernel.place}"
        return line + (f"  {self.seconds * 1e6:.0f} us" if times else "")


class trace(Setting):
    """A region whose operator calls are recorded: `with trace() as hops:`; then `print(hops)`."""

    def __init__(self) -> None:
        self.root = Hop()
        super().__init__(tracer=self.root)

    def __enter__(self) -> Hop:
        super().__enter__()
        return self.root

    def clone(self) -> trace:
        return self  # every call of a decorated function grows the same tree
