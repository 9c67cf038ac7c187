"""What is given to the compiler's front half and cannot be is refused by names: the pass, the node, the user's line."""

import re

import pytest

import redispatch as rd
from redispatch import fx
from redispatch.functorch.compile import aot_function, default_partition, nop
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.passes.infra import PassBase, PassManager, PassResult
from redispatch.fx.passes.matching import register_replacement
from redispatch.fx.passes.post_grad import PASSES, run_passes


def model(x, y):
    a = x.sin()
    b = a * y
    return rd.relu(b) + a


def swapped(graph):
    """Has the product stand before its factor."""
    product, sine = (next(one for one in graph.nodes if one.name == name) for name in ("mul", "sin"))
    product.append(sine)


class Swapped(PassBase):
    def call(self, graph_module):
        swapped(graph_module.graph)
        return PassResult(graph_module, True)


@pytest.mark.parametrize("run", [lambda module: run_passes(module, [swapped]), PassManager([Swapped()])])
def test_a_pass_that_breaks_a_graph_is_named_with_the_node_and_the_line(run):
    module = make_fx(model, tracing_mode="fake")(rd.ones(2), rd.ones(2))
    with pytest.raises(Exception, match=r"(?si)'swapped'.*Argument 'sin' of Node 'mul'.*test_bad_input.*b = a \* y"):
        run(module)


def test_a_pattern_whose_inner_values_are_read_elsewhere_is_named_with_the_node_and_the_line():
    def both(x, y):
        total = x + y
        return rd.relu(total), total

    module = make_fx(both, tracing_mode="fake")(rd.ones(2), rd.ones(2))
    fuse = register_replacement(
        lambda a, b: rd.relu(a + b), lambda a, b: rd.tanh(a + b), [rd.ones(2)] * 2, name="fuse", strict=True
    )
    PASSES.remove(fuse)
    with pytest.raises(RuntimeError, match=r"(?s)'fuse'.*%add.* is read elsewhere.*test_bad_input.*total = x \+ y"):
        run_passes(module, [fuse])
    assert re.search(r"(?s)%add.*read elsewhere", fuse.refused[0])


def dropping(which, place):
    """A partition whose forward (0) or backward (1) lacks one of its values."""

    def careless(joint, given, *, num_fwd_outputs):
        parts = default_partition(joint, given, num_fwd_outputs=num_fwd_outputs)
        output = parts[which].graph.output_node()
        values = list(output.args[0])
        del values[place]
        output.args = (tuple(values),)
        parts[which].recompile()
        return parts

    return careless


@pytest.mark.parametrize(
    ("which", "place", "node", "line"),
    [
        (0, 0, "%add ", r"return rd.relu\(b\) \+ a"),
        (0, -1, "%relu ", r"return rd.relu\(b\) \+ a"),
        (1, 0, "%mul_2 ", r"a = x.sin\(\)"),
    ],
)
def test_a_partition_that_drops_a_value_is_named_with_the_node_and_the_line(which, place, node, line):
    compiled = aot_function(model, nop, partition_fn=dropping(which, place))
    with pytest.raises(RuntimeError, match=rf"(?s)partition 'careless'.*not return {node}.*test_bad_input.*{line}"):
        compiled(rd.ones(2, requires_grad=True), rd.ones(2))


def branching(x):
    if x.sum() > 0:
        return x
    return -x


TRACERS = {
    "real": lambda x: make_fx(branching)(x),
    "fake": lambda x: make_fx(branching, tracing_mode="fake")(x),
    "symbolic": lambda x: make_fx(branching, tracing_mode="symbolic")(x),
    "ahead": lambda x: aot_function(branching, nop)(x),
    "ahead, for many sizes": lambda x: aot_function(branching, nop, dynamic=True)(x),
    "ahead, with gradients": lambda x: aot_function(branching, nop)(x.requires_grad_()),
    "by proxies": lambda x: fx.symbolic_trace(branching),
}


@pytest.mark.parametrize("tracer", TRACERS)
def test_a_branch_on_elements_is_named_with_its_line(tracer):
    with pytest.raises((RuntimeError, fx.TraceError), match=r"(?s)asked here.*test_bad_input.*if x.sum\(\) > 0:"):
        TRACERS[tracer](rd.ones(2))
