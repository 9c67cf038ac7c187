"""Passes over graphs of operators: frontend/fx/passes/post_grad.py."""

import operator

import pytest
from hypothesis import given

import redispatch as rd
from redispatch._functorch.aot_autograd import aot_function, min_cut_rematerialization_partition
from redispatch._higher_order_ops.wrap import auto_functionalized
from redispatch.dispatch.pytree import tree_leaves
from redispatch.fx import traceback
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.passes import config, post_grad, reinplace
from redispatch.fx.passes.matching import register_replacement
from redispatch.fx.passes.post_grad import PASSES, register_pass, run_passes, stable_topological_sort
from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode
from tests.drawing import at_length
from tests.fx.random_programs import define_operators, outcome, programs


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
@given(programs())
def test_passes_change_no_bit_of_a_program(program):
    def passed(module, inputs):
        return run_passes(module)

    def outcome_of(compiler):
        try:
            return outcome(aot_function(program, compiler, partition_fn=min_cut_rematerialization_partition), program)
        except RuntimeError as refused:
            return type(refused)

    assert outcome_of(passed) == outcome_of(lambda module, inputs: module)


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


def test_a_pattern_says_which_value_is_read_elsewhere_and_on_which_line(passes):
    one = fused(passes)

    def program(x):
        y = x @ x
        return y + x, y.sin()  # the other reader

    with traceback.preserve_node_meta():
        module = make_fx(program, tracing_mode="fake")(rd.ones(2, 2))
    assert names(run_passes(module, [one])) == ["mm", "add", "sin"]
    (why,) = one.refused
    assert why.startswith("%mm : ") and "is read elsewhere: %sin" in why and "# the other reader" in why
    run_passes(make_fx(lambda x: x @ x + x, tracing_mode="fake")(rd.ones(2, 2)), [one])
    assert one.refused == []
    with pytest.raises(ValueError, match="the pattern returns 2 values and the replacement 1"):
        register_replacement(lambda a: (a.sin(), a.cos()), lambda a: a.sin(), [rd.ones(2)])


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


def test_products_and_sums_are_one_operator_where_that_changes_no_bit():
    def f(a, b, c, d):
        return a @ b + c, d + b @ a, a @ b + a @ a, rd.add(a @ b, c, alpha=2), (y := a @ c.t(), y + a)

    for dtype in (rd.float32, rd.float64):
        inputs = [rd.randn(30, 30, dtype=dtype) for _ in range(3)] + [rd.randn(30, dtype=dtype)]
        module = make_fx(f, tracing_mode="fake")(*inputs)
        wanted = tree_leaves(module(*inputs))
        run_passes(module, [post_grad.fuse_addmm])
        left = names(module)
        assert [left.count(one) for one in ("addmm", "mm", "add")] == [3, 3, 2]
        assert all(rd.equal(one, other) for one, other in zip(tree_leaves(module(*inputs)), wanted, strict=True))
    for x in (rd.randn(30, 30).bfloat16(), rd.randn(3, 3)):  # the sum is rounded otherwise
        module = make_fx(lambda a: a @ a + a, tracing_mode="fake")(x)
        assert names(run_passes(module, [post_grad.fuse_addmm])) == ["mm", "add"]


def test_the_sum_of_two_products_is_written_over_one_of_them():
    module = make_fx(lambda a, b: a @ b + b @ a, tracing_mode="fake")(rd.ones(30, 30), rd.ones(30, 30))
    wanted = module(*(inputs := (rd.randn(30, 30), rd.randn(30, 30))))
    assert names(run_passes(module)) == ["mm", "addmm_"] and rd.equal(module(*inputs), wanted)


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (lambda x: x.sin().cos(), ["sin", "cos_"]),
        (lambda x: (y := x.sin(), y.cos()), ["sin", "cos"]),  # its memory is the caller's
        (lambda x: (y := x.sin()).view(-1).exp() + y.view(-1), ["sin", "view", "exp", "view", "add_"]),
        (lambda x: (y := x.sin(), y.cos().t().exp().t())[1], ["sin", "cos_", "t", "exp_", "t"]),
        (lambda x: x.exp().add(x), ["exp", "add_"]),
        (lambda x: x.add(1).to(rd.float64).mul(2), ["add", "_to_copy", "mul_"]),
        (lambda x: x.sin()[:, :1].expand(2, 2).mul(2), ["sin", "slice", "expand", "mul"]),
        (lambda x: (y := x.sin()).mul(y), ["sin", "mul_"]),
        (lambda x: rd.addmm(y := x.sin(), y, x), ["sin", "addmm"]),  # it reads what it would have written
        (lambda x: x.sin().as_strided((2, 2), (1, 1)).mul(2), ["sin", "as_strided", "mul"]),
        (lambda x: x.sin().t().contiguous().exp(), ["sin", "t", "clone", "exp_"]),
        (lambda x: x.sin().clone().exp(), ["sin", "exp_"]),
        (lambda x: x.sin()[:, 0].exp().view(-1), ["sin", "select", "exp", "view"]),  # other strides
    ],
)
def test_a_value_that_nobody_reads_later_is_written_over(f, left):
    x = rd.rand(2, 2)
    module = make_fx(f, tracing_mode="fake")(x)
    wanted, before = module(x), x.clone()
    run_passes(module, [post_grad.reinplace_inplaceable_ops])
    assert names(module) == left
    assert all(map(rd.equal, tree_leaves(module(x)), tree_leaves(wanted))) and rd.equal(x, before)


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (lambda x, y: x.add_(1).mul_(2), ["add_", "mul_"]),
        (lambda x, y: (x.mul_(2), y.add_(x)), ["mul_", "add_"]),
        (lambda x, y: (x.add_(1), x.sin())[1], ["add_", "sin"]),  # sin reads x at its end
        (lambda x, y: (z := x.sin(), x.add_(y), z)[2], ["sin", "add_"]),
        (lambda x, y: x[0].mul_(3), ["select", "mul_", "select"]),
    ],
)
def test_an_input_is_written_over_where_the_graph_ends_by_copying_into_it(f, left):
    module = make_fx(rd.func.functionalize(f), tracing_mode="fake")(rd.ones(2, 2), rd.ones(2, 2))
    run_passes(module)
    (a, b), (c, d) = [[one.clone() for one in (rd.arange(4.0).view(2, 2), rd.rand(2, 2))] for _ in range(2)]
    rd.manual_seed(0)
    d.copy_(b)
    found, wanted = module(a, b), f(c, d)
    assert all(map(rd.equal, [a, b, *tree_leaves(found)], [c, d, *tree_leaves(wanted)]))
    assert names(module) == left


def test_an_input_whose_memory_another_one_has_is_not_written_over():
    f = rd.func.functionalize(lambda x, y: x.add_(1).mul_(y))
    base = rd.ones(2, 2)
    module = make_fx(f, tracing_mode="fake")(base, base)
    apart = make_fx(f, tracing_mode="fake")(base, rd.ones(2, 2))
    assert names(reinplace.reinplace(apart, base, base.clone())) == ["add_", "mul_"]
    x = rd.ones(2, 2)
    again = make_fx(f, tracing_mode="fake")(base, rd.ones(2, 2))
    reinplace.reinplace(again, x, x.view(2, 2))
    assert "copy_" in names(again) and again(x, x).tolist() == [[2, 2], [2, 2]]
    assert module is not again


def test_what_autograd_records_is_not_written_over():
    weight = rd.nn.Parameter(rd.ones(2))
    module = run_passes(make_fx(lambda x: (x * weight).exp().sin())(rd.ones(2)))
    assert names(module) == ["mul", "exp", "sin"]
    module(rd.ones(2)).sum().backward()
    assert weight.grad is not None


def test_a_custom_operator_writes_what_nobody_reads_later():
    def f(x):
        with FunctionalTensorMode():
            y = FunctionalTensor.to_functional(x)
            rd.ops.random_programs.scale_(y.t(), 2.0)
            z = y * 1.5
            rd.ops.random_programs.scale_(z, 3.0)
            w = z.exp()
            rd.ops.random_programs.scale_(z, 3.0)
            return [one.from_functional() for one in (y, z, w)]

    module = make_fx(f, tracing_mode="fake")(rd.ones(2, 2))
    x = rd.rand(2, 2)
    wanted, before = module(x), x.clone()
    run_passes(module)
    assert all(map(rd.equal, module(x), wanted)) and rd.equal(x, before)
    assert names(module).count("scale_") == 3 and names(module).count("clone") == 1  # of the input


def test_results_of_auto_functionalized_that_are_not_read_one_by_one_are_refused():
    module = make_fx(lambda x: auto_functionalized(rd.ops.random_programs.scale_.default, x=x, by=2.0)[1])(rd.ones(2))
    (item,) = (node for node in module.graph.nodes if node.target is operator.getitem)
    item.replace_all_uses_with(item.args[0])
    with pytest.raises(RuntimeError, match="results of %auto_functionalized.* to be read one by one; return"):
        run_passes(module, [post_grad.decompose_auto_functionalized])


def test_passes_of_ones_own_run_first_and_last(monkeypatch):
    seen = []
    monkeypatch.setattr(config, "post_grad_custom_pre_pass", lambda graph: seen.append(["pre", *named(graph)]))
    monkeypatch.setattr(config, "post_grad_custom_post_pass", lambda graph: seen.append(["post", *named(graph)]))
    module = run_passes(make_fx(lambda x: (x.sin() * 1).cos(), tracing_mode="fake")(rd.ones(2)))
    assert seen == [["pre", "sin", "mul", "cos"], ["post", "sin", "cos"]] and names(module) == ["sin", "cos_"]


def named(graph):
    return [node.target._opname for node in graph.nodes if node.op == "call_function"]


def test_an_error_names_the_pass_the_node_and_the_line_of_the_program():
    def program(x):
        y = x.sin()  # the line
        return y.cos()

    with traceback.preserve_node_meta():
        module = make_fx(program, tracing_mode="fake")(rd.ones(2))

    def swaps(graph):
        sin, cos = graph.find_nodes(op="call_function")
        sin.prepend(cos)

    with pytest.raises(
        RuntimeError, match=r"(?s)the pass 'swaps' broke the graph: Argument 'sin' of Node 'cos'"
    ) as error:
        run_passes(module, [swaps])
    assert "return y.cos()" in str(error.value) and __file__ in str(error.value)


def test_each_stage_is_watched():
    seen = []
    module = make_fx(lambda x: x.sin() * 1, tracing_mode="fake")(rd.ones(2))
    run_passes(module, watch=lambda name, module: seen.append((name, names(module))))
    assert seen[:2] == [("before", ["sin", "mul"]), ("remove_noop_ops", ["sin"])]
    assert seen[-1][0] == "reinplace_inplaceable_ops"
