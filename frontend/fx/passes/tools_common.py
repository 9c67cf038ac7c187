"""What passes ask of nodes: the name of what one calls, whether its value is a tensor; and the order of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redispatch import Tensor

from ..graph_module import GraphModule
from ..node import Node, qualified_name
from . import post_grad

__all__ = [
    "CALLABLE_NODE_OPS",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]

NodeList = list[Node]
NodeSet = set[Node]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k: Any) -> str:
    """Returns the name of a function or class with that of its module; a string as it is."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    module = (k.__module__ or "").replace("redispatch", "torch", 1).replace("torch._ops", "torch.ops")
    return f"{module}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """Returns the name of what a node calls: a function with its module, a method's, or the class of a module.

    Errors: AssertionError for a node that calls nothing.
    """
    target: Any = node.target
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    return target if node.op == "call_method" else qualified(target)


def qualified(function: Any) -> str:
    """Returns the name of a function as programs compare it: `_operator.add`, `torch.ops.aten.add.Tensor`."""
    if "acc_ops" in (getattr(function, "__module__", None) or ""):
        return get_acc_ops_name(function)
    name = qualified_name(function)
    return f"_{name}" if name.startswith("operator.") else name


def is_node_output_tensor(node: Node) -> bool:
    """Returns whether `ShapeProp` saw that a node's value is a tensor."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Returns the module, each node of whose graph is behind those that it reads. RuntimeError for a circle."""
    post_grad.stable_topological_sort(gm.graph)
    gm.recompile()
    return gm


legalize_graph = stable_topological_sort  # whose order PyTorch does not say
