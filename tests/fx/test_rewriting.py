"""Patterns of steps are replaced by others, and wrapped functions are steps of their own."""

import math

import pytest

import redispatch as rd
from redispatch import fx, nn
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.passes import infra, shape_prop
from redispatch.fx.subgraph_rewriter import replace_pattern_with_filters
from redispatch.modes.fake_tensor import FakeTensorMode


def doubled(x):
    return x * 2 if x.sum() > 0 else x


fx.wrap("doubled")


@fx.wrap
def halved(x):
    return x / 2


fx.wrap("len")


def test_a_wrapped_function_is_one_step():
    traced = fx.symbolic_trace(lambda x: halved(doubled(x)) + len(x))
    assert [node.target for node in traced.graph.nodes if node.op == "call_function"][:3] == [doubled, halved, len]
    assert traced(rd.ones(3)).tolist() == [4, 4, 4]
    assert "len" not in globals() and doubled(rd.ones(1)).item() == 2  # all is as before


def test_functions_that_a_tracer_is_given_are_steps_too():
    def function(x):
        return root(x)

    graph = fx.Tracer(autowrap_functions=(root,)).trace(function)
    assert [node.target for node in graph.nodes if node.op == "call_function"] == [root]


def root(x):
    return math.sqrt(float(x))


def test_wrap_says_what_it_takes_and_where():
    with pytest.raises(RuntimeError, match="Must be either a callable or string name"):
        fx.wrap(3)
    with pytest.raises(NotImplementedError, match="top level of a module"):
        fx.wrap("doubled")


def function(x, w):
    return rd.relu(rd.add(x, w)) + rd.relu(rd.add(w, x))


def test_each_place_of_a_pattern_is_replaced():
    traced = fx.symbolic_trace(function)
    done = fx.replace_pattern(traced, lambda a, b: rd.relu(rd.add(a, b)), lambda a, b: rd.sigmoid(a * b))
    assert len(done) == 2 and done[0].anchor.name == "relu"
    assert [str(one) for one in done[0].nodes_map] == ["relu", "add", "a", "b"]
    x, w = rd.tensor([1.0, 2.0]), rd.tensor([3.0, -1.0])
    assert rd.equal(traced(x, w), rd.sigmoid(x * w) * 2)
    traced.graph.lint()


def test_operators_of_a_traced_program_are_replaced():
    traced = make_fx(lambda x: x.sin() + 1)(rd.ones(2))
    done = fx.replace_pattern(traced, lambda x: rd.ops.aten.sin.default(x), lambda x: rd.ops.aten.cos.default(x))
    assert len(done) == 1 and rd.allclose(traced(rd.zeros(1)), rd.tensor([2.0]))


def test_what_is_used_elsewhere_or_has_another_argument_stays():
    def used(x):
        y = rd.neg(x)
        return rd.relu(y) + y

    traced = fx.symbolic_trace(used)
    assert fx.replace_pattern(traced, lambda x: rd.relu(rd.neg(x)), lambda x: x) == []
    traced = fx.symbolic_trace(lambda x: rd.add(x, 3))
    assert fx.replace_pattern(traced, lambda x: rd.add(x, 2), lambda x: x) == []
    assert len(fx.replace_pattern(traced, lambda x: rd.add(x, 3), lambda x: x)) == 1
    assert traced(rd.ones(1)).item() == 1


def test_places_that_overlap_are_replaced_once():
    traced = fx.symbolic_trace(lambda x: rd.relu(rd.relu(rd.relu(x))))
    assert len(fx.replace_pattern(traced, lambda x: rd.relu(rd.relu(x)), lambda x: rd.neg(x))) == 1
    assert traced(rd.tensor([2.0])).item() == 0  # the first place: relu(-x)
    traced.graph.lint()


def test_several_results_are_replaced_together():
    def both(x):
        return rd.neg(x) + rd.exp(x)

    traced = fx.symbolic_trace(both)
    done = fx.replace_pattern(traced, lambda x: (rd.neg(x), rd.exp(x)), lambda x: (rd.exp(x), rd.exp(x)))
    assert len(done) == 1 and rd.equal(traced(rd.ones(1)), rd.ones(1).exp() * 2)


def test_a_replacement_brings_its_modules():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)

    traced, two = fx.symbolic_trace(lambda x: rd.relu(x)), fx.symbolic_trace(Two())
    assert len(fx.replace_pattern(traced, lambda x: rd.relu(x), two)) == 1
    assert rd.equal(traced(rd.ones(1, 2)), two(rd.ones(1, 2)))


def test_places_that_follow_each_other_are_all_replaced():
    traced = fx.symbolic_trace(lambda x: rd.relu(rd.relu(x)) + rd.relu(x))
    assert len(fx.replace_pattern(traced, lambda x: rd.relu(x), lambda x: x.neg())) == 3
    assert traced(rd.ones(1)).tolist() == [0.0]
    kept = fx.symbolic_trace(lambda x: rd.relu(x))
    assert len(fx.replace_pattern(kept, lambda x: rd.relu(x), lambda x: x)) == 1 and kept(-rd.ones(1)).tolist() == [-1]


def test_filters_say_which_places_are_replaced():
    traced = fx.symbolic_trace(lambda x: rd.add(x, 1) + rd.add(x, 2))

    def adds_two(match, graph, pattern):
        return match.anchor.args[1] == 2

    done = replace_pattern_with_filters(traced, lambda x, y: rd.add(x, y), lambda x, y: rd.mul(x, y), [adds_two])
    assert len(done) == 1 and traced(rd.tensor([3.0])).tolist() == [10.0]


def test_functions_of_math_are_steps():
    traced = fx.symbolic_trace(lambda x: math.sqrt(x) + math.pi)
    assert traced(4.0) == 2 + math.pi and math.sqrt(9) == 3


def test_a_replacement_says_which_steps_are_new():
    gm = fx.symbolic_trace(lambda x: rd.relu(x) + 1)
    (match,) = replace_pattern_with_filters(gm, lambda x: rd.relu(x), lambda x: rd.sigmoid(x) * 2)
    assert [node.name for node in match.replacements] == ["sigmoid", "mul"]


# What is noted at nodes -----------------------------------------------------------------------------------------------


def test_a_graph_that_is_run_knows_what_its_values_look_like():
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    shape_prop.ShapeProp(gm).propagate(rd.ones(4, 2))
    looks = [node.meta["tensor_meta"] for node in gm.graph.nodes]
    assert [meta.shape for meta in looks] == [(4, 2), (4, 3), (4, 3), (4, 3)] and looks[0].dtype is rd.float32
    with pytest.raises(RuntimeError, match=r"ShapeProp error for: node=%_0 : .* = call_module"):
        shape_prop.ShapeProp(gm).propagate(rd.ones(4, 3))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    shape_prop.FakeTensorProp(gm, mode).propagate(rd.ones(5, 2))
    assert [tuple(node.meta["val"].shape) for node in gm.graph.nodes] == [(5, 2), (5, 3), (5, 3), (5, 3)]
    shape_prop.ShapeProp(gm, mode).propagate(rd.ones(6, 2))
    assert [*gm.graph.nodes][0].meta["tensor_meta"].shape == (6, 2)


def test_notes_go_along_when_a_graph_is_made_and_made_again():
    def f(x):
        with fx.traceback.annotate({"a": 1}):
            y = x * 2
        return fx.traceback.annotate_fn({"b": 2})(rd.sin)(y)

    with fx.traceback.preserve_node_meta(), fx.traceback.annotate({"o": 0}):
        graph = make_fx(f)(rd.ones(2)).graph
    wanted = {"mul": {"o": 0, "a": 1}, "sin": {"o": 0, "b": 2}}
    assert {node.name: node.meta["custom"] for node in graph.nodes if node.op == "call_function"} == wanted
    again = fx.Transformer(fx.GraphModule(nn.Module(), graph)).transform().graph
    wanted = {"mul_tensor": wanted["mul"], "sin_default": wanted["sin"]}
    assert {node.name: node.meta["custom"] for node in again.nodes if node.op == "call_function"} == wanted
    source = fx.traceback.get_graph_provenance_json(again)["mul_tensor"][0]
    assert (source["name"], source["action"], source["pass_name"]) == ("mul", "create", "Interpreter_Transformer")
    assert not fx.traceback.has_preserved_node_meta() and fx.traceback.get_current_meta() == {}
    assert "custom" not in [*make_fx(f)(rd.ones(2)).graph.nodes][1].meta


def test_where_backward_is_is_noted_level_by_level():
    fx.traceback.set_grad_fn_seq_nr(1)
    assert fx.traceback.get_current_meta() == {}
    with fx.traceback.preserve_node_meta():
        fx.traceback.set_stack_trace(["here"])
        fx.traceback.set_grad_fn_seq_nr(1)
        fx.traceback.set_grad_fn_seq_nr(2)
        fx.traceback.reset_grad_fn_seq_nr()
        assert fx.traceback.get_current_meta() == {"stack_trace": "here", "grad_fn_seq_nr": [1], "in_grad_fn": 1}
        assert fx.traceback.format_stack() == ["here"]
        fx.traceback.reset_grad_fn_seq_nr()
        with pytest.raises(AssertionError, match="current_level"):
            fx.traceback.reset_grad_fn_seq_nr()


# Passes ---------------------------------------------------------------------------------------------------------------


def first(gm):
    return infra.PassResult(gm, False)


def second(gm):
    gm.passed = getattr(gm, "passed", 0) + 1
    return infra.PassResult(gm, True)


def test_passes_run_in_an_order_that_fits_them():
    gm, before = fx.symbolic_trace(lambda x: x + 1), infra.this_before_that_pass_constraint
    manager = infra.PassManager([second, first], [before(first, second)], steps=3)
    assert manager(gm) == (gm, True) and manager.passes == [first, second] and gm.passed == 3
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        infra.PassManager([second, first], [before(first, second)]).validate_constraints()
    with pytest.raises(RuntimeError, match="Circular dependency detected"):
        infra.PassManager([second, first], [before(first, second), before(second, first)])(gm)


def test_a_pass_that_fails_is_named():
    gm = fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(Exception, match=r"running the 'bare' pass after the following passes: \['first'\]") as failed:

        def bare(gm):
            return gm

        infra.PassManager([first, bare])(gm)
    assert "should be type PassResult" in str(failed.value.__cause__)
    assert infra.pass_result_wrapper(lambda gm: None)(gm) == (gm, True)
    with pytest.raises(TypeError, match="only take in one variable"):
        infra.PassManager().add_checks(lambda a, b: None)


def test_a_pass_is_an_object_with_checks():
    class Counting(infra.PassBase):
        def requires(self, graph_module):
            assert len(graph_module.graph.nodes) == 3

        def call(self, graph_module):
            return infra.PassResult(graph_module, False)

    gm = fx.symbolic_trace(lambda x: x + 1)
    assert not Counting()(gm).modified
    with pytest.raises(AssertionError):
        Counting()(fx.symbolic_trace(lambda x: x))
