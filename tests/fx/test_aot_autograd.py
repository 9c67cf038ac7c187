"""Functions traced ahead (frontend/_functorch/aot_autograd.py) do what they do untraced, and graphs are parted well."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch import nn
from redispatch._functorch.aot_autograd import (
    aot_function,
    aot_module,
    default_partition,
    make_boxed_compiler,
    min_cut_rematerialization_partition,
    nop,
)
from redispatch._functorch.max_flow import Network
from redispatch._functorch.partitioners import Joint, bytes_of, cheapest, may_recompute, saved_bytes
from redispatch.dispatch.pytree import tree_leaves
from redispatch.functorch import compile as compilers
from redispatch.fx import Graph, GraphModule
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from tests.drawing import at_length, draw
from tests.fx.layers import LAYERS, layer
from tests.fx.random_programs import Program, define_operators, outcome, programs, second_gradients

PARTITIONS = [default_partition, min_cut_rematerialization_partition]


@pytest.fixture(scope="module", autouse=True)
def operators():
    library = define_operators()
    yield
    library._destroy()


def near(found, wanted):
    """Whether two outcomes are the same, numbers up to rounding: products are not added up in the same order."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(near(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list) and wanted and all(isinstance(one, float) for one in wanted):
        return len(found) == len(wanted) and np.allclose(found, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(near, found, wanted))
    return found == wanted


def check(program, partition=default_partition, dynamic=False):
    try:
        wanted = outcome(program, program)
    except RuntimeError:
        return  # what is refused may be accepted, where it asks for memory that a graph has apart
    found = outcome(aot_function(program, nop, partition_fn=partition, dynamic=dynamic), program)
    assert near(found, wanted), {key: (found[key], wanted[key]) for key in wanted if not near(found[key], wanted[key])}


@at_length(3000)
@given(programs(), st.sampled_from(PARTITIONS))
def test_programs_do_what_they_do_untraced(program, partition):
    check(program, partition)


@pytest.mark.parametrize("step", ["dropout", "checkpoint"])
def test_dropout_of_what_lies_in_another_order_draws_the_same_numbers(step):
    check(Program(("transposed",), ((step, 0, 0),), (0,)))


FOUND = {  # programs that hypothesis found to differ once, and whether their sizes are symbols
    "a result has the memory of an input, and gradients of its own": (
        Program(("leaf",), (("detach", 0, 7), ("copy_", 1, 0)), (0,)),
        False,
    ),
    "an operator writes what was saved": (
        Program(("leaf", "inner"), (("checkpoint", 1, 7), ("custom_", 2, 3)), (0,)),
        False,
    ),
    "a view of an input that shares its memory is written": (
        Program(("plain", "view", "leaf"), (("add_", 0, 2),), (0,)),
        False,
    ),
    "a subclass has numbers for sizes": (Program(("two", "plain"), (("mul", 0, 1),), (0,)), True),
    "the gradient of a plain result is of a subclass": (
        Program(("leaf", "two"), (("sin", 0, 0), ("mm", 1, 0)), (0, 1)),
        False,
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_programs_that_differed_once_do_so_no_more(what):
    program, dynamic = FOUND[what]
    for partition in PARTITIONS:
        check(program, partition, dynamic)


@at_length(500)
@given(programs(inputs=["two", "plain", "leaf", "two"], steps=6))
def test_programs_of_subclasses_do_what_they_do_untraced(program):
    check(program)


@at_length(1000)
@given(programs(without={"checkpoint"}, inputs=["plain", "leaf", "inner", "transposed"], steps=6))
def test_graphs_from_before_autograd_and_autocast_keep_their_regions(program):
    """No gradient where there was none, casts where there were some."""
    try:
        wanted = outcome(program, program)
    except RuntimeError:
        return
    graph = make_fx(program, tracing_mode="fake", pre_dispatch=True)(*program.arguments()[1])
    found = outcome(graph, program)
    assert near(found, wanted), {key: (found[key], wanted[key]) for key in wanted if not near(found[key], wanted[key])}


@at_length(500)
@given(programs(without={"autocast"}, inputs=["leaf", "inner", "plain", "same"], steps=6))  # casts of leaves are kept
def test_gradients_of_gradients_of_programs_are_those_untraced(program):
    wanted = second_gradients(program, program)
    assert wanted is RuntimeError or near(second_gradients(aot_function(program, nop), program), wanted)


@pytest.mark.parametrize("name", draw(sorted(LAYERS), "layers ahead", count=20))
@pytest.mark.parametrize("partition", PARTITIONS)
def test_layers_do_what_they_do_untraced(name, partition):
    seen = []
    for ahead in (False, True):
        module, inputs = layer(name)
        rd.manual_seed(1)
        found = tree_leaves((aot_module(module, nop, partition_fn=partition) if ahead else module)(*inputs))
        found = [one for one in found if isinstance(one, rd.Tensor)]
        wanting = [one for one in found if one.requires_grad]
        if wanting:
            sum((one * one).sum() for one in wanting).backward()
        gradients = [one.grad for one in [*inputs, *module.parameters()]]
        seen.append([*found, *module.buffers(), *(one for one in gradients if one is not None and one.any())])
    assert len(seen[0]) == len(seen[1])
    for one, other in zip(*seen, strict=True):
        rd.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_view_that_is_returned_is_one_of_the_input_as_it_is_written():
    def f(x):
        row = x[0]
        x.mul_(2)
        return row, x.t(), x

    x = rd.arange(4.0).reshape(2, 2)
    row, turned, same = aot_function(f, nop)(x)
    x.add_(1)
    assert (row.tolist(), turned.tolist(), same is x) == ([1, 3], [[1, 5], [3, 7]], True)


def test_gradients_of_gradients_have_the_numbers_of_the_forward():
    def f(x):
        return nn.functional.dropout(x**3, 0.5).sum()

    x = rd.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    compiled, found = aot_function(f, nop), []
    for function in (f, compiled):
        rd.manual_seed(3)
        (first,) = rd.autograd.grad(function(x), x, create_graph=True)
        found.append((first.tolist(), rd.autograd.grad(first.sum(), x)[0].tolist()))
    assert found[0] == found[1] and any(found[0][1])


def test_backward_raises_what_the_program_raises_there():
    def f(x):
        y = x.exp()
        y.mul_(2)
        return y

    found = aot_function(f, nop)(rd.ones(2, requires_grad=True) * 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.sum().backward()


def test_graphs_are_of_one_zero_and_not_of_the_other():
    divided = aot_function(lambda x, by: x / by, nop)
    assert [divided(rd.ones(1), by).item() for by in (0.0, -0.0, 0.0)] == [math.inf, -math.inf, math.inf]


# Partitions -----------------------------------------------------------------------------------------------------------


def joint_of(f, *inputs):
    """The joint graph of a function of tensors that all want gradients, whose result is one tensor."""
    taken = []

    def keep(joint, inputs, **options):
        taken.append((joint, options["num_fwd_outputs"]))
        return default_partition(joint, inputs, **options)

    aot_function(f, nop, partition_fn=keep)(*(x.requires_grad_() for x in inputs))
    return taken[0]


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.attention(self.first(x)).split(x.shape[-1], -1)
        weights = ((q @ k.transpose(-1, -2)) * 0.25).softmax(-1)
        x = x + self.out(weights @ v)
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


def test_the_cut_of_two_layers_of_a_transformer_saves_less_and_gives_the_same_gradients():
    rd.manual_seed(0)
    model, x = nn.Sequential(Block(16), Block(16)), rd.randn(2, 8, 16)
    saved, gradients = [], []
    for partition in (default_partition, min_cut_rematerialization_partition):

        def noted(joint, inputs, num_fwd_outputs, partition=partition):
            parts = partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)
            saved.append(saved_bytes(parts[0], num_fwd_outputs))
            return parts

        model.zero_grad()
        aot_module(model, nop, partition_fn=noted)(x).square().sum().backward()
        gradients.append([one.grad.reshape(-1).tolist() for one in model.parameters()])
    model.zero_grad()
    model(x).square().sum().backward()
    wanted = [one.grad.reshape(-1).tolist() for one in model.parameters()]
    assert saved[1] < saved[0]
    assert near(gradients[0], wanted) and near(gradients[1], wanted)


@given(st.integers(0, 1 << 32))
def test_a_flow_is_as_great_as_the_narrowest_cut(seed):
    draw = np.random.default_rng(seed)
    size = int(draw.integers(2, 8))
    pipes = [
        (int(draw.integers(size)), int(draw.integers(size)), float(draw.choice([0, 1, 2, 3, 5, 8, math.inf])))
        for _ in range(draw.integers(0, 18))
    ]
    network = Network(size)
    for pipe in pipes:
        network.add(*pipe)

    def width(behind):
        return sum(free for start, end, free in pipes if start not in behind and end in behind)

    rest = [set(more) | {1} for n in range(size) for more in itertools.combinations(range(2, size), n)]
    flow = network.flow(0, 1)
    assert flow == min(map(width, rest))
    assert flow == math.inf or width(network.leading_to(1)) == flow


@at_length(400)
@given(st.data())
def test_what_is_saved_is_as_small_as_any_set_from_which_all_can_be_recomputed(data):
    """On joint graphs of at most 12 nodes of the forward, beside all sets that there are."""
    graph, values = Graph(), []

    def node(make, *args):
        made = make(*args)
        made.meta["val"] = rd.empty(data.draw(st.integers(1, 5)), device="meta")
        return made

    inputs = [node(graph.placeholder, f"primals_{i}") for i in range(data.draw(st.integers(1, 2)))]
    values += inputs
    for _ in range(data.draw(st.integers(1, 9))):
        x, y = (data.draw(st.sampled_from(values)) for _ in range(2))
        values.append(node(graph.call_function, data.draw(st.sampled_from([ADD, MM])), (x, y)))
    result, gradients = values[-1], [node(graph.placeholder, "tangents_1")]
    for _ in range(data.draw(st.integers(1, 4))):
        gradients.append(node(graph.call_function, ADD, (gradients[-1], data.draw(st.sampled_from(values)))))
    graph.output((result, gradients[-1]))
    module = GraphModule(nn.Module(), graph)
    joint = Joint(module, 1)
    found = cheapest(joint, lambda one: may_recompute(one, None))
    early = [one for one in joint.nodes if one in joint.in_backward and one not in joint.late]
    needed = {one for late in joint.late & joint.in_backward for one in late.all_input_nodes if one not in joint.late}

    def suffices(saved):
        todo, seen = list(needed - saved), set()
        while todo:
            one = todo.pop()
            if one.op == "placeholder" or (one in joint.in_forward and not may_recompute(one, None)):
                return False
            if one not in seen:
                seen.add(one)
                todo += set(one.all_input_nodes) - saved
        return True

    def cost(saved):
        return sum(map(bytes_of, saved))

    sets = (set(one) for n in range(len(early) + 1) for one in itertools.combinations(early, n))
    assert suffices(set(found)) and cost(found) == min(cost(one) for one in sets if suffices(one))
    assert cost(found) <= cost(joint.saved_by_default())


ADD, MM = rd.ops.aten.add.Tensor, rd.ops.aten.mm.default


def test_a_policy_says_what_is_saved_and_what_is_recomputed():
    joint, count = joint_of(lambda x: (x @ x).exp().sin(), rd.ones(2, 2))
    (product,) = joint.graph.find_nodes(op="call_function", target=MM)[:1]
    (exp,) = joint.graph.find_nodes(op="call_function", target=rd.ops.aten.exp.default)

    def saved():
        forward, _ = min_cut_rematerialization_partition(joint, (), num_fwd_outputs=count)
        return [str(one) for one in forward.graph.output_node().args[0][count:]]

    assert "mm" in saved() or "exp" in saved()
    exp.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
    assert "exp" not in saved() and "mm" in saved()
    product.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
    assert saved() == ["t"] or "mm" not in saved()
    exp.meta["recompute"] = product.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    assert "exp" in saved()


MM_SAVED = {rd.ops.aten.addmm.default: CheckpointPolicy.MUST_SAVE}


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize(
    ("reentrant", "otherwise"),
    [
        (False, None),
        (True, None),
        (False, CheckpointPolicy.PREFER_RECOMPUTE),
        (False, CheckpointPolicy.MUST_RECOMPUTE),
    ],
)
def test_checkpoints_say_what_is_saved_and_draw_the_same_numbers_again(partition, reentrant, otherwise):
    """Three layers with dropout, each a checkpoint: bitwise the gradients untraced, and no mask is saved."""
    options = {"use_reentrant": reentrant}
    if otherwise:
        options["context_fn"] = lambda: create_selective_checkpoint_contexts(
            lambda context, op, *args, **kwargs: MM_SAVED.get(op, otherwise)
        )
    rd.manual_seed(0)
    layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(3))
    names, seen = [], []

    def block(layer, x):
        return nn.functional.dropout(layer(x).sin().exp().cos(), 0.5)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, x):
            for one in self.layers:
                x = checkpoint(block, one, x, **options)
            return x

    def noted(joint, inputs, num_fwd_outputs):
        parts = partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)
        names.extend(map(str, parts[0].graph.output_node().args[0][num_fwd_outputs:]))
        return parts

    x = rd.randn(64, 32)  # a mask of so many is larger than the state of a generator
    for run in (Net(), aot_module(Net(), nop, partition_fn=noted)):
        layers.zero_grad()
        mine = x.clone().requires_grad_()
        rd.manual_seed(3)
        y = run(mine)
        y.square().sum().backward()
        seen.append([y.tolist(), mine.grad.tolist(), *(one.grad.tolist() for one in layers.parameters())])
    assert seen[0] == seen[1]
    kept = {name.rstrip("_0123456789") for name in names}
    assert "mul" in kept and not kept & {
        "exp",
        "cos",
        "sin",
        "div",
        "bernoulli",
    }  # what goes on to the next, and states
    assert ("addmm" in kept) == bool(otherwise)


def test_random_numbers_are_drawn_once_and_in_order_though_nobody_reads_them():
    def f(x):
        rd.rand(3)
        return nn.functional.dropout(x, 0.5).sin()

    x, found = rd.ones(4, requires_grad=True), []
    for function in (f, aot_function(f, nop, partition_fn=min_cut_rematerialization_partition)):
        rd.manual_seed(1)
        y = function(x)
        (gradient,) = rd.autograd.grad(y.sum(), x)
        found.append((y.tolist(), gradient.tolist(), rd.rand(()).item()))
    assert found[0] == found[1]


def test_a_partition_that_cannot_be_names_the_node():
    joint, count = joint_of(lambda x: x.sin(), rd.ones(2))
    with pytest.raises(RuntimeError, match="depends on a tangent"):
        default_partition(joint, (), num_fwd_outputs=count + 1)
    with pytest.raises(ValueError, match="expected num_fwd_outputs between 0 and 2"):
        default_partition(joint, (), num_fwd_outputs=7)
    parts = Joint(joint, count)
    with pytest.raises(RuntimeError, match="the backward is not given the input primals_1, which %cos"):
        parts.parted([])


def test_a_compiler_may_give_functions_that_take_a_list():
    seen = []
    boxed = make_boxed_compiler(lambda module, inputs: seen.append(len(inputs)) or module)
    x = rd.ones(2, requires_grad=True)
    aot_function(lambda x: x.sin() * 2, boxed)(x).sum().backward()
    assert seen == [1, 2] and x.grad.tolist() == pytest.approx([2 * math.cos(1)] * 2)


def test_nodes_of_backward_name_the_line_whose_gradient_they_are():
    def f(x, w):
        product = x @ w
        sine = product.sin()
        return sine.exp() + x

    graphs = []
    aot_function(f, lambda module, inputs: graphs.append(module) or module)(
        rd.ones(2, 2, requires_grad=True), rd.ones(2, 2, requires_grad=True)
    )
    for name, line in {"mm": "product = x @ w", "cos": "sine = product.sin()"}.items():
        nodes = [node for node in graphs[1].graph.nodes if node.name.startswith(name)]
        assert nodes and all(line in node.stack_trace for node in nodes)


def test_a_partition_that_cannot_be_names_the_line():
    joint, count = joint_of(lambda x: x.sin(), rd.ones(2))
    with pytest.raises(RuntimeError, match="The node comes from:\n.*test_aot_autograd.py"):
        Joint(joint, count).parted([])


def test_compilers_know_which_graph_they_have(capsys, tmp_path):
    names = []

    def note(module, inputs):
        names.append(compilers.get_aot_graph_name().rpartition("_")[2])
        assert compilers.get_aot_compilation_context()[0] == [compilers.get_graph_being_compiled()]
        return module

    x = rd.ones(3, requires_grad=True)
    aot_function(lambda x: x.sin(), note)(x)
    aot_function(lambda x: x.sin(), note)(x.detach())
    assert names == ["forward", "backward", "inference"] and compilers.get_graph_being_compiled() == ""
    compilers.memory_efficient_fusion(lambda x: nn.functional.silu(x).sin())(x).sum().backward()
    layer = compilers.memory_efficient_fusion(nn.Linear(3, 2))
    assert layer(x).shape == (2,)
    for compiler in (
        compilers.print_compile,
        compilers.debug_compile,
        compilers.draw_graph_compile(str(tmp_path / "g")),
    ):
        aot_function(lambda x: x.sin(), compiler)(x)
    assert "torch.ops.aten.sin.default" in capsys.readouterr().out and (tmp_path / "g.svg").exists()


def test_copies_in_inference_mode_are_copies():
    """`contiguous` and `reshape` are operators of their own there, which by their schema may give views."""
    f = aot_function(lambda x: (x.reshape(-1)[:2], x.contiguous() * 2), nop)
    x = rd.arange(12.0).view(4, 3).t()
    with rd.inference_mode():
        rd.testing.assert_close(f(x), (x.reshape(-1)[:2], x * 2))
