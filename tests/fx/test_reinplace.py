"""`fx.passes.reinplace` on graphs of programs that write into inputs: the same results, the same inputs after."""

from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.passes.reinplace import reinplace

STEPS = {
    "add_": lambda a, b: a.add_(1),
    "copy_": lambda a, b: a.copy_(b * 5) if a.shape == b.shape else a,
    "mul": lambda a, b: a * 2,
    "clone": lambda a, b: a.clone(),
    "view": lambda a, b: a.view(a.shape),
    "t": lambda a, b: a.transpose(0, -1),
    "row": lambda a, b: a[0] if a.dim() > 1 else a,
}
NUMBER = st.integers(0, 9)
PROGRAMS = st.tuples(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), NUMBER, NUMBER), max_size=9), st.lists(NUMBER))


def program(steps, kept):
    def f(x, y):
        values = [x, y]
        for name, one, other in steps:
            values.append(STEPS[name](values[one % len(values)], values[other % len(values)]))
        return [values[number % len(values)] for number in kept]

    return f


def inputs():
    return rd.arange(9.0).view(3, 3), rd.ones(3, 3)


def agree(f):
    """Asserts that a program and its graph written in place give the same; returns the graph's operators."""
    graph = reinplace(make_fx(rd.func.functionalize(f))(*inputs()), *inputs())
    (a, b), (c, d) = inputs(), inputs()
    wanted, found = f(a, b), graph(c, d)
    assert all(map(rd.equal, [a, b, *wanted], [c, d, *found]))
    return [node.target._opname for node in graph.graph.find_nodes(op="call_function")]


@given(PROGRAMS)
def test_a_program_written_in_place_gives_the_same(drawn):
    agree(program(*drawn))


def test_memory_that_is_copied_back_is_not_written_over():
    left = agree(lambda x, y: [(2 * x.view(3, 3).add_(1)).neg()])
    assert left == ["view", "add_", "view", "view", "mul", "neg_", "copy_"]


def test_memory_that_was_copied_back_is_not_written_over():
    def f(x, y):
        view = x.t()
        x.copy_(y * 5)
        return [view + 2, x + 0][1:]

    assert agree(f) == ["t", "mul", "copy_", "t", "add", "add"]
