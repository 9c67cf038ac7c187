"""The stages of compiled graphs: as text, as a page, and as a command."""

import os
import subprocess
import sys

import pytest

import redispatch as rd
from redispatch._inductor import compile_fx_inner
from redispatch._inductor.stages import page, stages_of, text, watched
from redispatch.fx.experimental.proxy_tensor import make_fx
from tests.viz.browser import Browser, chromium

needs_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium is installed; `make browser` installs one")


def program(x, w):
    return (x @ w).tanh().softmax(-1) + rd.linalg.inv(w)[0]


@pytest.fixture(scope="module")
def stages():
    inputs = rd.randn(4, 6), rd.randn(6, 6)
    with watched() as graphs:
        compile_fx_inner(make_fx(program)(*inputs), inputs)
    compile_fx_inner(make_fx(program)(*inputs), inputs)
    assert len(graphs) == 1
    return stages_of(graphs)


def test_each_nest_has_its_loops_its_llvm_and_its_assembly(stages):
    names = [stage.name for stage in stages]
    assert names[:3] == ["graph", "formulas", "steps"]
    nests = [name.removesuffix(": loops") for name in names if name.endswith(": loops")]
    assert nests and names[3:] == [f"{nest}: {part}" for nest in nests for part in ("loops", "LLVM", "assembly")]
    loops, llvm, assembly = stages[3:6]
    assert loops.text.startswith(f"def {nests[0]}(lo, hi") and "tanh(" in loops.text and "tanh" in loops.caption
    assert f"@{nests[0].rpartition('_')[0]}." in llvm.text and "fmuladd" in llvm.text
    assert len(assembly.main) > 10 and "redispatch_call" in assembly.text


def test_each_node_says_where_it_is_computed(stages):
    boxes = {box.title: (box.kind, box.lines[-1:]) for box in stages[2].drawn.graph.boxes}
    assert boxes["mm"] == ("again", ["a product"])
    assert boxes["tanh"][0] == "saved" and boxes["tanh"][1][0].startswith("in fused_")
    assert any(line == ["a call"] for _, line in boxes.values())
    inside = [box.title for box in stages[3].drawn.graph.boxes if box.kind == "saved"]
    assert inside == stages[3].caption.removeprefix("computes ").split(", ")


def test_the_command_prints_the_stages_and_writes_the_page(tmp_path):
    script = tmp_path / "small.py"
    script.write_text(
        "import sys\n"
        "import redispatch as rd\n"
        "from redispatch._inductor import compile_fx_inner\n"
        "from redispatch.fx.experimental.proxy_tensor import make_fx\n"
        "x = rd.ones(8)\n"
        "compile_fx_inner(make_fx(lambda x: x.exp() * float(sys.argv[1]))(x), [x])\n"
    )

    def run(*words):
        command = [sys.executable, "-m", "redispatch", "compile", *words]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "REDISPATCH_QUIET": "1"})

    done = run(str(script), "2.5")
    assert done.returncode == 0, done.stderr
    for word in (
        "--- graph",
        "--- steps",
        "--- fused_exp_mul_0: loops (computes exp, mul)",
        "define",
        "assembly (",
        "mulps",
    ):
        assert word in done.stdout
    done = run("--html", str(tmp_path / "stages.html"), str(script), "2.5")
    assert "stages.html: 5 stages" in done.stderr and (tmp_path / "stages.html").stat().st_size > 10_000
    script.write_text("print(1)")
    done = run(str(script))
    assert done.stdout == "1\n" and "compiled no graph" in done.stderr


@needs_browser
def test_the_page_shows_code_and_picture(stages, tmp_path):
    page(stages, "a program", tmp_path / "stages.html")
    with Browser() as browser:
        browser.open(tmp_path / "stages.html")
        browser.press("End")
        assert browser.value("document.querySelector('#text h2').textContent").endswith(": assembly")
        assert browser.value("document.querySelectorAll('#text pre .new').length") == len(stages[-1].main)
        assert browser.value("document.querySelector('#text pre').scrollTop") > 0
        assert browser.value("document.querySelectorAll('#drawing rect.saved').length") > 0
        assert browser.problems == []


def test_text_has_what_counts(stages):
    found = text(stages)
    assert found.count("--- ") == len(stages) and "redispatch_call" not in found and "PyLong" not in found
