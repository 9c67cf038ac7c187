"""`reinplace`: has a graph of functional operators write over tensors that nobody looks at any more.

`y = add(x, 1)` becomes `add_(x, 1)` where nothing after it uses `x` or a view of it, and `x` is no input: what the
caller, or the module, holds stays as it is. Which nodes share memory is seen by running the graph on fakes.
"""

from __future__ import annotations

from typing import Any

from redispatch import Tensor
from redispatch.dispatch import OPERATORS, OpOverload
from redispatch.dispatch.pytree import tree_leaves, tree_map_only
from redispatch.modes.fake_tensor import FakeTensor, FakeTensorMode

from ..interpreter import Interpreter
from ..node import Node

__all__ = ["reinplace"]


class Memory(Interpreter):
    """Runs a graph on fakes and notes what each node's tensors look like, and in which storage they lie."""

    def __init__(self, module: Any) -> None:
        super().__init__(module, garbage_collect_values=False)  # a storage must not take the place of another
        self.fakes = FakeTensorMode(allow_non_fake_inputs=True)
        self.values: dict[Node, list[Any]] = {}

    def propagate(self, *args: Any) -> None:
        with self.fakes:
            self.run(*tree_map_only(Tensor, self.fakes.from_tensor, args))

    def run_node(self, node: Node) -> Any:
        result = super().run_node(node)
        self.values[node] = [
            one if isinstance(one, FakeTensor) else self.fakes.from_tensor(one)
            for one in tree_leaves(result)
            if isinstance(one, Tensor)
        ]
        return result

    def storages(self, node: Node) -> set[int]:
        return {one.meta.untyped_storage()._cdata for one in self.values.get(node, ())}


def reinplace(gm: Any, *sample_args: Any) -> Any:
    """Returns the module, whose graph it changes. sample_args: arguments as those that it is to be called with.

    Only a node whose operator has an in-place form, and whose result looks as its first argument does, is changed.
    """
    memory = Memory(gm)
    memory.propagate(*sample_args)
    nodes = list(gm.graph.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    storages = {node: memory.storages(node) for node in nodes}
    held = {one for node in nodes if node.op in ("placeholder", "get_attr") for one in storages[node]}
    for i, node in enumerate(nodes):
        form = in_place_form(node, memory)
        if form is None:
            continue
        written = node.args[0]
        (storage,) = storages[written]
        alike = [one for one in nodes if storage in storages[one]]
        others = [one for one in node.all_input_nodes if one is not written and one in alike]
        later = {user for one in alike for user in one.users if place[user] > i}
        back = [one for one in later if puts_back(one, node, written)]
        if storage in held or others or later - {*back}:
            continue
        node.target = form
        storages[node] = {storage}
        for one in back:  # what was put back is there already
            one.replace_all_uses_with(one.args[0])
            storages[one] = set()
            gm.graph.erase_node(one)
        node.replace_all_uses_with(written)
    gm.graph.lint()
    gm.recompile()
    return gm


def puts_back(later: Node, node: Node, view: Node) -> bool:
    """Whether a node puts what `node` has made of a view back to where the view was taken."""
    op, source = later.target, view.target
    return (
        isinstance(op, OpOverload)
        and isinstance(source, OpOverload)
        and op.packet_name == f"{source.packet_name}_scatter"
        and later.args[:2] == (view.args[0], node)
        and later.args[2:] == view.args[1:]
        and later.kwargs == view.kwargs
    )


def in_place_form(node: Node, memory: Memory) -> Any:
    """Returns the operator that writes what a node's operator returns over its first argument; None where none can."""
    op = node.target
    if (
        node.op != "call_function"
        or not isinstance(op, OpOverload)
        or not (node.args and isinstance(node.args[0], Node))
    ):
        return None
    form = OPERATORS.get(op.qualified_name.replace(op._opname, f"{op._opname}_", 1))
    before, after = memory.values.get(node.args[0], []), memory.values.get(node, [])
    if form is None or op.schema.is_mutable or op.schema.is_view or len(before) != 1 or len(after) != 1:
        return None
    one, other = before[0], after[0]
    repeats = any(size > 1 and step == 0 for size, step in zip(one.shape, one.stride(), strict=True))
    if (one.shape, one.dtype) != (other.shape, other.dtype) or repeats:
        return None
    return form
