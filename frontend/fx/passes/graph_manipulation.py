"""Sizes of nodes in bytes, and a change of what nodes call."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..experimental.proxy_tensor import TensorMetadata
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .shape_prop import ShapeProp

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Any, new_op: str, new_target: Any
) -> None:
    """Has all nodes of one kind and target be of another."""
    graph = Graph()
    values: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        if (node.op, node.target) == (old_op, old_target):
            args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = graph.create_node(new_op, new_target, args, dict(kwargs), node.name)
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
    fx_module.graph = graph


class size_bytes(NamedTuple):  # PyTorch's name
    """The bytes of a node's value, and with those of the parameters that it uses."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: Any = None) -> None:
    """Notes at each node its `size_bytes`. args: inputs, with which the graph is run to see shapes."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op != "output":
            node.size_bytes = get_size_of_node(fx_module, node)  # type: ignore[attr-defined]  # as PyTorch's nodes have it


def get_tensor_meta(node: Node) -> TensorMetadata:
    """Returns what `ShapeProp` has noted of a node's tensor. RuntimeError where that is nothing."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return meta


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Returns the bytes of a node's value, and with those of the parameters of the module that it calls."""
    meta = get_tensor_meta(node)
    count = meta.shape.numel()
    parameters = fx_module.get_submodule(str(node.target)).parameters() if node.op == "call_module" else ()
    each = meta.dtype.itemsize
    return size_bytes(each * count, each * (count + sum(one.numel() for one in parameters)))
