"""Paths: the ways to objects from outside, by which the next call finds its own; and places in the user's text.

Read next: reads.py.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from .known import described


class Path(NamedTuple):
    """The way to an object: from a root, or from another object by an expression that is written behind it."""

    base: Path | None
    text: str

    def __str__(self) -> str:
        return self.text if self.base is None else f"{self.base}{self.text}"


def place() -> str:
    """Returns the line of the user's that runs, as text behind a reason."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("redispatch."):
        frame = frame.f_back
    return "" if frame is None else f" ({frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name})"


def named(path: Path, constants: dict[str, Any]) -> str:
    """Returns a path as text: a global by its name, what belongs to an object behind that."""
    if path.base is None:
        root = constants.get(path.text, path.text)
        return root if isinstance(root, str) else "" if isinstance(root, dict) else described(root)
    before = named(path.base, constants)
    if path.text == ".cell_contents":
        return "a variable of the function around"
    return before + path.text if before else path.text[2:-2]
