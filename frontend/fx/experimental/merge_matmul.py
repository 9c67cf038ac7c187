"""`merge_matmul`: products with the same right side become one product of what was on the left, stacked."""

from __future__ import annotations

import operator
from typing import Any

import redispatch

from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..node import Node
from ..passes.post_grad import stable_topological_sort

__all__ = ["are_nodes_independent", "may_depend_on", "merge_matmul", "split_result_tensors"]


def split_result_tensors(result: Any, inputs: list[Any]) -> tuple[Any, ...]:
    """Returns the rows of a product that belong to each of the tensors that were stacked for it."""
    return redispatch.split(result, [one.shape[0] for one in inputs])


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Returns whether the first reads the second, directly or by others; True where that is further than so many."""
    if a is b:
        return True
    if not a.all_input_nodes:
        return False
    return search_depth == 0 or any(may_depend_on(one, b, search_depth - 1) for one in a.all_input_nodes)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Returns whether none of these reads another one of them."""
    return not any(may_depend_on(a, b) for a in nodes for b in nodes if a is not b)


def merge_matmul(in_mod: Any) -> GraphModule:
    """Returns a module that does the same with fewer products of matrices."""
    module = symbolic_trace(in_mod)
    by_right: dict[Any, list[Node]] = {}
    for node in module.graph.find_nodes(op="call_function", target=redispatch.matmul):
        right = node.args[1]
        key = right.target if right.op == "get_attr" else right
        by_right.setdefault(key, []).append(node)
    for products in by_right.values():
        if len(products) > 1 and are_nodes_independent(products):
            merged(module, products)
    module.recompile()
    module.graph.lint()
    return module


def merged(module: GraphModule, products: list[Node]) -> None:
    """Has one product give all of these."""
    graph, order = module.graph, {node: i for i, node in enumerate(module.graph.nodes)}
    lefts, right = [node.args[0] for node in products], products[0].args[1]
    last = max([*lefts, *(node.args[1] for node in products)], key=order.__getitem__)
    with graph.inserting_after(last):
        stacked = graph.call_function(redispatch.cat, (lefts,))
        product = graph.call_function(redispatch.matmul, (stacked, right))
        parts = graph.call_function(split_result_tensors, (product, lefts))
        items = [graph.call_function(operator.getitem, (parts, i)) for i in range(len(products))]
    for node, item in zip(products, items, strict=True):
        node.replace_all_uses_with(item)
        graph.erase_node(node)
    stable_topological_sort(graph)
