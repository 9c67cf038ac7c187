"""Places in a program's source, and errors that point there with a caret.

Read next: graph.py.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any, NoReturn


class Source:
    """The text of a function. For messages: `file`, `first` (the number of its first line) and `indent` there."""

    def __init__(self, text: str, file: str = "<string>", first: int = 1, indent: int = 0) -> None:
        self.lines, self.file, self.first, self.indent = text.rstrip("\n").split("\n"), file, first, indent


class Place:
    """A range of a source: lines from 1, columns from 0, as syntax trees have them."""

    __slots__ = ("column", "end_column", "end_line", "line", "source")

    def __init__(self, source: Source, node: Any) -> None:
        self.source, self.line, self.column = source, node.lineno, node.col_offset + source.indent
        self.end_line, self.end_column = (
            node.end_lineno or node.lineno,
            (node.end_col_offset or node.col_offset) + source.indent,
        )

    def __str__(self) -> str:
        return f"{self.source.file}:{self.source.first + self.line - 1}:{self.column}"

    def pointed(self, within: str = "", before: int = 2, after: int = 3) -> str:
        """Returns the lines around the place, with `~~~ <--- HERE` under it."""
        lines = self.source.lines
        shown = [f'  File "{self.source.file}", line {self.source.first + self.line - 1}{within}']
        for number in range(max(1, self.line - before), min(len(lines), self.end_line + after) + 1):
            text = lines[number - 1]
            shown.append(text)
            if self.line <= number <= self.end_line:
                start = self.column if number == self.line else len(text) - len(text.lstrip())
                stop = self.end_column if number == self.end_line else len(text)
                mark = " " * start + "~" * max(1, stop - start)
                shown.append(mark + (" <--- HERE" if number == self.end_line else ""))
        return "\n".join(shown)


class ScriptError(RuntimeError):
    """A program that is no TorchScript; the message ends with the place."""


def fail(place: Place | None, text: str, kind: type[Exception] = ScriptError) -> NoReturn:
    """Raises an error about a place of the program."""
    raise kind(f"\n{text}" + (f":\n{place.pointed()}\n" if place is not None else ""))


class NotSupportedError(RuntimeError):
    """A form of Python that TorchScript has not."""

    def __init__(self, place: Place, text: str) -> None:
        super().__init__(f"{text}:\n{place.pointed()}\n")


class UnsupportedNodeError(NotSupportedError):
    """Syntax of Python that TorchScript has not."""


def parsed(fn: Any) -> tuple[ast.FunctionDef, Source]:
    """Returns the syntax tree and the source of a Python function. OSError where there is no source."""
    try:
        lines, first = inspect.getsourcelines(fn)
        file = inspect.getsourcefile(fn) or "<string>"
    except (OSError, TypeError) as problem:
        raise OSError(
            f"Can't get source for {fn}. TorchScript requires source access in order to carry out compilation, make "
            "sure original .py files are available."
        ) from problem
    text = "".join(lines)
    plain = textwrap.dedent(text)
    tree = ast.parse(plain).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise RuntimeError(
            f"Expected a single top-level function: {file}:{first}. A lambda has no statements to compile; write `def`"
        )
    return tree, Source(text, file, first, text.index(plain[:1]))
