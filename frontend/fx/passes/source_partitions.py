"""`get_source_partitions`: the nodes of a graph by the module or function of the program that they come from.

PyTorch has it in `fx.passes.utils.source_matcher_utils`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..graph import Graph
from ..node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes that come from one call of a module or function, and the nodes at its borders.

    input_nodes: outside of it, which it reads. output_nodes: in it, which others read. params: in it, its parameters.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph, wanted_sources: Iterable[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """Returns for each source that is wanted, a class of modules, a function or a name, its calls.

    Nodes know where they come from by `meta`: "source_fn_stack", "torch_fn" or "nn_module_stack". filter_fn: must hold
    for all nodes of a call.
    """
    wanted = list(wanted_sources)
    calls: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        source, name = source_of(node, wanted)
        if source is not None:
            calls.setdefault(source, {}).setdefault(name, []).append(node)
    kept = {
        source: [partition(nodes, source) for nodes in by_name.values() if not filter_fn or all(map(filter_fn, nodes))]
        for source, by_name in calls.items()
    }
    return {source: parts for source, parts in kept.items() if parts}


def source_of(node: Node, wanted: list[Any]) -> tuple[Any, str]:
    """Returns (which of the sources a node comes from, the name of the call), or (None, "")."""
    if "source_fn_stack" in node.meta:
        name, source = node.meta["source_fn_stack"][-1]
        return (source, name) if source in wanted else (None, "")
    if "torch_fn" in node.meta:
        name, function = node.meta["torch_fn"]
        if function.partition(".")[2] in wanted:
            return function.partition(".")[2], name
    if node.op == "call_function" and node.meta.get("nn_module_stack"):
        name, kind = list(node.meta["nn_module_stack"].values())[-1]
        for source in wanted:
            if source is kind or isinstance(source, type) and isinstance(kind, type) and issubclass(kind, source):
                return source, name
    return None, ""


def partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    read = (one for node in nodes for one in node.all_input_nodes if one not in inside and one.op != "get_attr")
    given = [node for node in nodes if node.op != "get_attr" and any(user not in inside for user in node.users)]
    params = [node for node in nodes if node.op == "get_attr"]
    return SourcePartition(nodes, source, list(dict.fromkeys(read)), given, params)


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Returns whether the second reads a value of the first."""
    return any(one in subgraph1.nodes for node in subgraph2.nodes for one in node.all_input_nodes)
