"""Memos: what was worked out for combinations of facts, so that it is worked out once.

    plan = self.plans.get((metadata, other, int))

is a look-up by three facts. Specialised code knows some of them beforehand: the `int` here. What it asks is the memo's
*part* for these, a dictionary of its own by the facts that are left; and where these are one object, that object alone
is the key. So the code above becomes, in the residual,

    plan = plans_get(metadata if metadata is other else (metadata, other))

which takes half the time, since a tuple need not be made and hashed.
Read next: calls.py, `memo_get`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

UNKNOWN = object()  # stands for a fact that only run time tells


class Memo:
    """(fact, fact, ...) -> an answer, which is not None. It starts afresh when it holds `limit` answers.

    alike: the places of facts that are often one object, and never a tuple, for which that key could be taken.

    It may be used by several threads; an answer may then be worked out twice.
    """

    def __init__(self, limit: int, alike: Iterable[int] = ()) -> None:
        self.limit, self.alike = limit, frozenset(alike)
        self._answers: dict[tuple[Any, ...], Any] = {}
        self._parts: dict[tuple[Any, ...], dict[Any, Any]] = {}
        self._lock = threading.Lock()

    def get(self, facts: tuple[Any, ...]) -> Any:
        """The answer for these facts, or None."""
        return self._answers.get(facts)

    def __setitem__(self, facts: tuple[Any, ...], answer: Any) -> None:
        with self._lock:
            if len(self._answers) >= self.limit:
                self._clear()
            self._answers[facts] = answer
            for known, part in self._parts.items():
                self._enter(part, known, facts, answer)

    def __len__(self) -> int:
        return len(self._answers)

    def clear(self) -> None:
        """Forgets all answers."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        self._answers.clear()
        for part in self._parts.values():
            part.clear()

    def part(self, known: tuple[Any, ...]) -> dict[Any, Any]:
        """The answers for these facts, where the places of the others hold UNKNOWN; always the same dictionary.

        `key_source` tells what it is asked with.
        """
        with self._lock:
            found = self._parts.get(known)
            if found is None:
                found = self._parts[known] = {}
                for facts, answer in self._answers.items():
                    self._enter(found, known, facts, answer)
            return found

    def _enter(self, part: dict[Any, Any], known: Sequence[Any], facts: Sequence[Any], answer: Any) -> None:
        """Enters an answer in a part, if it belongs there."""
        if len(known) == len(facts) and all(k is UNKNOWN or k == fact for k, fact in zip(known, facts, strict=True)):
            left = tuple(fact for k, fact in zip(known, facts, strict=True) if k is UNKNOWN)
            part[left[0] if len(left) == 1 else left] = answer
            if self.one_key(known) and all(fact is left[0] for fact in left):
                part[left[0]] = answer

    def one_key(self, known: Sequence[Any]) -> bool:
        """Whether this part may be asked with one object for all that is left."""
        left = [place for place, fact in enumerate(known) if fact is UNKNOWN]
        return len(left) > 1 and self.alike.issuperset(left)

    def key_source(self, known: Sequence[Any], left: Sequence[str]) -> str:
        """Source of the key for this part, where the facts that are left have these names."""
        if len(left) == 1:
            return left[0]
        whole = f"({', '.join(left)})"
        return f"{left[0]} if {' is '.join(left)} else {whole}" if self.one_key(known) else whole
