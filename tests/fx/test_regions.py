"""Higher-order operators for regions and effects: eagerly their functions, and nodes in graphs."""

import pytest

import redispatch as rd
from redispatch._functorch.aot_autograd import aot_function, nop
from redispatch._higher_order_ops import (
    auto_functionalized_v2,
    foreach_map,
    hints_wrapper,
    invoke_subgraph,
    local_map_hop,
    strict_mode,
    with_effects,
)
from redispatch.fx.experimental.proxy_tensor import make_fx


def wave(x):
    return (x.sin(),)


def shrink(x):
    return (x * 0.5,)


REGIONS = {
    "strict_mode": lambda x: strict_mode(wave, (x,)),
    "hints_wrapper": lambda x: hints_wrapper(wave, (x,), {}, hints={"stage": 1}),
    "invoke_subgraph": lambda x: invoke_subgraph(wave, "wave", x),
    "local_map_hop": lambda x: local_map_hop(wave, x),
    "foreach_map": lambda x: foreach_map(rd.mul, [x.sin(), x], 1.0),
}


def targets(graph):
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("name", REGIONS)
@pytest.mark.parametrize("tracing_mode", ["real", "fake"])
def test_a_region_is_its_function_and_one_node_of_a_graph(name, tracing_mode):
    f, x = REGIONS[name], rd.tensor([0.5, 2.0])
    graph = make_fx(f, tracing_mode=tracing_mode)(x)
    assert targets(graph).count(name) == 1
    assert [node.op for node in graph.graph.nodes].count("get_attr") == 1  # the function's graph, and no constant
    for run in (f, graph, rd.func.functionalize(f), aot_function(f, nop)):
        assert run(x)[0].tolist() == x.sin().tolist()
    rows = rd.stack([x, x + 1])
    assert rd.equal(rd.vmap(f)(rows)[0], rows.sin())
    y = x.clone().requires_grad_()
    f(y)[0].sum().backward()
    assert y.grad.tolist() == x.cos().tolist()


def test_calls_of_one_function_share_a_graph_and_those_of_others_do_not():
    def f(x, y):
        return invoke_subgraph(shrink, "a", invoke_subgraph(wave, "a", invoke_subgraph(wave, "a", x)[0])[0])[0] + (
            invoke_subgraph(wave, "a", y)[0].sum()
        )

    x, y = rd.tensor([0.5, 2.0]), rd.ones(3)
    graph = make_fx(f, tracing_mode="fake")(x, y)
    assert [str(node.target) for node in graph.graph.nodes if node.op == "get_attr"] == [
        "repeated_subgraph0",
        "repeated_subgraph0",
        "repeated_subgraph1",
        "repeated_subgraph2",
    ]
    assert rd.equal(graph(x, y), f(x, y))


def test_a_print_happens_when_the_graph_runs(capsys):
    def f(x):
        rd.ops.higher_order.print("{} of {x}", 1, x=x)
        return x * x

    x = rd.ones(1, requires_grad=True)
    graph = make_fx(f, tracing_mode="fake")(rd.ones(1))
    graph.graph.eliminate_dead_code()
    ahead = aot_function(f, nop)
    assert "print" in targets(graph) and capsys.readouterr().out == ""
    graph(rd.ones(1))
    assert capsys.readouterr().out == "1 of tensor([1.])\n"
    ahead(x).sum().backward()
    assert capsys.readouterr().out.count("1 of") == 1 and x.grad.item() == 2


def test_effects_are_ordered_by_their_tokens():
    graph = make_fx(lambda token, x: with_effects(with_effects(token, rd.ops.aten.sin.default, x)[0],
                    rd.ops.aten.cos.default, x))(rd.empty(0), rd.ones(2))  # fmt: skip
    first, second = (node for node in graph.graph.nodes if str(node.target) == "with_effects")
    assert second.args[0].args[0] is first
    token, cos = graph(rd.empty(0), rd.zeros(2))
    assert token.numel() == 0 and cos.tolist() == [1, 1]


def test_arguments_that_share_memory_share_it_in_the_copy():
    """PyTorch's numbers: x is elements 1 and 2 of the base, y is 1 to 3."""
    with rd.library._scoped_library("regions", "FRAGMENT") as library:
        library.define("two(Tensor(a!) x, Tensor(b!)[] y) -> Tensor")
        library.impl("two", lambda x, y: x.add_(1).sum() + y[0].mul_(2).sum(), "CompositeExplicitAutograd")
        base = rd.arange(6.0)
        total, written = auto_functionalized_v2(
            rd.ops.regions.two.default,
            _x_base_index=0,
            _x_size=(2,),
            _x_stride=(1,),
            _x_storage_offset=1,
            _y_length=1,
            _y_0_base_index=0,
            _y_0_slice_dim=0,
            _y_0_slice_start=1,
            _y_0_slice_end=4,
            _all_bases=[base],
        )
    assert (total.item(), written.tolist(), base.tolist()) == (21, [0, 4, 6, 6, 4, 5], [0, 1, 2, 3, 4, 5])


def test_lists_of_other_lengths_are_refused():
    x = rd.ones(1)
    for operands in ([[x], [x, x]], [x, x]):
        with pytest.raises(ValueError, match="expected lists of one length"):
            foreach_map(rd.add, *operands)
    with pytest.raises(RuntimeError, match="expected args to be a tuple"):
        hints_wrapper(wave, x, {})
