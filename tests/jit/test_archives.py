"""Archives are PyTorch's, and data: one that nobody wrote by `save` is refused with a reason; nothing in it runs."""

import io
import pathlib
import random
import zipfile

import pytest

import redispatch as rd
from redispatch import nn

WRITTEN_BY_PYTORCH = pathlib.Path(__file__).with_name("written_by_pytorch.pt")


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.n, self.cell = nn.Linear(2, 2), 1, nn.LSTM(2, 2)

    def forward(self, x, flag: bool = True):
        for _ in range(self.n):
            if flag:
                x = self.linear(x)
        return nn.functional.dropout(self.cell(x)[0], 0.5, False) + rd.ones(2)


@pytest.fixture(scope="module")
def written():
    file = io.BytesIO()
    rd.jit.save(rd.jit.script(Counts()), file)
    return file.getvalue()


def changed(data, member, old, new):
    """An archive in which a part of one member is another."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(result, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith(member):
                assert old in content, (name, content)
                content = content.replace(old, new, 1)
            target.writestr(name, content)
    result.seek(0)
    return result


OWN, LINEAR, DATA = "test_archives.py", "nn/modules/linear.py", "data.pkl"
CALL, CLASS = b"torch.linear(input, ", b"class Linear(Module):"
HOSTILE = {
    "an operator that there is not": (LINEAR, b"torch.linear", b"torch.os.system"),
    "a module of Python": (LINEAR, b"torch.linear", b"__import__"),
    "a function of Python": (LINEAR, b"torch.linear", b"open"),
    "an attribute of a class": (LINEAR, b"torch.linear", b"int.__subclasses__"),
    "an attribute of a name": (LINEAR, b"torch.linear", b"torch.__class__.__init__.__globals__"),
    "a helper of nn.functional": (OWN, b"torch.nn.functional.dropout", b"torch.nn.functional.sys.exit"),
    "a package of the program": (LINEAR, b"torch.linear", b"__torch__.os.system"),
    "an attribute of Python": (LINEAR, b"self.weight", b"self.__class__"),
    "an attribute that a type declares": (LINEAR, b"weight :", b"__dict__ :"),
    "a method as an attribute": (LINEAR, b"weight :", b"state_dict :"),
    "a part of every module": (LINEAR, b"weight :", b"_forward_hooks :"),
    "a class below another": (LINEAR, CLASS, b"class Linear(Exception):"),
    "a statement in a class": (LINEAR, b"  __buffers__", b"  import os\n  __buffers__"),
    "a statement in a file": (LINEAR, CLASS, b"import os\nclass Linear(Module):"),
    "a default that is computed": (OWN, b"flag: bool=True", b"flag: bool=exit()"),
    "a value from elsewhere": (LINEAR, b"(input, ", b"(output, "),
    "too few inputs": (LINEAR, b"(input, weight, ", b"("),
    "what is no text": (LINEAR, CLASS, b"class Linear(Module:"),
    "no tensor of that name": (OWN, b"torch.ones([2]", b"(CONSTANTS.c7"),
    "Python of what is no module": (OWN, b"torch.ones([2]", b"ops.prim.ModuleCall([2]"),
    "a function that calls itself": (OWN, b"(linear).forward(", b"(self).forward("),
    "a call of Python": (DATA, b"c__torch__.", b"cos\nsystem\nc__torch__."),
    "a class that there is not": (DATA, b"Counts\n", b"Others\n"),
    "an attribute too many": (DATA, b"X\x06\x00\x00\x00linear", b"X\x06\x00\x00\x00linxxx"),
    "a number for a module": (OWN, b"  n : int", b"  n : __torch__.torch.nn.modules.linear.Linear"),
    "a number for a parameter": (OWN, b"__parameters__ = []", b'__parameters__ = ["n"]'),
    "a block in a block in a block": (LINEAR, b"return torch", b"return " + b"-" * 9000 + b"torch"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(written, name):
    with pytest.raises(RuntimeError):
        rd.jit.load(changed(written, *HOSTILE[name]))


def test_an_unchanged_archive_loads(written):
    module = rd.jit.load(changed(written, DATA, b"", b""))
    assert module(rd.ones(1, 1, 2)).shape == (1, 1, 2)


def test_an_archive_of_pytorch_loads():
    model = rd.jit.load(WRITTEN_BY_PYTORCH)
    x, pair, later, same, text = model(rd.ones(1, 2), 2.0)
    assert x.tolist() == [[121.0, 25.0]] and later.tolist() == [[9.0, 0.0]] and same and text == "[1, 2]"
    assert pair.x.tolist() == [[6.0, 0.0]] and pair.n == 6
    assert [name for name, _ in model.named_parameters()] == ["layers.0.weight", "layers.0.bias"]
    assert model.table == {"a": [1.5]} and model.color.name == "GREEN" and model.original_name == "Model"
    file = io.BytesIO()
    rd.jit.save(model, file)
    again = rd.jit.load(io.BytesIO(file.getvalue()))
    assert again(rd.ones(1, 2), 2.0)[0].tolist() == [[121.0, 25.0]]


def test_an_operator_that_is_not_here_is_named(written):
    with pytest.raises(RuntimeError, match="Unknown builtin op: aten::straight"):
        rd.jit.load(changed(written, LINEAR, b"torch.linear", b"torch.straight"))


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
    with pytest.raises(RuntimeError, match="has no member constants.pkl"):
        rd.jit.load(file)
    with pytest.raises(RuntimeError, match="jit.save takes what jit.script or jit.trace made"):
        rd.jit.save(nn.Linear(1, 1), io.BytesIO())


def test_random_damage_is_refused_or_harmless(written):
    chance = random.Random(0)
    texts = {}
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        for name in archive.namelist():
            if name.endswith((".py", "data.pkl")):
                texts[name] = archive.read(name)
    for _ in range(60):
        name = chance.choice(list(texts))
        content = texts[name]
        start = chance.randrange(len(content) - 8)
        old = content[start : start + chance.randint(1, 8)]
        new = bytes(chance.choice(b"abc()[]=:, \n_.0") for _ in range(chance.randint(0, 8)))
        try:
            rd.jit.load(changed(written, name, old, new))
        except RuntimeError as refused:
            assert str(refused)
