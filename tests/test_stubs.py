"""The stubs are what the schemas say, and a type checker accepts a program that is right, and no other."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import redispatch as rd
from redispatch import stubs

ROOT = Path(rd.__file__).parent
PROJECT = Path(__file__).parents[1]

RIGHT = """
import redispatch as rd

x = rd.randn(2, 3, requires_grad=True)
y: rd.Tensor = rd.add(x, 2.5, alpha=2).view(3, 2).transpose(0, 1).exp_()
values, indices = rd.sort(y, dim=-1, descending=True)
best: rd.Tensor = y.max(1).values
parts: tuple[rd.Tensor, ...] = rd.split(y, [1, 1])
same: bool = rd.equal(x, y)
zeros = rd.zeros((2, 3), dtype=rd.float64, device="cpu")
loss = rd.nn.functional.mse_loss(x, zeros.float()) + rd.tensor([1.0]).sum()
loss.backward()
layer: rd.nn.ReLU = rd.nn.ReLU(inplace=True)
pooled: rd.Tensor = rd.nn.functional.relu(rd.nn.MaxPool2d(2, stride=1)(x))
"""
WRONG = {
    "rd.add(x)": "No overload variant|Missing positional argument|Too few arguments",
    "rd.add(x, 'two')": "incompatible type",
    "x.transpose(0, 'one')": "incompatible type|No overload variant",
    "rd.exp(x, base=2)": "Unexpected keyword argument",
    "rd.nn.MaxPool2d(2, base=2)": "Unexpected keyword argument",
    "x.sum().nothing_of_the_kind(1) + rd.no_such_function(x)": "has no attribute",
    "n: int = rd.exp(x)": "Incompatible types in assignment",
}


def mypy(tmp_path, program):
    pytest.importorskip("mypy", reason="mypy comes with the extra `lint`")
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "mypy", "--config-file", PROJECT / "pyproject.toml", path]
    return subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def test_the_stubs_are_current():
    """In a process of its own: here other tests have declared operators."""
    command = [sys.executable, "-m", "redispatch.stubs", "--check"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"run `make stubs`: {done.stdout}"


def test_the_stub_of_an_operator_has_all_its_overloads_and_forms():
    lines = (ROOT / stubs.FUNCTIONS).read_text().splitlines()
    assert [line for line in lines if line.startswith("def where(")] == [
        line for line in stubs.definition("where", rd.where).splitlines() if line.startswith("def")
    ]
    assert stubs.definition("exp", rd.exp) == "def exp(input: _Tensor, *, out: _Tensor | None = ...) -> Tensor: ..."
    assert stubs.definition("view", rd.Tensor.view).count("@overload") == 3  # a dtype, a size, a size spread out


@pytest.mark.long
def test_a_type_checker_accepts_a_right_program_and_refuses_wrong_lines(tmp_path):
    wrong = "\n".join(WRONG)
    found = mypy(tmp_path, RIGHT + wrong)
    first = len(RIGHT.splitlines()) + 1
    errors = {}
    for line in found.splitlines():
        place = re.match(r".*program\.py:(\d+): error: (.*)", line)
        if place:
            errors.setdefault(int(place[1]), []).append(place[2])
    assert set(errors) == set(range(first, first + len(WRONG))), found
    for number, text in enumerate(WRONG.values(), first):
        assert any(re.search(text, error) for error in errors[number]), found
