"""A cell of a notebook may be run again, edited or not: what it registers replaces what it has registered."""

import subprocess
import sys

import pytest

CELL = """
import redispatch as rd
from redispatch.dispatch import STATE, below, define_key, include, keyset, run, within
from redispatch.dispatch.layers.layer import layer
from redispatch.library import Library

define_key("Audit", above="AutogradFunctionality")
AUDIT = keyset("Audit")
seen = []

@layer("Audit")
def audit(op, keys, stack):
    seen.append((NUMBER, op._opname))
    with within(STATE.get().excluding(AUDIT)):
        return run(op, keys & below("Audit"), stack)

rd.define_backend("Abacus")
lesson = Library("lesson", "DEF")
fallbacks = Library("_", "IMPL")
"""
NEXT = """
lesson.define("bump(Tensor x) -> Tensor")
lesson.impl("bump", lambda x: x + NUMBER, "CompositeExplicitAutograd")
fallbacks.fallback(lambda op, *args: NUMBER, "AutogradAbacus")

@rd.library.custom_op("lesson2::twice", mutates_args=())
def twice(x: rd.Tensor) -> rd.Tensor:
    return x * 2 + NUMBER

with include(AUDIT):
    found = rd.ops.lesson.bump(rd.ones(1)).item(), twice(rd.ones(1)).item()
print(NUMBER, found, sorted({number for number, _ in seen}))
"""
PROMPT = """
import linecache, sys, types
sys.ps1 = ">>> "  # as at a prompt, and as notebooks have it
here = sys.modules["__main__"]
for number, cell in enumerate(cells):
    text, name = cell.replace("NUMBER", str(number // 4)), f"<cell {number}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec"), here.__dict__)
"""


def test_a_cell_that_is_run_again_replaces_what_it_registered():
    """Twice the same, then edited; each in a second cell, too, whose library stays."""
    cells = [CELL, NEXT, NEXT, CELL, NEXT, NEXT, CELL, NEXT]
    done = subprocess.run([sys.executable, "-c", f"cells = {cells!r}\n{PROMPT}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0 (1.0, 2.0) [0]"] * 2 + ["1 (2.0, 3.0) [0]"] * 2 + ["1 (2.0, 3.0) [1]"]


def test_a_program_that_registers_twice_is_told():
    program = "from redispatch.dispatch import define_key\n" + 'define_key("Audit", above="Python")\n' * 2
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "there is a dispatch key of the name 'Audit' already" in done.stderr


def test_a_notebook_is_a_prompt():
    """Python says so by `sys.ps1`."""
    pytest.importorskip("IPython", reason="notebooks need it, redispatch does not")
    program = "from IPython.core.interactiveshell import InteractiveShell as S\nimport sys\nS()\nassert sys.ps1"
    subprocess.run([sys.executable, "-c", program], check=True)
