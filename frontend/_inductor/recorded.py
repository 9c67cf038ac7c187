"""Compiled graphs that are recorded as graphs of CUDA, `mode="reduce-overhead"`: a call replays what the card was told.

All share one graph tree (`kernels/cuda/runtime/graph_trees.py`): the first call runs, the second is recorded, later
ones replay. What a call returned is good until the next step begins (`compiler.cudagraph_mark_step_begin`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from redispatch.compiler import STEP_BEGINS
from redispatch.dispatch import OpOverload, Tag
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.cuda import Driver
from redispatch.kernels.cuda.runtime.graph_trees import GraphTree

from ..fx.node import Node

WAITING = (Tag.data_dependent_output, Tag.dynamic_output_shape)
_TREES: WeakKeyDictionary[Driver, GraphTree] = WeakKeyDictionary()


def begin_step() -> None:
    """Has all trees begin at their roots."""
    for tree in list(_TREES.values()):
        tree.new_step()


STEP_BEGINS.append(begin_step)


def recorded(driver: Driver, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a part of the driver's tree."""
    tree = _TREES.get(driver)
    if tree is None:
        tree = _TREES[driver] = GraphTree()
    return tree.wrap(function)


def hindrance(nodes: Iterable[Node]) -> str:
    """Says why a graph cannot be recorded; "" where it can."""
    for node in nodes:
        target, val = node.target, node.meta.get("val")
        if isinstance(val, Tensor) and val.device.type == "cpu":
            return f"{node.name} is on the CPU"
        if not isinstance(target, OpOverload):
            continue
        if any(tag in target.tags for tag in WAITING):
            return f"{node.name} = {target} waits for numbers of the device"
        if target.schema.is_mutable and any(is_input(one) for one in node.all_input_nodes):
            return f"{node.name} = {target} may write to an input, which is copied for a recording"
    return ""


def is_input(node: Node) -> bool:
    """Whether a node is an input, or a view of one."""
    while node.op == "call_function" and isinstance(node.target, OpOverload) and node.target.schema.is_view:
        node = node.all_input_nodes[0]
    return node.op == "placeholder"
