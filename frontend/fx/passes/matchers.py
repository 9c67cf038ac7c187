"""`SubgraphMatcher`: the places where a graph computes what another graph says, found and not replaced.

    for match in SubgraphMatcher(pattern.graph).match(module.graph):
        match.nodes_map[step of the pattern]              # the step of the graph that stands for it

PyTorch has these in `fx.passes.utils`, in the modules `matcher_utils` and `matcher_with_name_node_map_utils`.
Read next: ../subgraph_rewriter.py, which replaces what it finds.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from redispatch.dispatch.pytree import tree_leaves
from redispatch.dispatch.tensor import Tensor

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..subgraph_rewriter import Found, Rules, extended, same_step
from .fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher", "SubgraphMatcherWithNameNodeMap"]


@dataclass
class InternalMatch:
    """A place where a graph computes a pattern.

    anchors: the last steps of the pattern. nodes_map: of each of its nodes what stands for it. placeholder_nodes: what
    stands for its parameters; returning_nodes: for what it returns. name_node_map: of SubgraphMatcherWithNameNodeMap.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Any] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes)
        )


class SubgraphMatcher:
    """Finds a pattern in graphs.

    match_output: whether the pattern must end where the graph ends. match_placeholder: whether its parameters must be
    those of the graph. remove_overlapping_matches: whether of places that share a step only the first is given.
    ignore_literals: whether numbers and strings in the pattern stand for any.
    Errors: ValueError for an empty pattern, or one that is in parts that are not connected.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes = output.all_input_nodes
        alone = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else alone

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Returns the places, from the first to the last. node_name_match: a text that names of both steps have, where
        these alone are to be compared."""
        rules = Rules(lambda own, other: self.same(graph, own, other, node_name_match), self.ignore_literals)
        found: list[InternalMatch] = []
        taken: set[Node] = set()
        ends: list[Any] = list(self.pattern_anchors)
        for node in graph.nodes:
            for stands in extended({}, ends, [node], graph, rules):
                steps = [one for own, one in stands.items() if own.op != "placeholder" and isinstance(one, Node)]
                apart = not self.remove_overlapping_matches or taken.isdisjoint(steps)
                if self.is_whole(stands) and apart and validate_partition(steps):
                    taken.update(one for one in steps if one.op != "get_attr")
                    found.append(self.described(stands))
                    break
        return found

    def described(self, stands: Found) -> InternalMatch:
        anchors, given = list(self.pattern_anchors), [one for one in self.pattern_placeholder_nodes if one in stands]
        returned = [stands[one] for one in self.pattern_returning_nodes]
        return InternalMatch(anchors, dict(stands), [stands[one] for one in given], returned)

    def same(self, graph: Graph, own: Node, other: Node, name: str) -> bool:
        """Returns whether a step of a graph is as one of the pattern."""
        if name and name in own.name and name in other.name:
            return True
        if own.op == other.op == "get_attr":
            mine, theirs = (attribute_of(one.graph, str(one.target)) for one in (own, other))
            return isinstance(theirs, Tensor) if isinstance(mine, Tensor) else type(mine) is type(theirs)
        return own.op == other.op == "output" or same_step(own, other)

    def is_whole(self, stands: Found) -> bool:
        """Returns whether nothing on the way is read elsewhere, and parameters are parameters where they must be."""
        inside = {one for one in stands.values() if isinstance(one, Node)}
        for own, one in stands.items():
            if own.op == "placeholder":
                literal = not isinstance(one, Node)
                if literal and not self.ignore_literals or self.match_placeholder and (literal or one.op != own.op):
                    return False
            elif own.op != "output" and own not in self.pattern_returning_nodes:
                if any(user not in inside for user in one.users):
                    return False
        return all(one in stands for one in self.pattern_returning_nodes)


def attribute_of(graph: Graph, path: str) -> Any:
    found = graph.owning_module
    for atom in path.split("."):
        found = getattr(found, atom, None)
    return found


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds the pattern of a module that returns (its results, a dict): what stands for the values in the dict is in
    `name_node_map`, by their keys.

        def pattern(x, w):
            product = x @ w
            return product.relu(), {"product": product}
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        graph, self.name_node_map = taken_apart(pattern_gm)
        super().__init__(graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        found = super().match(graph, node_name_match)
        for one in found:
            one.name_node_map = {name: one.nodes_map[node] for name, node in self.name_node_map.items()}
        return found


def taken_apart(module: GraphModule) -> tuple[Graph, dict[str, Node]]:
    """Returns (a copy of the graph that returns the results alone, the nodes in the dict beside them)."""
    graph = copy.deepcopy(module.graph)
    graph.owning_module = module
    results = graph.process_outputs(graph.output_node().args[0])
    *values, named = results if isinstance(results, tuple | list) else (results,)
    if not isinstance(named, dict):
        raise AssertionError("the pattern must return a tuple, whose last item is a dict from names to its values")
    output = graph.output_node()
    output.args = (tuple(leaf for leaf in tree_leaves(values) if isinstance(leaf, Node)),)
    return graph, dict(named)
