"""Each lesson refuses its template, accepts the solution, refuses misconceptions and cheats, and ends in time."""

import sys
import time
from importlib import import_module

import pytest

import redispatch as rd
from redispatch.dispatch.core import interpreter, table
from redispatch.learn import LESSONS, check

TEACHERS = {row: import_module(f"{__package__}.{row.lower()}") for row in LESSONS}
d01 = TEACHERS["D01"]

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
    "endless loop when called": "def keyset(*a):\n    while True: pass",
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


@pytest.mark.parametrize("row", LESSONS)
def test_a_lesson_is_whole(row):
    lesson = LESSONS[row]
    words = len(lesson.text.split())
    assert lesson.row == row and lesson.title and len(lesson.hints) == 3 and lesson.writing > 0
    assert words / 180 <= lesson.reading <= words / 120 + 12
    assert all(needed in LESSONS for needed in lesson.needs) and sum(part.points for part in lesson.parts) >= 10
    assert len(TEACHERS[row].WRONG) >= 5


@pytest.mark.parametrize("row", LESSONS)
def test_the_template_is_not_graded_and_the_solution_accepted(row, tmp_path):
    report = report_of(row, LESSONS[row].template, tmp_path)
    assert report.status == 2 and report.points == 0 and "not written yet" in str(report)
    report = report_of(row, TEACHERS[row].SOLUTION, tmp_path, seed=1)
    assert report.status == 0, str(report)
    assert report.points == sum(part.points for part in LESSONS[row].parts)


@pytest.mark.parametrize(("row", "name"), [(row, name) for row in LESSONS for name in TEACHERS[row].WRONG])
def test_a_misconception_is_refused_with_an_example(row, name, tmp_path):
    part, *changes = TEACHERS[row].WRONG[name]
    report = report_of(row, changed(row, *changes), tmp_path, only=part)
    message = parts_of(report)[part]
    assert report.status == 1 and message, str(report)
    assert len(message.splitlines()) <= 10 and "yours" in message and "File" not in message


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_gets_no_point_and_outlives_nothing(name, tmp_path):
    before, loaded = (table.resolve.__code__, interpreter.dispatch_keyset.__code__), set(sys.modules)
    start = time.process_time()
    report = report_of("D01", CHEATS[name], tmp_path)
    assert report.points == 0 and report.status in (1, 2), str(report)
    assert time.process_time() - start < 20
    assert before == (table.resolve.__code__, interpreter.dispatch_keyset.__code__)
    assert "answer" not in {one for one in set(sys.modules) - loaded}
    assert (rd.ones(2) + 1).tolist() == [2.0, 2.0]


def test_a_right_file_that_cheats_besides_is_graded_by_its_answers(tmp_path):
    """Its output, and the end that it would like, are nobody's business."""
    report = report_of("D01", d01.SOLUTION + "\nprint('{\"value\": 1}')\n", tmp_path)
    assert report.status == 0
    report = report_of("D01", d01.SOLUTION + "\n" + CHEATS["fork"], tmp_path)
    assert report.points == 0
