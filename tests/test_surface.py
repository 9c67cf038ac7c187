"""The public surface changes knowingly: each public name is in surface.txt, and one that goes is in CHANGELOG.md.

    EXPECTTEST_ACCEPT=1 pytest tests/test_surface.py     writes surface.txt anew; look at its diff

Names of this library's own have a line each, with their parameters (`x=` has a default); PyTorch's names stand in
paragraphs, by module. A line that begins with `-` was in the last release. docs/project.md says when a name may go.
"""

import inspect
import json
import os
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType

import redispatch as rd
from redispatch import torch_names
from redispatch.modes import FakeTensorMode

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_name("surface.txt")
PYTORCH = torch_names.names()
# The modules whose names are this library's own, or stand under PyTorch's path beside PyTorch's
OWN = "library overrides testing dispatch modes subclasses backend viz utils._python_dispatch".split()
MARKS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def parameters(value):
    """The parameters of a function or class, for one line; nothing where there are none to be known."""
    try:
        found = [*inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):
        return ""
    shown = [f"{MARKS.get(p.kind, '')}{p.name}{'' if p.default is p.empty else '='}" for p in found]
    alone = [p.kind is p.KEYWORD_ONLY for p in found]
    if True in alone and not any(p.kind is p.VAR_POSITIONAL for p in found):
        shown.insert(alone.index(True), "*")
    return f"({', '.join(shown)})"


def own_names():
    """Yields (path, value) of the names that are not PyTorch's."""
    for name in dir(rd):
        if not name.startswith("_") and name not in PYTORCH[""] and not isinstance(getattr(rd, name), ModuleType):
            yield name, getattr(rd, name)
    for path in OWN:
        module = import_module(f"redispatch.{path}")
        for name in module.__all__:
            if not name.startswith("_") and name not in PYTORCH.get(path, ()):
                yield f"{path}.{name}", getattr(module, name)
    for name in dir(rd.Tensor):
        if not name.startswith("_") and name not in PYTORCH["Tensor"]:
            yield f"Tensor.{name}", getattr(rd.Tensor, name)


def surface():
    """The surface of today, in a process of its own: other tests may have declared operators, or imported more."""
    command = "import json; from tests.test_surface import collected; print(json.dumps(collected()))"
    ran = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    own, theirs = json.loads(ran.stdout)
    return set(own), {module: set(names) for module, names in theirs.items()}


def collected():
    """The lines of own names, and PyTorch's names by module."""
    own = {f"{name}{parameters(value)}" if callable(value) else name for name, value in own_names()}
    theirs = {}
    for module in torch_names.listings():
        names = {name for state in ("here", "forwards") for one in module.names[state].values() for name in one}
        if names:
            theirs[module.module] = sorted(names)
    return sorted(own), theirs


def recorded():
    """The contents of surface.txt: own names, those that are gone, and PyTorch's by module."""
    own, gone, theirs = set(), set(), {}
    for block in FILE.read_text().split("\n\n"):
        for line in block.splitlines() if not block.startswith("torch") else ():
            (gone if line.startswith("- ") else own).add(line.removeprefix("- "))
        if block.startswith("torch"):
            module, *names = block.split()
            theirs[module.removeprefix("torch").strip(".:")] = set(names)
    return own, gone, theirs


def write(own, gone, theirs):
    lines = [*(f"- {line}" for line in sorted(gone)), *sorted(own)]
    blocks = [
        textwrap.fill(f"torch{module and '.'}{module}: {' '.join(sorted(names))}", 120, break_on_hyphens=False)
        for module, names in sorted(theirs.items())
    ]
    FILE.write_text("\n".join(lines) + "\n\n" + "\n\n".join(blocks) + "\n")


def test_the_public_names_are_those_that_are_recorded():
    own, theirs = surface()
    if os.environ.get("EXPECTTEST_ACCEPT"):
        former, gone, before = recorded()
        lost = {f"torch.{module}.{name}" for module in before for name in before[module] - theirs.get(module, set())}
        write(own, (gone | lost | former) - own, theirs)
    known, _, before = recorded()
    assert own - known == set(), "new names: record them by EXPECTTEST_ACCEPT=1, and say what they are in CHANGELOG.md"
    assert known - own == set(), "names or parameters that are gone: first they are deprecated, see docs/project.md"
    assert theirs == before, "PyTorch's names: record them by EXPECTTEST_ACCEPT=1; CHANGELOG.md names one that goes"


def test_a_name_that_is_gone_is_in_the_changelog():
    unreleased = (ROOT / "CHANGELOG.md").read_text().partition("## [Unreleased]")[2].partition("\n## [")[0]
    _, gone, _ = recorded()
    assert [line for line in gone if line.partition("(")[0].rpartition(".")[2] not in unreleased] == []


def test_a_name_that_came_or_went_is_seen(monkeypatch, tmp_path):
    own, gone, theirs = recorded()
    monkeypatch.setitem(globals(), "FILE", tmp_path / "surface.txt")
    write(own - {"config"} | {"lost(x)"}, gone, theirs | {"fx": theirs["fx"] | {"Lost"}})
    was, _, before = recorded()
    assert own - was == {"config"} and was - own == {"lost(x)"} and before["fx"] - theirs["fx"] == {"Lost"}
    write(own, {"lost(x)"}, theirs)
    assert recorded() == (own, {"lost(x)"}, theirs)


def test_a_lost_name_and_a_changed_parameter_are_seen():
    def call(x, *rest, flag=False):
        """Has one parameter of each kind."""

    assert parameters(call) == "(x, *rest, flag=)" and parameters(lambda x, *, flag: None) == "(x, *, flag)"
    assert parameters(rd.config) == "" and parameters(FakeTensorMode).startswith("(*, allow_fallback_kernels=, ")
    own, theirs = surface()
    assert "library.PyTree" in own and {"nn.functional", "Tensor", "overrides"} < theirs.keys()
