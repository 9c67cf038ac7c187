"""Modules and classes as TorchScript."""

import copy
import io
from typing import Final, Optional

import pytest

import redispatch as rd
from redispatch import Tensor, nn
from redispatch.nn import functional


def loaded(module):
    file = io.BytesIO()
    rd.jit.save(module, file)
    file.seek(0)
    return rd.jit.load(file)


class Model(nn.Module):
    __constants__ = ["scale"]
    count: int
    names: list[str]
    mask: Optional[Tensor]  # noqa: UP045  # the form that programs for PyTorch have
    three: Final[int]

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.several = nn.ModuleList([nn.Linear(3, 3), nn.ReLU(), nn.Tanh()])
        self.sequence = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 3))
        self.named = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Sigmoid()})
        self.register_buffer("shift", rd.ones(3))
        self.weight = nn.Parameter(rd.full((3,), 2.0))
        self.scale, self.count, self.names, self.mask, self.three = 2.5, 0, ["x"], None, 3
        self.activation, self.nothing, self.pair = functional.relu, None, (1, 2.5)

    def helper(self, x: Tensor, n: int = 1) -> Tensor:
        return x * n + self.shift

    def forward(self, x: Tensor) -> Tensor:
        for module in self.several:
            x = module(x)
        for i, module in enumerate(self.several):
            x = module(x) + i
        for name, module in self.named.items():
            x = module(x) + len(name)
        for p, q in zip(self.several, self.several):  # noqa: B905  # TorchScript's has no strict
            x = p(x) + q(x)
        x = self.sequence(self.first(x)) * self.scale * self.weight + self.several[0](x) + self.named["a"](x)
        x = self.helper(x, n=2) + self.activation(x) + self.pair[0] + self.three
        self.count += 1
        if self.nothing is None:
            x = x + 1
        if self.mask is not None:
            x = x * 2
        if self.training:
            x = x * 0
        if hasattr(self, "never"):
            x = self.never(x)
        return x + len(self.several)

    @rd.jit.export
    def other(self, y: int) -> int:
        return y + self.count

    @rd.jit.ignore
    def python(self, y: int) -> int:
        return y * 10

    @rd.jit.unused
    def never_compiled(self, y: int) -> int:
        return eval("y")


@pytest.fixture
def model():
    rd.manual_seed(0)
    return Model().eval()


X = rd.tensor([[1.0, -2.0, 0.5]])


def test_a_module_computes_what_its_python_does(model):
    script = rd.jit.script(model)
    assert rd.equal(script(X), model(X))
    assert script.count == 1 and script.other(2) == 3
    script.train()
    assert script.training and script.first.training and rd.equal(script(X), rd.full((1, 3), 3.0))
    assert "prim::CallMethod" in str(script.graph) and "prim::CallMethod" not in str(script.inlined_graph)
    assert script.code.startswith("def forward(self,\n    x: Tensor) -> Tensor:")


def test_a_module_shares_its_parameters_and_has_gradients(model):
    script = rd.jit.script(model)
    script(X).sum().backward()
    assert script.first.weight.grad is model.first.weight.grad is not None
    assert list(script.state_dict()) == list(model.state_dict())
    assert [name for name, _ in script.named_modules()] == [name for name, _ in model.named_modules()]


def test_a_saved_module_needs_no_class(model):
    script = rd.jit.script(model)
    again = loaded(script)
    assert rd.equal(again(X), script(X)) and again.names == ["x"] and again.other(1) == 2
    assert again.state_dict().keys() == model.state_dict().keys()
    assert again.original_name == "Model" and again.code == script.code
    twice = loaded(again)
    assert rd.equal(twice(X), script(X))


def test_extra_files_travel_with_a_module(tmp_path):
    path = tmp_path / "m.pt"
    rd.jit.script(nn.ReLU()).save(path, _extra_files={"note": "hello"})
    extra = {"note": ""}
    rd.jit.load(path, _extra_files=extra)
    assert extra == {"note": b"hello"}


def test_a_copy_has_parameters_of_its_own(model):
    script = rd.jit.script(model)
    other = copy.deepcopy(script)
    with rd.no_grad():
        other.first.weight.zero_()
    assert not rd.equal(other(X), script(X))


def test_a_frozen_module_has_its_parameters_in_its_graph(model):
    frozen = rd.jit.freeze(rd.jit.script(model))
    assert rd.equal(frozen(X), model(X))
    assert frozen.graph.findNode("prim::GetAttr").attributes["name"] == "count"  # which the program changes
    with pytest.raises(RuntimeError, match="modules in eval mode"):
        rd.jit.freeze(rd.jit.script(Model()))


def test_attributes_keep_their_types(model):
    script = rd.jit.script(model)
    script.count = 7
    assert script.other(1) == 8
    with pytest.raises(RuntimeError, match="Could not cast attribute 'count' to type int"):
        script.count = "a"


class Caller(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Model()

    def forward(self, x: int) -> int:
        return self.inner.python(x) + self.inner.other(1)


def test_an_ignored_method_is_python_and_cannot_be_saved():
    script = rd.jit.script(Caller())
    assert script(2) == 21
    with pytest.raises(RuntimeError, match="Could not export Python function call 'python'"):
        rd.jit.save(script, io.BytesIO())


class Unused(Caller):
    def forward(self, x: int) -> int:
        return self.inner.never_compiled(x)


def test_an_unused_method_is_an_error_that_points_at_its_call():
    with pytest.raises(rd.jit.Error, match="annotated to be ignored") as raised:
        rd.jit.script(Unused())(2)
    assert "self.inner.never_compiled(x)" in str(raised.value) and "~~~ <--- HERE" in str(raised.value)


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.thing, self.empty = object(), []

    def forward(self, x: Tensor):
        return x + self.thing


def test_an_attribute_without_a_type_says_so_where_it_is_used():
    with pytest.raises(RuntimeError, match="failed to convert Python type: 'object' to a TorchScript type"):
        rd.jit.script(Fails())


LAYERS = {
    "linear": (lambda: nn.Linear(3, 2), "(X,)"),
    "conv": (lambda: nn.Conv2d(2, 3, 3, padding=1), "(rd.ones(1, 2, 4, 4),)"),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 3), "(rd.ones(1, 2, 4, 4),)"),
    "norm": (lambda: nn.BatchNorm2d(2), "(rd.ones(2, 2, 3, 3),)"),
    "layer norm": (lambda: nn.LayerNorm(3), "(X,)"),
    "pool": (lambda: nn.MaxPool2d(2), "(rd.ones(1, 2, 4, 4),)"),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d(1), "(rd.ones(1, 2, 4, 4),)"),
    "embedding": (lambda: nn.Embedding(5, 3), "(rd.tensor([1, 2]),)"),
    "lstm": (lambda: nn.LSTM(3, 4), "(rd.ones(5, 2, 3),)"),
    "attention": (lambda: nn.MultiheadAttention(4, 2), "(rd.ones(3, 1, 4),) * 3"),
    "encoder": (lambda: nn.TransformerEncoderLayer(4, 2, 8).eval(), "(rd.ones(3, 1, 4),)"),
    "loss": (lambda: nn.CrossEntropyLoss(), "(X, rd.tensor([1]))"),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_of_the_library_compile_and_load(layer):
    make, arguments = LAYERS[layer]
    rd.manual_seed(1)
    module = make()
    script = rd.jit.script(module)
    given = eval(arguments, {"rd": rd, "X": X})
    wanted = rd.utils._pytree.tree_leaves(module(*given))
    for one in (script, loaded(script)):
        assert all(map(rd.allclose, rd.utils._pytree.tree_leaves(one(*given)), wanted))


def test_linear_is_one_operator():
    assert "aten::linear" in str(rd.jit.script(nn.Linear(2, 2)).graph)
    assert "aten::tanh" in str(rd.jit.script(nn.Tanh()).inlined_graph)


def products(x: rd.Tensor):
    return rd.chain_matmul(x, x, x), rd.block_diag(x, x)


def test_the_last_arguments_of_a_call_stand_for_a_list():
    product, blocks = rd.jit.script(products)(rd.ones(2, 2))
    assert product.tolist() == [[4, 4], [4, 4]] and blocks.shape == (4, 4)
