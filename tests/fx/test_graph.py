"""Graphs: what they hold, how they are changed, the code that is made of them, and how they are run."""

import copy
import operator
import pickle
from operator import attrgetter
from types import FunctionType
from typing import Any

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch import fx, nn
from redispatch.fx import Graph, GraphModule, Interpreter, Node, Tracer, Transformer, symbolic_trace
from redispatch.fx.codegen import Globals


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.weight = nn.Parameter(rd.ones(4))
        self.tail = nn.Sequential(nn.ReLU())

    def forward(self, x, y=2, *, k=None):
        a = self.linear(x) + self.weight
        b = rd.cat([a, a * y], dim=0).relu()
        c = self.tail(b)[1:, None].view(-1, 2)
        values, indices = c.max(0)
        return {"a": values - 1, "b": (indices, x.shape[0])}


X = rd.ones(2, 3)


def same(a, b):
    assert a["a"].tolist() == b["a"].tolist() and a["b"][0].tolist() == b["b"][0].tolist() and a["b"][1] == b["b"][1]


def test_the_code_is_what_a_person_would_have_written():
    assert_expected_inline(
        symbolic_trace(Model()).code,
        """\



def forward(self, x, y = 2, k = None):
    linear = self.linear(x)
    weight = self.weight
    add = linear + weight;  linear = weight = None
    mul = add * y;  y = None
    cat = torch.cat([add, mul], dim = 0);  add = mul = None
    relu = cat.relu();  cat = None
    tail_0 = getattr(self.tail, "0")(relu);  relu = None
    getitem = tail_0[(slice(1, None, None), None)];  tail_0 = None
    view = getitem.view(-1, 2);  getitem = None
    max_1 = view.max(0);  view = None
    getitem_1 = max_1[0]
    getitem_2 = max_1[1];  max_1 = None
    sub = getitem_1 - 1;  getitem_1 = None
    getattr_1 = x.shape;  x = None
    getitem_3 = getattr_1[0];  getattr_1 = None
    return {'a': sub, 'b': (getitem_2, getitem_3)}
    """,
    )


def test_a_traced_module_computes_what_the_module_does_however_it_is_run():
    model = Model()
    module = symbolic_trace(model)
    module.graph.lint()
    wanted = model(X)
    for made in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module)), Transformer(module).transform()):
        same(made(X), wanted)
        assert made.code == module.code
    same(Interpreter(module).run(X), wanted)
    assert isinstance(module.linear, nn.Linear) and module.weight is model.weight


def test_an_interpreter_sees_every_node():
    seen = []

    class Noting(Interpreter):
        def run_node(self, n):
            seen.append(n.name)
            return super().run_node(n)

    module = symbolic_trace(lambda x: x.sin() + 1)
    assert Noting(module).run(rd.zeros(2)).tolist() == [1, 1]
    assert seen == ["x", "sin", "add", "output"]


def test_a_transformer_puts_something_else_in_the_place_of_calls():
    class Negative(Transformer):
        def call_method(self, target, args, kwargs):
            return super().call_method("neg" if target == "sin" else target, args, kwargs)

    module = Negative(symbolic_trace(lambda x: x.sin() + 1)).transform()
    assert module(rd.ones(2)).tolist() == [0, 0]


def test_a_graph_is_written_by_hand_and_changed():
    graph = Graph()
    x = graph.placeholder("x")
    first = graph.call_function(rd.sin, (x,))
    second = graph.call_method("add", (first, 1), {"alpha": 2})
    graph.output(second)
    module = GraphModule(nn.Module(), graph)
    assert module(rd.zeros(1)).tolist() == [2]

    with graph.inserting_after(first):
        other = graph.call_function(rd.cos, (x,))
    assert first.replace_all_uses_with(other) == [second] and list(first.users) == []
    graph.erase_node(first)
    graph.lint()
    module.recompile()
    assert [node.name for node in graph.nodes] == ["x", "cos", "add", "output"]
    assert module(rd.zeros(1)).tolist() == [3]


def test_a_node_knows_who_uses_it():
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.add, (x, x))
    assert y.all_input_nodes == [x] and list(x.users) == [y]
    y.args = (x, {"deep": [x, (slice(x, None),)]})
    assert list(x.users) == [y]
    y.args = (1, 2)
    assert not x.users and not y.all_input_nodes
    y.args = ([x],)
    with pytest.raises(TypeError, match="does not support mutation"):
        y.args[0].append(x)


def test_dead_code_goes_and_writes_stay():
    def f(x):
        x.cos()
        x.mul_(2)
        return x + 1

    module = symbolic_trace(f)
    assert module.graph.eliminate_dead_code()
    assert [node.name for node in module.graph.nodes] == ["x", "mul_", "add", "output"]
    assert not module.graph.eliminate_dead_code()


def test_lint_finds_what_is_no_program():
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(rd.sin, (x,))
    y.append(x)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(x)
    other = Graph()
    other.placeholder("x")
    other.call_function(rd.sin, (y,))
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other.lint()
    module = symbolic_trace(Model())
    module.delete_submodule("linear")
    with pytest.raises(RuntimeError, match="references nonexistent attribute linear"):
        module.graph.lint()


def test_tables_and_text():
    module = symbolic_trace(lambda x: rd.ops.aten.add.Tensor(x, 1))
    assert_expected_inline(
        module.graph.table(),
        """\
opcode         name        target                     args           kwargs
-------------  ----------  -------------------------  -------------  ------
placeholder    x           x                          ()             {}
call_function  add_tensor  torch.ops.aten.add.Tensor  (x, 1)         {}
output         output      output                     (add_tensor,)  {}""",
    )
    assert_expected_inline(
        str(module.graph),
        """\
graph():
    %x : [num_users=1] = placeholder[target=x]
    %add_tensor : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1), kwargs = {})
    return add_tensor""",
    )


def test_what_depends_on_values_is_refused():
    def branches(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(fx.TraceError, match="cannot be used as inputs to control flow"):
        symbolic_trace(branches)
    with pytest.raises(fx.TraceError, match="cannot be iterated"):
        symbolic_trace(lambda x: [one for one in x])
    with pytest.raises(RuntimeError, match="'len' is not supported"):
        symbolic_trace(lambda x: len(x))
    assert symbolic_trace(lambda x, flag: x if flag else -x, {"flag": False})(rd.ones(1), False).tolist() == [-1]


def test_a_tracer_says_which_modules_are_steps():
    class Through(Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    graph = Through().trace(nn.Sequential(nn.ReLU(), nn.Tanh()))
    assert [node.name for node in graph.nodes] == ["input_1", "relu", "tanh", "output"]
    assert nn.ReLU()(rd.ones(1)).tolist() == [1]  # modules outside of a tracer are as they were


def test_functions_of_ones_own_are_found_by_the_code():
    def twice(x):
        return x + x

    graph = Graph()
    graph.output(graph.call_function(twice, (graph.placeholder("x"),)))
    module = GraphModule(nn.Module(), graph)
    assert "twice(x)" in module.code and module(rd.ones(1)).tolist() == [2]
    assert isinstance(graph.output_node(), Node)


def test_any_number_of_arguments_is_one_placeholder():
    def function(x, *args, flag=True, **kwargs):
        return x + args[0] * kwargs["scale"], args, flag

    traced = fx.symbolic_trace(function)
    assert "def forward(self, x, *args, flag = True, **kwargs):" in traced.code
    assert traced(1, 2, 3, scale=5) == (11, (2, 3), True)
    assert fx.Interpreter(fx.symbolic_trace(lambda x, y: x - y)).boxed_run([5, 3]) == 2


def test_a_graph_for_given_values_refuses_others():
    def function(x, flag, other=None, word="a"):
        return x if flag else -x

    traced = fx.symbolic_trace(function, concrete_args={"flag": False, "other": None, "word": "a"})
    assert traced(1, False) == -1 and not traced.graph.eliminate_dead_code()
    for wrong in ((1, True), (1, False, 3), (1, False, None, "b")):
        with pytest.raises(AssertionError, match="has been specialized to have value"):
            traced(*wrong)
    with pytest.warns(UserWarning, match="Was not able to add assertion"):
        opaque = fx.symbolic_trace(function, concrete_args={"flag": {1}})
    assert opaque(1, None) == 1, "a graph cannot tell every value"


def test_code_writes_what_a_person_would():
    def function(x: Any) -> Any:
        return x[..., 0] + 1j

    code = fx.symbolic_trace(function).code
    assert "def forward(self, x):" in code and "Ellipsis" in code and "+ 1j" in code


def test_each_public_function_stands_in_code_by_its_path():
    found = 0
    for room in (rd, rd.nn.functional, rd.linalg, rd.fft, rd.special, rd.functional):
        for name in dir(room):
            function = None if name.startswith("_") else getattr(room, name, None)
            if isinstance(function, FunctionType) and (function.__module__ or "").partition(".")[0] == "torch":
                path = Globals().name_of(function)
                assert path.startswith("torch.") and attrgetter(path.removeprefix("torch."))(rd) is function
                found += 1
    assert found > 500
    code = fx.symbolic_trace(lambda x: rd.split(rd.nn.functional.linear(x, x), 1)).code
    assert "torch.functional.split(linear, 1, dim = 0)" in code and "torch._C._nn.linear(x, x)" in code
