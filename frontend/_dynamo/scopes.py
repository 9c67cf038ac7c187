"""The names of one function: its globals, builtins and closure are where they lead to.

Read next: reads.py.
"""

from __future__ import annotations

import builtins
from types import FunctionType
from typing import Any

from .paths import Path


class Function:
    """The log, for one function: its globals and closure are where names lead to."""

    def __init__(self, log: Any, function: FunctionType) -> None:
        self.log, self.names = log, function.__globals__
        root = log.constant(function)
        for name in ("__defaults__", "__kwdefaults__"):
            log.deep(log.register(getattr(function, name), Path(root, f".{name}")))
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.log, name)
        setattr(self, name, found)
        return found

    def name(self, value: Any, name: str) -> Any:
        """A global or builtin name."""
        root = self.log.constant(self.names)
        if name in self.names:
            return self.log.register(value, Path(root, f"[{name!r}]"))
        if (root, name) not in self.log.known:
            self.log.known.add((root, name))
            self.log.guard(root, "lacks item", name)
            self.log.guard(self.log.constant(builtins.__dict__), f"item {name}", value)
        return value

    def free(self, value: Any, name: str) -> Any:
        """A variable of the function around."""
        if name == "__class__":
            return value
        return self.log.register(value, Path(self.log.constant(self.cells[name]), ".cell_contents"))

    def world(self) -> dict[str, Any]:
        """The globals, of which one is written."""
        self.log.path_of.setdefault(id(self.names), self.log.constant(self.names))
        return self.names
