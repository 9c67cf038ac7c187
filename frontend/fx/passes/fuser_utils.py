"""Parts of a graph as modules of their own: nodes are taken out, and a call of a module stands in their place.

    fuse_by_partitions(module, [dict.fromkeys(nodes)])     # "fused_0" computes them

PyTorch has this in `fx.passes.utils`, in its modules `common` and `fuser_utils`. Read next: partitioner.py.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from redispatch import nn

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, written_at
from .post_grad import stable_topological_sort

__all__ = [
    "HolderModule",
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "lift_subgraph_as_module",
    "topo_sort",
    "validate_partition",
]
__path__: list[str] = []  # PyTorch's package `utils`: _moved.py


class HolderModule(nn.Module):
    """A module that only holds others, by their names."""

    def __init__(self, d: Mapping[str, nn.Module | None]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Returns a module for a part of a graph, with what that reads of `gm`; and the new path of each thing it reads."""
    root, paths = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        *way, last = str(node.target).split(".")
        here: Any = root
        there: Any = gm
        for atom in way:
            if not hasattr(here, atom):
                here.add_module(atom, HolderModule({}))
            here, there = getattr(here, atom), getattr(there, atom)
        paths[str(node.target)] = f"{comp_name}.{node.target}"
        value = getattr(there, last)
        if last in getattr(there, "_buffers", ()):
            here.register_buffer(last, value)
        else:
            setattr(here, last, value)
    return GraphModule(root, subgraph, class_name), paths


def topo_sort(nodes: Sequence[Node]) -> list[Node]:
    """Returns nodes each behind those that it reads, and otherwise in their order. AssertionError for a circle."""
    place = {node: i for i, node in enumerate(nodes)}
    missing = {node: sum(one in place for one in node.all_input_nodes) for node in nodes}
    ready = [place[node] for node in nodes if not missing[node]]
    found: list[Node] = []
    while ready:
        node = nodes[heappop(ready)]
        found.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if not missing[user]:
                    heappush(ready, place[user])
    if len(found) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


def way_back(nodes: Iterable[Node]) -> Node | None:
    """Returns a node outside of these that reads one of them and that another one depends on, if there is one."""
    inside = set(nodes)
    first = [user for node in inside for user in node.users if user not in inside]
    for start in first:
        todo, seen = [start], {start}
        while todo:
            node = todo.pop()
            if node in inside:
                return start
            new = [user for user in node.users if user not in seen]
            seen.update(new)
            todo += new
    return None


def validate_partition(partition: Iterable[Node]) -> bool:
    """Returns whether nodes can be one step: none outside of them is both behind and ahead of some of them."""
    return way_back(partition) is None


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: Sequence[Node],
    module_name: str,
    partition_lookup_table: Mapping[Node, Any] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Returns (a module with copies of these nodes, the nodes whose values it takes, those whose values it returns).

    nodes: in an order in which they can run. module_name: of the module's class.
    Errors: AssertionError for nodes of another graph, and, with the node in between, where they cannot be one step.
    """
    for node in nodes:
        if node.graph.owning_module is not gm or node._erased:
            raise AssertionError(f"{node} is not found in graph module {gm._get_name()}{written_at(node)}")
    between = way_back(nodes)
    if between is not None:
        raise AssertionError(
            f"Invalid partition, found dependency cycles: {between.format_node()} is outside of {module_name!r}, reads "
            f"one of its nodes, and another one depends on it{written_at(between)}"
        )
    inside = set(nodes) if partition_lookup_table is None else partition_lookup_table
    graph = Graph()
    copies: dict[Node, Node] = {}
    taken: dict[Node, Node] = {}

    def within(one: Node) -> Node:
        if one in inside:
            return copies[one]
        if one not in taken:
            taken[one] = graph.placeholder(one.name, type_expr=one.type)
            taken[one].meta = dict(one.meta)
        return taken[one]

    for node in nodes:
        copies[node] = graph.node_copy(node, within)
    given = [node for node in nodes if any(user not in inside for user in node.users)]
    outs = tuple(copies[node] for node in given)
    graph.output(outs[0] if len(outs) == 1 and not always_return_tuple else outs)
    graph.lint()
    module, _ = lift_subgraph_as_module(gm, graph, class_name=module_name)
    return module, tuple(taken), tuple(given)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Has a module be called in the graph of `gm` behind `insertion_point`, by default the last of the nodes whose
    values it returns, and its results stand for these."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        insertion_point = next((node for node in reversed(gm.graph.nodes) if node in orig_outputs), None)
    if insertion_point is None:
        raise AssertionError("Cannot determine insertion point: no insertion_point provided and orig_outputs is empty")
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, args=orig_inputs)
    results = sub_gm.graph.output_node().args[0]
    if len(orig_outputs) == 1 and not isinstance(results, tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_before(call.next):
        for node, item in zip(orig_outputs, items_of(call, len(orig_outputs)), strict=True):
            node.replace_all_uses_with(item, propagate_meta=True)
    if orig_outputs:
        call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


def items_of(call: Node, count: int) -> list[Node]:
    """Returns new nodes for the items of a call's result."""
    return [call.graph.call_function(operator.getitem, (call, number)) for number in range(count)]


def erase_nodes(gm: GraphModule, nodes: Sequence[Node]) -> None:
    """Takes nodes out, from the last to the first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: Sequence[Mapping[Node, Any]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Returns the module, of whose graph each of these sets of nodes is one call of a submodule now."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        module, taken, given = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, module, taken, given, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm.graph)
    gm.graph.lint()
    gm.recompile()
    return gm
