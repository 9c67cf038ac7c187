"""Each lesson refuses its template, accepts the solution, refuses misconceptions and cheats, and ends in time."""

import sys
import time
from collections import namedtuple
from importlib import import_module

import pytest

import redispatch as rd
from redispatch.dispatch.core import interpreter, table
from redispatch.learn import LESSONS, check
from redispatch.learn.lesson import MODULES

from .. import drawing

TEACHERS = {row: import_module(f"{__package__}.{row.lower()}") for row in LESSONS}

# A file gets at these by way of what it may import, or of what every object has. Each sees to it that the solution's
# functions are not what answers.
BY_WAY_OF = "import typing\nsys = typing.sys\nos = sys.modules['os']\n"
CHEATS = {
    "exit": BY_WAY_OF + "os._exit(0)",
    "exit politely": "raise SystemExit(0)",
    "forged output": BY_WAY_OF
    + "for fd in range(3, 20):\n    try: os.write(fd, b'{\"value\": 0}\\n' * 400)\n    except OSError: pass",
    "import of the library": "from redispatch.dispatch.core.table import resolve",
    "import of the library, hidden": (
        BY_WAY_OF + "vars(sys.modules['importlib._bootstrap'])['_gcd_import']('redispatch')"
    ),
    "import of torch": "import torch",
    "reference patched": BY_WAY_OF + "sys.modules['redispatch'].dispatch.core.table.resolve = lambda *a: None",
    "frames": "import typing\nframe = typing.sys._getframe(1)\nframe.f_locals['scope'] = {}",
    "files": BY_WAY_OF + "os.open('/etc/passwd', 0)",
    "network": BY_WAY_OF + "sys.modules['_socket']",
    "fork": BY_WAY_OF + "while True:\n    try: os.fork()\n    except OSError: pass",
    "processes": BY_WAY_OF + "os.posix_spawn('/bin/sleep', ['sleep', '1000'], {})",
    "memory": "much = [0] * (1 << 30)",
    "endless loop": "while True: pass",
    "atexit": BY_WAY_OF + "sys.modules['atexit'].register(print)",
    "__del__": "class C:\n    def __del__(self):\n        while True: pass\nC()",
    "signals": BY_WAY_OF + "os.kill(os.getppid(), 9)",
}


def changed(row, *parts):
    """The solution with some of its text replaced."""
    text = TEACHERS[row].SOLUTION
    for old, new in zip(parts[::2], parts[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    return text


def report_of(row, text, folder, seed=0, only=""):
    file = folder / "answer.py"
    file.write_text(text)
    return check(LESSONS[row], file, seed, only)


def parts_of(report):
    return {one.part: one.message for one in report.results}


SOLVED = [row for row in LESSONS if drawing.one_in(2, "solution", row)]
MISTAKEN = [(row, name) for row in SOLVED for name in drawing.draw(TEACHERS[row].WRONG, "wrong", row)]
CHEATED = [(row, name) for name in CHEATS for row in drawing.draw(LESSONS, "cheat", name)]
SEEDS = 20 if drawing.everything else 1


def test_the_lessons_are_those_of_the_course():
    rows = [row for rows in MODULES.values() for row in rows]
    assert len(set(rows)) == 43 and set(LESSONS) <= set(rows)


@pytest.mark.parametrize("row", LESSONS)
def test_a_lesson_is_whole(row):
    lesson = LESSONS[row]
    words = len(lesson.text.split())
    assert lesson.row == row and lesson.title and len(lesson.hints) == 3 and lesson.writing > 0
    assert words / 180 <= lesson.reading <= words / 120 + 12
    assert lesson.points >= 10
    assert len(TEACHERS[row].WRONG) >= 5
    assert {part for part, *_ in TEACHERS[row].WRONG.values()} <= {part.name for part in lesson.parts}


def test_lessons_need_earlier_ones_of_the_course_alone():
    order = [row for rows in MODULES.values() for row in rows]
    for row in LESSONS:
        assert set(LESSONS[row].needs) <= set(order[: order.index(row)]), row


@pytest.mark.parametrize("row", LESSONS)
def test_the_template_is_not_graded(row, tmp_path):
    report = report_of(row, LESSONS[row].template, tmp_path)
    assert report.status == 2 and report.points == 0 and "not written yet" in str(report)


@pytest.mark.parametrize("row", SOLVED)
def test_the_solution_is_accepted(row, tmp_path):
    for seed in range(SEEDS):
        report = report_of(row, TEACHERS[row].SOLUTION, tmp_path, seed=seed + drawing.number(row) % 1000)
        assert report.status == 0, str(report)
        assert report.points == LESSONS[row].points


@pytest.mark.parametrize(("row", "name"), MISTAKEN)
def test_a_misconception_is_refused_with_an_example(row, name, tmp_path):
    part, *changes = TEACHERS[row].WRONG[name]
    report = report_of(row, changed(row, *changes), tmp_path, only=part)
    message = parts_of(report)[part]
    assert report.status in (1, 2) and message, str(report)
    assert len(message.splitlines()) <= 10 and "File" not in message


@pytest.mark.parametrize("row", drawing.draw(LESSONS, "endless", count=2))
def test_an_endless_loop_ends(row, tmp_path):
    report = report_of(row, LESSONS[row].template.replace("raise NotImplementedError", "while True: pass"), tmp_path)
    assert report.points == 0 and report.status == 2 and "endless loop" in str(report)


@pytest.mark.parametrize(("row", "name"), CHEATED)
def test_a_cheat_gets_no_point_and_outlives_nothing(row, name, tmp_path):
    before, loaded = (table.resolve.__code__, interpreter.dispatch_keyset.__code__), set(sys.modules)
    start = time.process_time()
    report = report_of(row, CHEATS[name], tmp_path)
    assert report.points == 0 and report.status in (1, 2), str(report)
    assert time.process_time() - start < 20
    assert before == (table.resolve.__code__, interpreter.dispatch_keyset.__code__)
    assert "answer" not in {one for one in set(sys.modules) - loaded}
    assert (rd.ones(2) + 1).tolist() == [2.0, 2.0]


def test_a_right_file_that_cheats_besides_is_graded_by_its_answers(tmp_path):
    """Its output, and the end that it would like, are nobody's business."""
    solution = TEACHERS["D01"].SOLUTION
    report = report_of("D01", solution + "\nprint('{\"value\": 1}')\n", tmp_path)
    assert report.status == 0
    report = report_of("D01", solution + "\n" + CHEATS["fork"], tmp_path)
    assert report.points == 0


def test_what_a_file_prints_is_told_with_the_answer_that_is_wrong(tmp_path):
    text = changed("D01", *TEACHERS["D01"].WRONG["fallthroughs stop a call"][1:])
    text = text.replace("def stops_at(keys, passes):", "def stops_at(keys, passes):\n    print('asked for', len(keys))")
    assert "printed asked for 1" in parts_of(report_of("D01", text, tmp_path, only="stops_at"))["stops_at"]


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("x.send({'call': 'system', 'of': 0, 'args': []})", "not given"),
        ("x.send({'call': '__getattribute__', 'of': 0, 'args': ['__globals__']})", "not given"),
        ("x.send({'call': '__call__', 'of': 99, 'args': []})", "something else"),
        ("x.send({'value': {'yours': -7}})", "something else"),
        ("x.send({'value': {'exec': 'import os'}})", "something else"),
        ("x.write('[' * 100000 + '\\n'); x.flush()", "something else"),
    ],
)
def test_a_file_that_writes_to_the_checker_itself_gets_nothing(way, message, tmp_path):
    """By way of `print`, which is a method of what it would write with."""
    from redispatch.learn.student import Ended, Student

    file = tmp_path / "answer.py"
    file.write_text(f"def f(given):\n    x = print.__self__\n    {way}\n    return 1\n")
    with pytest.raises(Ended, match=message), Student(file) as student:
        student("f", len)


def test_functions_go_both_ways_and_objects_stay_where_they_are(tmp_path):
    from redispatch.learn.student import Raised, Student

    file = tmp_path / "answer.py"
    file.write_text(
        "class Counter:\n"
        "    def __init__(self): self.n = 0\n"
        "    def add(self, n): self.n += n; return self\n"
        "    def count(self): return self.n\n"
        "def twice(f, x): return f(f(x))\n"
        "def caught(f):\n"
        "    try: return f()\n"
        "    except ZeroDivisionError as e: return str(e)\n"
        "def adder(n): return lambda x: (x + n, {1: {2}}, b'a', 1j, P(n, x))\n"
        "def same(a, b): return a is b and a == b\n"
    )
    record = namedtuple("P", "a b")
    with Student(file, records=[record]) as student:
        assert student("twice", lambda x: x + 3, 1) == 7
        assert student("caught", lambda: 1 / 0) == "division by zero"
        found = student("adder", 2)(5)
        assert found == (7, {1: {2}}, b"a", 1j, record(2, 5)) and type(found[4]) is record
        counter = student("Counter")
        assert counter.ask("add", 2) is counter and counter.ask("add", 3).ask("count") == 5
        thing = object()
        assert student("same", thing, thing) is True and student("twice", lambda x: x, thing) is thing
        assert student("twice", lambda n: student("twice", lambda x: x + n, n), 1) == 9
        with pytest.raises(Raised, match=r"KeyError.*") as error:
            student("twice", {}.__getitem__, 3)
        assert error.value.kind == "KeyError"
