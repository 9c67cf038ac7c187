"""Graphs in messages: their code when somebody reads it, a node with those before it, the first call's modules."""

from __future__ import annotations

from typing import Any

from .graph import Graph
from .graph_module import GraphModule
from .node import Node


class LazyString:
    """A text that is made when it is read."""

    def __init__(self, func: Any, *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return str(self.func(*self.args, **self.kwargs))


def _format_graph_code(name: str, filename: str, graph_str: str) -> str:
    return f"TRACED GRAPH\n {name} {filename} {graph_str}\n"


def lazy_format_graph_code(name: str, gm: GraphModule, maybe_id: int | None = None, **kwargs: Any) -> LazyString:
    """Returns the readable code of a graph module, to hand to a logger. maybe_id: stands behind the name."""

    def text() -> str:
        title = name if maybe_id is None else f"{name} {maybe_id}"
        code = gm.print_readable(print_output=False, **{"include_stride": True, "include_device": True} | kwargs)
        return _format_graph_code(f"===== {title} =====\n", gm.forward.__code__.co_filename, code)

    return LazyString(text)


def first_call_function_nn_module_stack(graph: Graph) -> dict[str, Any] | None:
    """Returns the modules around the first call of a function that notes some, or None."""
    return next((one.meta["nn_module_stack"] for one in graph.nodes if called_in_modules(one)), None)


def called_in_modules(node: Node) -> bool:
    return node.op == "call_function" and "nn_module_stack" in node.meta


def get_node_context(node: Node, num_nodes: int = 2) -> str:
    """Returns a node as a line of text, below those of the nodes before it, `num_nodes` lines in all."""
    found = [node]
    while len(found) < num_nodes and found[-1].prev is not node.graph._root and found[-1].prev.op != "root":
        found.append(found[-1].prev)
    return "\n".join(one.format_node() for one in reversed(found))
