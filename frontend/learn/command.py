"""`python -m redispatch learn`: the board, a lesson's text, its template, its check, hints and demo; a class's points.

A student's doings stand in .redispatch-learn.json, in the folder where the command runs: points, hints and time.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .check import Report, check
from .lesson import LESSONS, MODULES, Lesson
from .page import write

PROGRESS = Path(".redispatch-learn.json")
NOT_GRADABLE = 2
LOOKS = 0.3  # seconds between two looks at a file that is watched


def add(commands: Any) -> None:
    """Adds the command to those of `python -m redispatch`."""
    learn = commands.add_parser("learn", help="lessons: write a part of the library, and have the library run on it")
    learn.add_argument("words", nargs="*", help="nothing, a lesson, or one of " + ", ".join(ACTIONS) + " and a lesson")
    learn.add_argument("--seed", type=int, default=0, help="check, watch, report: what is drawn")
    learn.add_argument("--json", type=Path, metavar="FILE", help="check, report: write points and messages")
    learn.add_argument("--csv", type=Path, metavar="FILE", help="report of a folder of submissions: write the points")
    learn.add_argument("--gradescope", type=Path, metavar="FILE", help="check: write Gradescope's results.json")
    learn.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs it; the exit status is 0, or for a check what `Report` says."""
    words = list(options.words)
    action = words.pop(0) if words and words[0] in ACTIONS else "text" if words else "board"
    if action in WHOLE:
        return WHOLE[action](options, *map(Path, words[:1]))
    row = words.pop(0).upper() if words else ""
    if action == "check" and not row:
        return check_all(options)
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


def show_board(options: argparse.Namespace, where: Path | None = None) -> int:
    known = progress()
    for module, rows in MODULES.items():
        lessons = [LESSONS[row] for row in rows if row in LESSONS]
        minutes = sum(lesson.reading + lesson.writing for lesson in lessons)
        print(f"{module}, {minutes / 60:.0f} h" if lessons else f"{module}: no lesson yet")
        for lesson in lessons:
            mine = known.get(lesson.row, {})
            mark = "x" if mine.get("points") == lesson.points else "~" if mine.get("points") else " "
            hints = f", {mine['hints']} hints" if mine.get("hints") else ""
            took = (
                f", passed in {(mine['finished'] - mine['started']) / 60:.0f}"
                if {"finished", "started"} <= mine.keys()
                else ""
            )
            before = [row for row in lesson.needs if row in LESSONS]
            after = f", after {', '.join(before)}" if before else ""
            print(
                f"  [{mark}] {lesson.row}  {lesson.title:<44} {mine.get('points', 0):>2}/{lesson.points}, "
                f"{lesson.reading} + {lesson.writing} min{took}{hints}{after}"
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


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def passed_before(lesson: Lesson, path: Path) -> dict[str, Path]:
    """The student's files of earlier lessons that lie beside this one and have passed as they are."""
    known, before, rest = progress(), dict[str, Path](), list(lesson.needs)
    while rest:
        row = rest.pop()
        if row in before or row not in LESSONS:
            continue
        file = path.with_name(f"{row.lower()}.py")
        if file.exists() and known.get(row, {}).get("passed") == digest(file):
            before[row] = file
        rest += LESSONS[row].needs
    return {row: file for row, file in before.items() if LESSONS[row].installed}


def checked(options: argparse.Namespace, lesson: Lesson, path: Path) -> Report:
    """Checks a file, prints how it went, and notes it."""
    earlier = passed_before(lesson, path)
    report = check(lesson, path, options.seed, earlier=earlier)
    print(report)
    if earlier and any(part.on_library for part in lesson.parts):
        print(f"The library ran on your {', '.join(sorted(earlier))}, too.")
    if report.status < NOT_GRADABLE:
        note(lesson.row, points=max(report.points, progress().get(lesson.row, {}).get("points", 0)))
    if report.status == 0:
        first = progress().get(lesson.row, {}).get("finished", int(time.time()))
        note(lesson.row, passed=digest(path), finished=first)
    return report


def run_check(options: argparse.Namespace, lesson: Lesson, where: Path | None = None) -> int:
    report = checked(options, lesson, file_of(lesson, where))
    if options.json:
        options.json.write_text(json.dumps(report.as_json(), indent=1) + "\n", encoding="utf-8")
    if options.gradescope:
        options.gradescope.write_text(json.dumps(of_gradescope(report), indent=1) + "\n", encoding="utf-8")
    return report.status


def check_all(options: argparse.Namespace) -> int:
    """Checks all files of lessons that lie here; the status is the worst."""
    there = [row for row in LESSONS if file_of(LESSONS[row], None).exists()]
    if not there:
        print("There is no lesson's file here. Begin: python -m redispatch learn start D42")
    return max((run_check(options, LESSONS[row]) for row in there), default=NOT_GRADABLE)


def watch(options: argparse.Namespace, lesson: Lesson, where: Path | None = None) -> int:
    """Checks the file now, and again whenever it is saved, until Ctrl-C."""
    path, seen = file_of(lesson, where), 0
    print(f"Watching {path}; Ctrl-C ends.", flush=True)
    try:
        while True:
            now = path.stat().st_mtime_ns if path.exists() else 0
            if now != seen:
                seen = now
                print(time.strftime("\n%H:%M:%S"))
                checked(options, lesson, path)
                sys.stdout.flush()
            time.sleep(LOOKS)
    except KeyboardInterrupt:
        print()
        return 0


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


def report(options: argparse.Namespace, where: Path | None = None) -> int:
    """Prints all that is noted of lessons, as JSON; of a folder, which has a folder for each student, their points."""
    if where is not None:
        return report_class(options, where)
    text = json.dumps(progress(), indent=1, sort_keys=True)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    return 0


def report_class(options: argparse.Namespace, where: Path) -> int:
    """Checks the files in every folder of a folder: a line of CSV for each student, with the points of each lesson."""
    if not where.is_dir():
        print(f"{where} is no folder; report takes one that has a folder for each student.")
        return NOT_GRADABLE
    students = sorted(folder for folder in where.iterdir() if folder.is_dir())
    rows = [row for row in LESSONS if any((one / f"{row.lower()}.py").exists() for one in students)]
    with open(options.csv or sys.stdout.fileno(), "w", newline="", encoding="utf-8", closefd=bool(options.csv)) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["student", *rows, "sum"])
        for student in students:
            files = {row: student / f"{row.lower()}.py" for row in rows}
            points = [check(LESSONS[row], at, options.seed).points if at.exists() else 0 for row, at in files.items()]
            table.writerow([student.name, *points, sum(points)])
    return 0


def make_page(options: argparse.Namespace, where: Path | None = None) -> int:
    """Writes the whole course into one file, to be read without a network."""
    path = where or Path("course.html")
    path.write_text(write(LESSONS, progress()), encoding="utf-8")
    print(f"{path} has the whole course.")
    return 0


WHOLE: dict[str, Callable[..., int]] = {"board": show_board, "report": report, "page": make_page}
ACTIONS: dict[str, Callable[..., int]] = {
    **WHOLE,
    "text": show_text,
    "start": start,
    "check": run_check,
    "watch": watch,
    "hint": hint,
    "demo": show_demo,
}
