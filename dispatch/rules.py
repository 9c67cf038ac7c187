"""Rule tables and slots: what a layer must be told about operators, by the rooms that know them.

A layer is one function for all operators. What it cannot read off a schema (a derivative, an autocast policy, ...)
stands in a table that the layer publishes and that the operators' declarations fill.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import FrameType
from typing import Any, Generic, TypeVar

from .core.registry import LOCK, Undo, forget_entries
from .errors import RegistrationError
from .specialiser.annotations import code_of, frozen, pure

# Places of source: which files are the library's own, and how a place in one of them is written for people ------------

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # of the rooms: a checkout, or the package
# In a checkout tests, docs and programs of users lie beside the rooms; where it is installed there are only rooms.
ROOMS = ("dispatch", "kernels", "modes", "subclasses", "frontend") if os.path.isdir(HERE + "frontend") else ()


@lru_cache(1 << 10)
def is_own(file: str) -> bool:
    """Whether a file is one of the library's sources."""
    return file.startswith(HERE) and (not ROOMS or file[len(HERE) :].replace("\\", "/").startswith(ROOMS))


def short(place: str) -> str:
    """Returns a file and line from the rooms' folder on; of a file that is not the library's, the place as it is."""
    return place[len(HERE) :].replace("\\", "/") if is_own(place) else place


def caller(depth: int = 1) -> str:
    """The "file:line" of a registration: that of the caller's caller."""
    frame = sys._getframe(depth + 1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def place_of(function: Callable[..., object]) -> str:
    """The place of a function, as "file:line"; its name where it has no source."""
    code = code_of(function)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else getattr(function, "__qualname__", repr(function))


_BODIES: dict[str, tuple[Any, list[Undo]]] = {}  # by module, which execution of its body registered what


def body(*names: str) -> list[Undo]:
    """Returns where to put what undoes a registration that is made now, by the body of a module of a user's.

    names: of what can be there once. Where the body is executed anew, as `importlib.reload` does, all that its former
    execution registered is undone now. At a prompt and in a notebook, what was registered under one of these names is:
    a cell may be run again, edited or not. Functions and programs have no such list: theirs is a new one.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not frame.f_code.co_name.startswith("<"):
        return []
    spec = frame.f_globals.get("__spec__")
    if spec is None:
        typed = hasattr(sys, "ps1") and frame.f_globals.get("__name__") == "__main__"
        return _typed(names) if typed else []
    former, undoes = _BODIES.get(spec.name, (spec, []))
    if former is not spec:
        while undoes and former.origin == spec.origin:  # else it is another file of the same name
            undoes.pop()()
        undoes = []
    _BODIES[spec.name] = spec, undoes
    return undoes


_TYPED: dict[str, list[Undo]] = {}  # by the name of a thing, what undoes its registration from a prompt or a cell


def _typed(names: Iterable[str]) -> list[Undo]:
    undoes: list[Undo] = []
    for name in names:
        former = _TYPED.pop(name, [])
        while former:
            former.pop()()
        _TYPED[name] = undoes
    return undoes


R = TypeVar("R")

TABLES: list[RuleTable[Any]] = []  # every table there is


class Rule:
    """A rule in a table, and where it was written; `make` gives it, as long as nobody has asked for it."""

    __slots__ = ("place", "value", "make")

    def __init__(self, place: str, value: Any = None, make: Callable[[], Any] | None = None) -> None:
        self.place, self.value, self.make = place, value, make

    def made(self) -> Any:
        """The rule, made now unless another thread has just done so."""
        with LOCK:
            if self.make is not None:
                self.value, self.make = self.make(), None
        return self.value


@frozen
class RuleTable(Generic[R]):
    """The rules of one layer by operator: a dict that refuses a silent second rule and can take one back.

    What users register may `override`: the newest rule holds, and to take back one of them, in any order, leaves the
    others as they are.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._rules: dict[Any, Rule] = {}  # by operator, or by (operator, ...)
        self._overridden: dict[Any, list[Rule]] = {}  # the rules below it, the newest last
        TABLES.append(self)

    def add(self, op: Any, rule: R, place: str) -> Undo:
        """Enters a rule. RegistrationError, with both places, where there is another one already."""
        return self._enter(op, Rule(place, rule))

    def add_later(self, op: Any, make: Callable[[], R], place: str) -> Undo:
        """Enters a rule that is made when it is first asked for."""
        return self._enter(op, Rule(place, make=make))

    def override(self, op: Any, rule: R, place: str) -> Undo:
        """Enters a rule, which holds instead of the one that there may be, until it is taken back."""
        former = self._rules.pop(op, None)
        if former is not None:
            self._overridden.setdefault(op, []).append(former)
        return self._enter(op, Rule(place, rule))

    def _enter(self, op: Any, rule: Rule) -> Undo:
        mine = [] if is_own(rule.place) else body()
        if op in self._rules:
            raise RegistrationError(
                f"{op} has a {self.what} already: {self._rules[op].place}; the second one is at {rule.place}"
            )
        self._rules[op] = rule
        forget_code(op)

        def undo() -> None:
            below = self._overridden.get(op, [])
            if self._rules.get(op) is rule:
                del self._rules[op]
                if below:
                    self._rules[op] = below.pop()
                forget_code(op)
            elif rule in below:
                below.remove(rule)
            if not below:
                self._overridden.pop(op, None)

        mine.append(undo)
        return undo

    @pure
    def get(self, op: Any) -> R | None:
        found = self._rules.get(op)
        return None if found is None else found.value if found.make is None else found.made()

    @pure
    def concerns(self, op: Any) -> bool:
        """Whether there is a rule for an operator in any combination: a tuple that begins with it."""
        return any(isinstance(key, tuple) and key[0] is op for key in self._rules)

    def place(self, op: Any) -> str | None:
        """The place that wrote the rule."""
        found = self._rules.get(op)
        return found.place if found else None

    def __contains__(self, op: Any) -> bool:
        return op in self._rules

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the operators that have rules now."""
        return iter(list(self._rules))

    def __len__(self) -> int:
        return len(self._rules)


def forget_code(key: Any) -> None:
    """Drops the code made for the operator that a rule is about: `key`, or the first of it."""
    forget = getattr(key[0] if isinstance(key, tuple) else key, "forget_entries", None)
    if forget is not None:
        forget()


@frozen
class Slot(Generic[R]):
    """One thing that a layer needs and an upper room provides: `slot.fill(value)` below, `slot()` inside the layer."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._value: R | None = None

    def fill(self, value: R) -> R:
        if self._value is not None:
            forget_entries()  # code was made with the former one
        self._value = value
        return value

    @pure
    def __call__(self) -> R:
        if self._value is None:
            raise RuntimeError(f"nothing has been provided for: {self.what}")
        return self._value
