"""The engine: sends gradients through the graph, from the roots to the leaves.

A node runs when all gradients that will reach it have come; among those that are ready, the one whose call was made
last. (So a node's hooks see what PyTorch's would, in the same order.) Gradients that meet are added. Nothing here
recurses: a chain of a million nodes is a loop of a million steps.

    1. count, for each node that can be reached, the edges that lead to it;
    2. if only some gradients are asked for, mark the nodes on the way to them;
    3. put the roots' gradients in their buffers; then take ready nodes from the heap until none is left.

Everything is local to one call, so that backward may run inside backward and in several threads at once.

Read next: api.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from heapq import heappop, heappush
from typing import Any

from redispatch.dispatch import STATE
from redispatch.kernels import is_contiguous
from redispatch.tensor import Tensor

from .accumulate import AccumulateGrad, held_by_list_alone
from .anomaly import explained
from .conjugate import resolved
from .node import Edge, Node, evaluate, fit, fits, wrong_number

Target = tuple[Node, int] | tuple[Node, int, Tensor]

next_tick = itertools.count().__next__  # among equals, the first to become ready goes first

# The backward pass in which hooks of tensors are being called here, for those that need to know
CURRENT_TASK: ContextVar[Task | None] = ContextVar("backward pass", default=None)


def run_backward(
    roots: Sequence[Target],
    gradients: Sequence[Any],
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
    targets: Sequence[Target] = (),
    accumulate: bool = False,
) -> list[Any]:
    """Runs backward from `roots`, whose gradients are given, and returns those of `targets` (None: not reached).

    Without targets every leaf that is reached accumulates; with `accumulate`, those among the targets do.
    """
    task = Task(roots, retain_graph)
    if targets:
        task.aim(targets, accumulate)
    token = STATE.set(STATE.get().with_grad(bool(create_graph)))
    try:
        task.start(roots, gradients)
        task.run()
    finally:
        STATE.reset(token)
        for finish in task.at_end:
            finish()
    return task.captured


class Task:
    """One backward pass."""

    __slots__ = ("waiting", "buffers", "ready", "retain_graph", "needed", "captures", "captured", "at_end")
    waiting: dict[Node, int]  # for each node that can be reached, how many gradients are still to come
    buffers: dict[Node, list[Any]]  # for each node that waits, those that have come: one for each output, or None
    ready: list[tuple[int, int, Node, list[Any]]]  # a heap of the nodes to which all have come
    needed: set[Node] | None  # the nodes that must run; None for all
    captures: dict[Node, list[tuple[int, int]]]  # node -> (its output, place among the targets)
    captured: list[Any]  # the gradients of the targets
    at_end: list[Callable[[], Any]]  # called when the pass is over, however it ends

    def __init__(self, roots: Sequence[Target], retain_graph: bool) -> None:
        self.waiting = dependencies(roots)
        self.buffers = {}
        self.ready = []
        self.retain_graph = retain_graph
        self.needed = None
        self.captures = {}
        self.captured = []
        self.at_end = []

    def aim(self, targets: Sequence[Target], accumulate: bool) -> None:
        """Restricts the pass to what leads to these targets, whose gradients are captured."""
        self.captured = [None] * len(targets)
        for place, target in enumerate(targets):
            self.captures.setdefault(target[0], []).append((target[1], place))
        self.needed = callers(self.waiting, targets)
        if accumulate:
            self.needed |= {node for node in self.captures if isinstance(node, AccumulateGrad)}

    def start(self, roots: Sequence[Target], gradients: Sequence[Any]) -> None:
        """Puts the roots' gradients in their buffers."""
        for root, gradient in zip(roots, gradients, strict=True):
            node = root[0]
            buffer = added(self.buffers.pop(node, None), node, root[1], gradient)
            self.waiting[node] -= 1
            if self.waiting[node]:
                self.buffers[node] = buffer
            else:
                heappush(self.ready, (-node.sequence, next_tick(), node, buffer))

    def run(self) -> None:
        """Runs what is ready, until nothing is.

        Most nodes make one other ready, and leaves; these go first, and neither has to pass through the heap.
        """
        ready, buffers, waiting = self.ready, self.buffers, self.waiting
        partial, release = self.needed is not None, not self.retain_graph
        leaves: list[tuple[Node, list[Any]]] = []
        node: Any
        gradients: Any
        while ready:
            _, _, node, gradients = heappop(ready)
            while node is not None:
                if partial or node.hooks is not None:
                    results = self.run_watched(node, gradients)
                else:
                    results = node.apply(gradients)
                    if release:
                        node.release()
                edges = node.next_edges
                if len(results) != len(edges):
                    raise wrong_number(node, results)
                if type(results) is not list:
                    results = list(results)
                following = gradients = None  # what is held for no reason cannot be overwritten by who gets it next
                for index, edge in enumerate(edges):
                    if edge is None or (partial and not self.is_wanted(edge)):
                        continue
                    target, gradient = edge[0], results[index]
                    results[index] = None
                    outputs = target.outputs
                    if gradient is not None:
                        output = outputs[edge[1]]
                        if type(gradient) is not Tensor or (
                            gradient._looks is not output and not fits(gradient, output)
                        ):
                            gradient = fit(node, index, gradient, output)
                    if target not in buffers and len(outputs) == 1:
                        buffer = [gradient]
                    else:
                        buffer = added(buffers.pop(target, None), target, edge[1], gradient)
                    left = waiting[target] - 1
                    if left:
                        waiting[target], buffers[target] = left, buffer
                    elif type(target) is AccumulateGrad:
                        leaves.append((target, buffer))
                    elif following is None and not ready:
                        following, gradients = target, buffer
                    else:
                        heappush(ready, (-target.sequence, next_tick(), target, buffer))
                gradient = None
                for target, buffer in leaves:
                    if partial or target.hooks is not None:
                        self.run_watched(target, buffer)
                    else:
                        target.apply(buffer)
                leaves.clear()
                if ready and following is not None:
                    heappush(ready, (-following.sequence, next_tick(), following, gradients))
                    following = None
                node = following

    def run_watched(self, node: Node, gradients: list[Any]) -> Sequence[Any]:
        """Runs one node where somebody looks on, or not all gradients are asked for."""
        if node.hooks is not None:
            token = CURRENT_TASK.set(self)
            try:
                node.hooks.prepare(gradients)
            finally:
                CURRENT_TASK.reset(token)
        for number, place in self.captures.get(node, ()):
            self.captured[place] = resolved(gradients[number])
        wanted = None
        if self.needed is not None:
            if node not in self.needed:
                return [None] * len(node.next_edges)
            wanted = [self.is_wanted(edge) for edge in node.next_edges]
            if all(edge is None or is_wanted for edge, is_wanted in zip(node.next_edges, wanted, strict=True)):
                wanted = None
        if wanted is None and node.hooks is None:
            results = node.apply(gradients)
        else:
            results = (evaluate if node.stack_trace is None else explained)(node, gradients, wanted)
        if not self.retain_graph:
            node.release()
        return results

    def is_wanted(self, edge: Edge) -> bool:
        return edge is not None and (edge[0] in self.needed or edge[0] in self.captures)  # type: ignore[operator]

    def will_run(self, node: Node) -> bool:
        """Whether gradients reach `node` in this pass."""
        if self.needed is None:
            return node in self.waiting
        return node in self.needed or node in self.captures


def added(buffer: list[Any] | None, node: Node, number: int, gradient: Any) -> list[Any]:
    """What has come for `node` so far, with a gradient of its output `number` added."""
    if buffer is None:
        buffer = [None] * len(node.outputs)
    if buffer[number] is None:
        buffer[number] = gradient
    elif gradient is not None:
        add_to(buffer, number, gradient)
    return buffer


def add_to(buffer: list[Any], number: int, gradient: Any) -> None:
    """Adds to a gradient in a buffer: in place, if nobody else can see that one.

    See accumulate.py, Note [Gradients that nobody else holds].
    """
    if (
        not STATE.get().grad_enabled
        and held_by_list_alone(buffer, number)
        and buffer[number]._dtype is gradient._dtype
        and is_contiguous(buffer[number]._shape, buffer[number]._stride)
    ):
        buffer[number] += gradient
    else:
        buffer[number] = buffer[number] + gradient


def dependencies(roots: Sequence[Target]) -> dict[Node, int]:
    """For each node that can be reached, the number of edges that lead to it, the roots' own included."""
    count: dict[Node, int] = {}
    found: list[Node] = []
    for root in roots:
        if root[0] in count:
            count[root[0]] += 1
        else:
            count[root[0]] = 1
            found.append(root[0])
    for node in found:  # which grows meanwhile
        edges = node.next_edges
        for edge in edges:
            if edge is not None:
                target = edge[0]
                if target in count:
                    count[target] += 1
                else:
                    count[target] = 1
                    found.append(target)
        if not edges and type(node) is AccumulateGrad:
            node.look_again()
    return count


def callers(nodes: Iterable[Node], targets: Sequence[Target]) -> set[Node]:
    """Those among the nodes from which some target can be reached by one edge or more."""
    callers_of: dict[Node, list[Node]] = {}
    for node in nodes:
        for edge in node.next_edges:
            if edge is not None:
                callers_of.setdefault(edge[0], []).append(node)
    found: set[Node] = set()
    todo = [target[0] for target in targets]
    while todo:
        for caller in callers_of.get(todo.pop(), ()):
            if caller not in found:
                found.add(caller)
                todo.append(caller)
    return found
