"""A lesson as data: a text, a template, parts that are checked, hints, minutes, and the lessons before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Any

from redispatch.dispatch.records import dataclass

# The course: its modules in order, with the rows of each. A row is a system of the library.
MODULES = {
    "One tensor": ("D42", "D13", "D20", "D03"),
    "One call": ("D01", "D02", "D22", "D24"),
    "One kernel": ("D21", "D05", "D32", "D09", "D12", "D40"),
    "One gradient": ("D23", "D11", "D27", "D06", "D15"),
    "Layers": ("D14", "D08", "D41", "D35"),
    "Devices": ("D10", "D07", "D37", "D16"),
    "Programs as data": ("D31", "D33", "D36", "D38", "D26"),
    "A library": ("D25", "D19", "D28", "D29", "D04", "D30"),
    "A project": ("D34", "D18", "D17", "D39", "D43"),
}


class Wrong(AssertionError):
    """A student's part gives another answer than the library's: what it was asked, what it said, what is right."""


def same(question: str, yours: Any, right: Any) -> None:
    """Raises Wrong where an answer is another value than the right one, or of another type."""
    if yours != right or type(yours) is not type(right):
        raise Wrong(f"{question}\nyours   {yours!r}\nright   {right!r}")


def on_library(installed: AbstractContextManager[Any], program: Callable[[], Any], name: str) -> None:
    """Runs a program with the student's part in the library: Wrong where it raises, or answers something else."""
    right = program()
    try:
        with installed:
            yours = program()
    except Wrong:
        raise
    except Exception as problem:
        raise Wrong(f"{name} on your functions: {type(problem).__name__}: {str(problem)[:300]}") from problem
    if yours != right:
        raise Wrong(f"{name} on your functions computes other values")


@dataclass(frozen=True)
class Part:
    """One thing to write, and the check of it, which raises Wrong.

    `check(student, draw)`: `student(name, *args)` calls the function of that name in the student's file, see Student;
    `draw(test, **strategies)` calls a test with many drawn inputs, and `draw.st` are hypothesis' strategies. Where
    `on_library`, the library runs on the parts of earlier lessons meanwhile, those that the student has passed.
    """

    name: str
    points: int
    check: Callable[[Any, Any], None]
    on_library: bool = False


@dataclass(frozen=True)
class Lesson:
    """A lesson: `row` is its name on the board. `imports`: the modules that a student's file may import. `demo`: a
    program that shows the idea. `reading` and `writing`: minutes; those of writing are an estimate. `needs`: rows.

    `records`: namedtuples that go between the checker and the student's file, which has them by name. `given`: lines
    that run before the file, in its process: what else it is given. `installed(student)`: a context in which the
    library runs on the student's functions; later lessons run on those of earlier ones by it.
    """

    row: str
    title: str
    reading: int
    writing: int
    text: str
    demo: str
    template: str
    parts: tuple[Part, ...]
    hints: tuple[str, str, str]
    needs: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    records: tuple[Any, ...] = ()
    given: str = ""
    installed: Callable[[Any], AbstractContextManager[Any]] | None = None

    @property
    def module(self) -> str:
        return next(module for module, rows in MODULES.items() if self.row in rows)

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)


class Lessons(Mapping[str, Lesson]):
    """The lessons by row, in the order of the course, each imported when it is asked for."""

    def __init__(self) -> None:
        there = {path.stem.upper() for path in Path(__file__).with_name("lessons").glob("d*.py")}
        self.rows = [row for rows in MODULES.values() for row in rows if row in there]

    def __getitem__(self, row: str) -> Lesson:
        if row not in self.rows:
            raise KeyError(row)
        found: Lesson = import_module(f"{__package__}.lessons.{row.lower()}").LESSON
        return found

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


LESSONS = Lessons()
