"""Rule tables and slots: what a layer must be told about operators, by the rooms that know them.

A layer is one function for all operators. What it cannot read off a schema (a derivative, an autocast policy, ...)
stands in a table that the layer publishes and that the operators' declarations fill.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from .errors import RegistrationError
from .marks import frozen, pure
from .registry import Undo, forget_entries

R = TypeVar("R")

TABLES: list[RuleTable[Any]] = []  # every table there is


@frozen
class RuleTable(Generic[R]):
    """What one layer knows of each operator: a dict that refuses a silent second rule and can take one back."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._rules: dict[Any, tuple[R, str]] = {}  # by operator, or by (operator, ...)
        TABLES.append(self)

    def add(self, op: Any, rule: R, place: str) -> Undo:
        """Enters a rule. RegistrationError, with both places, where there is another one already."""
        if op in self._rules:
            raise RegistrationError(
                f"{op} has a {self.what} already: {self._rules[op][1]}; the second one is at {place}"
            )
        self._rules[op] = rule, place
        forget_code(op)

        def undo() -> None:
            if self._rules.get(op) == (rule, place):
                del self._rules[op]
                forget_code(op)

        return undo

    @pure
    def get(self, op: Any) -> R | None:
        found = self._rules.get(op)
        return found[0] if found else None

    @pure
    def concerns(self, op: Any) -> bool:
        """Whether there is a rule for an operator in any combination: a tuple that begins with it."""
        return any(isinstance(key, tuple) and key[0] is op for key in self._rules)

    def place(self, op: Any) -> str | None:
        """Where the rule was written."""
        found = self._rules.get(op)
        return found[1] if found else None

    def __contains__(self, op: Any) -> bool:
        return op in self._rules

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
