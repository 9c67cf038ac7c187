"""split_by_tags: a module whose graph calls a submodule for each tag that its nodes have, in the order of the tags.

    for node in module.graph.nodes:
        node.tag = "first" if node.name in early else "second"
    split_by_tags(module, ["first", "second"])

Unlike `split_module` it leaves what nodes read of the module to the submodules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg, written_at
from .fuser_utils import HolderModule, items_of, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """Returns what is at a dotted path; None where nothing is."""
    for atom in name.split("."):
        if not hasattr(obj, atom):
            return None
        obj = getattr(obj, atom)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Puts a value at a dotted path."""
    way, _, last = attr.rpartition(".")
    setattr(attrgetter(way)(obj) if way else obj, last, value)


@dataclass
class Component:
    """A part: its graph, its place among the others, and which nodes of the whole graph it takes and returns."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None

    def within(self, node: Node, copies: dict[Node, Node], of: dict[Node, Component]) -> Node:
        """Returns what stands in this part for a node of the whole graph."""
        if node.op == "get_attr":
            if node not in self.getattr_maps:
                self.getattr_maps[node] = self.graph.get_attr(str(node.target), type_expr=node.type)
                self.getattr_maps[node].meta = dict(node.meta)
            return self.getattr_maps[node]
        if of.get(node) is self:
            return copies[node]
        if node not in self.orig_inputs:
            self.orig_inputs.append(node)
            self.input_placeholders.append(self.graph.placeholder(node.name, type_expr=node.type))
            self.input_placeholders[-1].meta = dict(node.meta)
        return self.input_placeholders[self.orig_inputs.index(node)]


def split_by_tags(
    gm: GraphModule,
    tags: Sequence[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: Any = GraphModule,
) -> Any:
    """Returns a module of submodules, one for each tag; with `return_fqn_mapping` also the paths of what they hold.

    return_tuple: whether a submodule returns a tuple even of one value. GraphModuleCls: the class of the module.
    Errors: AssertionError, with the user's line, for a node without a tag, and where a part reads of a later one.
    """
    parts = {tag: Component(Graph(), number, tag) for number, tag in enumerate(tags)}
    of: dict[Node, Component] = {}
    copies: dict[Node, Node] = {}
    read: dict[Node, None] = {}  # what the whole graph hands on, in the order in which it is first read
    for node in gm.graph.nodes:
        if not node.op.startswith("call"):
            continue
        if not hasattr(node, "tag"):
            raise AssertionError(f"Node does not have tag: {node.format_node()}{written_at(node)}")
        part = of[node] = parts[node.tag]
        late = max((of[one] for one in node.all_input_nodes if one in of), key=lambda one: one.order, default=part)
        if part.order < late.order:
            raise AssertionError(
                f"Component {part.name} order must be >= max of its upstream components, order={part.order} and "
                f"max={late.order}: {node.format_node()} reads of {late.name}{written_at(node)}"
            )
        read |= {one: None for one in node.all_input_nodes if one.op != "get_attr" and of.get(one) is not part}
        copies[node] = part.graph.node_copy(node, lambda one, part=part: part.within(one, copies, of))  # type: ignore[misc]  # bound now
        copies[node].tag = node.tag  # type: ignore[attr-defined]  # as PyTorch's nodes have it
    end = gm.graph.output_node()
    for node in [*read, *(one for one in end.all_input_nodes if one.op != "get_attr")]:
        if node in of and node not in of[node].orig_outputs:
            of[node].orig_outputs.append(node)
    made, paths = assembled(gm, list(parts.values()), copies, return_tuple, GraphModuleCls)
    return (made, paths) if return_fqn_mapping else made


def assembled(
    gm: GraphModule, parts: list[Component], copies: dict[Node, Node], return_tuple: bool, kind: Any
) -> tuple[Any, dict[str, str]]:
    """Returns the module that calls the parts, and the paths of what they hold."""
    graph = Graph()
    values: dict[Node, Node] = {}
    paths: dict[str, str] = {}
    for node in gm.graph.find_nodes(op="placeholder"):
        values[node] = graph.placeholder(node.name, type_expr=node.type)
        values[node].meta = dict(node.meta)
    end = gm.graph.output_node()
    held = [node for node in end.all_input_nodes if node.op == "get_attr"]
    values |= {node: graph.get_attr(node.name, type_expr=node.type) for node in held}
    for part in parts:
        results = tuple(copies[node] for node in part.orig_outputs)
        single = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if single else results)
        part.gm, own = lift_subgraph_as_module(gm, part.graph, part.name)
        paths |= own
        call = graph.call_module(part.name, tuple(values[node] for node in part.orig_inputs))
        items = [call] if single else items_of(call, len(results))
        values |= dict(zip(part.orig_outputs, items, strict=True))
    graph.output(map_arg(end.args[0], values.__getitem__))
    graph.set_codegen(gm.graph._codegen)
    root = HolderModule({part.name: part.gm for part in parts})
    for node in held:
        setattr(root, node.name, attrgetter(str(node.target))(gm))
    return kind(root, graph), paths
