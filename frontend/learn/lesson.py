"""A lesson as data: a text, a template, parts that are checked, hints, minutes, and the lessons before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from redispatch.dispatch.records import dataclass


class Wrong(AssertionError):
    """A student's part gives another answer than the library's: what it was asked, what it said, what is right."""


@dataclass(frozen=True)
class Part:
    """One thing to write, and the check of it: `check(student, run)`, where `student(name, *args)` calls the function
    of that name in the student's file, and `run(test, **strategies)` tests with many drawn inputs. Raises Wrong."""

    name: str
    points: int
    check: Callable[[Any, Any], None]


@dataclass(frozen=True)
class Lesson:
    """A lesson: `row` is its name on the board. `imports`: the modules that a student's file may import. `demo`: a
    program that shows the idea. `reading` and `writing`: minutes; those of writing are an estimate. `needs`: rows."""

    row: str
    title: str
    module: str
    reading: int
    writing: int
    text: str
    demo: str
    template: str
    parts: tuple[Part, ...]
    hints: tuple[str, str, str]
    needs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


class Lessons(Mapping[str, Lesson]):
    """The lessons by row, each imported when it is asked for."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.modules = modules

    def __getitem__(self, row: str) -> Lesson:
        found: Lesson = import_module(f"{__package__}.lessons.{self.modules[row]}").LESSON
        return found

    def __iter__(self) -> Any:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)


LESSONS = Lessons({"D01": "d01"})
