"""jit.trace: graphs of what a call did, with warnings of what they do not keep. PyTorch's words."""

import io

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.jit import TracerWarning, TracingCheckError

X = rd.tensor([[1.0, -2.0, 0.5]])


def test_a_trace_holds_the_operators_of_a_call():
    traced = rd.jit.trace(lambda x, y: (x * 2 + y, y.relu()), (X, X))
    assert all(map(rd.equal, traced(X, X * 3), (X * 5, (X * 3).relu())))
    kinds = [node.kind() for node in traced.graph.nodes() if node.kind().startswith("aten")]
    assert kinds == ["aten::mul", "aten::add", "aten::relu"]
    assert "torch.relu(y)" in traced.code


@pytest.mark.parametrize(
    ("ask", "word"), [(bool, "boolean"), (int, "integer"), (float, "float"), (lambda x: x.item(), "number")]
)
def test_a_value_that_python_asks_for_is_fixed_with_a_warning(ask, word):
    with pytest.warns(TracerWarning, match=f"Converting a tensor to a Python {word} might cause the trace to be inco"):
        traced = rd.jit.trace(lambda x: x * ask(x.sum()), rd.ones(2))
    assert rd.equal(traced(rd.zeros(2) + 3), rd.ones(2) * 3 * ask(rd.tensor(2.0)))


def test_a_trace_that_differs_on_other_inputs_is_an_error():
    with pytest.warns(TracerWarning), pytest.raises(TracingCheckError, match="Graphs differed across invocations"):
        rd.jit.trace(lambda x: x[: int(x.sum())], rd.ones(5), check_inputs=[rd.ones(3)])


def test_random_numbers_are_told():
    with pytest.warns(TracerWarning) as told:
        rd.jit.trace(lambda x: x + rd.rand(3), X)
    texts = [str(one.message) for one in told]
    assert any(one.startswith("Trace had nondeterministic nodes") for one in texts)
    assert any("does not match the corresponding output of the Python function" in one for one in texts)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("shift", rd.ones(2))

    def forward(self, x):
        return self.linear(x).relu() + self.shift

    def other(self, x, y):
        return self.linear(x) * y


def test_a_traced_module_has_its_parameters_and_is_saved():
    model = Model()
    traced = rd.jit.trace_module(model, {"forward": X, "other": (X, rd.ones(2))})
    file = io.BytesIO()
    rd.jit.save(traced, file)
    file.seek(0)
    for one in (traced, rd.jit.load(file), rd.jit.freeze(rd.jit.trace(model.eval(), X))):
        assert rd.equal(one(X * 2), model(X * 2))
    assert rd.equal(traced.other(X, rd.ones(2) * 2), model.other(X, rd.ones(2) * 2))
    traced(X).sum().backward()
    assert model.linear.weight.grad is not None
    assert traced.state_dict().keys() == model.state_dict().keys()


@rd.jit.script_if_tracing
def summed(x, n: int):
    for i in range(n):
        x = x + i
    return x


def test_functions_that_are_compiled_while_tracing_compute_the_same():
    assert rd.equal(summed(X, 3), X + 3)
    traced = rd.jit.trace(lambda x: summed(x, 3), X)
    assert rd.equal(traced(X * 2), X * 2 + 3)
    assert not rd.jit.is_tracing()


def test_results_that_are_no_tensors_are_refused():
    with pytest.raises(RuntimeError, match="The traced function didn't return any values"):
        rd.jit.trace(lambda x: None, X)
    with pytest.raises(RuntimeError, match="Encountering a dict at the output of the tracer"):
        rd.jit.trace(lambda x: {"a": x}, X)
    with pytest.warns(TracerWarning, match="Encountering a list at the output"):
        rd.jit.trace(lambda x: [x + 1], X)
