"""An import under a list of operators: what it registers, what it opens, what it refuses, and the wheel cut from it."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import redispatch as rd
from redispatch import nn, selective

# Each is a function without arguments, whose result is compared in full
PROGRAMS = {
    "training": """
def program():
    rd.manual_seed(0)
    model = rd.nn.Sequential(rd.nn.Linear(4, 8), rd.nn.ReLU(), rd.nn.Linear(8, 3))
    optimizer = rd.optim.SGD(model.parameters(), lr=0.1)
    x, y = rd.tensor([[1.0, 2, 3, 4], [4.0, 3, 2, 1]]), rd.tensor([0, 2])
    for _ in range(2):
        optimizer.zero_grad()
        rd.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return [p.tolist() for p in model.parameters()]
""",
    "images": """
def program():
    rd.manual_seed(1)
    layers = rd.nn.Conv2d(1, 2, 3), rd.nn.BatchNorm2d(2), rd.nn.GELU(), rd.nn.MaxPool2d(2), rd.nn.Flatten()
    return rd.nn.Sequential(*layers)(rd.randn(1, 1, 8, 8)).tolist()
""",
    "indices": """
def program():
    x = rd.arange(12.0).view(3, 4)
    x[0] = 5
    x[:, 1] += 1
    return (x[1:, ::2].mean(0) > 2).any().item(), x.argmax().item()
""",
    "transforms": """
def program():
    x = rd.tensor([[1.0, 2.0], [3.0, 4.0]])
    rows = rd.vmap(lambda row: rd.mm(x, row.view(2, 1)) * 2)(x)
    return rows.tolist(), rd.func.grad(lambda a: a.exp().sum())(x).tolist()
""",
}
START = "import redispatch as rd\n"
END = "\nif __name__ == '__main__':\n    print(program())\n"


def run(program, listed=None, **more):
    """Runs a program in a process of its own, under the lines of a list."""
    environment = {**os.environ, "REDISPATCH_OPS": str(listed or ""), **more}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


def listed(tmp_path, *lines):
    path = tmp_path / "operators.txt"
    path.write_text("\n".join(lines))
    return path


def traced(name):
    scope = {"rd": rd}
    exec(PROGRAMS[name], scope)
    return selective.trace(scope["program"])


def test_a_trace_has_what_the_program_calls_and_apart_from_it_what_these_call():
    layer = nn.Linear(2, 3)
    roots, closure = selective.trace(layer, rd.ones(4, 2))
    assert roots == {"aten::linear": {"float32"}}
    assert {"aten::t", "aten::addmm"} <= closure.keys()
    assert "aten::mm" not in closure
    of_gradient = selective.trace(lambda x: layer(x).sum().backward(), rd.ones(4, 2))
    assert {"aten::linear", "aten::sum"} <= of_gradient.roots.keys()
    assert {"aten::mm", "aten::t"} <= of_gradient.closure.keys()


def test_under_a_list_of_two_these_work_and_another_says_that_it_was_omitted(tmp_path):
    done = run(
        START + "x = rd.tensor([1.0, 2.0])\nprint(rd.mul(x, x).tolist(), (x + 1).tolist(), rd.ones(2))\n"
        "for call in (lambda: rd.sin(x), x.sin, lambda: rd.ops.aten.sin.default(x), lambda: rd.special.erf(x)):\n"
        "    try:\n        call()\n"
        "    except NotImplementedError as error:\n        print(str(error).splitlines()[0])\n",
        listed(tmp_path, "add", "mul"),
    )
    first, *errors = done.stdout.splitlines()
    assert first == "[1.0, 4.0] [2.0, 3.0] tensor([1., 1.])", done.stderr
    omitted = (
        "Could not run 'aten::{}' with arguments from the 'CPU' backend. This could be because the operator doesn't "
        "exist for this backend, or was omitted during the selective/custom build process (if using custom build)."
    )
    assert len(errors) == 4
    for error, name in zip(errors, ["sin", "sin", "sin", "(special_)?erf"], strict=True):
        assert re.match(re.escape(omitted).replace(r"\{\}", name), error)


def test_a_dtype_that_the_list_does_not_have_is_named(tmp_path):
    done = run(
        START + "x = rd.ones(2)\nprint((x * x).tolist())\nrd.ones(2, dtype=rd.float64) * 2",
        listed(tmp_path, "mul float32  # and no other"),
    )
    assert done.stdout == "[1.0, 1.0]\n"
    assert done.stderr.endswith("RuntimeError: dtype 'Double' not selected for kernel tag aten::mul\n")


def test_a_list_with_a_name_that_is_no_operator_is_refused(tmp_path):
    done = run(START, listed(tmp_path, "add", "ad"))
    assert done.stderr.endswith("operators.txt: there is no operator 'ad'\n")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_under_its_own_list_and_gives_the_same(name, tmp_path):
    program, path = START + PROGRAMS[name] + END, tmp_path / "operators.txt"
    expected = run(program).stdout
    for dtypes in (False, True):
        traced(name).write(path, dtypes=dtypes)
        done = run(program, path)
        assert done.stdout == expected != "", done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_any_entry_of_its_list_a_program_fails(name, tmp_path):
    program, path = START + PROGRAMS[name] + END, tmp_path / "operators.txt"
    traced(name).write(path)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    for left_out in lines:
        path.write_text("\n".join(line for line in lines if line != left_out))
        done = run(program, path)
        assert done.returncode and left_out in done.stderr, left_out


def test_the_list_leaves_the_kernels_of_users_alone(tmp_path):
    done = run(
        START + "lib = rd.library.Library('aten', 'IMPL')\nlib.impl('sin', lambda x: x + 1, 'CPU')\n"
        "own = rd.library.Library('mine', 'DEF')\nown.define('twice(Tensor x) -> Tensor')\n"
        "own.impl('twice', lambda x: x + x, 'CPU')\n"
        "print(rd.ops.mine.twice(rd.ones(1)), rd.sin(rd.ones(1)))",
        listed(tmp_path, "add"),
    )
    assert done.stdout == "tensor([2.]) tensor([2.])\n", done.stderr


TWENTY = "add sub mul div neg exp log sqrt relu mm addmm t sum mean softmax _softmax view reshape cat linear".split()
OPENED = """
import sys
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
import redispatch
print(sum(1 for path in opened if "kernels" in path), [path for path in opened if "kernels/cuda" in path])
"""
CPU = "import time\nbegin = time.process_time()\nimport redispatch\nprint(time.process_time() - begin)"


def test_an_import_with_twenty_operators_opens_no_file_of_a_room_that_it_does_not_use(tmp_path):
    path = listed(tmp_path, *TWENTY)
    run(START, path)  # which finds out where things are
    whole, few = run(OPENED).stdout.split()[0], run(OPENED, path).stdout
    assert few.endswith("[]\n")
    assert int(few.split()[0]) < 0.6 * int(whole)


@pytest.mark.long
def test_an_import_with_twenty_operators_takes_three_fifths_of_the_time(tmp_path):
    path = listed(tmp_path, *TWENTY)
    run(START, path)
    whole, few = (min(float(run(CPU, which).stdout) for _ in range(7)) for which in (None, path))
    assert few <= 0.6 * whole


def test_a_wheel_that_is_cut_for_a_program_runs_it_and_has_no_more(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(START + PROGRAMS["training"] + END)
    command = [sys.executable, "-m", "redispatch", "selective"]
    written, path = tmp_path / "operators.txt", str(program)
    for arguments in (["trace", written, path], ["cut", written, path, "--output", tmp_path]):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert done.stdout == f"{wheel}\n"

    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    packages = next(place.glob("[Ll]ib/**/site-packages"))
    for folder in {Path(sys.modules[name].__file__).parents[1] for name in ("numpy", "pytest")}:
        for entry in folder.iterdir():
            if "redispatch" not in entry.name and not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)
    python = next(place.glob("*/python"))
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def in_it(*arguments):
        return subprocess.run([python, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True)

    assert str(packages) in in_it("-c", "import redispatch; print(redispatch.__file__)").stdout
    assert in_it(program).stdout == run(program.read_text()).stdout
    refused = in_it("-c", START + "rd.fft.fft(rd.ones(2))").stderr
    assert "Could not run 'aten::fft_fft' with arguments from the 'CPU' backend" in refused
    assert not [*packages.glob("redispatch/kernels/cuda")]
