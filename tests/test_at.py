"""`redispatch.at`: each operator as a function of its schema's arguments, for type checkers and at run time."""

import subprocess
import sys

import pytest

import redispatch as rd
from redispatch import at, nn
from redispatch.at import TensorOptions
from redispatch.dispatch import OPERATORS
from redispatch.overrides import TorchFunctionMode

from .seeing import Seen
from .test_docs import ROOT

STUB = (ROOT / "frontend/at.pyi").read_text()


def test_the_types_of_the_arguments_name_the_overload():
    x = rd.ones(2, 2)
    with Seen() as mode:
        at.add(x, x, alpha=2)
        at.add(x, 2)
        at.max(x)
        at.max(x, 1)
        at.div(x, x, rounding_mode="floor")
        at.add(x, x, out=x)
        at.add(x, x, out=None)
    assert " ".join(mode.names) == "add.Tensor add.Scalar max max.dim div.Tensor_mode add.out add.Tensor"


def test_options_are_a_value_and_say_what_a_factory_makes():
    options = TensorOptions().dtype(rd.float64).device("cpu")
    assert options == TensorOptions().dtype(rd.float64).device("cpu") != TensorOptions().device("cpu")
    assert hash(options) == hash(TensorOptions().dtype(rd.float64).device("cpu"))
    made = at.full([2], 1.5, options.requires_grad())
    assert (made.dtype, made.tolist(), made.requires_grad) == (rd.float64, [1.5, 1.5], True)
    assert not at.empty([2, 3], options, memory_format=rd.contiguous_format).requires_grad
    assert at.zeros_like(made, TensorOptions().dtype(rd.int64)).dtype == rd.int64
    assert at.empty([1], options=TensorOptions().layout(rd.strided).pinned_memory(False)).layout == rd.strided
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'dtype' for operator 'aten::exp'"):
        at.exp(made, options)


def test_errors_name_schema_and_argument():
    x = rd.ones(2)
    with pytest.raises(RuntimeError) as error:
        at.exp("x")
    assert str(error.value).startswith(
        "aten::exp() Expected a value of type 'Tensor' for argument 'self' but instead found type 'str'.\nPosition: 0"
    )
    assert "Declaration: aten::exp(Tensor self) -> Tensor" in str(error.value)
    for wrong, word in (
        (lambda: at.add(x, "x"), "argument 'other' but instead found type 'str'"),
        (lambda: at.mm(x, 2), "argument 'mat2' but instead found type 'int'"),
        (lambda: at.select(x, True, 0), "argument 'dim' but instead found type 'bool'"),
        (lambda: at.exp(), "missing value for argument 'self'"),
        (lambda: at.exp(x, base=2), "Unknown keyword argument 'base'"),
    ):
        with pytest.raises(RuntimeError, match=word):
            wrong()
    with pytest.raises(AttributeError, match="no such operator"):
        at.no_such_operator


def test_nobody_is_asked_for_an_override():
    class Loud(rd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    class LoudMode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    with LoudMode():
        at.add(at.ones([2]), 1)
    loud = rd.ones(2).as_subclass(Loud)
    assert type(at.mul(loud, loud)) is rd.Tensor


def test_every_operator_has_a_function_and_a_line_for_type_checkers():
    names = {op._opname for op in OPERATORS.values() if op.namespace == "aten" and op._opname.isidentifier()}
    core = {op._opname for op in OPERATORS.values() if rd.Tag.core in op.tags}
    assert len(core) > 150 and core <= names
    written = {line.partition("(")[0] for line in STUB.splitlines() if line.startswith("def ")}
    for name in names:
        assert callable(getattr(at, name)), name
        assert f"def {name}" in written or name in ("and", "or", "is", "not"), name


def mlp(linear, relu, loss, update):
    """The weights after five steps of a perceptron; what it calls is given."""
    rd.manual_seed(3)
    model = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 3)])
    x, y = rd.randn(16, 4), rd.randint(0, 3, (16,))
    for _ in range(5):
        hidden = relu(linear(x, model[0].weight, model[0].bias))
        loss(linear(hidden, model[1].weight, model[1].bias), y).backward()
        with rd.no_grad():
            for parameter in model.parameters():
                update(parameter)
                parameter.grad = None
    return list(model.parameters())


def test_a_perceptron_trained_through_it_has_the_same_weights_bit_for_bit():
    F = nn.functional
    usual = mlp(F.linear, rd.relu, F.cross_entropy, lambda p: p.sub_(p.grad, alpha=0.1))
    explicit = mlp(
        at.linear,
        at.relu,
        lambda x, y: at.nll_loss(at.log_softmax(x, 1), y),
        lambda p: at.sub_(p, p.grad, alpha=0.1),
    )
    for one, other in zip(usual, explicit, strict=True):
        assert rd.equal(one, other)


PROGRAM = """
import redispatch as rd
from redispatch import at, nn
from redispatch.at import TensorOptions


def step(model: nn.Linear, x: rd.Tensor) -> rd.Tensor:
    y: rd.Tensor = at.add(model(x), at.ones([1]), alpha=2)
    values, indices = at.max(y, 1)
    parts: tuple[rd.Tensor, ...] = at.split(values, 1)
    return at.sum(parts[0])


x: rd.Tensor = at.empty([2, 3], TensorOptions().dtype(rd.float32).device("cpu").requires_grad())
at.add(x, x, out=x)
step(nn.Linear(3, 2), x).backward()
"""
WRONG = ["at.add(x, 'two')", "at.exp(x, base=2)", "at.empty([2], TensorOptions().dtype('float32'))", "at.nothing(x)"]


@pytest.mark.long
def test_a_type_checker_accepts_a_right_program_strictly_and_refuses_wrong_lines(tmp_path):
    pytest.importorskip("mypy", reason="mypy comes with the extra `lint`")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + "\n".join(WRONG))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--config-file", str(ROOT / "pyproject.toml"), str(path)]
    found = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    lines = [int(line.split(":")[1]) for line in found.splitlines() if "program.py" in line and ": error: " in line]
    first = len(PROGRAM.splitlines()) + 1
    assert sorted({*lines}) == list(range(first, first + len(WRONG))), found
