"""`python -m redispatch learn`: the board, a lesson's text, its template, its check, hints and demo.

What a student has done stands in .redispatch-learn.json, in the folder where the command runs: points, hints and time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .check import Report, check
from .lesson import LESSONS, Lesson

PROGRESS = Path(".redispatch-learn.json")
NOT_GRADABLE = 2


def add(commands: Any) -> None:
    """Adds the command to those of `python -m redispatch`."""
    learn = commands.add_parser("learn", help="lessons: write a part of the library, and have the library run on it")
    learn.add_argument("words", nargs="*", help="nothing, a lesson, or one of " + ", ".join(ACTIONS) + " and a lesson")
    learn.add_argument("--seed", type=int, default=0, help="check: what is drawn")
    learn.add_argument("--json", type=Path, metavar="FILE", help="check, report: write points and messages")
    learn.add_argument("--gradescope", type=Path, metavar="FILE", help="check: write Gradescope's results.json")
    learn.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs it; the exit status is 0, or for a check what `Report` says."""
    words = list(options.words)
    action = words.pop(0) if words and words[0] in ACTIONS else "text" if words else "board"
    row = words.pop(0).upper() if words else ""
    if action in ("board", "report"):
        return ACTIONS[action](options)
    if row not in LESSONS:
        print(f"There is no lesson {row or '(none was named)'}; there are {', '.join(LESSONS)}.")
        return NOT_GRADABLE
    return ACTIONS[action](options, LESSONS[row], *map(Path, words[:1]))


def progress() -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(PROGRESS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def note(row: str, **facts: Any) -> None:
    """Notes something about a lesson, beside what is noted already."""
    known = progress()
    known[row] = {**known.get(row, {}), **facts}
    PROGRESS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def file_of(lesson: Lesson, where: Path | None) -> Path:
    """The student's file: `where`, or in that folder, or here."""
    name = f"{lesson.row.lower()}.py"
    return Path(name) if where is None else where / name if where.is_dir() else where


def show_board(options: argparse.Namespace) -> int:
    known = progress()
    for row in LESSONS:
        lesson, mine = LESSONS[row], known.get(row, {})
        most = sum(part.points for part in lesson.parts)
        print(
            f"{row}  {lesson.module:<14} {lesson.title:<28} {mine.get('points', 0):>2}/{most} points, "
            f"{lesson.reading} + {lesson.writing} min, {mine.get('hints', 0)} hints"
            + (f", after {', '.join(lesson.needs)}" if lesson.needs else "")
        )
    return 0


def show_text(options: argparse.Namespace, lesson: Lesson, where: Path | None = None) -> int:
    print(lesson.text.strip())
    print(f"\nBegin: python -m redispatch learn start {lesson.row}")
    return 0


def start(options: argparse.Namespace, lesson: Lesson, where: Path | None = None) -> int:
    """Copies the template, unless there is such a file."""
    path = file_of(lesson, where)
    if path.exists():
        print(f"{path} is there already; it stays as it is.")
        return NOT_GRADABLE
    path.write_text(lesson.template, encoding="utf-8")
    note(lesson.row, started=int(time.time()))
    print(f"{path} is yours. Check it: python -m redispatch learn check {lesson.row} {path}")
    return 0


def run_check(options: argparse.Namespace, lesson: Lesson, where: Path | None = None) -> int:
    report = check(lesson, file_of(lesson, where), options.seed)
    print(report)
    if options.json:
        options.json.write_text(json.dumps(report.as_json(), indent=1) + "\n", encoding="utf-8")
    if options.gradescope:
        options.gradescope.write_text(json.dumps(of_gradescope(report), indent=1) + "\n", encoding="utf-8")
    if report.status < NOT_GRADABLE:
        note(lesson.row, points=max(report.points, progress().get(lesson.row, {}).get("points", 0)))
    return report.status


def of_gradescope(report: Report) -> dict[str, Any]:
    """The report in the form that Gradescope reads."""
    tests = [
        {"name": one.part, "score": one.points, "max_score": one.most, "output": one.message} for one in report.results
    ]
    return {"score": report.points, "output": report.message, "tests": tests}


def hint(options: argparse.Namespace, lesson: Lesson, where: Path | None = None) -> int:
    """Gives the next hint, and then all of them."""
    used = min(progress().get(lesson.row, {}).get("hints", 0) + 1, len(lesson.hints))
    note(lesson.row, hints=used)
    for number, text in enumerate(lesson.hints[:used], 1):
        print(f"{number}. {text}")
    return 0


def show_demo(options: argparse.Namespace, lesson: Lesson, where: Path | None = None) -> int:
    print(lesson.demo.strip() + "\n")
    exec(compile(lesson.demo, f"<demo of {lesson.row}>", "exec"), {"__name__": "__main__"})
    return 0


def report(options: argparse.Namespace) -> int:
    """Prints all that is noted of lessons, as JSON."""
    text = json.dumps(progress(), indent=1, sort_keys=True)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    return 0


ACTIONS: dict[str, Callable[..., int]] = {
    "board": show_board,
    "text": show_text,
    "start": start,
    "check": run_check,
    "hint": hint,
    "demo": show_demo,
    "report": report,
}
