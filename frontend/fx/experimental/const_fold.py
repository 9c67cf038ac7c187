"""`split_const_subgraphs`: what depends on a module's own tensors alone is computed once, when `run_folding` is called.

module = split_const_subgraphs(model)
module.run_folding()                      # or at the first call
module.const_subgraph_module              # computes the constants; None where there are none
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch import Tensor, nn

from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module that computes its constants before its first call. fx_const_folded_attrs_name: where they are then."""

    def __init__(
        self,
        root: nn.Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: Any = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Computes the constants. AssertionError where that has been done."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("the constants have been computed already")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()
        several = isinstance(folded, tuple)
        for number, value in enumerate(folded if several else [folded]):
            wrapped = isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())
            constant = nn.Parameter(value, value.requires_grad) if wrapped else value
            name = self.fx_const_folded_attrs_name
            setattr(self, f"{name}_{number}" if several else name, constant)


def split_const_subgraphs(
    module: nn.Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: Any = "cpu",
) -> FoldedGraphModule:
    """Returns a module that does the same, with what depends on its own tensors alone computed once.

    skip_folding_node_fn: nodes to leave where they are. What draws numbers or writes stays where it is.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    graph, constants = traced.graph, Graph()
    constant: dict[Node, None] = {}
    for node in graph.nodes:
        fixed = node.op == "get_attr" or node.all_input_nodes and all(one in constant for one in node.all_input_nodes)
        skipped = skip_folding_node_fn is not None and node.op != "get_attr" and skip_folding_node_fn(node)
        if fixed and node.op != "output" and not skipped and not node.is_impure():
            constant[node] = None
    folded = [node for node in constant if node.op != "get_attr" and any(user not in constant for user in node.users)]
    if not folded:
        return FoldedGraphModule(traced, graph)
    copies: dict[Node, Node] = {}
    for node in constant:
        copies[node] = constants.node_copy(node, copies.__getitem__)
    results = tuple(copies[node] for node in folded)
    constants.output(results if len(results) > 1 else results[0])
    constants.eliminate_dead_code()
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    made = Graph()
    values: dict[Node, Node] = {}
    for node in graph.nodes:
        if node in folded:
            values[node] = made.get_attr(name if len(folded) == 1 else f"{name}_{folded.index(node)}", node.type)
            values[node].meta = dict(node.meta)
        elif node not in constant or node.op == "get_attr":
            values[node] = made.node_copy(node, values.__getitem__)
    for node in reversed(made.nodes):
        if node.op == "get_attr" and not node.users:
            made.erase_node(node)
    for number in range(len(folded)):
        setattr(traced, f"{name}_{number}", nn.Parameter(Tensor(), requires_grad=False))
    return FoldedGraphModule(traced, made, constants, name, device_for_folded_attrs)


def get_unique_attr_name_in_module(mod_traced: nn.Module, name: str) -> str:
    """Returns this name, or one like it, such that the module has no attribute that begins so."""
    while any(taken.startswith(name) for taken in dir(mod_traced)):
        name += "_"
    return name
