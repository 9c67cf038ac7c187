"""Calls written alike, subgraphs found, constants folded, and passes watched."""

import operator

import pytest

import redispatch as rd
from redispatch import fx, nn
from redispatch._functorch.compile_utils import fx_graph_cse, get_outputs, get_placeholders, strip_overloads
from redispatch.fx.experimental import optimization
from redispatch.fx.experimental.const_fold import split_const_subgraphs
from redispatch.fx.experimental.merge_matmul import merge_matmul
from redispatch.fx.experimental.normalize import AnnotateTypesWithSchema, NormalizeArgs, NormalizeOperators
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.operator_schemas import (
    check_for_mutable_operation,
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    normalize_module,
    type_matches,
)
from redispatch.fx.passes import pass_manager
from redispatch.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes
from redispatch.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from redispatch.fx.passes.graph_transform_observer import GraphTransformObserver
from redispatch.fx.passes.shape_prop import ShapeProp
from redispatch.fx.passes.utils.matcher_utils import SubgraphMatcher
from redispatch.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
from redispatch.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions

X = rd.ones(2)


def calls(module):
    return [node.target for node in module.graph.find_nodes(op="call_function")]


def test_arguments_are_known_by_their_parameters():
    found = normalize_function(rd.ops.aten.add.Tensor, (X,), {"other": 1}, normalize_to_only_use_kwargs=True)
    assert found.args == () and list(found.kwargs) == ["input", "other", "alpha"] and found.kwargs["alpha"] == 1
    assert normalize_function(rd.relu, (X,)) == ((X,), {})
    assert normalize_function(rd.relu, (X, X)) is None
    with pytest.raises(RuntimeError, match="the schema match was ambiguous"):
        normalize_function(rd.add, (X, X))
    chosen = normalize_function(rd.add, (X, X), arg_types=(rd.Tensor, rd.Tensor))
    assert list(chosen.kwargs) == ["alpha"]
    dropout = normalize_function(nn.functional.dropout, (X,), normalize_to_only_use_kwargs=True)
    assert dropout.kwargs["p"] == 0.5 and dropout.kwargs["training"]
    assert normalize_module(nn.Sequential(nn.Linear(2, 2)), "0", (X,), normalize_to_only_use_kwargs=True).kwargs
    with pytest.raises(RuntimeError, match="root did not have that target"):
        normalize_module(nn.Sequential(), "7", ())
    with pytest.raises(NotImplementedError, match="Tried to trace mutable operation"):
        check_for_mutable_operation(rd.ops.aten.add_.Tensor, (X, X), {})
    assert get_signature_for_torch_op(len) is None and "from_" in str(get_signature_for_torch_op(rd.ops.aten.random))
    assert (
        create_type_hint([int, int]) == list[int]
        and create_type_hint((rd.Tensor, nn.Parameter)) == tuple[rd.Tensor, ...]
    )
    assert type_matches(list[int], int) and type_matches(rd.Tensor, nn.Parameter) and not type_matches(int, float)


def test_calls_are_written_alike():
    model = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU())
    traced = fx.symbolic_trace(lambda x: nn.functional.dropout(rd.add(x, 1) + x, 0.5, False))
    ShapeProp(traced).propagate(X)
    named = NormalizeArgs(traced).transform()
    assert named(X).tolist() == traced(X).tolist()
    by_name = {node.target: node for node in named.graph.find_nodes(op="call_function")}
    assert set(by_name[rd.add].kwargs) == {"input", "other", "alpha"} and not by_name[rd.add].args
    modules = NormalizeArgs(fx.symbolic_trace(model)).transform()
    assert all(not node.args and node.kwargs for node in modules.graph.find_nodes(op="call_module"))
    assert calls(NormalizeOperators(fx.symbolic_trace(lambda x, y: rd.add(x, rd.div(x, y)))).transform()) == [
        operator.truediv,
        operator.add,
    ]
    typed = AnnotateTypesWithSchema(fx.symbolic_trace(lambda x: rd.relu(x))).transform()
    assert typed.graph.find_nodes(op="call_function")[0].type is rd.Tensor

    def items(x: tuple[int, str], y: list[float], z: tuple[int, ...]):
        return x[1], y[0], z[4]

    graph = fx.symbolic_trace(items).graph
    annotate_getitem_nodes(graph)
    assert [node.type for node in graph.find_nodes(op="call_function")] == [str, float, int]


def test_a_pattern_is_found():
    def pattern(x):
        return rd.add(x, 1)

    graph = fx.symbolic_trace(lambda x: rd.add(rd.add(rd.add(x, 1), 1), 2)).graph
    exact = SubgraphMatcher(fx.symbolic_trace(pattern).graph)
    assert [match.returning_nodes[0].name for match in exact.match(graph)] == ["add", "add_1"]
    loose = SubgraphMatcher(fx.symbolic_trace(pattern).graph, ignore_literals=True)
    assert len(loose.match(graph)) == 3
    whole = SubgraphMatcher(fx.symbolic_trace(pattern).graph, match_output=True, match_placeholder=True)
    assert not whole.match(graph) and len(whole.match(fx.symbolic_trace(lambda y: rd.add(y, 1)).graph)) == 1
    inner = SubgraphMatcher(fx.symbolic_trace(lambda x: rd.neg(rd.relu(x))).graph)
    assert not inner.match(fx.symbolic_trace(lambda x: rd.neg(z := rd.relu(x)) + z).graph), "relu is read elsewhere"
    with pytest.raises(ValueError, match="empty pattern"):
        SubgraphMatcher(fx.Graph())


def test_a_pattern_names_its_steps():
    def pattern(x, w):
        product = rd.mm(x, w)
        return rd.relu(product), {"product": product}

    square = rd.ones(2, 2)
    matcher = SubgraphMatcherWithNameNodeMap(make_fx(pattern)(square, square.clone()))
    (match,) = matcher.match(make_fx(lambda x: rd.relu(rd.mm(x, x.sin())) * 2)(square).graph)
    assert match.name_node_map["product"].name == "mm"


def test_nodes_are_parted_by_their_source():
    graph = fx.Graph()
    x, w = graph.placeholder("x"), graph.get_attr("w")
    w.meta["source_fn_stack"] = [("Linear", nn.Linear)]
    made = []
    for target, args, source in ((rd.t, [w], nn.Linear), (rd.mm, [x], nn.Linear), (rd.relu, [], rd.relu)):
        node = graph.call_function(target, (*args, *made[-1:]))
        node.meta["source_fn_stack"] = [(source.__name__, source)]
        made.append(node)
    graph.output(made[-1])
    found = get_source_partitions(graph, [nn.Linear, rd.relu])
    (linear,), (relu,) = found[nn.Linear], found[rd.relu]
    assert (linear.input_nodes, linear.output_nodes, linear.params) == ([x], [made[1]], [w])
    assert check_subgraphs_connected(linear, relu) and not check_subgraphs_connected(relu, linear)
    assert get_source_partitions(graph, [nn.Linear], lambda node: node.target is not rd.mm) == {}


def test_what_is_computed_twice_is_computed_once_but_for_banned_operators():
    module = make_fx(lambda x: x.cos() + x.cos() + rd.rand_like(x) + rd.rand_like(x))(X)
    assert not CSEPass({rd.ops.aten.cos})(module).modified
    result = CSEPass(get_CSE_banned_ops())(module)
    names = [str(target) for target in calls(result.graph_module)]
    assert result.modified and names.count("aten.cos.default") == 1 and names.count("aten.rand_like.default") == 2
    assert rd.ops.aten.cos not in get_CSE_banned_ops() and rd.ops.aten.rand_like in get_CSE_banned_ops()
    twice = make_fx(lambda x: x.cos() + x.cos())(X)
    graph = fx_graph_cse(twice.graph)
    assert len(graph.find_nodes(op="call_function")) == 2 and len(calls(twice)) == 3
    assert (len(get_placeholders(graph)), len(get_outputs(graph))) == (1, 1)
    strip_overloads(twice)
    assert calls(twice)[0] is rd.ops.aten.cos and twice(X).tolist() == (X.cos() * 2).tolist()


def test_constants_are_folded():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(rd.ones(2)), nn.Parameter(rd.ones(2))

        def forward(self, x):
            both = self.a + self.b
            return x * both, rd.sin(both)

    model = Model()
    folded = split_const_subgraphs(model)
    assert len(calls(folded)) == 1 and len(calls(folded.const_subgraph_module)) == 2
    assert [one.tolist() for one in folded(X)] == [one.tolist() for one in model(X)]
    assert split_const_subgraphs(model, lambda node: True).const_subgraph_module is None


def test_models_are_made_smaller():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Dropout(), nn.Linear(3, 3)).eval()
    x = rd.randn(2, 1, 3, 3)
    fused = optimization.fuse(model)
    assert rd.allclose(fused(x), model(x), atol=1e-5)
    assert not any(isinstance(one, nn.BatchNorm2d) for one in fused.modules())
    assert "2" not in [node.target for node in optimization.remove_dropout(model).graph.nodes]

    def products(x, y, w):
        return rd.matmul(x, w), rd.matmul(y, w)

    x, y, w = rd.randn(2, 3), rd.randn(4, 3), rd.randn(3, 2)
    merged = merge_matmul(products)
    assert calls(merged).count(rd.matmul) == 1
    assert all(rd.allclose(a, b) for a, b in zip(merged(x, y, w), products(x, y, w), strict=True))


def test_an_observer_sees_what_a_pass_makes():
    module = fx.symbolic_trace(lambda x: x.relu())

    def replace(graph):
        (relu,) = graph.find_nodes(op="call_method")
        with graph.inserting_after(relu):
            relu.replace_all_uses_with(graph.call_method("neg", relu.args))
        graph.erase_node(relu)

    observer = GraphTransformObserver(module, "negate")
    observer.apply_graph_pass(replace)
    assert (observer.created_nodes, observer.erased_nodes) == ({"neg"}, {"relu"})
    (source,) = module.graph.find_nodes(op="call_method")[0].meta["from_node"]
    assert (source.name, source.pass_name) == ("relu", "negate")


def test_passes_run_in_an_order_that_they_may_have():
    def double(x):
        return x * 2

    def increase(x):
        return x + 1

    manager = pass_manager.PassManager.build_from_passlist([increase, double])
    assert manager(1) == 4
    manager.add_constraint(pass_manager.this_before_that_pass_constraint(double, increase))
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        manager.validate()
    manager.remove_pass(["increase"])
    assert manager(3) == 6
    assert pass_manager.loop_pass(increase, n_iter=3)(0) == 3
    assert pass_manager.loop_pass(increase, predicate=lambda x: x < 5)(0) == 5
    seen = []
    assert pass_manager.inplace_wrapper(seen.append)(1) == 1 and seen == [1]
