"""What a tracer notes beside nodes, what is known when it traces, and how a graph's code may be changed."""

import copy
import math
import pickle
from collections import namedtuple
from dataclasses import dataclass

import pytest

import redispatch as rd
from redispatch import fx, nn
from redispatch.fx.experimental.rewriter import RewritingTracer
from redispatch.fx.graph import CodeGen

PH = fx.PH
Pair = namedtuple("Pair", "left right")


@dataclass
class Sides:
    left: rd.Tensor
    right: rd.Tensor


class Made(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def total(self):
        return self.left + self.right


def made_of(x, y):
    return Made(x, y).total()


def test_trees_of_known_values_and_inputs_are_flattened():
    def f(x):
        return {"sum": x["a"] + sum(x["b"])}

    traced = fx.symbolic_trace(f, concrete_args={"x": {"a": PH, "b": [PH, 3]}})
    assert traced({"a": 1, "b": [2, 3]}) == {"sum": 6}
    assert [node.target for node in traced.graph.find_nodes(op="placeholder")] == ["x_1", "x_2", "x_3"]
    with pytest.raises(AssertionError, match="x has been specialized to have value 3"):
        traced({"a": 1, "b": [2, 4]})
    assert pickle.loads(pickle.dumps(traced))({"a": 1, "b": [2, 3]}) == {"sum": 6}
    plain = fx.GraphModule(nn.Module(), copy.deepcopy(traced.graph))
    plain.graph.set_codegen(CodeGen())
    plain.recompile()
    values = traced.graph.process_inputs({"a": 1, "b": [2, 3]})
    assert traced.graph.process_outputs(plain(*values)) == {"sum": 6}


def test_a_forward_of_any_arguments_gets_as_many_as_are_said():
    class Any(nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + args[1]

    assert fx.symbolic_trace(Any(), concrete_args=(PH, PH))(1, 2) == 3

    class NoSelf(nn.Module):
        def forward(*args):
            return args[1]

    with pytest.raises(RuntimeError, match="cannot be part of \\*args expansion"):
        fx.symbolic_trace(NoSelf())
    with pytest.raises(AssertionError, match="Expected FunctionType"):
        fx.symbolic_trace(rd.conv2d)


def test_each_node_knows_the_modules_around_it():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x)

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(self.inner(x)).relu()

    tracer = fx.Tracer()
    graph = tracer.trace(Twice())
    first, second = graph.find_nodes(op="call_module")
    assert list(first.meta["nn_module_stack"].values()) == [("inner", Inner), ("inner.linear", nn.Linear)]
    assert list(second.meta["nn_module_stack"]) == ["inner@1", "inner.linear@1"]
    assert tracer.node_name_to_scope["relu"] == ("", Twice)
    again = fx.Transformer(fx.GraphModule(tracer.root, graph)).transform()
    assert [one.meta.get("nn_module_stack") for one in again.graph.nodes] == [
        one.meta.get("nn_module_stack") for one in graph.nodes
    ]
    assert copy.deepcopy(tracer).autowrap_modules == (math,)


def test_objects_are_made_in_a_graph():
    assert fx.symbolic_trace(made_of)(1, 2) == 3 and made_of(1, 2) == 3
    sides = fx.symbolic_trace(lambda x: Sides(x, x + 1))(1)
    assert sides == Sides(1, 2)
    with pytest.raises(RuntimeError, match="Keys for dictionaries used as an argument cannot contain a Node"):
        fx.symbolic_trace(lambda x: {x: 1})


class FromList(CodeGen):
    def gen_fn_def(self, free_vars, maybe_return_annotation):
        return f"def forward(self, values: Values){maybe_return_annotation}:\n    {', '.join(free_vars)} = values"

    def additional_globals(self):
        return [("Values", list)]

    def process_inputs(self, *inputs):
        return inputs[0]

    def generate_output(self, output_args):
        return f"return list({output_args!r})"


def test_code_may_be_made_otherwise():
    traced = fx.symbolic_trace(lambda x, y: (x + y, x - y))
    traced.graph.set_codegen(FromList())
    traced.recompile()
    assert traced([3, 1]) == [4, 2]
    with traced.graph.on_generate_code(lambda before: lambda body: ["import math\n", *body]):
        traced.recompile()
        assert "    import math\n" in traced.code and traced([3, 1]) == [4, 2]
    traced.recompile()
    assert "math" not in traced.code


def test_lines_of_code_are_those_of_nodes():
    traced = fx.symbolic_trace(lambda x: (x.sin() + 1).cos())
    lines, nodes = traced.code.splitlines(), list(traced.graph.nodes)
    found = {nodes[at].name: lines[line - 1] for line, at in traced._lineno_map.items() if at is not None}
    assert found["add"].strip().startswith("add = sin + 1") and found["output"].strip() == "return cos"


def test_hooks_are_told_of_nodes_that_come_and_go():
    traced = fx.symbolic_trace(lambda x: x.relu())
    relu, told = traced.graph.find_nodes(op="call_method")[0], []
    traced._register_create_node_hook(lambda node: told.append(("new", node.name)))
    traced._register_erase_node_hook(lambda node: told.append(("gone", node.name)))
    with traced._set_replace_hook(lambda old, new, user: told.append((old.name, new, user.name))):
        with traced.graph.inserting_after(relu):
            relu.replace_all_uses_with(traced.graph.call_method("tanh", relu.args))
        traced.graph.erase_node(relu)
    assert told == [("new", "tanh"), ("relu", "tanh", "output"), ("gone", "relu")]


def test_a_module_is_written_as_a_package(tmp_path, monkeypatch):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.scale = nn.Sequential(nn.Linear(2, 2)), nn.Parameter(rd.ones(2))
            self.register_buffer("shift", rd.ones(2))

        def forward(self, x):
            return self.layers(x) * self.scale + self.shift

    model = Model()
    fx.symbolic_trace(model).to_folder(tmp_path / "written_model", "Written")
    monkeypatch.syspath_prepend(str(tmp_path))
    from written_model import Written

    x = rd.ones(3, 2)
    assert Written()(x).tolist() == model(x).tolist()


def test_assertions_are_steps_of_a_graph():
    class Inner(nn.Module):
        def forward(self, x):
            limit: int = 3
            assert x < limit, "too great"
            return x + 1

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            assert x != 2
            return self.inner(x)

    model = Outer()
    traced = fx.GraphModule(model, RewritingTracer().trace(model))
    assert traced(1) == 2 and not traced.graph.eliminate_dead_code()
    for wrong in (2, 5):
        with pytest.raises(AssertionError):
            traced(wrong)
    assert model(1) == 2
