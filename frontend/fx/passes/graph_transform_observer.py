"""`GraphTransformObserver`: notes which nodes a pass makes and takes out, and from which ones they come.

with GraphTransformObserver(module, "my pass") as observer:
    my_pass(module.graph)
observer.created_nodes, observer.erased_nodes                 # names
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..traceback import NodeSource, NodeSourceAction
from .graph_drawer import FxGraphDrawer

__all__ = ["GraphTransformObserver"]


class GraphTransformObserver:
    """See above. log_url: a folder, in which the graphs before and after are drawn where they differ."""

    passes: ClassVar[int] = 0

    def __init__(
        self, gm: GraphModule, passname: str, subsystem: str | None = None, log_url: str | None = None
    ) -> None:
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.created_nodes: set[str] = set()
        self.erased_nodes: set[str] = set()
        self.name_to_node: dict[str, Node] = {}
        if log_url is not None:
            GraphTransformObserver.passes += 1
            self.before = self.drawn()

    @classmethod
    def get_current_pass_count(cls) -> int:
        """Returns how many passes have been drawn."""
        return cls.passes

    def drawn(self) -> Any:
        return FxGraphDrawer(
            self.gm, self.passname, ignore_getattr=True, ignore_parameters_and_buffers=True
        ).get_dot_graph()

    def apply_gm_pass(self, pass_fn: Callable[[GraphModule], Any]) -> Any:
        """Returns what a pass over the module returns, and notes what it does."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable[[Graph], Any]) -> Any:
        """Returns what a pass over the graph returns, and notes what it does."""
        with self:
            return pass_fn(self.gm.graph)

    def __enter__(self) -> Self:
        self.created_nodes.clear()
        self.erased_nodes.clear()
        self.name_to_node = {node.name: node for node in self.gm.graph.nodes}
        self.gm._register_create_node_hook(self.created)
        self.gm._register_erase_node_hook(self.erased)
        self.gm._register_replace_node_hook(self.replaced)
        return self

    def __exit__(self, *problem: Any) -> None:
        self.gm._unregister_create_node_hook(self.created)
        self.gm._unregister_erase_node_hook(self.erased)
        self.gm._unregister_replace_node_hook(self.replaced)
        if self.log_url is not None and problem[0] is None and (self.created_nodes or self.erased_nodes):
            start = Path(self.log_url) / f"pass_{GraphTransformObserver.passes}_{self.passname}"
            for graph, when in ((self.before, "input"), (self.drawn(), "output")):
                graph.write_svg(f"{start}_{when}_graph.svg")

    def created(self, node: Node) -> None:
        self.created_nodes.add(node.name)
        self.name_to_node[node.name] = node
        node.meta.setdefault("from_node", [NodeSource(None, self.passname, NodeSourceAction.CREATE)])

    def erased(self, node: Node) -> None:
        self.erased_nodes.add(node.name)
        self.name_to_node.pop(node.name, None)

    def replaced(self, old: Node, new: str, user: Node) -> None:
        """Notes at the node that stands in the place of another one what it comes from."""
        node = self.name_to_node.get(new)
        if node is None or node.name not in self.created_nodes:
            return
        action = [NodeSourceAction.CREATE, NodeSourceAction.REPLACE]
        source = NodeSource(old, self.passname, action)
        known = [one for one in node.meta.get("from_node", []) if one.name]
        if all(one.name != source.name for one in known):
            node.meta["from_node"] = [*known, source]
