"""Modules made smaller for inference: `fuse` puts batch norms into convolutions, `remove_dropout` takes out dropouts.

faster = optimization.fuse(model.eval())
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from redispatch import nn
from redispatch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node, Target

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

CONVOLUTIONS = ((nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d))
PATTERNS = (*CONVOLUTIONS, (nn.Linear, nn.BatchNorm1d))
DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Returns whether a node, and the one that it reads first, call modules of the two classes of a pattern."""
    if not node.args or not isinstance(node.args[0], Node):
        return False
    return all(
        one.op == "call_module" and type(modules.get(str(one.target))) is kind
        for kind, one in zip(pattern, (node.args[0], node), strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Has a node call another module, at the path of the one that it called."""
    owner, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[owner], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Returns a module in which a convolution, or a linear layer, does the work of the batch norm behind it.

    The model must be in evaluation mode. inplace: whether it may be changed. no_trace: whether it is a GraphModule.
    """
    model = model if inplace else copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    for pattern in PATTERNS:
        for node in traced.graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            first, norm = modules[node.args[0].target], modules[node.target]
            if not norm.track_running_stats:
                continue
            fused = fuse_linear_bn_eval if pattern[0] is nn.Linear else fuse_conv_bn_eval
            replace_node_module(node.args[0], modules, fused(first, norm))
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    return GraphModule(traced, traced.graph)


class WithoutDropout(Transformer):
    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[str(target)], DROPOUTS):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: nn.Module) -> nn.Module:
    """Returns a module without the dropouts of this one."""
    return WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """Returns a module that computes `outputs` from `inputs` by these nodes, which are in order."""
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
