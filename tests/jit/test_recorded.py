"""Programs in the manner of PyTorch's own tests give what PyTorch gave: results, prints, errors' classes and words."""

import pytest

import redispatch as rd

from .recorded import programs, ran

PROGRAMS = programs()
ADVICE = "File a bug if you want this", "Write it in two steps"  # nobody is sent to PyTorch's issues


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_pytorch_gave(name, monkeypatch):
    source, asked, told = PROGRAMS[name]
    for one in ("torch", "torch.nn", "torch.nn.functional"):  # what programs import
        monkeypatch.setitem(__import__("sys").modules, one, eval(one, {"torch": rd}))
    assert ran(rd, name, source, asked) == [one.replace(*ADVICE) for one in told]


def test_there_are_enough_of_them():
    assert len(PROGRAMS) >= 120
