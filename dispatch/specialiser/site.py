"""Inline caches: a place in the code that calls an operator remembers the last code it found.

A program calls an operator from one place with tensors of the same keys and in the same state, again and again. The
table would be asked each time by a keyset that three operations on long integers make. So each place has a `Site`:

    last = add_TTD.last
    if last.state is state.keys and {last}.tensors is a._keyset is b._keyset:
        return last.code(a, b)
    return add_TTD.find(state.keys, a._keyset, b._keyset)(a, b)

Equal keysets of tensors are nearly always one object, and what states do to keysets is interned (state.py), so `is` is
the whole test. What is missed twice in a row becomes the last. A place that sees several states in turn, such as a
handler inside another, finds the code by the state, which still costs less than the table.

Source: Deutsch and Schiffman, "Efficient implementation of the Smalltalk-80 system", 1984.

Read next: specialise.py (the table).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ..core.base import Operator
from ..core.state import StateKeys


class Codes(Protocol):
    """A `Table` of specialise.py, as far as a site asks it: code by keyset, and the sites that ask."""

    op: Operator
    sites: Any

    def get(self, keys: int, /) -> Callable[..., Any] | None: ...
    def begun(self, keys: int, /) -> Callable[..., Any]: ...


class Last:
    """The last call of a site: in such a state, for tensors with this keyset, this code. Immutable, because other
    threads read it meanwhile."""

    __slots__ = ("state", "tensors", "code")

    def __init__(self, state: StateKeys | None, tensors: int, code: Any) -> None:
        self.state, self.tensors, self.code = state, tensors, code


NOTHING = Last(None, 0, None)
STATES = 64  # that a site remembers; then it starts afresh


class Site:
    """One place that calls an operator with arguments of the same facts."""

    __slots__ = ("table", "last", "known", "missed", "__weakref__")

    def __init__(self, table: Codes) -> None:
        self.table, self.last = table, NOTHING
        self.known: dict[StateKeys, Last] = {}  # what was found in each state: modes inside one another change it
        self.missed = NOTHING  # what `find` found when it was last asked
        table.sites.add(self)

    def find(self, state: StateKeys, tensors: int = 0, *others: int) -> Callable[..., Any]:
        """The code for tensors with these keysets in such a state."""
        for keyset in others:
            if keyset is not tensors:
                tensors |= keyset
        known = self.known.get(state)
        if known is None or known.tensors is not tensors:
            return self.look_up(state, tensors)
        if known is self.missed:
            self.last = known
        self.missed = known
        return known.code

    def look_up(self, state: StateKeys, tensors: int) -> Callable[..., Any]:
        """Metadata the code up in the table."""
        table = self.table
        generation = table.op.generation
        keys = (tensors | state.added) & state.kept
        code = table.get(keys)
        if code is None:
            return table.begun(keys)
        if len(self.known) >= STATES:
            self.known.clear()
        self.known[state] = Last(state, tensors, code)
        if table.op.generation != generation:  # it was dropped meanwhile: good for this call alone
            self.forget()
        return code

    def forget(self) -> None:
        """Drops what is remembered."""
        self.known = {}
        self.last = self.missed = NOTHING


def known_at(site: str, state: str, keysets: Sequence[str], last: str = "last") -> tuple[str, str]:
    """Source of (whether `last`, of the site, is the code, how it is found otherwise)."""
    keysets = list(dict.fromkeys(keysets))
    same = f"{last}.state is {state}.keys"
    if keysets:
        same += f" and {last}.tensors is {' is '.join(keysets)}"
    return same, f"{site}.find({', '.join([f'{state}.keys', *keysets])})"


# Memos: what was worked out for combinations of facts, so that it is worked out once ----------------------------------
#
#     plan = self.plans.get((metadata, other, int))
#
# is a look-up by three facts. Specialised code knows some of them beforehand: the `int` here. What it asks is the
# memo's *part* for these, a dictionary of its own by the facts that are left; and where these are one object, that
# object alone is the key. So the code above becomes, in the residual,
#
#     plan = plans_get(metadata if metadata is other else (metadata, other))
#
# which takes half the time, since a tuple need not be made and hashed.

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
