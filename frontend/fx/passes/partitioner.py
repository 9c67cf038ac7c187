"""CapabilityBasedPartitioner: gathers the nodes that a backend supports into few parts, each of which can be one step.

    partitioner = CapabilityBasedPartitioner(module, OperatorSupport({"torch.ops.aten.add.Tensor": None}))
    partitioner.partition_and_fuse()                    # "fused_0", "fused_1", ... are called in the graph

From the last node to the first, each supported one is a part, and parts are put together where that makes no circle:
where no node outside of both is behind one and ahead of the other. PyTorch has this in `fx.passes.infra`.
Read next: fuser_utils.py.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence

from ..graph_module import GraphModule
from ..node import Node
from .fuser_utils import fuse_by_partitions
from .operator_support import OperatorSupportBase
from .tools_common import qualified

__all__ = ["CapabilityBasedPartitioner", "Partition"]

NO_WORK = {"torch.ops.aten.view", "_operator.getitem"}


class Partition:
    """Nodes that are to be one step. nodes: in their order; each with its number from the end of the graph."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        listed = list(nodes or ())
        orders: list[int | None] = [*node_orders] if node_orders is not None else [None] * len(listed)
        self.nodes: dict[Node, int | None] = dict(zip(listed, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Adds a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Removes a node."""
        del self.nodes[node]

    def size(self) -> int:
        """Returns how many nodes there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """See above.

    allows_single_node_partition: whether a part may have but one node that computes. non_compute_ops: names of what
    computes nothing. allowed_single_node_partition_ops: of what may be alone. skip_horizontal_fusion: whether parts are
    put together only along a value.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """Returns the parts; the graph stays as it is."""
        submodules = dict(self.graph_module.named_modules())
        parts: dict[int, Partition] = {}
        first: dict[int, int] = {}  # a part -> the number of the first of those that came into it
        of: dict[Node, int] = {}
        for order, node in enumerate(reversed(self.graph_module.graph.nodes)):
            supported = self.operator_support.is_node_supported(submodules, node)
            if supported:
                number = len(of)
                parts[number], first[number], of[node] = Partition(number, [node], [order]), number, number
            around = (of[user] for user in node.users if user in of) if supported else ()
            mates = around if self.skip_horizontal_fusion else sorted(first, key=first.__getitem__)
            candidates = list(dict.fromkeys([of[node], *mates] if supported else mates))
            own, *others = candidates or [0]
            for other in others:
                if not makes_circle(parts[own], parts[other], of, parts):
                    larger, smaller = (own, other) if parts[own].size() >= parts[other].size() else (other, own)
                    parts[larger].nodes.update(parts[smaller].nodes)
                    of.update(dict.fromkeys(parts.pop(smaller).nodes, larger))
                    first[larger] = min(first[larger], first.pop(smaller))
                    own = larger
        for part in parts.values():
            part.nodes = dict(sorted(part.nodes.items(), key=lambda pair: -(pair[1] or 0)))
        self._with_items(parts, of)
        if not self.allows_single_node_partition:
            parts = {number: part for number, part in parts.items() if self._work(part) > 1}
        return [part for part in parts.values() if part.size()]

    def _with_items(self, parts: Mapping[int, Partition], of: dict[Node, int]) -> None:
        """Has the items of several results be in the part that computes these."""
        for node in self.graph_module.graph.nodes:
            if all(user.target is operator.getitem for user in node.users):
                for user in node.users:
                    if of.get(user) != of.get(node):
                        if user in of:
                            parts[of.pop(user)].remove_node(user)
                        if node in of:
                            of[user] = of[node]
                            parts[of[node]].add_node(user)

    def _work(self, part: Partition) -> int:
        """Returns how many nodes compute something; those that may be alone count twice."""
        names = [qualified(node.target) for node in part.nodes if node.op == "call_function"]
        none = NO_WORK | set(self.non_compute_ops)
        return sum((name not in none) + (name in self.allowed_single_node_partition_ops) for name in names)

    def fuse_partitions(self, partitions: Sequence[Partition], prefix: str = "fused_") -> GraphModule:
        """Returns the module, of whose graph each part is one call of a submodule now.

        Errors: AssertionError, with the node in between, for a part that cannot be one step.
        """
        return fuse_by_partitions(self.graph_module, [part.nodes for part in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: Sequence[Partition]) -> None:
        """Takes what computes nothing out of parts where it is at their beginning or end."""
        for part in partitions:
            for forward in (True, False):
                left = list(part.nodes) if forward else list(reversed(part.nodes))
                for node in left:
                    around = node.all_input_nodes if forward else node.users
                    nothing = node.op == "call_function" and qualified(node.target) in self.non_compute_ops
                    if nothing and not any(one in part.nodes for one in around):
                        part.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Returns the module, of whose graph each part is one call of a submodule now."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)


def makes_circle(one: Partition, other: Partition, of: Mapping[Node, int], parts: Mapping[int, Partition]) -> bool:
    """Returns whether two parts, as one step, would be both behind and ahead of a step outside of them."""
    inside = {**one.nodes, **other.nodes}
    todo = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while todo:
        node = todo.pop()
        if node in inside:
            return True
        if node not in seen:
            step = parts[of[node]].nodes if node in of else (node,)
            seen.update(step)
            todo += [user for each in step for user in each.users if user not in seen]
    return False
