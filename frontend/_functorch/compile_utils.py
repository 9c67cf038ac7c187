"""Questions that passes over graphs of operators often have: PyTorch's `torch._functorch.compile_utils`."""

from __future__ import annotations

import copy
import operator
from typing import Any

from redispatch.dispatch import OpOverload
from redispatch.dispatch.pytree import tree_leaves
from redispatch.fx import Graph, GraphModule, Node
from redispatch.fx.passes.post_grad import merge_equals

__all__ = ["fx_graph_cse", "get_aten_target", "get_outputs", "get_placeholders", "raise_getitems", "strip_overloads"]


def get_aten_target(node: Node) -> Any:
    """Returns the operator that a node calls, without its overload; any other target as it is."""
    return getattr(node.target, "overloadpacket", node.target)


def fx_graph_cse(fx_g: Graph) -> Graph:
    """Returns a graph like this one, in which what computes the same of the same is one node."""
    made = copy.deepcopy(fx_g)
    merge_equals(made)
    return made


def raise_getitems(gm: GraphModule) -> GraphModule:
    """Returns the module, in whose graph items stand right behind what they are items of."""
    for node in gm.graph.find_nodes(op="call_function", target=operator.getitem):
        node.args[0].append(node)
    gm.recompile()
    return gm


def strip_overloads(gm: GraphModule) -> None:
    """Has the graph call operators without overloads, which are found by the arguments then."""
    for node in gm.graph.find_nodes(op="call_function"):
        if isinstance(node.target, OpOverload):
            node.target = node.target.overloadpacket
    gm.recompile()


def get_placeholders(graph: Graph) -> list[Node]:
    """Returns the inputs of a graph."""
    return graph.find_nodes(op="placeholder")


def get_outputs(graph: Graph) -> list[Any]:
    """Returns the values that a graph returns."""
    return tree_leaves(graph.output_node().args[0])
