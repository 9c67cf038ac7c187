"""Graphs in parts: split_module, split_by_tags, partitions of what is supported. tests/parity/fx_passes.py compares."""

import pytest

import redispatch as rd
from redispatch import fx, nn
from redispatch.fx.passes import graph_manipulation, param_fetch, shape_prop
from redispatch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from redispatch.fx.passes.operator_support import OperatorSupport, OpSupports, any_chain, chain, create_op_support
from redispatch.fx.passes.split_module import split_module
from redispatch.fx.passes.split_utils import getattr_recursive, setattr_recursive, split_by_tags
from redispatch.fx.passes.tools_common import get_node_target
from redispatch.fx.passes.utils.fuser_utils import fuse_by_partitions, topo_sort, validate_partition


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(2, 2), nn.Parameter(rd.full((2,), 3.0))

    def forward(self, x):
        y = self.linear(x) * self.scale
        low, high = y.aminmax(dim=0)
        return rd.relu(y) + high, low


@pytest.fixture
def traced():
    rd.manual_seed(0)
    return fx.symbolic_trace(Model())


X = rd.tensor([[1.0, -2.0], [0.5, 4.0]])


def same(found, wanted):
    return all(map(rd.equal, found(X), wanted(X)))


def test_a_module_is_split_into_the_parts_that_a_function_says(traced):
    paths = {}
    halves = split_module(traced, None, lambda node: int(node.name in ("relu", "add")), paths)
    assert same(halves, traced) and halves.meta["partition_names"] == {"submod_0", "submod_1"}
    assert paths == {"submod_0.linear": "linear"} and halves.submod_0.linear is traced.linear
    assert [node.target for node in halves.graph.find_nodes(op="call_module")] == ["submod_0", "submod_1"]
    loss = halves(X)[0].sum()
    loss.backward()
    assert traced.scale.grad is not None


def test_parts_that_wait_for_each_other_are_an_error_with_nodes_and_lines():
    class Tracer(fx.Tracer):
        record_stack_traces = True

    def program(x):
        y = x.sin()
        z = y.cos()  # in between
        return z + y

    module = fx.GraphModule(nn.Module(), Tracer().trace(program))
    with pytest.raises(RuntimeError, match="cycle exists between partitions!") as error:
        split_module(module, None, lambda node: int(node.name == "cos"))
    text = str(error.value)
    assert "submod_1 takes sin of submod_0: %cos" in text and "submod_0 takes cos of submod_1: %add" in text
    assert "z = y.cos()  # in between" in text and __file__ in text
    sin, cos, add = (node for node in module.graph.nodes if node.op.startswith("call"))
    assert not validate_partition([sin, add]) and validate_partition([sin, cos])
    with pytest.raises(AssertionError, match="Invalid partition, found dependency cycles: %cos") as error:
        fuse_by_partitions(module, [dict.fromkeys([sin, add])])
    assert "# in between" in str(error.value)


def test_tags_are_parts_in_their_order(traced):
    for node in traced.graph.nodes:
        node.tag = "late" if node.name in ("relu", "add") else "early"
    parts, paths = split_by_tags(traced, ["early", "late"], return_fqn_mapping=True)
    assert same(parts, traced) and paths == {"linear": "early.linear", "scale": "early.scale"}
    with pytest.raises(AssertionError, match="Component early order must be >= max of its upstream.*reads of late"):
        for node in traced.graph.nodes:
            node.tag = "early" if node.name in ("relu", "add") else "late"
        split_by_tags(traced, ["early", "late"])
    del [*traced.graph.nodes][1].tag
    with pytest.raises(AssertionError, match="Node does not have tag: %linear"):
        split_by_tags(traced, ["early", "late"])
    assert getattr_recursive(parts, "early.linear") is traced.linear and getattr_recursive(parts, "no.where") is None
    setattr_recursive(parts, "early.linear", other := nn.Linear(2, 2))
    assert parts.early.linear is other


def test_what_is_supported_is_gathered_into_few_parts(traced):
    wanted = fx.symbolic_trace(Model())
    wanted.load_state_dict(traced.state_dict())
    support = OperatorSupport(
        dict.fromkeys(["torch.relu", "_operator.add", "_operator.mul", "torch.nn.modules.linear.Linear"])
    )
    calls = create_op_support(lambda modules, node: node.op.startswith("call"))
    partitioner = CapabilityBasedPartitioner(traced, chain(support, calls), allows_single_node_partition=True)
    parts = partitioner.propose_partitions()
    assert sorted(sorted(node.name for node in part.nodes) for part in parts) == [["add", "relu"], ["linear", "mul"]]
    fused = partitioner.fuse_partitions(parts)
    assert same(fused, wanted) and {name for name, _ in fused.named_children()} >= {"fused_0", "fused_1"}


def test_supports_are_put_together(traced):
    modules = dict(traced.named_modules())
    shape_prop.ShapeProp(traced).propagate(X)
    nodes = {node.name: node for node in traced.graph.nodes}
    floats = OperatorSupport({"torch.relu": ([[rd.float32]], {}), "_operator.add": ([None, [rd.float64]], {})})
    assert floats.is_node_supported(modules, nodes["relu"]) and not floats.is_node_supported(modules, nodes["add"])
    assert floats.is_node_supported(modules, nodes["x"]) and not floats.is_node_supported(modules, nodes["mul"])
    no_floats = OpSupports.decline_if_input_dtype(rd.float32)
    no_add = OpSupports.decline_if_node_in_names({"add"})
    assert not chain(floats, no_floats).is_node_supported(modules, nodes["relu"])
    assert any_chain(no_floats, no_add).is_node_supported(modules, nodes["relu"])
    assert not any_chain(no_floats, no_add).is_node_supported(modules, nodes["add"])
    assert get_node_target(modules, nodes["aminmax"]) == "aminmax"
    with pytest.raises(AssertionError, match="Expect op types of"):
        get_node_target(modules, nodes["x"])


def test_what_computes_nothing_is_left_at_the_edge_of_a_part():
    module = fx.symbolic_trace(lambda x: rd.neg(rd.sin(rd.neg(x))))
    nodes = [node for node in module.graph.nodes if node.op.startswith("call")]
    partitioner = CapabilityBasedPartitioner(module, OperatorSupport(), non_compute_ops=["torch.neg"])
    part = Partition(0, nodes, range(3))
    partitioner.remove_bookend_non_compute_ops([part])
    assert [node.name for node in part.nodes] == ["sin"] and part.size() == 1
    assert topo_sort(nodes[::-1]) == nodes


def test_sizes_and_attributes_are_noted_at_nodes():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    traced = fx.symbolic_trace(model)
    graph_manipulation.get_size_of_all_nodes(traced, [X])
    assert [node.size_bytes for node in traced.graph.nodes if node.op == "call_module"] == [(16, 40), (16, 16)]
    param_fetch.lift_lowering_attrs_to_nodes(traced)
    linear, relu = traced.graph.find_nodes(op="call_module")
    assert linear.attrs_for_lowering["weight"] is model[0].weight
    assert relu.attrs_for_lowering["inplace"] is False
    with pytest.raises(RuntimeError, match="Tanh is not in the module_fetch_book yet"):
        param_fetch.extract_attrs_for_lowering(nn.Tanh())
    graph_manipulation.replace_target_nodes_with(traced, "call_module", relu.target, "call_function", rd.tanh)
    traced.recompile()
    assert rd.equal(traced(X), model[0](X).tanh())
    with pytest.raises(RuntimeError, match="no tensor metadata associated with it"):
        graph_manipulation.get_size_of_node(traced, [*traced.graph.nodes][2])
