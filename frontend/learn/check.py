"""Checks a student's file: each part by itself, on drawn inputs, against the library.

The library, what is right and the drawing are in this process; the file runs in another (child.py), which is asked. So
a part "swapped into the library" is a function here that asks the student over the pipe.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redispatch.dispatch.records import dataclass

from .lesson import Lesson, Part, Wrong
from .student import Ended, Missing, Raised, Student, forbidden

EXAMPLES = 200  # drawn for each test
LINES = 10  # of a message


@dataclass(frozen=True)
class Result:
    """The outcome of one part."""

    part: str
    points: int
    most: int
    message: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """The outcome of a file: `status` is 0 where all holds, 1 where some fails, 2 where there is nothing to grade (the
    template untouched, something forbidden, out of time), 3 where the checker itself failed."""

    lesson: str
    status: int
    results: tuple[Result, ...]
    message: str = ""

    @property
    def points(self) -> int:
        return sum(one.points for one in self.results)

    def as_json(self) -> dict[str, Any]:
        parts = [
            {"name": r.part, "points": r.points, "max": r.most, "message": r.message, "seconds": round(r.seconds, 2)}
            for r in self.results
        ]
        return {
            "lesson": self.lesson,
            "status": self.status,
            "points": self.points,
            "message": self.message,
            "parts": parts,
        }

    def __str__(self) -> str:
        lines = [f"{self.lesson}: {self.message}"] if self.message else []
        for one in self.results:
            word = "ok" if one.points == one.most else "wrong"
            lines.append(f"{word:<5} {one.part:<20} {one.points}/{one.most}  {one.seconds:.1f} s")
            lines += [f"      {line}" for line in one.message.splitlines()]
        return "\n".join(lines)


def check(lesson: Lesson, path: Path, seed: int = 0, only: str = "") -> Report:
    """Checks a file against a lesson, or `only` one part of it; `seed` decides what is drawn."""
    try:
        found = forbidden(path.read_text(encoding="utf-8"), lesson.imports)
    except (OSError, SyntaxError, ValueError) as problem:
        return Report(lesson.row, 2, (), f"{path} cannot be read: {problem}")
    if found:
        allowed = ", ".join(lesson.imports) or "the standard library's tools"
        return Report(lesson.row, 2, (), f"not allowed here: {'; '.join(found)}. A file may import {allowed}.")
    results: list[Result] = []
    missing, ended = 0, ""
    parts = [part for part in lesson.parts if only in ("", part.name)]
    for part in parts:
        start = time.monotonic()
        message = "" if not ended else "not reached"
        if not ended:
            try:
                with Student(path, lesson.imports) as student:
                    student.answer("the file was read")
                    part.check(student, drawing(seed))
            except Missing as one:
                message, missing = f"{one} is not written yet", missing + 1
            except (Wrong, Raised) as one:
                message = "\n".join(str(one).splitlines()[:LINES])
            except Ended as one:
                message = ended = str(one)
            except Exception as problem:
                return Report(lesson.row, 3, tuple(results), f"the checker failed at {part.name}: {problem!r}")
        results.append(result(part, message, time.monotonic() - start))
    if ended or missing == len(parts):
        return Report(lesson.row, 2, tuple(results), ended or "nothing is written yet")
    return Report(lesson.row, int(any(one.message for one in results)), tuple(results))


def result(part: Part, message: str, seconds: float) -> Result:
    return Result(part.name, 0 if message else part.points, part.points, message, seconds)


def drawing(seed: int) -> Callable[..., None]:
    """Returns `run(test, **strategies)`, which calls a test with many drawn inputs and raises its smallest failure."""
    try:
        import hypothesis  # needed by those who check alone
    except ImportError:
        raise RuntimeError("checking draws inputs by hypothesis: pip install redispatch[learn]") from None

    def run(test: Callable[..., None], **strategies: Any) -> None:
        health = list(hypothesis.HealthCheck)
        options: dict[str, Any] = {"max_examples": EXAMPLES, "deadline": None, "database": None}
        phases = [hypothesis.Phase.generate, hypothesis.Phase.shrink]
        quiet = hypothesis.settings(**options, suppress_health_check=health, phases=phases, print_blob=False)
        try:
            hypothesis.seed(seed)(quiet(hypothesis.given(**strategies)(test)))()
        except hypothesis.errors.Flaky:
            raise Wrong(
                "the same question gets different answers: does a function keep something between calls?"
            ) from None

    return run
