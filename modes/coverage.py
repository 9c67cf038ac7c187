"""OperatorCoverageMode: which operators of a set a program calls, how often, and which it never does.

    with OperatorCoverageMode(operators("aten", rd.Tag.core)) as coverage:
        run_my_tests()
    print(coverage.fraction, coverage.missing())

What it teaches: the registry is a table that anyone may read, and a mode says which of its rows are used. It counts
what arrives below autograd, and so what a backend has to answer: `linear` as `addmm`, and the derivatives' operators.
How serious it is: for whoever writes a backend, a subclass or tests, and asks what is still to do.

Read next: logging_mode.py, which shows the calls themselves; docs/howto/backend.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import redispatch as rd
from redispatch.utils._python_dispatch import TorchDispatchMode
from redispatch.utils.text import text_table


class OperatorCoverageMode(TorchDispatchMode):
    """A region in which calls are counted by operator.

    of: the set in question: overloads (`ops.aten.add.Tensor`), or packets (`ops.aten.add`), of which any overload will
    do; `operators` gives all of a namespace. Without it whatever is called is counted, and nothing is missing.
    Results: `calls`, by member of the set, those of 0 calls left out; `others`, calls of all other operators, by
    overload; `missing()`, `fraction`, `get_table()`. Regions add up; `clear()` starts anew.
    A call that raises counts: it arrived.
    """

    def __init__(self, of: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.of = None if of is None else list(dict.fromkeys(of))
        self._members = frozenset(self.of or ())
        self.calls: Counter[Any] = Counter()
        self.others: Counter[Any] = Counter()

    def clear(self) -> None:
        """Forgets all calls."""
        self.calls.clear()
        self.others.clear()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        members = [op for op in (func, func.overloadpacket) if op in self._members]
        if self.of is None:
            members = [func]
        self.calls.update(members)
        if not members:
            self.others[func] += 1
        return func(*args, **(kwargs or {}))

    # What was found ------------------------------------------------------------------------------------------------

    def missing(self) -> list[Any]:
        """The members of the set that were never called, in its order."""
        return [op for op in self.of or () if not self.calls[op]]

    @property
    def fraction(self) -> float:
        """The part of the set that was called, from 0 to 1; 1 for an empty set."""
        return 1 - len(self.missing()) / len(self.of) if self.of else 1.0

    def get_table(self, missing: bool = False) -> str:
        """A line for each member of the set that was called, the most frequent first; with `missing`, the others."""
        ordered = sorted(self.calls, key=lambda op: (-self.calls[op], str(op)))
        rows = [("operator", "calls"), *((str(op), f"{self.calls[op]:,}") for op in ordered if self.calls[op])]
        called = len(rows) - 1
        if missing:
            rows += [(str(op), "0") for op in self.missing()]
        whole = f" of {len(self.of)}" if self.of is not None else ""
        return text_table([*rows, (f"{called}{whole} called", f"{self.calls.total():,}")])

    def __str__(self) -> str:
        return self.get_table()


def operators(namespace: str = "aten", *tags: Any) -> list[Any]:
    """All overloads of a namespace that have each of the tags (`Tag.core`, `Tag.pointwise`), sorted by name."""
    packets = getattr(rd.ops, namespace)
    found = (
        getattr(packet, overload)
        for packet in (getattr(packets, name) for name in dir(packets))
        for overload in packet.overloads()
    )
    return sorted((op for op in found if all(tag in op.tags for tag in tags)), key=str)


NOT_SUPPORTED: dict[str, str] = {}
