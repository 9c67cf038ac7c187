"""Checks a student's file: each part by itself, on drawn inputs, against the library.

The library, what is right and the drawing are in this process; the file runs in another (child.py), which is asked. So
a part "swapped into the library" is a function here that asks the student over the pipe.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from redispatch.dispatch.records import dataclass

from .lesson import LESSONS, Lesson, Part, Wrong
from .student import Ended, Missing, Raised, Student, forbidden

EXAMPLES = 200  # drawn for each test
LINES = 10  # of a message
FORMS = (TypeError, AttributeError, LookupError, ValueError)  # raised by checks for answers that are not what was asked


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


def check(
    lesson: Lesson, path: Path, seed: int = 0, only: str = "", earlier: Mapping[str, Path] = MappingProxyType({})
) -> Report:
    """Checks a file against a lesson, or `only` one part of it; `seed` decides what is drawn.

    `earlier`: files of other lessons that the student has passed, on which the library runs in parts `on_library`.
    """
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
        message, printed = "" if not ended else "not reached", list[str]()
        if not ended:
            try:
                with on_files(earlier if part.on_library else {}):
                    with Student.of(lesson, path) as student:
                        try:
                            part.check(student, Draw(seed))
                        except FORMS as problem:
                            name, answer = student.last
                            if name is None:
                                raise
                            shown = f"{answer!r:.200}"
                            raise Wrong(
                                f"{name} is answered by something of another form: {shown} ({problem})"
                            ) from problem
                        finally:
                            printed = student.printed
            except Missing as one:
                message, missing = f"{one} is not written yet", missing + 1
            except (Wrong, Raised) as one:
                lines = str(one).splitlines()[:LINES]
                message = "\n".join([*lines, *(f"printed {line}" for line in printed)][: max(LINES, len(lines))])
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


@contextmanager
def on_files(earlier: Mapping[str, Path]) -> Iterator[None]:
    """Has the library run on files of other lessons."""
    with ExitStack() as held:
        for row, path in earlier.items():
            if installed := LESSONS[row].installed:
                student = held.enter_context(Student.of(LESSONS[row], path))
                held.enter_context(installed(student))
        yield


class Draw:
    """Calls tests with many drawn inputs, the smallest of which that fails is told. `st`: hypothesis' strategies."""

    def __init__(self, seed: int) -> None:
        try:
            import hypothesis  # needed by those who check alone
        except ImportError:
            raise RuntimeError("checking draws inputs by hypothesis: pip install redispatch[learn]") from None
        self.hypothesis, self.st, self.seed = hypothesis, hypothesis.strategies, seed

    def __call__(self, test: Callable[..., None], examples: int = EXAMPLES, **strategies: Any) -> None:
        """Calls test(**drawn) for `examples` inputs and raises its failure with the smallest of them."""
        hypothesis = self.hypothesis
        health = list(hypothesis.HealthCheck)
        options: dict[str, Any] = {
            "max_examples": examples,
            "deadline": None,
            "database": None,
            "report_multiple_bugs": False,
        }
        phases = [hypothesis.Phase.generate, hypothesis.Phase.shrink]
        quiet = hypothesis.settings(**options, suppress_health_check=health, phases=phases, print_blob=False)
        try:
            hypothesis.seed(self.seed)(quiet(hypothesis.given(**strategies)(test)))()
        except hypothesis.errors.Flaky:
            raise Wrong(
                "the same question gets different answers: does a function keep something between calls?"
            ) from None

    def cases(self, make: Callable[[random.Random], Any], count: int = 1000) -> list[Any]:
        """Returns `count` cases of make(random) without repetitions, the shortest first: the one that fails is told.

        For questions that cost less than hypothesis needs to draw one, of which many are asked then.
        """
        generator = random.Random(self.seed)
        made = {repr(case): case for case in (make(generator) for _ in range(count))}
        return [made[text] for text in sorted(made, key=lambda text: (len(text), text))]
