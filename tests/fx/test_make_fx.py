"""make_fx: graphs of what operators were called, control flow included."""

import copy
import re

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch import Tag, nn
from redispatch._decomp import (
    core_aten_decompositions,
    decomposition_table,
    get_decompositions,
    register_decomposition,
    remove_decompositions,
)
from redispatch._functorch.aot_autograd import aot_function, aot_module
from redispatch._higher_order_ops import auto_functionalized, cond, map, out_dtype, scan, while_loop
from redispatch.func import functionalize, grad, vmap
from redispatch.fx import Graph, GraphModule
from redispatch.fx.experimental.proxy_tensor import DecompositionInterpreter, get_isolated_graphmodule, make_fx
from redispatch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from redispatch.modes.fake_tensor import FakeTensor
from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode
from redispatch.testing import assert_close
from redispatch.testing.op_db import op_db

from ..drawing import draw

# Make_fx: the operators that run as a graph, on real and fake tensors, of functionalized programs and of gradients ----

MODES = pytest.mark.parametrize("mode", ["real", "fake"])


def writes(x):
    y = x.clone()
    y[0].mul_(2)
    y.view(-1)[1:].add_(x.sum())
    return y


def test_a_functionalized_program_is_purely_functional():
    traced = make_fx(functionalize(writes))(rd.ones(2, 2))
    assert not any(node.target._schema.is_mutable for node in traced.graph.find_nodes(op="call_function"))
    assert_close(traced(rd.full((2, 2), 3.0)), writes(rd.full((2, 2), 3.0)))
    assert_expected_inline(
        traced.code,
        """\



def forward(self, x_1):
    clone = torch.ops.aten.clone.default(x_1)
    select = torch.ops.aten.select.int(clone, 0, 0)
    mul = torch.ops.aten.mul.Tensor(select, 2);  select = None
    select_scatter = torch.ops.aten.select_scatter.default(clone, mul, 0, 0);  clone = mul = None
    select_1 = torch.ops.aten.select.int(select_scatter, 0, 0);  select_1 = None
    view = torch.ops.aten.view.default(select_scatter, [-1])
    slice_1 = torch.ops.aten.slice.Tensor(view, 0, 1, 9223372036854775807);  view = None
    sum_1 = torch.ops.aten.sum.default(x_1);  x_1 = None
    add = torch.ops.aten.add.Tensor(slice_1, sum_1);  slice_1 = sum_1 = None
    view_1 = torch.ops.aten.view.default(select_scatter, [-1]);  select_scatter = None
    slice_scatter = torch.ops.aten.slice_scatter.default(view_1, add, 0, 1, 9223372036854775807);  view_1 = add = None
    view_2 = torch.ops.aten.view.default(slice_scatter, [2, 2]);  slice_scatter = None
    view_3 = torch.ops.aten.view.default(view_2, [-1])
    slice_2 = torch.ops.aten.slice.Tensor(view_3, 0, 1, 9223372036854775807);  view_3 = slice_2 = None
    return view_2
    """,
    )


def test_what_is_written_to_an_input_is_copied_there_at_the_end():
    def f(x):
        x.t_()
        x[0] = 5
        return x + 1

    traced = make_fx(functionalize(f, remove="mutations_and_views"))(rd.ones(2, 3))
    written = [n.target.__name__ for n in traced.graph.find_nodes(op="call_function") if n.target._schema.is_mutable]
    assert written == ["copy_.default", "as_strided_.default"]
    assert not any(node.target._schema.is_view for node in traced.graph.find_nodes(op="call_function"))
    x, y = rd.ones(2, 3), rd.ones(2, 3)
    assert_close(traced(x), f(y))
    assert_close(x, y)
    assert x.stride() == y.stride()


@MODES
def test_a_traced_function_computes_the_same(mode):
    def f(x, pair):
        y = rd.ones(3) + x
        y.view(-1).add_(rd.tensor([1.0, 2.0, 3.0]))
        return {"parts": y.split(2), "other": pair[1].relu() * pair[0]}

    args = rd.randn(3), [rd.randn(2), rd.randn(2)]
    traced = make_fx(f, tracing_mode=mode)(*args)
    traced.graph.lint()
    assert_close(traced(*args), f(*args))
    assert_close(traced(*args), f(*args))  # constants are not written


@MODES
def test_gradients_are_traced(mode):
    def by_autograd(x):
        x = x.detach().requires_grad_()
        return rd.autograd.grad((x.exp() * x).sum(), x)[0]

    for f in (grad(lambda x: (x.exp() * x).sum()), by_autograd):
        traced = make_fx(f, tracing_mode=mode)(rd.zeros(3))
        assert not [name for name, _ in traced.named_buffers()]  # all is computed from the input
        x = rd.randn(3)
        assert_close(traced(x), x.exp() * x + x.exp())


def test_vmap_is_traced_as_what_it_does():
    traced = make_fx(vmap(lambda x: x.sum() * x))(rd.ones(2, 3))
    x = rd.randn(2, 3)
    assert_close(traced(x), x.sum(1, keepdim=True) * x)


def test_parameters_become_attributes():
    linear = nn.Linear(2, 2)
    traced = make_fx(lambda x: linear(x))(rd.ones(1, 2))
    assert traced._param_constant0 is linear.weight
    assert "torch.ops.aten.addmm.default" in traced.code


@MODES
def test_what_depends_on_values_is_refused(mode):
    text = "data-dependent expression u0" if mode == "fake" else "get value out of a tracing tensor"
    with pytest.raises(RuntimeError, match=rf"(?s){text}.*test_make_fx.py"):
        make_fx(lambda x: x if x.sum() > 0 else -x, tracing_mode=mode)(rd.ones(1))
    traced = make_fx(lambda x: x * rd.tensor(2.0).item(), tracing_mode=mode)(rd.ones(1))  # a constant is known
    assert traced(rd.ones(1)).tolist() == [2]


def test_a_table_says_what_is_traced_in_the_place_of_an_operator():
    table = {rd.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    traced = make_fx(nn.functional.silu, decomposition_table=table)(rd.ones(2))
    assert [node.name for node in traced.graph.nodes] == ["input_1", "sigmoid", "mul", "output"]


def test_with_the_core_table_a_trace_has_core_operators_alone():
    def program(x, w, b):
        hidden = nn.functional.hardswish(nn.functional.linear(x, w, b)).add_(1)
        loss = nn.functional.smooth_l1_loss(nn.functional.gelu(hidden), nn.functional.mish(hidden).softmax(1))
        return rd.autograd.grad(loss, (w, b)), rd.nn.functional.pixel_shuffle(hidden.view(1, 4, 2, 2), 2).roll(1)

    given = rd.randn(4, 3), rd.randn(4, 3, requires_grad=True), rd.randn(4, requires_grad=True)
    traced = make_fx(program, decomposition_table=core_aten_decompositions())(*given)
    targets = {node.target for node in traced.graph.nodes if node.op == "call_function"}
    assert len(targets) > 15 and not [op for op in targets if rd.Tag.core not in op.tags and op._opname != "copy_"]
    assert_close(traced(*given), program(*given))


def test_decompositions_give_what_their_operators_give():
    known = [
        info for info in op_db if info.op in decomposition_table and Tag.nondeterministic_seeded not in info.op.tags
    ]
    assert len(known) > 700 and len(decomposition_table) > 1800
    for info in draw(known, "decompositions", count=60):
        if "empty" in str(info) or Tag.nondeterministic_seeded in info.op.tags:
            continue
        for sample in info.sample_inputs(info.main_dtype):
            result = info.run(sample.copy(), decomposition_table[info.op])
            if result is not NotImplemented:
                assert_close(
                    result, info.run(sample.copy()), equal_nan=True, msg=lambda text, info=info: f"{info}: {text}"
                )


def test_a_program_registers_what_stands_for_an_operator_before_what_the_library_knows(monkeypatch):
    silu = rd.ops.aten.silu
    monkeypatch.setitem(decomposition_table, silu.default, decomposition_table[silu.default])
    register_decomposition(silu.default)(lambda x: x * 3)
    assert get_decompositions([silu])[silu.default](2) == core_aten_decompositions()[silu.default](2) == 6
    with pytest.raises(RuntimeError, match="^duplicate registrations for aten.silu.default"):
        register_decomposition(silu)(lambda x: x)
    table = core_aten_decompositions()
    remove_decompositions(table, [silu])
    assert silu.default not in table and silu.out in decomposition_table


def test_readable_text_has_types_and_shapes():
    def summed(x):
        return x.sum(0)

    assert_expected_inline(
        re.sub(r"File: .*:\d+", "File: test.py:1", make_fx(summed)(rd.ones(2, 3)).print_readable(print_output=False)),
        """\
class summed(torch.nn.Module):
    def forward(self, x_1: "f32[2, 3]"):
        # File: test.py:1 in summed, code: return x.sum(0)
        sum_1: "f32[3]" = torch.ops.aten.sum.dim_IntList(x_1, [0]);  x_1 = None
        return sum_1
""",
    )


# Graphs of higher-order operators -------------------------------------------------------------------------------------

# A node for the operator, and a graph for each function that it takes.


def calls(graph_module):
    """The names of the operators that a graph calls."""
    return [str(node.target) for node in graph_module.graph.nodes if node.op == "call_function"]


def softened(x):
    return cond(x.sum() > 1, lambda x: x.clone().div_(x.sum()), lambda x: x.view(-1) * 2, (x,))


def halved(x):
    return while_loop(lambda x: x.sum() > 1, lambda x: (x.clone().mul_(0.5),), (x,))


def summed(x):
    return scan(lambda carry, row: (carry + row, carry * row), rd.zeros(3), x)


def sines(x):
    return map(lambda row, k: {"sin": row.clone().sin_() * k}, x, 2.0)["sin"]


PROGRAMS = [(softened, (3,)), (halved, (3,)), (summed, (2, 3)), (sines, (2, 3))]


@pytest.mark.parametrize(("program", "shape"), PROGRAMS)
@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("mode", ["real", "fake"])
def test_one_graph_holds_for_all_values(program, shape, functional, mode):
    traced = make_fx(functionalize(program) if functional else program, tracing_mode=mode)(rd.ones(shape))
    for x in (rd.ones(shape) * 4, -rd.ones(shape), rd.arange(6.0)[: rd.ones(shape).numel()].view(shape)):
        found, wanted = traced(x), program(x)
        for one, other in zip(rd.utils._pytree.tree_leaves(found), rd.utils._pytree.tree_leaves(wanted), strict=True):
            assert rd.equal(one, other)


@pytest.mark.parametrize(("program", "shape"), PROGRAMS)
def test_functions_in_the_graph_write_nothing_under_functionalize(program, shape):
    plain = make_fx(program)(rd.ones(shape))
    functional = make_fx(functionalize(program))(rd.ones(shape))

    def written(graph_module):
        inner = [one for child in graph_module.children() for one in calls(child)]
        return [name for name in inner if name.split(".")[1].endswith("_")]

    assert written(functional) == [] and (written(plain) or program is summed)


def test_both_branches_are_graphs_of_the_whole():
    traced = make_fx(lambda x: (softened(x), softened(x)))(rd.ones(3))
    names = [name for name, _ in traced.named_children()]
    assert names == ["true_graph_0", "false_graph_0", "true_graph_1", "false_graph_1"]
    assert calls(traced).count("cond") == 2
    assert "torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x_1,))" in traced.code
    assert "aten.div_.Tensor" in calls(traced.true_graph_0)


def test_tracing_a_branch_writes_nothing_that_exists():
    x = rd.ones(3)
    make_fx(lambda x: cond(x.sum() > 100, lambda x: x.add_(1), lambda x: x * 2, (x,)))(x)
    assert x.tolist() == [1, 1, 1]


def test_a_tensor_of_the_graph_around_must_be_passed():
    def captured(x):
        y = x * 2
        return cond(x.sum() > 0, lambda x: x + y, lambda x: x - y, (x,))

    with pytest.raises(RuntimeError, match="pass it among the operands"):
        make_fx(captured)(rd.ones(2))


def test_where_a_gradient_is_wanted_the_body_is_entered():
    def slope(x):
        return rd.autograd.grad(map(lambda row: row * row, x).sum(), x)[0]

    traced = make_fx(slope)(rd.ones(2, requires_grad=True))
    assert "map_impl" not in calls(traced) and traced(rd.tensor([3.0, 4.0])).tolist() == [6, 8]


def test_out_dtype_is_entered_as_it_is():
    a = rd.ones(2, 2, dtype=rd.int8)
    for change in (lambda f: f, functionalize):
        traced = make_fx(change(lambda a: out_dtype(rd.ops.aten.mm.default, rd.int32, a, a)))(a)
        assert calls(traced) == ["out_dtype"] and traced(a).dtype is rd.int32


# Operators that write, and have no functional form --------------------------------------------------------------------


@pytest.fixture
def writers():
    with rd.library._scoped_library("writes", "FRAGMENT") as lib:
        lib.define("bump(Tensor(a!) x, float by) -> ()")
        lib.define("pair(Tensor(a!) x, Tensor(b!)[] others, Tensor y) -> (Tensor, Tensor)")
        lib.define("own(Tensor(a!) x) -> Tensor(a!)")

        def bump(x, by):
            x.add_(by)

        def pair(x, others, y):
            x.mul_(y)
            for other in others:
                other.sub_(1)
            return x + y, x - y

        for name, kernel in (("bump", bump), ("pair", pair), ("own", lambda x: x.neg_())):
            lib.impl(name, kernel, "CompositeExplicitAutograd")
        yield rd.ops.writes


def bumped(x):
    y = x.clone()
    rd.ops.writes.bump(y[1:], 2.0)
    return y


def paired(x):
    a, b, c = x.clone(), x * 3, x * 4
    total, difference = rd.ops.writes.pair(a, [b, c], x)
    return a, b, c, total, difference


def negated(x):
    y = x.clone()
    assert rd.ops.writes.own(y) is y
    return y * 2


@pytest.mark.parametrize("program", [bumped, paired, negated])
def test_an_operator_that_writes_is_run_on_copies(writers, program):
    x = rd.tensor([1.0, 2.0, 3.0])
    wanted = rd.utils._pytree.tree_leaves(program(x))
    traced = make_fx(functionalized(program))(rd.ones(3))
    assert "auto_functionalized" in calls(traced) and not any("writes" in name for name in calls(traced))
    for way in (functionalized(program), traced):
        assert all(map_equal(rd.utils._pytree.tree_leaves(way(x)), wanted))
    assert x.tolist() == [1, 2, 3]


def functionalized(program):
    """The program of values that a program is under FunctionalTensorMode."""

    def under_mode(x):
        with FunctionalTensorMode():
            return rd.utils._pytree.tree_map_only(
                FunctionalTensor, FunctionalTensor.from_functional, program(FunctionalTensor.to_functional(x))
            )

    return under_mode


def test_the_transform_refuses_an_operator_that_writes_and_has_no_functional_form(writers):
    with pytest.raises(RuntimeError, match="We only support functionalizing operators whose outputs do not have alias"):
        functionalize(bumped)(rd.ones(3))


def map_equal(found, wanted):
    return [rd.equal(one, other) for one, other in zip(found, wanted, strict=True)]


def test_auto_functionalized_returns_results_and_new_values(writers):
    x = rd.ones(2)
    nothing, new = auto_functionalized(writers.bump.default, x=x, by=2.0)
    assert nothing is None and new.tolist() == [3, 3] and x.tolist() == [1, 1]
    found = auto_functionalized(writers.pair.default, x=x, others=[x], y=x * 5)
    assert [type(one) for one in found] == [rd.Tensor, rd.Tensor, rd.Tensor, list] and found[3][0].tolist() == [0, 0]


def test_auto_functionalized_of_a_custom_op_keeps_its_declared_results():
    with rd.library._scoped_library("writes", "FRAGMENT"):
        op = rd.library.custom_op("writes::counted", mutates_args={"x"})(counted)
        traced = make_fx(functionalized(lambda x: (op(y := x.clone()), y)))(rd.ones(2))
        result, y = traced(rd.zeros(2))
        assert (result.tolist(), y.tolist()) == ([2, 2], [1, 1])


def counted(x: rd.Tensor) -> rd.Tensor:
    x.add_(1)
    return x * 2


def test_results_are_written_as_they_are_nested_where_each_argument_is_a_leaf():
    def f(x):
        return {"most": x.max(0), "parts": [x, (x + 1, None, 3)]}

    x = rd.arange(4.0).reshape(2, 2)
    gm = make_fx(f)(x)
    assert "tree_flatten_spec" not in gm.code and gm.code.rstrip().endswith(
        "return {'most': (getitem, getitem_1), 'parts': [x_1, (add, None, 3)]}"
    )
    assert isinstance(make_fx(lambda x: rd.Size((1, 2)))(x)(x), tuple)
    assert gm(x)["parts"][1][1:] == (None, 3) and rd.equal(gm(x)["most"][0], x[1])


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_each_node_has_a_fake_of_its_value(mode):
    gm = make_fx(lambda x: (x.split(1)[0] + rd.tensor([1.0, 2.0])).t(), tracing_mode=mode)(rd.ones(2, 2))
    nodes = {node.name: node for node in gm.graph.nodes}
    vals = {name: node.meta["val"] for name, node in nodes.items() if node.op != "output"}
    parts = vals.pop("split")
    assert [tuple(one.shape) for one in parts] == [(1, 2), (1, 2)]
    assert all(isinstance(one, FakeTensor) for one in [*parts, *vals.values()])
    assert vals["t"].shape == (2, 1) and vals["t"].stride() == (1, 2) and vals["_tensor_constant0"].shape == (2,)
    assert len({id(one.fake_mode) for one in vals.values()}) == 1


# Forward and backward, traced ahead -----------------------------------------------------------------------------------


def test_a_module_is_compiled_with_its_parameters_and_buffers():
    seen = []

    def keep(graph_module, inputs):
        seen.append(len(inputs))
        return graph_module

    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    other = copy.deepcopy(module)
    compiled, x = aot_module(module, keep), rd.tensor([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]])
    for _ in range(2):
        result, wanted = compiled(x), other(x)
        assert_close(result, wanted)
        (result**3).sum().backward()
        (wanted**3).sum().backward()
    for one, same in zip(compiled.orig_module.parameters(), other.parameters(), strict=True):
        assert_close(one.grad, same.grad, atol=1e-3, rtol=1e-3)
    assert_close(module[1].running_mean, other[1].running_mean)
    assert len(seen) == 2 and seen[0] == 8  # once forward and once backward; x, four parameters and three buffers


def test_backward_neither_sees_nor_repeats_what_the_function_writes():
    def f(weight, count):
        count.add_(1)
        return (weight * count).sum()

    weight, count = rd.ones(2, requires_grad=True), rd.ones(2)
    aot_function(f, lambda graph_module, inputs: graph_module)(weight, count).backward()
    assert count.tolist() == weight.grad.tolist() == [2, 2]


def test_nodes_name_the_lines_that_they_come_from():
    graph = make_fx(lambda x: nn.functional.silu(x).sum(), tracing_mode="fake")(rd.ones(2))
    for node in graph.graph.find_nodes(op="call_function", target=rd.ops.aten.silu.default):
        assert __file__ in node.stack_trace and "nn.functional.silu(x).sum()" in node.stack_trace
    with pytest.raises(RuntimeError, match="asked here:\n.*test_make_fx.py.*\n.*if x.sum"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(rd.ones(2))


def test_numbers_that_elements_decide_are_sizes():
    """Answers to the questions of operators about such sizes are known, or found when the graph runs."""

    def parts(lengths, values):
        sizes = [lengths[i].item() for i in range(lengths.shape[0])]
        for size in sizes:
            rd._check_is_size(size)
        return rd.split(values, sizes)

    def viewed(x):
        return rd.zeros(x.item(), 192).view(12, -1, 192), rd.randn(3, x.item(), 3).cumsum(0)

    graph = make_fx(parts, tracing_mode="symbolic")(rd.tensor([2, 3, 4]), rd.randn(9))
    assert [one.shape[0] for one in graph(rd.tensor([4, 3, 1]), rd.randn(8))] == [4, 3, 1]
    graph = make_fx(viewed, tracing_mode="symbolic")(rd.tensor(24))
    assert [one.shape for one in graph(rd.tensor(36))] == [(12, 3, 192), (3, 36, 3)]


def test_sizes_are_numbers_in_tensors():
    def f(x):
        x[0] = x.shape[0]
        table = rd.tensor([[x.shape[0], 2], [x.shape[0] * 1.5, 3]])
        return x, table, rd.tensor(x.shape[0] / 2), rd.broadcast_shapes(x.shape[0], (2, 1)), rd.sym_sqrt(x.shape[0])

    graph = make_fx(f, tracing_mode="symbolic")(rd.zeros(4))
    x, table, half, shape, root = graph(rd.zeros(9))
    assert x[0] == 9 and table.tolist() == [[9, 2], [13.5, 3]] and half == 4.5 and shape == (2, 9) and root == 3


def test_constants_are_known_part_by_part():
    graph = make_fx(lambda x: x + rd.tensor([2]).unbind(0)[0].item())(rd.ones(2))
    assert graph(rd.ones(2)).tolist() == [3, 3]


def test_a_question_that_elements_decide_names_the_line():
    def f(x):
        return x if x.item() > 3 else x + 1

    with pytest.raises(GuardOnDataDependentSymNode, match=r"(?s)torch._check\(u0 > 3\).*asked here.*test_make_fx.py"):
        make_fx(f, tracing_mode="symbolic")(rd.tensor(3))


def test_a_graph_within_a_graph_is_apart():
    inner = []

    def f(x):
        inner.append(get_isolated_graphmodule(lambda a, *, b: a.digamma() + b, (x,), {"b": x}))
        return x * 2

    outer = make_fx(f)(rd.ones(2))
    assert "digamma" in inner[0].code and "digamma" not in outer.code
    graph = Graph()
    table = {rd.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    module = make_fx(lambda x: rd.nn.functional.silu(x))(rd.ones(2))
    DecompositionInterpreter(module, graph, table).run(rd.ones(2))
    made = GraphModule(module, graph)
    assert "sigmoid" in made.code and rd.allclose(made(rd.ones(2)), module(rd.ones(2)))
