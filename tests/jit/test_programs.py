"""Programs as TorchScript: results are Python's, after save and load too, and from the source of the graph."""

import io

import pytest

import redispatch as rd

from .programs import PROGRAMS
from .running import called, defined

IDS = [name for name, _, _ in PROGRAMS]
ONLY_SCRIPT = {"isscripting": "the other branch is no Python", "print": "TorchScript prints strings in tuples bare"}


def loosely(text):
    """A result in which ints to the power of ints may be floats, and several tensors a list: TorchScript's types."""
    return text.replace(".0", "").replace("(", "[").replace(")", "]")


@pytest.mark.parametrize(("name", "source", "calls"), PROGRAMS, ids=IDS)
def test_a_program_computes_what_python_does(name, source, calls):
    module = defined(rd, name, source)
    function = rd.jit.script(module.f)
    for arguments in calls:
        found = called(rd, function, arguments)
        if name not in ONLY_SCRIPT:
            assert loosely(found[0]) == loosely(called(rd, module.f, arguments)[0])


@pytest.mark.parametrize(("name", "source", "calls"), PROGRAMS, ids=IDS)
def test_a_saved_program_needs_no_source(name, source, calls):
    function = rd.jit.script(defined(rd, name, source).f)
    file = io.BytesIO()
    rd.jit.save(function, file)
    file.seek(0)
    loaded = rd.jit.load(file)
    for arguments in calls:
        assert called(rd, loaded, arguments) == called(rd, function, arguments)
    assert str(loaded.schema).replace("forward(__torch__.PlaceholderModule self, ", "f(").replace(
        "forward(__torch__.PlaceholderModule self)", "f()"
    ) == str(function.schema)


@pytest.mark.parametrize(("name", "source", "calls"), PROGRAMS, ids=IDS)
def test_the_source_of_a_graph_compiles_to_the_same_program(name, source, calls):
    function = rd.jit.script(defined(rd, name, source).f)
    if "__torch__" in function.code:
        assert name in ("calls", "classes", "namedtuple", "fork")  # it names what no text alone has
        return
    again = rd.jit.CompilationUnit(function.code).f
    for arguments in calls:
        assert called(rd, again, arguments) == called(rd, function, arguments)


def test_graphs_are_values_that_are_set_once():
    function = rd.jit.CompilationUnit(
        """
        def f(x: Tensor, n: int):
            for i in range(n):
                if i % 2 == 0:
                    x = x + i
            return x
        """
    ).f
    names = [value.name for node in function.graph.all_nodes() for value in node.outputs()]
    assert len(names) == len(set(names))
    assert function.graph.findNode("prim::Loop") and function.graph.findNode("prim::If")
    assert str(function.schema) == "f(Tensor x, int n) -> Tensor"


def test_gradients_modes_and_subclasses_reach_every_operator():
    seen = []

    class Log(rd.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    function = rd.jit.CompilationUnit("def f(x, n: int):\n    for i in range(n):\n        x = x.sin()\n    return x").f
    x = rd.ones(3, requires_grad=True)
    with Log():
        function(x, 2)
    assert seen == ["aten.sin.default"] * 2
    assert rd.autograd.gradcheck(lambda x: function(x, 2), rd.ones(3, dtype=rd.float64, requires_grad=True))
    assert rd.equal(rd.func.vmap(lambda x: function(x, 1))(rd.ones(2, 2)), rd.ones(2, 2).sin())


def test_functions_are_compiled_once_and_call_each_other():
    unit = rd.jit.CompilationUnit("def f(x: int):\n    return g(x) + 1\ndef g(x: int):\n    return x * 2")
    assert unit.f(3) == 7
    assert "prim::CallFunction" in str(unit.f.graph)
    assert "prim::CallFunction" not in str(unit.f.inlined_graph)


def test_lists_are_copied_on_the_way_in():
    function = rd.jit.CompilationUnit("def f(a: List[int]):\n    a.append(1)\n    return a").f
    mine = [0]
    assert function(mine) == [0, 1] and mine == [0]
