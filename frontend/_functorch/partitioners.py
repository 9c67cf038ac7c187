"""Parts a joint graph in two: a forward that hands on values, and a backward that takes them up.

    forward, backward = min_cut_rematerialization_partition(joint, (), num_fwd_outputs=1)
    saved_bytes(forward, 1)

A joint graph takes inputs (`primals_1`, ...) and gradients of results (`tangents_1`, ...), and returns the results and
then the gradients of the inputs. Of the values that do not depend on a tangent, some are needed in backward: each is
either *saved*, or *recomputed* from saved ones. Which is which is all that a partitioner decides. `default_partition`
recomputes nothing that forward needs, the other one saves as few bytes as it can.

Note [What to save is a minimum cut]
Draw each value as a pipe as wide as its bytes, from the operators that it depends on to those that read it. Whatever
must be there already when backward begins is a source, and what backward reads a drain. To save a set of values so that
all others can be recomputed is to cut all ways from the sources to the drains, so the cheapest set is a minimum cut,
which a maximum flow finds. Sources are the inputs, and values that must not be recomputed, since that would take long
(products, convolutions). Where two cuts are as narrow, the later one recomputes less.

Note [Policies]
A node's `meta["recompute"]`, a `CheckpointPolicy`, goes before what a partitioner thinks of its operator. While a joint
graph is traced, `utils.checkpoint` notes it at the nodes of its regions (`checkpoints_noted`), which are numbered
(`meta["ac_graph_id"]`): what a later region reads of an earlier one is saved, or else backward would compute again all
regions at once, from the inputs of the first.

Note [Random numbers, drawn again]
What draws random numbers is recomputed only where a policy says so. Then the forward hands on the state in which the
generator was, and the backward draws from there: the same numbers, whatever kind of generator that is.

Read next: max_flow.py, aot_autograd.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, takewhile
from typing import Any, NamedTuple

from redispatch._higher_order_ops.rng import generator_of, run_and_save_rng_state, run_with_rng_state
from redispatch.dispatch import OpOverload, Tag, ops
from redispatch.dispatch.pytree import tree_leaves
from redispatch.dispatch.symbolic import Symbolic
from redispatch.dispatch.tensor import Tensor
from redispatch.fx import Graph, GraphModule, Node
from redispatch.fx.experimental.proxy_tensor import current_proxy_mode, is_tangent, without_modes
from redispatch.fx.experimental.symbolic_shapes import hint_int
from redispatch.fx.node import map_arg, written_at
from redispatch.utils.checkpoint import NOTED, CheckpointPolicy

from .max_flow import Network

__all__ = ["default_partition", "min_cut_rematerialization_partition", "saved_bytes"]

# Which take about as long as to read a saved value, beside views and what is pointwise.
MOVES = {ops.aten.clone, ops.aten._to_copy, ops.aten.cat, ops.aten.constant_pad_nd}
UNKNOWN = 4096  # elements of a tensor whose number depends on elements
SAVED = {CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE}
RECOMPUTED = {CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE}


@contextmanager
def checkpoints_noted() -> Iterator[None]:
    """A region in which checkpoints note their policies at the nodes of the graph that is traced. Note [Policies]"""
    mode = current_proxy_mode()
    if mode is None:
        yield
        return
    graph, regions, depth = mode.tracer.graph, count(1), 0

    def noted(run: Callable[[], Any], policy_of: Callable[[Any], CheckpointPolicy]) -> Any:
        nonlocal depth
        depth += 1
        last = next(iter(reversed(graph.nodes)), None)
        result = run()
        policy, depth = policy_of(result), depth - 1
        region = next(regions) if depth == 0 else None
        for node in takewhile(lambda node: node is not last, reversed(graph.nodes)):
            node.meta.setdefault("recompute", policy)
            if region is not None:
                node.meta["ac_graph_id"] = region
        return result

    token = NOTED.set(noted)
    try:
        yield
    finally:
        NOTED.reset(token)


def policy_of(node: Node) -> CheckpointPolicy | None:
    """Returns what a checkpoint says of a value, if one does. Note [Policies]"""
    policy, region = node.meta.get("recompute"), node.meta.get("ac_graph_id")
    if policy not in RECOMPUTED or region is None:
        return policy
    later = any(user.meta.get("ac_graph_id", 0) > region for user in node.users)
    return CheckpointPolicy.MUST_SAVE if later else policy


class Joint:
    """A joint graph, and which nodes depend on what."""

    def __init__(self, module: GraphModule, num_fwd_outputs: int) -> None:
        self.module, self.nodes = module, list(module.graph.nodes)
        inputs = [node for node in self.nodes if node.op == "placeholder"]
        self.tangents = [node for node in inputs if is_tangent(node)]
        self.primals = [node for node in inputs if node not in self.tangents]
        outputs = list(module.graph.output_node().args[0])
        if not 0 <= num_fwd_outputs <= len(outputs):
            raise ValueError(
                f"partition: expected num_fwd_outputs between 0 and {len(outputs)}, the outputs of the joint graph; "
                f"got {num_fwd_outputs}"
            )
        self.results, self.gradients = outputs[:num_fwd_outputs], outputs[num_fwd_outputs:]
        self.late = after(self.nodes, self.tangents)
        for node in self.results:
            if isinstance(node, Node) and node in self.late:
                raise RuntimeError(
                    f"partition: the result {node.format_node()} of the forward depends on a tangent, which there is "
                    "only in backward" + written_at(node)
                )
        # Whether somebody uses its value or not, what draws numbers or has other effects is where it is in the program.
        self.drawing = [
            node for node in self.nodes if node.op == "call_function" and node.is_impure() and node not in self.late
        ]
        self.in_forward = before([*self.results, *self.drawing]) | set(self.primals)
        self.in_forward |= {node for node in self.nodes if is_item(node) and node.args[0] in self.in_forward}
        self.in_backward = before(self.gradients)

    def saved_by_default(self) -> list[Node]:
        """The values of the forward that gradients are, or nodes read that forward does not need; items of several."""
        return [
            node
            for node in self.nodes
            if node in self.in_forward
            and node.op != "get_attr"
            and not is_several(node)
            and (
                node in self.gradients
                or any(user in self.in_backward and user not in self.in_forward for user in node.users)
            )
        ]

    def parted(self, saved: Sequence[Node]) -> tuple[GraphModule, GraphModule]:
        """(the forward, which returns the results and then what is saved; the backward).

        Note [Random numbers, drawn again]: of such values the forward returns the states, last of all.
        """
        again = before(self.gradients, until={*saved, *self.tangents}) - set(saved)
        states = [State(node) for node in self.drawing if node in again]
        forward = extracted(self.module, self.primals, [*self.results, *saved, *states], "forward", self.drawing)
        backward = extracted(self.module, [*saved, *states, *self.tangents], self.gradients, "backward")
        return forward, backward


def check_parts(joint: GraphModule, parts: Sequence[GraphModule], count: int, who: str) -> None:
    """RuntimeError where forward and backward are no parts of a joint graph with `count` results: it names the node
    that is missing, and its line. who: the name of the partition function."""
    values, forward, backward = (list(one.graph.output_node().args[0]) for one in (joint, *parts))
    results, gradients = values[:count], values[count:]
    tangents = [one for one in joint.graph.find_nodes(op="placeholder") if is_tangent(one)]
    given = parts[1].graph.find_nodes(op="placeholder")
    if len(forward) - count == len(given) - len(tangents) and len(backward) == len(gradients):
        return
    wanted = {
        "the forward does not return": [*results, *(one for one in given if not is_tangent(one))],
        "the backward does not return": gradients,
    }
    missing = ""
    for (what, nodes), found in zip(wanted.items(), (forward, backward), strict=True):
        names = {one.name for one in found if isinstance(one, Node)}
        for one in nodes:
            if isinstance(one, Node) and one.name not in names:
                missing = missing or f": {what} {one.format_node()}{written_at(one)}"
    raise RuntimeError(
        f"the partition {who!r} does not fit its joint graph, which has {count} results, {len(tangents)} tangents and "
        f"{len(gradients)} gradients; its forward returns {len(forward)} values, its backward takes {len(given)} and "
        f"returns {len(backward)}{missing}"
    )


def default_partition(
    joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int, **options: Any
) -> tuple[GraphModule, GraphModule]:
    """Returns (forward, backward), of which the forward saves each of its values that the backward reads.

    Where a policy says that some may be recomputed, it saves what takes the fewest bytes. Note [Policies]
    _joint_inputs: not looked at; sizes are those in the nodes' metadata.
    Errors: RuntimeError where a result depends on a tangent; ValueError for a number of results that there is not.
    """
    joint = Joint(joint_module, num_fwd_outputs)
    if any(policy_of(node) in RECOMPUTED for node in joint.nodes):
        return joint.parted(cheapest(joint, lambda node: is_item(node) or may_recompute(node, set())))
    return joint.parted(joint.saved_by_default())


def min_cut_rematerialization_partition(
    joint_module: GraphModule,
    _joint_inputs: Any,
    compiler: str = "inductor",
    recomputable_ops: Iterable[Any] | None = None,
    *,
    num_fwd_outputs: int,
    **options: Any,
) -> tuple[GraphModule, GraphModule]:
    """Returns (forward, backward), of which the forward saves as few bytes as it can.

    Note [What to save is a minimum cut]. recomputable_ops: the operators that may be recomputed; by default what is
    pointwise, a view, a reduction to more than a quarter, without tensors among its arguments, or a mere copy. A node's
    `meta["recompute"]`, a `CheckpointPolicy`, overrules both.
    Errors: as of `default_partition`; RuntimeError where values may neither be saved nor recomputed.
    """
    joint = Joint(joint_module, num_fwd_outputs)
    allowed = None if recomputable_ops is None else {getattr(op, "overloadpacket", op) for op in recomputable_ops}
    return joint.parted(cheapest(joint, lambda node: may_recompute(node, allowed)))


def cheapest(joint: Joint, recomputable: Callable[[Node], bool]) -> list[Node]:
    """Returns the values that are saved at least cost in bytes, in the order of the graph."""
    early = [
        node for node in joint.nodes if node in joint.in_backward and node not in joint.late and node.op != "get_attr"
    ]
    entries = {node: 2 * i + 2 for i, node in enumerate(early)}  # where a pipe begins; it ends at the next number
    source, drain = 0, 1
    network = Network(2 * len(early) + 2)
    for node, entry in entries.items():
        never = is_several(node) or policy_of(node) is CheckpointPolicy.MUST_RECOMPUTE
        network.add(entry, entry + 1, math.inf if never else bytes_of(node))
        # What forward does not need is not recomputed, but computed in backward alone.
        if node.op == "placeholder" or (node in joint.in_forward and not recomputable(node)):
            network.add(source, entry, math.inf)
        elif draws(node):
            network.add(source, entry, bytes_of(State(node)))  # which forward hands on where it is recomputed
        if node in joint.gradients:
            network.add(entry + 1, drain, math.inf)
        for user in node.users:
            if user in entries:
                network.add(entry + 1, entries[user], math.inf)
            elif user in joint.in_backward and user.op != "output":
                network.add(entry + 1, drain, math.inf)
    if network.flow(source, drain) == math.inf:
        raise RuntimeError(
            "partition: there are no values to save from which backward could recompute the others: a chain of nodes "
            "leads to it that may be neither saved nor recomputed (their meta['recompute'])"
        )
    behind = network.leading_to(drain)
    return [node for node, entry in entries.items() if entry not in behind and entry + 1 in behind]


def may_recompute(node: Node, allowed: set[Any] | None) -> bool:
    """Returns whether a value may be recomputed in backward. allowed: the operators of which it may."""
    policy, op = policy_of(node), node.target
    if node.is_impure(impure_random=False):
        return False
    if isinstance(policy, CheckpointPolicy):
        return policy not in SAVED
    if is_item(node) or isinstance(node.meta.get("val"), Symbolic):
        return True  # its producer decides; a size is soon computed
    if not isinstance(op, OpOverload) or draws(node):
        return False
    if allowed is not None:
        return op.overloadpacket in allowed
    if Tag.reduction in op.tags:
        return 4 * bytes_of(node) > sum(map(bytes_of, node.all_input_nodes))
    return Tag.pointwise in op.tags or op.schema.is_view or op.overloadpacket in MOVES or not node.all_input_nodes


def draws(node: Node) -> bool:
    """Returns whether an operator draws random numbers."""
    return isinstance(node.target, OpOverload) and Tag.nondeterministic_seeded in node.target.tags


def is_item(node: Node) -> bool:
    """Returns whether the value is one of several that an operator returned."""
    return node.target is operator.getitem


def is_several(node: Node) -> bool:
    """Returns whether the value is a tuple, of which the items are saved."""
    return isinstance(node.meta.get("val"), list | tuple)


def bytes_of(node: Node | State) -> int:
    """Returns the bytes of the tensors in a node's value, by the hints of sizes that are symbols; 8 of a number."""
    leaves = tree_leaves(node.meta.get("val"))
    return sum(hint_int(one.numel(), UNKNOWN) * one.element_size() if isinstance(one, Tensor) else 8 for one in leaves)


def saved_bytes(forward: GraphModule, num_fwd_outputs: int) -> int:
    """Returns how many bytes a forward hands on to its backward beside its results."""
    return sum(map(bytes_of, set(forward.graph.output_node().args[0][num_fwd_outputs:])))


class State(NamedTuple):
    """The state of the generator that a node draws from, before it does. Note [Random numbers, drawn again]"""

    of: Node

    @property
    def name(self) -> str:
        return f"rng_state_{self.of.name}"

    @property
    def meta(self) -> dict[str, Any]:
        with without_modes():
            return {"val": generator_of(self.of.args, dict(self.of.kwargs)).get_state()}


def extracted(
    module: GraphModule, inputs: Sequence[Any], outputs: Sequence[Any], name: str, more: Sequence[Node] = ()
) -> GraphModule:
    """Returns the part of a graph that computes these outputs of these inputs, and `more`. Either may be a `State`.

    Errors: RuntimeError that names the node where an output needs an input that is not among them.
    """
    graph: Graph = Graph()
    copies: dict[Any, Node] = {}
    for one in inputs:
        copies[one] = graph.placeholder(one.name)
        copies[one].meta = dict(one.meta)
    needed = before([*outputs, *more], until=set(inputs))
    for node in module.graph.nodes:
        if node in needed and node not in copies:
            if node.op == "placeholder":
                reader = next((one for one in node.users if one in needed), node)
                raise RuntimeError(
                    f"partition: the {name} is not given the input {node.name}, which {reader.format_node()} reads"
                    + written_at(reader)
                )
            if State(node) in copies or State(node) in outputs:
                drawn(graph, node, copies)
            else:
                copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[one] if isinstance(one, Node | State) else one for one in outputs))
    graph.lint()
    return GraphModule(module, graph, name)


def drawn(graph: Graph, node: Node, copies: dict[Any, Node]) -> None:
    """Enters a node that draws from a state that it is given, or says in which the generator was."""
    args, kwargs = map_arg((node.args, node.kwargs), copies.__getitem__)
    state = State(node)
    if state in copies:
        copies[node] = graph.call_function(run_with_rng_state, (copies[state], node.target, *args), kwargs)
    else:
        both = graph.call_function(run_and_save_rng_state, (node.target, *args), kwargs)
        copies[state], copies[node] = (graph.call_function(operator.getitem, (both, i)) for i in range(2))
        copies[state].meta = state.meta
        both.meta = {**node.meta, "val": (state.meta["val"], node.meta.get("val"))}
    copies[node].meta = dict(node.meta)


def before(nodes: Iterable[Any], until: set[Node] | None = None) -> set[Node]:
    """Returns the nodes that these depend on, and themselves. What `until` depends on is left out."""
    found: set[Node] = set()
    todo = [node for node in nodes if isinstance(node, Node)]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            if until is None or node not in until:
                todo += node.all_input_nodes
    return found


def after(nodes: Sequence[Node], these: Sequence[Node]) -> set[Node]:
    """Returns the nodes that depend on these, and themselves. nodes: all of the graph, in order."""
    found = set(these)
    for node in nodes:
        if node.op != "output" and any(one in found for one in node.all_input_nodes):
            found.add(node)
    return found
