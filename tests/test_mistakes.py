"""The first error of a beginner: PyTorch's words, then what to do, and a traceback that shows the program.

mistakes.txt has the programs and what they say; `EXPECTTEST_ACCEPT=1 pytest tests/test_mistakes.py` writes that anew.
tests/parity/mistakes.py compares with torch.
"""

import os
import re
import statistics
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import pytest

import redispatch as rd
from redispatch import _hints, nn
from redispatch.dispatch import DEFAULT, STATE
from redispatch.nn import functional as F

from .mistakes import FILE, KEPT, MISTAKES, error_of

HERE = Path(__file__).parent
NOTHING_TO_ADD = {  # whose words say what to do
    "custom operator without fake": "Please use `f.register_fake`",
    "custom operator that returns its input": "return",
    "modes left out of order": "leave modes in the reverse order",
    "misspelled type in a schema": "Did you mean Tensor?",
    "list[int] in a schema": "A list of ints is `int[]`",
    "misspelled key": "did you mean CPU",
    "operator without kernel": "to fix       register a kernel",
    "view written in no_grad": "You can clarify your code by",
    "view of what is not contiguous": "Use .reshape(...) instead",
    "fake and real": "To fix: pass mode.from_tensor(x)",
    "load of a missing file": "No such file or directory: '/no/such/file.pt'",
}


@pytest.fixture(scope="module")
def shown():
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MISTAKES:
            error = error_of(name, {"rd": rd, "nn": nn, "F": F})
            STATE.set(DEFAULT)
            found[name] = None if error is None else (error, _hints.shown(error))
    yield found
    KEPT.clear()


def words(text):
    """Returns the text below the traceback of the last error."""
    lines = text.rpartition("Traceback (most recent call last):\n")[2].splitlines()
    return "\n".join(line for i, line in enumerate(lines) if not line.startswith("  ") or i and said(lines, i))


def said(lines, index):
    return any(re.match(r"[\w.]+(Error|Exception)?\b.*", line) and line[0] != " " for line in lines[:index])


def test_each_mistake_says_what_is_recorded(shown):
    text = ""
    for name, found in shown.items():
        said = words(found[1]) if found is not None else "works"
        said = re.sub(r"(/\S+/)?(\w+\.py):\d+|0x\w+|\(\w+/\S+:\d+\)", "...", said)
        said = re.sub(
            r"(?m)^(RecursionError|.*Can't (pickle|get local)).*", r"\1 ...", said
        )  # Python's own, by version
        text += f"# {name}\n{MISTAKES[name]}" + "".join(f"! {line}\n" for line in said.splitlines() if line) + "\n"
    if os.environ.get("EXPECTTEST_ACCEPT"):
        FILE.write_text(text)
    assert text == FILE.read_text()


def test_four_of_five_say_what_to_do(shown):
    assert len(MISTAKES) >= 125
    silent = []
    for name, found in shown.items():
        if found is not None and "\nTo fix: " not in found[1]:
            if NOTHING_TO_ADD.get(name, "?") not in found[1]:
                silent.append(name)
    assert silent == ["wrapper without __init__"]


def test_tracebacks_show_the_program(shown):
    lengths = [len(text.splitlines()) for _, text in filter(None, shown.values())]
    assert statistics.median(lengths) <= 8
    for name, found in shown.items():
        if found is not None:
            own = [line for line in found[1].splitlines() if re.match(rf'  File "{re.escape(str(HERE.parent))}/', line)]
            assert len(own) <= 2 * found[1].count("Traceback (most"), name


def test_nobody_is_sent_to_the_issues_of_another_project(shown):
    assert not [name for name, found in shown.items() if found and re.search(r"(?i)file an issue|/issues", found[1])]
    sources = [
        path
        for room in ("dispatch", "kernels", "modes", "subclasses", "frontend")
        for path in HERE.parent.glob(f"{room}/**/*.py")
    ]
    wanted = r"(?i)(file|open|report)( \w+)? (an? )?(issue|bug|bug report)\b|/issues/new|pytorch/issues \."
    found = [path.name for path in sources if re.search(wanted, path.read_text())]
    assert found == []


def test_advice_is_there_when_an_error_is_caught():
    with pytest.raises(RuntimeError) as caught:
        rd.ones(2, 3) @ rd.ones(2, 3)
    (note,) = caught.value.__notes__
    assert str(caught.value) == "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
    assert note.startswith("To fix: the columns of the first must be as many as the rows of the second (3 and 2 here)")


def test_a_fault_of_the_librarys_own_keeps_the_two_frames_where_it_arose(monkeypatch):
    monkeypatch.setattr("redispatch.nn.linear.functional", None)
    with pytest.raises(AttributeError) as caught:
        nn.Linear(2, 2)(rd.ones(2))
    before = traceback.format_exception(caught.value)
    text = _hints.shown(caught.value)
    assert text.count("/frontend/nn/") == 2 and "in forward" in text and "To fix" not in text
    assert traceback.format_exception(caught.value) == before  # the debugger still finds all of it
    rd.config.full_tracebacks = True
    try:
        assert _hints.shown(caught.value) == "".join(before)
    finally:
        rd.config.full_tracebacks = False


def test_programs_and_cells_end_so():
    program = "import redispatch as rd\nrd.nn.Linear(2, 2)(rd.ones(3))\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines() == [
        "Traceback (most recent call last):",
        '  File "<string>", line 2, in <module>',
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x3 and 2x2)",
        "To fix: the columns of the first must be as many as the rows of the second (3 and 2 here): a @ b.T turns the "
        "second; nn.Linear(3, ...) takes 3 features.",
    ]
    pytest.importorskip("IPython", reason="notebooks need it, redispatch does not")
    cells = "from IPython.testing.globalipapp import start_ipython\nshell = start_ipython()\n" + (
        "shell.run_cell('import redispatch as rd')\nshell.run_cell('rd.nn.Linear(2, 2)(rd.onse(3))')\n"
        "shell.run_cell('rd.nn.Linear(2, 2)(rd.ones(3))')\n"
    )
    done = subprocess.run([sys.executable, "-c", cells], capture_output=True, text=True)
    plain = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
    assert "To fix: did you mean ones?" in plain and "To fix: the columns" in plain and "frontend" not in plain
