"""What a benchmark row is: one function of the module `t`, which is redispatch or torch, written once for both.

    @row("add(a, b)")
    def add(t):
        a, b = t.ones(16), t.ones(16)
        return lambda: t.add(a, b)

    call("add(a, b)", "a, b = t.ones(16), t.ones(16)", "t.add(a, b)")  # the same, in short

The function prepares its inputs and returns the call to be timed. A call that belongs inside a context manager (a mode,
autocast) is returned as `Under(context, call)`: the harness enters the context around each round, so that one
library's context is never active while the other is timed. Read `harness.py` next.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class Under:
    """A call that is timed inside the context which `context()` makes."""

    context: Callable[[], AbstractContextManager[Any]]
    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `target` is the largest ratio ours/torch that we would be content with.

    A row that comes `later` needs a part of the library that is not there yet: its failure is reported as that.
    `moves` is for calls that memory bounds: how many bytes they read and write, at least.
    """

    name: str
    build: Callable[[ModuleType], Callable[[], Any] | Under]
    target: float | None = None
    later: bool = False
    moves: int | None = None


class Group(list[Row]):
    """The rows of one file, in the order in which they are written."""

    def row(
        self, name: str, target: float | None = None, later: bool = False, moves: int | None = None
    ) -> Callable[[Callable], Callable]:
        """A decorator that adds the function below it as a row."""

        def add(build: Callable) -> Callable:
            self.append(Row(name, build, target, later, moves))
            return build

        return add

    def call(self, name: str, setup: str, call: str, **options: Any) -> None:
        """Adds the row of an expression, and what to do before it is timed, in the names of the caller's module."""
        made: dict[str, Any] = {}
        exec(f"def build(t):\n    {setup}\n    return lambda: {call}\n", sys._getframe(1).f_globals, made)
        self.row(name, **options)(made["build"])


def part(t: ModuleType, path: str) -> ModuleType:
    """The submodule `path` of the library, imported: `part(t, "utils._pytree")`."""
    return importlib.import_module(f"{t.__name__}.{path}")
