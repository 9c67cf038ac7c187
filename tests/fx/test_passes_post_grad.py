"""Passes over graphs of operators: frontend/fx/passes/post_grad.py."""

import pytest
from hypothesis import given

import redispatch as rd
from redispatch._functorch.aot_autograd import aot_function, min_cut_rematerialization_partition
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.passes import post_grad
from redispatch.fx.passes.matching import register_replacement
from redispatch.fx.passes.post_grad import PASSES, register_pass, run_passes, stable_topological_sort
from tests.drawing import at_length
from tests.fx.random_programs import EFFECTS, define_operators, outcome, programs


@pytest.fixture(scope="module", autouse=True)
def operators():
    library = define_operators()
    yield
    library._destroy()


def names(module):
    return [node.target._opname for node in module.graph.nodes if node.op == "call_function"]


def after(passes, f, *args):
    module = make_fx(f, tracing_mode="fake")(*args)
    return run_passes(module, passes)


@at_length(400)
@given(programs(without={*EFFECTS, "mm", "autocast"}))
def test_passes_change_no_bit_of_a_pointwise_program(program):
    def passed(module, inputs):
        return run_passes(module)

    found = outcome(aot_function(program, passed, partition_fn=min_cut_rematerialization_partition), program)
    assert found == outcome(aot_function(program, lambda module, inputs: module), program)


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (lambda x: (x.clone() * 1 - 0).view(2, 3).expand(2, 3).sin(), ["sin"]),
        (lambda x: (x + 0).sin(), ["add", "sin"]),  # -0.0 + 0 is 0.0
        (lambda x: x.to(rd.float64).to(rd.float64) * 1.0, ["_to_copy"]),
        (lambda x: x.t().contiguous().sin(), ["t", "clone", "sin"]),
        (lambda x: x.clone(), ["clone"]),  # a result apart from the input
        (lambda x: (y := x.sin(), y.clone()), ["sin", "clone"]),
        (lambda x: x.pow(1).cos(), ["cos"]),
        (lambda x: (x * 1j * 1).sin(), ["mul", "mul", "sin"]),  # infinity times 1 is not itself
        (lambda x: x.clone().view(3, 2), ["clone", "view"]),
        (lambda x: (y := x.sin(), y.clone().t()), ["sin", "clone", "t"]),
    ],
)
def test_what_computes_nothing_goes(f, left):
    assert names(after([post_grad.remove_noop_ops], f, rd.ones(2, 3))) == left


def test_what_is_computed_twice_is_computed_once():
    module = after(
        [post_grad.eliminate_common_subexpressions], lambda x: x.sin() + x.sin() + x * 1 + x * 1.0, rd.ones(2)
    )
    assert names(module) == ["sin", "add", "mul", "add", "mul", "add"]
    apart = after([post_grad.eliminate_common_subexpressions], lambda x: (x.sin(), x.sin().view(-1)), rd.ones(2, 2))
    result, other = apart(rd.zeros(2, 2))
    result.add_(1)
    assert not other.any()
    drawn = after([post_grad.eliminate_common_subexpressions], lambda x: rd.rand_like(x) - rd.rand_like(x), rd.ones(4))
    assert names(drawn).count("rand_like") == 2


def test_what_depends_on_constants_alone_is_computed_at_once():
    table = rd.arange(3.0)
    module = make_fx(lambda x: x + (table * 2).exp().sum())(rd.ones(2))
    run_passes(module, [post_grad.constant_fold, post_grad.eliminate_dead_code])
    kept = run_passes(make_fx(lambda x: (x, table * 2))(rd.ones(2)), [post_grad.constant_fold])
    kept(rd.ones(2))[1].zero_()
    assert kept(rd.ones(2))[1].tolist() == [0, 2, 4]
    assert names(module) == ["add"] and module(rd.zeros(1)).item() == (table * 2).exp().sum().item()


def test_values_are_computed_just_ahead_of_their_readers():
    def f(x):
        a, b = x.sin(), x.cos()
        c = b.exp()
        return c + a

    assert names(after([post_grad.reorder_for_locality], f, rd.ones(2))) == ["cos", "exp", "sin", "add"]


def test_nodes_are_put_behind_those_that_they_read():
    module = make_fx(lambda x: x.sin().cos().exp())(rd.ones(2))
    sin, cos, exp = (node for node in module.graph.nodes if node.op == "call_function")
    sin.prepend(exp)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        module.graph.lint()
    stable_topological_sort(module.graph)
    run_passes(module, [])
    assert names(module) == ["sin", "cos", "exp"]
    sin.args = (exp,)
    with pytest.raises(RuntimeError, match=r"circle: %sin.* depends on itself"):
        stable_topological_sort(module.graph)


def test_a_pass_of_ones_own_runs_where_it_is_put_and_is_named_if_it_breaks_a_graph():
    def tanh_for_relu(graph):
        for node in graph.find_nodes(op="call_function", target=rd.ops.aten.relu.default):
            node.target = rd.ops.aten.tanh.default

    def breaks(graph):
        *_, last = (node for node in graph.nodes if node.op == "call_function")
        next(iter(graph.nodes)).prepend(last)

    before = list(PASSES)
    try:
        register_pass(before="eliminate_dead_code")(tanh_for_relu)
        assert [one.__name__ for one in PASSES].index("tanh_for_relu") == before.index(post_grad.eliminate_dead_code)
        assert names(after(None, lambda x: x.relu() * 1, rd.ones(2))) == ["tanh"]
        with pytest.raises(ValueError, match="there is no pass 'nowhere'"):
            register_pass(after="nowhere")
        with pytest.raises(RuntimeError, match="the pass 'breaks' broke the graph: .*used before"):
            after([breaks], lambda x: x.relu(), rd.ones(2))
    finally:
        PASSES[:] = before


@pytest.fixture
def passes():
    before = list(PASSES)
    yield PASSES
    PASSES[:] = before


def fused(passes, extra_check=lambda match: True):
    x = rd.ones(2, 2)
    return register_replacement(lambda a, b, c: a @ b + c, lambda a, b, c: rd.addmm(c, a, b), [x, x, x], extra_check)


def test_a_sum_of_a_product_is_replaced_in_either_order_where_its_shape_is_right(passes):
    one = fused(passes, lambda match: match.values["c"].dim() == 2)
    x, y = rd.randn(3, 3), rd.randn(3)
    for f, left in (
        (lambda x: x @ x + x, ["addmm"]),
        (lambda x: x.sin() + x @ x, ["sin", "addmm"]),
        (lambda x: (x @ x + y).sum(), ["mm", "add", "sum"]),
        (lambda x: rd.add(x @ x, x, alpha=2), ["mm", "add"]),
        (lambda x: (z := x @ x, z + x), ["mm", "add"]),  # the product is used elsewhere
    ):
        module = make_fx(f, tracing_mode="fake", _allow_non_fake_inputs=True)(x)
        wanted = module(x)
        run_passes(module, [one])
        assert names(module) == left
        for found, same in zip(
            *([one] if isinstance(one, rd.Tensor) else one for one in (module(x), wanted)), strict=True
        ):
            rd.testing.assert_close(found, same)
    assert all("val" in node.meta for node in module.graph.nodes if node.op == "call_function")


def test_new_nodes_have_values_for_the_passes_behind(passes):
    one = register_replacement(lambda a: a.relu(), lambda a: a.clamp(min=0) * 1, [rd.ones(2)])
    module = make_fx(lambda x: x.relu().sin(), tracing_mode="fake")(rd.ones(2))
    assert names(run_passes(module, [one, post_grad.remove_noop_ops])) == ["clamp", "sin"]


def test_a_pattern_of_several_results_is_replaced_whole(passes):
    one = register_replacement(lambda a: (a.sin(), a.cos()), lambda a: ((a + 1).sin(), (a + 1).cos()), [rd.ones(2)])
    module = make_fx(lambda x: x.exp().cos() * 2 + x.exp().sin(), tracing_mode="fake")(rd.ones(2))
    run_passes(module, [post_grad.eliminate_common_subexpressions, one])
    assert sorted(names(module)) == ["add", "add", "add", "cos", "exp", "mul", "sin"]
    with pytest.raises(ValueError, match="must return what it computes"):
        register_replacement(lambda a: a, lambda a: a + 1, [rd.ones(2)])
