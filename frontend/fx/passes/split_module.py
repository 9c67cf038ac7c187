"""split_module: a module whose graph calls a submodule for each part that a function assigns nodes to.

    split_module(traced, model, lambda node: 0 if node.name in first else 1)      # submod_0, submod_1

A part takes what it reads of others and of the inputs, and returns what others read. So no value is lost, and where
parts would wait for each other that is an error, which names the nodes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from redispatch import nn

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg, written_at
from .fuser_utils import items_of

__all__ = ["Partition", "split_module"]


class Partition:
    """A part: the names of its nodes, of the values that it takes and returns, and of the parts around it."""

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule,
    root_m: Any,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Returns a module of submodules, one for each part of the graph of `m`.

    root_m: not used. split_callback: returns the number of the part of a node. qualname_map: gets, for each thing that
    submodules hold, its path in `m`. keep_original_order: whether parts are called in the order of their first nodes,
    and not as they are found from those that wait for none. keep_original_node_name, keep_original_input_name: whether
    names in submodules are those in `m`. partition_affix: a word in the names of submodules. tuple_return: whether a
    submodule returns a tuple even of one value.
    Errors: RuntimeError, with nodes and the user's line, where parts wait for each other.
    """
    split = Split(m, partition_affix)
    split.assign(split_callback)
    order = split.in_order()
    for part in order:
        split.enter_inputs(part, keep_original_input_name)
    split.copy_nodes(qualname_map, keep_original_node_name)
    return split.joined(
        [*split.parts.values()] if keep_original_order else order, bool(keep_original_order), tuple_return
    )


class Split:
    """A graph on its way into parts. `of`: the part of each node."""

    def __init__(self, module: GraphModule, affix: str | None) -> None:
        self.module, self.affix = module, affix
        self.nodes = {node.name: node for node in module.graph.nodes}
        self.parts: dict[str, Partition] = {}
        self.of: dict[Node, Partition] = {}

    def held(self, node: Node) -> Any:
        """Returns what a node reads of the module."""
        return attrgetter(str(node.target))(self.module)

    def assign(self, callback: Callable[[Node], int]) -> None:
        """Gives each node its part, and each part what it takes and returns."""
        for node in self.nodes.values():
            if node.op.startswith("call"):
                name = str(callback(node)) if self.affix is None else f"{self.affix}_{callback(node)}"
                self.of[node] = self.parts.setdefault(name, Partition(name))
                self.of[node].node_names.append(node.name)
        for node in self.nodes.values():
            for source in node.all_input_nodes if node.op not in ("placeholder", "get_attr") else ():
                there, here = self.of.get(source), self.of.get(node)
                if there is here:
                    continue
                if there is not None:
                    there.outputs.setdefault(source.name)
                if here is not None:
                    here.inputs.setdefault(source.name)
                if there is not None and here is not None:
                    there.dependents.setdefault(here.name)
                    here.dependencies.setdefault(there.name)

    def in_order(self) -> list[Partition]:
        """Returns the parts, each behind those that it takes values of."""
        waits = {name: set(part.dependencies) for name, part in self.parts.items()}
        ready = [name for name, others in waits.items() if not others]
        found: list[Partition] = []
        while ready:
            part = self.parts[ready.pop()]
            found.append(part)
            for name in part.dependents:
                waits[name].remove(part.name)
                if not waits[name]:
                    ready.append(name)
        if len(found) != len(self.parts):
            raise RuntimeError(f"cycle exists between partitions!{self.circle(waits)}")
        return found

    def circle(self, waits: dict[str, set[str]]) -> str:
        """Returns the nodes through which parts wait for each other, to end an error with."""
        here = next(name for name, others in waits.items() if others)
        way = [here]
        while here not in way[:-1]:
            here = sorted(waits[here])[0]
            way.append(here)
        way = way[way.index(here) :]
        lines = []
        for name, other in zip(way, way[1:], strict=False):
            reader, source = next(
                (node, one)
                for node, part in self.of.items()
                if part.name == name
                for one in node.all_input_nodes
                if one in self.of and self.of[one].name == other
            )
            lines.append(
                f"\nsubmod_{name} takes {source} of submod_{other}: {reader.format_node()}{written_at(reader)}"
            )
        return "".join(lines)

    def enter_inputs(self, part: Partition, keep_name: bool) -> None:
        """Makes the inputs of a part. A submodule that it reads is no input: it is held by the part."""
        taken = [self.nodes[name] for name in part.inputs]
        modules = [node for node in taken if node.op == "get_attr" and isinstance(self.held(node), nn.Module)]
        part.inputs = {node.name: None for node in taken if node not in modules}
        for number, name in enumerate(part.inputs):
            source = self.nodes[name]
            made = part.graph.placeholder(name if keep_name else f"arg_{number}", type_expr=source.type)
            part.environment[source] = made
        for source in modules:
            part.environment[source] = part.graph.get_attr(str(source.target))
            part.targets[str(source.target)] = self.held(source)
        for source, made in part.environment.items():
            made.meta = dict(source.meta)

    def copy_nodes(self, qualname_map: dict[str, str] | None, keep_name: bool | None) -> None:
        """Makes the nodes of all parts."""
        for node, part in self.of.items():
            args, kwargs = map_arg((node.args, node.kwargs), part.environment.__getitem__)
            target = node.target
            if node.op == "call_module":
                target = str(target).replace(".", "_")
                part.targets[target] = self.held(node)
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{target}"] = str(node.target)
            made = part.graph.create_node(
                node.op, target, args, dict(kwargs), node.name if keep_name else None, node.type
            )
            made.meta = dict(node.meta)
            part.environment[node] = made

    def joined(self, parts: list[Partition], in_place: bool, tuple_return: bool) -> GraphModule:
        """Returns the module that calls the parts. in_place: whether what it holds is read just ahead of its reader."""
        graph, values, root = Graph(), {}, {}

        def enter(nodes: Iterator[Node]) -> None:
            for node in nodes:
                if node.name in values:
                    continue
                if node.op == "placeholder":
                    default = node.args[0] if node.args else inspect.Signature.empty
                    values[node.name] = graph.placeholder(str(node.target), node.type, default)
                else:
                    values[node.name] = graph.get_attr(str(node.target))
                    root[str(node.target)] = self.held(node)
                values[node.name].meta = dict(node.meta)

        outer = [node for node in self.nodes.values() if node.op in ("placeholder", "get_attr")]
        enter(node for node in outer if node.op == "placeholder" or not in_place)
        for part in parts:
            results = tuple(part.environment[self.nodes[name]] for name in part.outputs)
            single = len(results) == 1 and not tuple_return
            part.graph.output(results[0] if single else results)
            enter(node for node in outer if node.name in part.inputs)
            root[part.submod_name] = GraphModule(part.targets, part.graph)
            call = graph.call_module(part.submod_name, tuple(values[name] for name in part.inputs))
            items = [call] if single else items_of(call, len(results))
            values |= dict(zip(part.outputs, items, strict=True))
        end = self.module.graph.output_node()
        enter(node for node in outer if node in end.all_input_nodes)
        graph.output(map_arg(end.args[0], lambda node: values[node.name]))
        made = GraphModule(root, graph)
        made.meta["partition_names"] = {part.submod_name for part in parts}
        return made
