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
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from heapq import heappop, heappush
from typing import Any

from redispatch.dispatch import STATE, within
from redispatch.kernels import is_contiguous

from .accumulate import AccumulateGrad, held_by_list_alone
from .anomaly import explained
from .node import Edge, Node, evaluate

Targets = Sequence[tuple[Node, int]]

# The innermost backward pass that is running here, for hooks that need to know
CURRENT_TASK: ContextVar[Task | None] = ContextVar("backward pass", default=None)


def run_backward(
    roots: Targets,
    gradients: Sequence[Any],
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
    targets: Targets = (),
    accumulate: bool = False,
) -> list[Any]:
    """Runs backward from `roots`, whose gradients are given, and returns those of `targets` (None: not reached).

    Without targets every leaf that is reached accumulates; with `accumulate`, those among the targets do.
    """
    task = Task(roots, retain_graph, targets, accumulate)
    token = CURRENT_TASK.set(task)
    try:
        with within(STATE.get().replace(grad_enabled=create_graph)):
            task.deliver(roots, list(gradients))
            task.run()
    finally:
        CURRENT_TASK.reset(token)
        for finish in task.at_end:
            finish()
    return task.captured


class Task:
    """One backward pass."""

    def __init__(self, roots: Targets, retain_graph: bool, targets: Targets, accumulate: bool) -> None:
        self.retain_graph = retain_graph
        self.captured: list[Any] = [None] * len(targets)
        self.captures: dict[Node, list[tuple[int, int]]] = {}  # node -> (its output, place among the targets)
        for place, (node, number) in enumerate(targets):
            self.captures.setdefault(node, []).append((number, place))
        self.needed: set[Node] | None = None  # the nodes that must run; None for all
        if targets:
            self.waiting, self.needed = dependencies_towards(roots, targets)
            if accumulate:
                self.needed |= {node for node in self.captures if isinstance(node, AccumulateGrad)}
        else:
            self.waiting = dependencies(roots)
        self.buffers: dict[Node, list[Any]] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.at_end: list[Callable[[], Any]] = []  # called when the pass is over, however it ends
        self.tick = itertools.count().__next__  # the first to become ready goes first among equals

    def run(self) -> None:
        ready, buffers, captures, retain_graph = self.ready, self.buffers, self.captures, self.retain_graph
        while ready:
            node = heappop(ready)[2]
            gradients = buffers.pop(node)
            if node.hooks is not None:
                gradients = node.hooks.prepare(gradients)
            if captures and node in captures:
                for number, place in captures[node]:
                    self.captured[place] = gradients[number]
            if self.needed is None:
                wanted = None
            elif node in self.needed:
                wanted = [self.is_wanted(edge) for edge in node.next_edges]
            else:
                continue
            if node.stack_trace is None:
                results = evaluate(node, gradients, wanted)
            else:
                results = explained(node, gradients, wanted)
            if not retain_graph:
                node.release()
            del gradients  # whatever is still held could not be overwritten by those who get it next
            self.deliver(node.next_edges, results)

    def is_wanted(self, edge: Edge) -> bool:
        return edge is not None and (edge[0] in self.needed or edge[0] in self.captures)  # type: ignore[operator]

    def will_run(self, node: Node) -> bool:
        """Whether gradients reach `node` in this pass."""
        if self.needed is None:
            return node in self.waiting
        return node in self.needed or node in self.captures

    def deliver(self, edges: Sequence[Edge], gradients: list[Any]) -> None:
        """Puts each gradient where its edge leads, and a node that waits for no further one on the heap."""
        buffers, waiting, partial = self.buffers, self.waiting, self.needed is not None
        for index, edge in enumerate(edges):
            if edge is None or (partial and not self.is_wanted(edge)):
                continue
            node, number = edge
            buffer = buffers.get(node)
            if buffer is None:
                buffer = buffers[node] = [None] * len(node.outputs)
            if gradients[index] is not None:
                if buffer[number] is None:
                    buffer[number] = gradients[index]
                else:
                    add_to(buffer, number, gradients[index])
                gradients[index] = None
            waiting[node] -= 1
            if not waiting[node]:
                heappush(self.ready, (-node.sequence, self.tick(), node))


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


def dependencies(roots: Targets) -> dict[Node, int]:
    """For each node that can be reached, the number of edges that lead to it, the roots' own included."""
    count: dict[Node, int] = {}
    todo: list[Node] = []
    for node, _ in roots:
        if node in count:
            count[node] += 1
        else:
            count[node] = 1
            todo.append(node)
    while todo:
        for edge in todo.pop().next_edges:
            if edge is not None:
                node = edge[0]
                if node in count:
                    count[node] += 1
                else:
                    count[node] = 1
                    todo.append(node)
    return count


def dependencies_towards(roots: Targets, targets: Targets) -> tuple[dict[Node, int], set[Node]]:
    """The same, and the nodes from which some target can be reached by one edge or more."""
    count = dependencies(roots)
    callers: dict[Node, list[Node]] = {}
    for node in count:
        for edge in node.next_edges:
            if edge is not None:
                callers.setdefault(edge[0], []).append(node)
    needed: set[Node] = set()
    todo = [node for node, _ in targets]
    while todo:
        for caller in callers.get(todo.pop(), ()):
            if caller not in needed:
                needed.add(caller)
                todo.append(caller)
    return count, needed
