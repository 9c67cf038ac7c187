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

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..core.base import Operator
from ..core.state import StateKeys


class Codes(Protocol):
    """A `Table` of specialise.py, as far as a site asks it: code by keyset, and the sites that ask."""

    op: Operator
    sites: Any

    def get(self, keys: int, /) -> Callable[..., Any] | None: ...
    def __getitem__(self, keys: int, /) -> Callable[..., Any]: ...


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
            return table[keys]
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
