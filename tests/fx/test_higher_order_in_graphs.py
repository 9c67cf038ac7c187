"""Graphs of higher-order operators: a node for the operator, and a graph for each function that it takes."""

import pytest

import redispatch as rd
from redispatch._higher_order_ops import auto_functionalized, cond, map, out_dtype, scan, while_loop
from redispatch.func import functionalize
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode


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
