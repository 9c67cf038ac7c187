"""`reinplace`: has a graph of functional operators write over tensors that nobody looks at any more.

`y = add(x, 1)` becomes `add_(x, 1)` where nothing after it reads `x`, or a view of it; a copy is not made at all. What
the module holds stays as it is, and so does an input, unless the graph ends by copying into it: `copy_(x, y)`. Which
nodes share memory is seen by running the graph on fakes, so inputs that share some are known by the sample arguments.

Custom operators that write stand in functional graphs as `auto_functionalized`, which writes copies.
`decompose_auto_functionalized` has it be the copies and the operator, and `reinplace` leaves out the copies.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import Any

from redispatch import Tensor
from redispatch._higher_order_ops.wrap import auto_functionalized
from redispatch.dispatch import OPERATORS, OpOverload, Tag, ops
from redispatch.dispatch.pytree import tree_leaves, tree_map_only
from redispatch.modes.fake_tensor import FakeTensor, FakeTensorMode

from ..graph import Graph
from ..interpreter import Interpreter
from ..node import Node, map_arg, written_at

__all__ = ["decompose_auto_functionalized", "reinplace", "reinplace_inplaceable_ops"]

CLONE, COPY = ops.aten.clone.default, ops.aten.copy_.default


class Memory(Interpreter):
    """Runs a graph on fakes and notes each node's tensors, and in which storage they lie."""

    def __init__(self, module: Any, fakes: FakeTensorMode | None = None) -> None:
        super().__init__(module, garbage_collect_values=False)  # a storage must not take the place of another
        self.fakes = fakes or FakeTensorMode(allow_non_fake_inputs=True)
        self.values: dict[Node, list[Any]] = {}

    def propagate(self, *args: Any) -> None:
        with self.fakes:
            self.run(*tree_map_only(Tensor, self.fakes.from_tensor, args), enable_io_processing=False)

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

    Only a node whose operator has an in-place form, and whose result lies in memory as its first argument does, is
    changed.
    """
    memory = Memory(gm)
    memory.propagate(*sample_args)
    Writer(gm.graph, memory).write_over()
    gm.graph.lint()
    gm.recompile()
    return gm


def reinplace_inplaceable_ops(graph: Graph) -> None:
    """Does so to a graph whose nodes have values, `meta["val"]`; nothing where autograd would miss what is written."""
    inputs = [node.meta.get("val") for node in graph.find_nodes(op="placeholder")]
    module = graph.owning_module
    held = [operator.attrgetter(str(node.target))(module) for node in graph.find_nodes(op="get_attr")] if module else []
    if module is None or any(one is None for one in inputs):
        return
    if any(isinstance(one, Tensor) and one.requires_grad for one in (*inputs, *held)):
        return
    mode = next((one.fake_mode for one in inputs if isinstance(one, FakeTensor)), None)
    memory = Memory(module, mode)
    memory.propagate(*inputs)
    Writer(graph, memory).write_over()


class Writer:
    """The analysis of one graph. `where`: in which storages a node's tensors lie by now; `members`: the reverse."""

    def __init__(self, graph: Graph, memory: Memory) -> None:
        self.graph, self.memory = graph, memory
        self.place = {node: i for i, node in enumerate(graph.nodes)}
        self.where = {node: memory.storages(node) for node in self.place}
        self.members: dict[int, set[Node]] = defaultdict(set)
        for node, storages in self.where.items():
            for storage in storages:
                self.members[storage].add(node)

    def write_over(self) -> None:
        for node in list(self.place):
            form = None if node._erased else in_place_form(node, self.memory)
            if form is None:
                continue
            written: Any = node.args[0]
            later = {user for one in self.alike(written) for user in one.users if self.place[user] > self.place[node]}
            back = [one for one in later if puts_back(one, node, written)]
            steps = strides(self.memory, node) == strides(self.memory, written)
            if not steps and set(node.users) != {*back}:
                continue  # a reader would see other strides
            if self.where[node] & self.where[written] or self.shares(node, written):
                continue
            end = self.end_of(node, written, back)
            if end is None and (self.is_held(written) or later - {*back}):
                continue
            if end is not None and any(self.place[one] < self.place[end] for one in later - {*back, end}):
                continue
            self.change(node, written, form, back)
            if end is not None and end.args[0] is end.args[1]:
                end.replace_all_uses_with(end.args[0])
                self.graph.erase_node(end)

    def alike(self, node: Node) -> set[Node]:
        """Returns the nodes whose values lie in the same memory."""
        return {one for storage in self.where[node] for one in self.members[storage]}

    def is_held(self, node: Node) -> bool:
        """Returns whether a caller, or the module, has the memory of a value."""
        return any(one.op in ("placeholder", "get_attr") for one in self.alike(node))

    def shares(self, node: Node, written: Node) -> bool:
        """Returns whether another argument lies in the memory that would be written."""
        alike = self.alike(written)
        return any(one in alike for one in node.all_input_nodes if one is not written)

    def end_of(self, node: Node, written: Node, back: list[Node]) -> Node | None:
        """Returns the node after `node` that copies into the input whose memory would be written.

        None where there is none; where others have that memory too; where it copies what is in that memory by now; or
        where what is written would be seen later.
        """
        alike = self.alike(written)
        holders = [one for one in alike if one.op in ("placeholder", "get_attr")]
        ends = [one for one in self.graph.find_nodes(op="call_function", target=COPY) if one.args[0] in holders]
        if (
            len(holders) != 1
            or len(ends) != 1
            or holders[0].op != "placeholder"
            or ends[0].args[1] in alike
            or self.place[node] > self.place[ends[0]]
            or not lies_within(written, holders[0])
        ):
            return None
        after = {user for made in (node, *back) for one in self.alike(made) for user in one.users}
        return None if any(self.place[one] > self.place[ends[0]] for one in after) else ends[0]

    def change(self, node: Node, written: Node, form: Any, back: list[Node]) -> None:
        """Writes what a node computes over `written`; what put it back is there already."""
        for one in (node, *back):
            for other in self.where[one]:
                for member in self.members.pop(other):
                    self.where[member] = self.where[member] - {other} | self.where[written]
                    for storage in self.where[written]:
                        self.members[storage].add(member)
        for one in back:
            one.replace_all_uses_with(one.args[0])
            self.graph.erase_node(one)
        node.replace_all_uses_with(written)
        if form is CLONE:
            self.graph.erase_node(node)
        else:
            node.target = form


def lies_within(node: Any, holder: Node) -> bool:
    """Returns whether a value is an input, or a view that cannot reach beyond it."""
    while node is not holder and isinstance(node.target, OpOverload) and node.target.schema.is_view:
        if node.target.packet_name == "aten::as_strided":
            return False
        node = node.args[0]
    return node is holder


def strides(memory: Memory, node: Node) -> list[Any]:
    """Returns the strides of a node's tensor, of dimensions that have more than one element."""
    (value,) = memory.values[node]
    return [step for size, step in zip(value.shape, value.stride(), strict=True) if size != 1]


def puts_back(later: Node, node: Node, view: Node) -> bool:
    """Returns whether a node puts what `node` has made of a view back to where the view was taken."""
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
    """Returns the operator that writes what a node's operator returns over its first argument; None where none can.

    That of a clone is itself: it writes what is there.
    """
    op = node.target
    if (
        node.op != "call_function"
        or not isinstance(op, OpOverload)
        or not (node.args and isinstance(node.args[0], Node))
    ):
        return None
    if op is CLONE:
        form: Any = CLONE
    else:
        form = OPERATORS.get(op.qualified_name.replace(op._opname, f"{op._opname}_", 1))
    before, after = memory.values.get(node.args[0], []), memory.values.get(node, [])
    if form is None or op.schema.is_mutable or op.schema.is_view or len(before) != 1 or len(after) != 1:
        return None
    again = node.args[0] in tree_leaves((node.args[1:], node.kwargs))
    if again and Tag.pointwise not in op.tags:
        return None  # it would read what it has written already
    if [one.name for one in op.schema.arguments] != [one.name for one in form.schema.arguments]:
        return None
    facts = [(one.shape, one.dtype, one.device, one.is_conj(), one.is_neg()) for one in (before[0], after[0])]
    return form if facts[0] == facts[1] and not overlaps(before[0]) else None


def overlaps(tensor: Tensor) -> bool:
    """Returns whether elements of a tensor may lie in the same place."""
    span = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True), key=lambda one: one[0]):
        if size != 1:
            if step < span:
                return True
            span = step * (size - 1) + span
    return False


# Operators that write -------------------------------------------------------------------------------------------------


def decompose_auto_functionalized(graph: Graph) -> None:
    """Has each `auto_functionalized(op, ...)` be copies of what the operator writes, and the operator itself.

    Errors: RuntimeError that names the node where its results are read other than one by one.
    """
    for node in graph.find_nodes(op="call_function", target=auto_functionalized):
        op, kwargs = node.args[0], dict(node.kwargs)
        with graph.inserting_before(node):
            written = [one.name for one in op.schema.arguments if one.is_write and kwargs.get(one.name) is not None]
            for name in written:
                kwargs[name] = map_arg(kwargs[name], lambda one: clone_of(graph, one))
            call = graph.call_function(op, (), kwargs)
        call.meta = {key: value for key, value in node.meta.items() if key != "val"}
        count = len(op.schema.returns) or 1
        copies = [kwargs.get(one.name) for one in op.schema.arguments if one.is_write]
        for user in list(node.users):
            if user.target is not operator.getitem:
                raise RuntimeError(
                    f"expected the results of {node.format_node()} to be read one by one; {user.format_node()} reads "
                    f"them all{written_at(node)}"
                )
            number: Any = user.args[1]
            if number >= count:
                put_for(graph, user, copies[number - count])
            elif len(op.schema.returns) < 2:
                put_for(graph, user, call)
                call.meta["val"] = user.meta.get("val")
            else:
                user.replace_input_with(node, call)
        graph.erase_node(node)


def clone_of(graph: Graph, node: Node) -> Node:
    copied = graph.call_function(CLONE, (node,))
    copied.meta = dict(node.meta)
    return copied


def put_for(graph: Graph, item: Node, value: Any) -> None:
    """Has a value, or the items of a list, stand for a node that is an item of several results."""
    if isinstance(value, Node):
        item.replace_all_uses_with(value)
    else:
        for user in list(item.users):
            number: Any = user.args[1]
            put_for(graph, user, value[number])
    graph.erase_node(item)
