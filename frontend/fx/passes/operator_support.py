"""What a backend supports: objects that are asked of each node. Read next: partitioner.py, which takes one."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from ..experimental.proxy_tensor import TensorMetadata
from ..node import Node
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

Supports = Callable[[Mapping[str, Any], Node], bool]


class OperatorSupportBase(ABC):
    """Says of nodes whether they are supported."""

    @abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Returns whether a node is. submodules: those of the graph's module, by their paths."""


class OperatorSupport(OperatorSupportBase):
    """Supports what a table names, as `get_node_target` does, and all nodes that call nothing.

    A row is None, for any dtypes, or (dtypes of each positional argument, {name: dtypes}), where None is for any.
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = {short(name): row for name, row in (support_dict or {}).items()}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = short(get_node_target(submodules, node))
        if target not in self._support_dict:
            return False
        row = self._support_dict[target]
        if row is None:
            return True
        pairs = [*zip(node.args, row[0], strict=False)]
        pairs += [(node.kwargs[name], dtypes) for name, dtypes in row[1].items() if name in node.kwargs]
        return all(not isinstance(one, Node) or dtypes is None or dtype_of(one) in dtypes for one, dtypes in pairs)


def short(name: str) -> str:
    """Returns the name of a class of `nn` without its file, which is another one in PyTorch."""
    return re.sub(r"^torch\.nn\.(modules\.)?\w+\.(?=[A-Z])", "torch.nn.", name)


def dtype_of(node: Node) -> Any:
    """Returns the dtype of a node's tensor, or the type of its value, as `ShapeProp` saw it."""
    meta = node.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else node.meta["type"]


class Supported(OperatorSupportBase):
    """Supports what a function says."""

    def __init__(self, says: Supports) -> None:
        self.is_node_supported = says  # type: ignore[method-assign, assignment]  # of this one

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        raise AssertionError("each has its own")


def create_op_support(is_node_supported: Supports) -> OperatorSupportBase:
    """Returns a support that asks a function."""
    return Supported(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Returns a support for what all of these support."""
    return Supported(lambda submodules, node: all(one.is_node_supported(submodules, node) for one in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Returns a support for what one of these supports."""
    return Supported(lambda submodules, node: any(one.is_node_supported(submodules, node) for one in op_support))


class OpSupports:
    """Supports that decline single things."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Returns a support for nodes without an input of this dtype."""
        return Supported(lambda submodules, node: all(dtype_of(one) != dtype for one in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Returns a support for nodes of other names than these."""
        return Supported(lambda submodules, node: node.name not in disallow_set)
