"""Archives are data: one that nobody wrote by `save` is refused with a reason, and nothing in it runs."""

import io
import json
import zipfile

import pytest

import redispatch as rd
from redispatch import nn


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.n = nn.Linear(2, 2), 1

    def forward(self, x, flag: bool = True):
        for _ in range(self.n):
            if flag:
                x = self.linear(x)
        return nn.functional.dropout(x, 0.5, False)


@pytest.fixture(scope="module")
def written():
    file = io.BytesIO()
    rd.jit.save(rd.jit.script(Counts()), file)
    return file.getvalue()


def changed(data, change):
    """An archive in which a function has changed the program."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("program.json"):
                program = json.loads(content)
                change(program)
                content = json.dumps(program).encode()
            new.writestr(name, content)
    result.seek(0)
    return result


def nodes(program):
    """All nodes, those of inner blocks, too."""
    waiting = [row["graph"] for row in program["functions"]]
    while waiting:
        block = waiting.pop()
        for node in block["nodes"]:
            yield node
            waiting += node[5]


def first(program, kind):
    return next(node for node in nodes(program) if node[0] == kind)


def put(container, key, value):
    container[key] = value


HOSTILE = {
    "an operator that there is not": lambda p: put(first(p, "aten::linear"), 3, "os::system"),
    "a new node": lambda p: (put(first(p, "aten::linear"), 3, None), put(first(p, "aten::linear"), 0, "prim::Exec")),
    "Python": lambda p: (put(first(p, "aten::linear"), 3, None), put(first(p, "aten::linear"), 0, "prim::PythonOp")),
    "an attribute of Python": lambda p: put(first(p, "prim::GetAttr")[4], "name", "__class__"),
    "an attribute that a type declares": lambda p: put(p["types"][0]["attributes"], "__dict__", "int"),
    "a method as an attribute": lambda p: put(p["types"][0]["attributes"], "state_dict", "int"),
    "a part of every module": lambda p: put(p["module"]["plain"], "_forward_hooks", 1),
    "a function of nowhere": lambda p: put(first(p, "prim::FunctionalCall")[4], "name", "__import__"),
    "a helper of a module": lambda p: put(first(p, "prim::FunctionalCall")[4], "name", "sys"),
    "a value from elsewhere": lambda p: put(first(p, "aten::linear")[1], 0, 999),
    "an inner value": lambda p: put(
        p["functions"][-1]["graph"]["results"], 0, first(p, "prim::Loop")[5][0]["results"][1]
    ),
    "too few inputs": lambda p: first(p, "aten::linear")[1].pop(),
    "an If of one block": lambda p: first(p, "prim::If")[5].pop(),
    "a Loop that carries nothing": lambda p: first(p, "prim::Loop")[1].pop(),
    "a function that calls itself": lambda p: put(first(p, "prim::CallMethod")[4], "value", {"function": 99}),
    "a call of a number": lambda p: put(first(p, "prim::CallMethod")[4], "value", 3),
    "no such tensor": lambda p: put(p["module"]["modules"]["linear"]["parameters"], "weight", {"tensor": 77}),
    "a value of no kind": lambda p: put(p["module"]["plain"], "n", {"pickle": "cos\nsystem\n"}),
    "a class of elsewhere": lambda p: (
        put(p["types"][1], "name", "torch.nn.modules.os.system"),
        put(first(p, "aten::linear"), 3, None),
        put(first(p, "aten::linear"), 0, "prim::ModuleCall"),
    ),
    "another version": lambda p: put(p, "version", 99),
    "no program": lambda p: p.clear(),
    "a block in a block in a block": lambda p: put(p["module"]["plain"], "n", json.loads("[" * 900 + "]" * 900)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(written, name):
    with pytest.raises(RuntimeError, match="jit.load: the archive is damaged or was not written by jit.save"):
        rd.jit.load(changed(written, HOSTILE[name]))


def test_an_unchanged_archive_loads(written):
    module = rd.jit.load(changed(written, lambda program: None))
    assert module(rd.ones(1, 2)).shape == (1, 2)


def test_a_format_string_reaches_no_attributes():
    function = rd.jit.CompilationUnit("def f(s: str, x: int):\n    return s.format(x)").f
    assert function("{}!", 3) == "3!"
    assert function("{0.__class__}", 3) == "{0.__class__}"


def test_what_is_no_archive_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="no zip archive"):
        rd.jit.load(io.BytesIO(b"hello"))
    with pytest.raises(ValueError, match="does not exist"):
        rd.jit.load(tmp_path / "nowhere.pt")
    file = io.BytesIO()
    rd.save({"a": rd.ones(1)}, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="has no member program.json"):
        rd.jit.load(file)
    with pytest.raises(RuntimeError, match="jit.save takes what jit.script or jit.trace made"):
        rd.jit.save(nn.Linear(1, 1), io.BytesIO())


def test_random_damage_is_refused_or_harmless(written):
    import random

    chance = random.Random(0)
    for _ in range(60):

        def change(program):
            node = chance.choice(list(nodes(program)))
            node[chance.choice([0, 1, 2, 4, 5])] = chance.choice([None, [], {}, "x", 3, [[]], [5]])

        try:
            rd.jit.load(changed(written, change))
        except RuntimeError as refused:
            assert "jit.load" in str(refused)
