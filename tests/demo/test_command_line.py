"""`python -m redispatch`: the demo, traces, the cache of kernels."""

import re
import subprocess
import sys

import pytest

import redispatch as rd
from redispatch import cache as command
from redispatch.__main__ import explain_expression, main
from redispatch.dispatch import disk as _disk
from redispatch.kernels.engine import cache

# `python -m redispatch`: its commands, what they print, and their exit statuses ---------------------------------------


def test_version(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out.strip() == rd.__version__


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "redispatch", "version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, rd.__version__)


def test_no_command_is_an_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "command" in capsys.readouterr().err


def keys(text):
    """The keys of the hops that an explanation shows."""
    return re.findall(r"\[(\w+)\]  ", text)


def test_explain_shows_the_outermost_call_only(capsys):
    assert main(["explain", "add(ones(2, requires_grad=True), 1)"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n")
    assert keys(text) == ["AutogradCPU", "CPU"]
    assert "ones" not in text
    assert text.rstrip().endswith("tensor([2., 2.], grad_fn=<AddBackward0>)")


@pytest.mark.parametrize(
    "expression, operator",
    [
        ("ones(2) + 1", "aten::add.Tensor"),
        ("ones(2).mul(3)", "aten::mul.Tensor"),
        ("-rd.ones(2)", "aten::neg"),
        ("ones(2, 3) @ ones(3, 2)", "aten::matmul"),
        ("cat([ones(1), ones(1)], dim=0)", "aten::cat"),
        ("ones(4)[1:3]", "aten::slice.Tensor"),
        ("ones(2) < 1", "aten::lt.Scalar"),
        ("add(*[ones(1), 2])", "aten::add.Tensor"),
        ("nn.functional.relu(input=ones(1))", "aten::relu"),
        ("(lambda x: x.exp())(ones(1))", "aten::exp"),
    ],
)
def test_explain_takes_every_kind_of_outermost_expression(expression, operator):
    assert explain_expression(expression).startswith(f"{operator}(")


def test_explain_says_when_no_operator_was_called():
    assert explain_expression("1 + 2") == "1 + 2 calls no operator; its value is 3"


@pytest.mark.parametrize(
    "expression, text",
    [
        ("ones(2", "SyntaxError"),
        ("nothing(1)", "NameError: name 'nothing' is not defined"),
        ("mm(ones(2, 3), ones(2, 3))", "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
    ],
)
def test_explain_reports_a_mistake_in_a_line(expression, text, capsys):
    assert main(["explain", expression]) == 1
    assert capsys.readouterr().err.startswith(text)


def test_the_demo_says_what_is_missing_and_exits_with_1(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert main(["demo", "--output", str(tmp_path)]) == 1
    assert "pip install scikit-learn" in capsys.readouterr().err


def test_the_demo_refuses_no_epochs(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["demo", "--epochs", "0"])
    assert "0 is not a positive number" in capsys.readouterr().err


PROGRAM = """
import sys
import redispatch as rd
from neighbour import two
print(sys.argv[1:], __name__)
rd.exp(rd.ones(two))
if "fail" in sys.argv:
    raise SystemExit("on purpose")
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "neighbour.py").write_text("two = 2\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    yield str(tmp_path / "program.py")
    sys.modules.pop("neighbour", None)


def test_trace_runs_a_program_and_prints_every_hop(program, capsys):
    before = sys.argv, sys.path.copy()
    assert main(["trace", program, "given", "--", "--too"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("['given', '--too'] __main__\naten.ones.default  [BackendSelect]")
    assert keys(text) == ["BackendSelect", "CPU", "AutogradCPU", "CPU"]
    assert (sys.argv, sys.path) == before


def test_trace_writes_files(program, tmp_path, capsys):
    page, events = tmp_path / "trace.html", tmp_path / "trace.json"
    assert main(["trace", program, "--html", str(page), "--chrome", str(events)]) == 0
    assert page.read_text().startswith("<!doctype html>") and '"traceEvents"' in events.read_text()
    shown = capsys.readouterr()
    assert "aten" not in shown.out and f"{page}: 4 hops" in shown.err


def test_trace_shows_what_was_recorded_of_a_program_that_fails(program, tmp_path, capsys):
    with pytest.raises(SystemExit, match="on purpose"):
        main(["trace", program, "fail"])
    assert len(keys(capsys.readouterr().out)) == 4
    assert main(["trace", str(tmp_path / "nothing.py")]) == 1
    assert "there is no program" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["version", "--", "more"])


def test_options_that_trace_does_not_have_are_the_programs(program, capsys):
    assert main(["trace", program, "given", "--rate", "0.1", "--time", "--times"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("['given', '--rate', '0.1', '--time'] __main__\n") and " us\n" in shown
    with pytest.raises(SystemExit, match="2"):
        main(["trace"])
    assert "name a program, or a module after -m" in capsys.readouterr().err


def test_trace_runs_a_module_whose_imports_are_relative(tmp_path, capsys, monkeypatch):
    package = tmp_path / "traced_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "neighbour.py").write_text("import redispatch as rd\n\ndef f(n):\n    return rd.ones(n)\n")
    (package / "main.py").write_text("import sys\nfrom .neighbour import f\nprint(f(2).tolist(), sys.argv[1:])\n")
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "-m", "traced_package.main", "more", "--rate"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("[1.0, 1.0] ['more', '--rate']\naten.ones.default  [BackendSelect]")
    for name in ("traced_package", "traced_package.neighbour"):
        sys.modules.pop(name)


def test_the_traceback_of_a_program_that_raises_begins_in_the_program(tmp_path, capsys):
    path = tmp_path / "failing.py"
    path.write_text("import redispatch as rd\n\ndef f(x):\n    return x @ rd.ones(5)\n\nf(rd.ones(2))\n")
    assert main(["trace", str(path)]) == 1
    shown = capsys.readouterr()
    assert "-> RuntimeError" in shown.out
    first, second, *_ = shown.err.splitlines()
    assert first == "Traceback (most recent call last):" and second == f'  File "{path}", line 6, in <module>'
    path.write_text("def f(:\n")
    assert main(["trace", str(path)]) == 1
    said, where, *_ = capsys.readouterr().err.splitlines()
    assert said == "the program called no operator" and where == f'  File "{path}", line 1'


def test_explain_takes_an_operator_alone():
    assert explain_expression("aten.add.Tensor").startswith("aten::add.Tensor(Tensor self")
    assert explain_expression("aten.add") == str(rd.explain(rd.ops.aten.add))
    assert explain_expression("F.relu(ones(1))").startswith("aten::relu(")


def test_explain_shows_the_way_of_a_higher_order_operator():
    text = explain_expression("cond(True, lambda x: x.exp(), lambda x: x, (ones(2),))")
    assert "aten.exp.default  [AutogradCPU]" in text


# `python -m redispatch.cache`: what it says and does ------------------------------------------------------------------


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def keep(folder, name, text="# shifted(int64, float32[])   flags: nogil\npass\n"):
    cache.directory()
    (folder / f"{name * 64}.kernel").write_bytes(b"x" * 1000)
    (folder / f"shifted-{name * 12}.py").write_text(text)


def test_what_is_there_is_listed(folder, capsys):
    keep(folder, "a")
    keep(folder, "b")
    (folder / f"{'c' * 64}.kernel").write_bytes(b"")  # its source is gone
    assert command.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1] for line in lines[:2]] == ["c" * 12, "shifted(int64, float32[])"]
    assert lines[-2:] == [f"3 kernels, 2.1 kB, in {folder}", "0 pieces of specialised code, 0 B"]


def test_clearing_removes_kernels_and_nothing_else(folder, capsys):
    keep(folder, "a")
    (folder / "notes.py").write_text("mine")
    (folder / "other.kernel").write_text("mine")
    (folder / "code").mkdir()
    (folder / "code" / f"{'d' * 64}.code").write_bytes(b"x" * 500)
    (folder / "code" / "notes.code").write_text("mine")
    assert command.main(["clear"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("removed 1 kernels, 1.0 kB") and lines[1:] == [
        "removed 1 pieces of specialised code, 500 B"
    ]
    assert sorted(file.name for file in folder.iterdir()) == ["code", "notes.py", "other.kernel"]
    assert [file.name for file in (folder / "code").iterdir()] == ["notes.code"]


@pytest.mark.parametrize("wrong", [["--operators", "adds"], ["--dtypes", "float3"], ["--dtypes", "add"]])
def test_a_wrong_name_is_an_error_that_names_it(wrong, capsys):
    with pytest.raises(SystemExit):
        command.main(["warm", *wrong])
    assert f"there is no {'operator' if wrong[0] == '--operators' else 'dtype'} {wrong[1]!r}" in capsys.readouterr().err


def test_warming_runs_the_samples(folder, capsys):
    rd.ops.aten.neg.default.forget_entries()  # code that other tests had made would be found in memory, and not kept
    assert command.main(["warm", "--operators", "neg", "--dtypes", "float32"]) == 0
    assert "aten.neg.default" in capsys.readouterr().out
    assert list((folder / "code").glob("*.code"))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--program", "train.py"], "--program is for CUDA kernels"),
        (["--cuda", "sm_90", "--program"], "--program is for CUDA kernels"),
        (["--cuda", "sm_90", "--program", "nowhere.py"], "there is no program 'nowhere.py'"),
    ],
)
def test_a_program_is_run_for_a_card(wrong, why, capsys):
    with pytest.raises(SystemExit):
        command.main(["warm", *wrong])
    assert why in capsys.readouterr().err


def test_no_directory_is_told(tmp_path, monkeypatch, recwarn):
    monkeypatch.setattr(_disk, "_told", set())
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path / "file"))
    assert command.main(["list"]) == 1
    assert "cannot be kept on disk" in str(recwarn.list[0].message)
