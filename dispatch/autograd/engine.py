"""The engine: sends gradients through the graph, from the roots to the leaves.

A node runs when all gradients that will reach it have come; among those that are ready, the one whose call was made
last. (So a node's hooks see what PyTorch's would, in the same order.) Gradients that meet are added. Nothing here
recurses: a chain of a million nodes is a loop of a million steps.

    1. find the nodes that can be reached, and count the edges that lead to those with more than one;
    2. if only some gradients are asked for, mark the nodes on the way to them;
    3. put the roots' gradients in their buffers; then take ready nodes from the heap until none is left.

Everything is local to one call, so that backward may run inside backward and in several threads at once.

Read next: api.py.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from heapq import heappop, heappush
from threading import get_ident
from typing import Any

from redispatch.dispatch import STATE
from redispatch.dispatch.inspection.trace import TASK
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.geometry import is_contiguous

from .accumulate import AccumulateGrad, held_by_list_alone
from .anomaly_mode import ANOMALY, explained
from .formulas import resolved
from .hooks import WATCH
from .node import Edge, Node, evaluate, fit, fits
from .saved import PACKING

Target = tuple[Node, int] | tuple[Node, int, Tensor]

next_tick = itertools.count().__next__  # among equals, the first to become ready goes first

# The passes that run now, in all threads. Every DEEP-th has a stack of its own.
ACTIVE: list[Task] = []
DEEP = 30
next_number = itertools.count().__next__


def current_task() -> Task | None:
    """The innermost backward pass that runs in this thread, or None."""
    here = get_ident()
    return next((task for task in reversed(ACTIVE) if task.thread == here), None)


TASK.fill(current_task)


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
        task.aim(roots, targets, accumulate)
    token = STATE.set(STATE.get().with_grad(bool(create_graph)))
    ACTIVE.append(task)
    try:
        task.start(roots, gradients)
        if len(ACTIVE) % DEEP:
            task.run()
        else:
            on_another_stack(task.run)
    finally:
        ACTIVE.remove(task)
        STATE.reset(token)
        for finish in task.at_end:
            finish()
    if task.callbacks:
        call_back(task)
    return task.captured


def call_back(task: Task) -> None:
    """Calls what `queue_callback` was given during a pass, and what is given meanwhile. The pass counts as running."""
    ACTIVE.append(task)
    task.thread = get_ident()
    try:
        for callback in task.callbacks:  # which may grow meanwhile
            callback()
    finally:
        ACTIVE.remove(task)


def on_another_stack(function: Callable[[], None]) -> None:
    """Calls a function in a thread of its own, and waits for it: passes inside passes would exhaust Python's stack."""
    problems: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as problem:  # it is raised where it is waited for
            problems.append(problem)

    thread = threading.Thread(target=copy_context().run, args=(run,), name="backward")
    thread.start()
    thread.join()
    if problems:
        raise problems[0]


class Task:
    """One backward pass."""

    __slots__ = (
        *("reached", "waiting", "ready", "retain_graph", "needed", "prunes", "captures", "captured", "at_end"),
        *("roots", "callbacks", "number", "thread"),
    )
    roots: Sequence[Target]
    reached: set[Node]  # the nodes that can be reached
    # for those that get more than one gradient, or have several outputs: how many are to come, and then what has come
    waiting: dict[Node, Any]
    ready: list[tuple[int, int, Node, list[Any]]]  # a heap of the nodes to which all have come
    needed: set[Node] | None  # the nodes that must run; None for all
    prunes: bool  # whether some of the nodes, or what they would give, are left out
    captures: dict[Node, list[tuple[int, int]]]  # node -> (its output, place among the targets)
    captured: list[Any]  # the gradients of the targets
    at_end: list[Callable[[], Any]]  # called when the pass is over, however it ends
    callbacks: list[Callable[[], Any]]  # called when it has succeeded
    number: int  # counted from the first pass of the process
    thread: int | None  # in which it runs, once it does

    def __init__(self, roots: Sequence[Target], retain_graph: bool) -> None:
        self.roots = roots
        self.reached, self.waiting = dependencies(roots)
        self.ready = []
        self.retain_graph = retain_graph
        self.needed = None
        self.prunes = WATCH.on and ANOMALY.get()[0]  # then each node is watched
        self.captures = {}
        self.captured = []
        self.at_end, self.callbacks = [], []
        self.number, self.thread = next_number(), None

    def aim(self, roots: Sequence[Target], targets: Sequence[Target], accumulate: bool) -> None:
        """Restricts the pass to what leads to these targets, whose gradients are captured."""
        self.captured = [None] * len(targets)
        for place, target in enumerate(targets):
            self.captures.setdefault(target[0], []).append((target[1], place))
        self.needed = callers(self.reached, targets)
        ends = {node for node in self.captures if isinstance(node, AccumulateGrad)}
        if accumulate:
            self.needed |= self.captures.keys()
        passes_by = len(ends) == len(self.captures) and all(root[0] not in ends for root in roots)
        self.prunes |= not (passes_by and self.reached <= self.needed | ends)

    def start(self, roots: Sequence[Target], gradients: Sequence[Any]) -> None:
        """Gives the roots their gradients."""
        for index, root in enumerate(roots):
            node = root[0]
            buffer = self.received(node, root[1], gradients[index]) if node in self.waiting else [gradients[index]]
            if buffer is not None:
                heappush(self.ready, (-node.sequence, next_tick(), node, buffer))

    def received(self, node: Node, number: int, gradient: Any) -> list[Any] | None:
        """Adds a gradient of output `number` of `node`; returns all its gradients once complete, None if more are to
        come.

        Only for nodes in `waiting`: any other gets this one alone.
        """
        found = self.waiting[node]
        if type(found) is int:
            found = self.waiting[node] = Received(found, [None] * len(node.outputs))
        found.left -= 1
        if gradient is not None:
            if found.is_sum:
                found.gradients[0] += gradient
            else:
                found.add(number, gradient)
        if found.left:
            return None
        del self.waiting[node]  # what has come is freed with the node
        return found.gradients

    def run(self) -> None:
        """Runs what is ready, until nothing is.

        Most nodes make one other ready, and leaves; these go first, and neither has to pass through the heap.
        """
        self.thread = get_ident()
        ready, waiting = self.ready, self.waiting
        partial, release = self.prunes, not self.retain_graph
        leaves: list[tuple[Node, list[Any]]] = []
        node: Any
        gradients: Any
        results: Any
        buffer: Any
        while ready:
            _, _, node, gradients = heappop(ready)
            while node is not None:
                if partial or node.hooks is not None:
                    results = self.run_watched(node, gradients)
                elif release:
                    results = node.spend(gradients)
                else:
                    results = node.apply(gradients)
                following = gradients = None  # what is held for no reason cannot be overwritten by who gets it next
                for edge, gradient in zip(node.next_edges, results):  # noqa: B905  (`apply` gives one for each edge)
                    if edge is None or (partial and not self.is_wanted(edge)):
                        continue
                    target = edge[0]
                    if gradient is not None and (
                        type(gradient) is not Tensor or gradient._interned is not target.outputs[edge[1]]
                    ):
                        gradient = fit_for_edge(node, edge, gradient)
                    buffer = [gradient] if target not in waiting else self.received(target, edge[1], gradient)
                    if buffer is None:
                        continue
                    if type(target) is AccumulateGrad:
                        leaves.append((target, buffer))
                    elif following is None and not ready:
                        following, gradients = target, buffer
                    else:
                        heappush(ready, (-target.sequence, next_tick(), target, buffer))
                results = gradient = buffer = None
                if leaves:
                    self.run_leaves(leaves)
                if ready and following is not None:
                    heappush(ready, (-following.sequence, next_tick(), following, gradients))
                    following = None
                node = following

    def run_leaves(self, leaves: list[tuple[Node, list[Any]]]) -> None:
        """Adds the gradients of leaves to theirs; the list is empty then."""
        target: Any
        buffer: Any
        for target, buffer in leaves:
            if target.hooks is not None or target in self.captures:
                self.run_watched(target, buffer)
            else:
                target.apply(buffer)
        leaves.clear()

    def run_watched(self, node: Node, gradients: list[Any]) -> Sequence[Any]:
        """Runs one node where somebody looks on, or not all gradients are asked for."""
        if node.hooks is not None:
            node.hooks.prepare(gradients)
        for number, place in self.captures.get(node, ()):
            self.captured[place] = resolved(gradients[number])
        wanted = None
        if self.needed is not None:
            if node not in self.needed:
                return [None] * len(node.next_edges)
            wanted = [self.is_wanted(edge) for edge in node.next_edges]
            if all(edge is None or is_wanted for edge, is_wanted in zip(node.next_edges, wanted, strict=True)):
                wanted = None
        watched = node.stack_trace is not None or (WATCH.on and ANOMALY.get()[0])
        if wanted is None and node.hooks is None and not watched:
            results = node.apply(gradients)
        else:
            results = (explained if watched else evaluate)(node, gradients, wanted)
        if not self.retain_graph:
            node.release()
        return results

    def is_wanted(self, edge: Edge) -> bool:
        return edge is not None and (self.needed is None or edge[0] in self.needed or edge[0] in self.captures)

    def will_run(self, node: Node) -> bool:
        """Whether gradients reach `node` in this pass."""
        if self.needed is None:
            return node in self.reached
        return node in self.needed or node in self.captures

    def order(self) -> list[Node]:
        """The nodes that run, or whose gradient is asked for, in turn."""
        waiting = dependencies(self.roots)[1]
        ready: list[tuple[int, int, Node]] = []
        found: list[Node] = []
        edges: Iterable[Edge] = self.roots
        while True:
            for edge in edges:
                if edge is None or not self.will_run(edge[0]):
                    continue
                left = waiting.get(edge[0], 1) - 1
                waiting[edge[0]] = left
                if not left:
                    heappush(ready, (-edge[0].sequence, next_tick(), edge[0]))
            if not ready:
                return found
            found.append(heappop(ready)[2])
            edges = found[-1].next_edges


class Received:
    """The gradients that have come for a node, one for each output, or None; and how many are still to come."""

    __slots__ = ("left", "gradients", "is_sum")
    is_sum: bool  # whether the only one was added up here, so that nobody else has it

    def __init__(self, left: int, gradients: list[Any]) -> None:
        self.left, self.gradients, self.is_sum = left, gradients, False

    def add(self, number: int, gradient: Any) -> None:
        """Adds a gradient of the output `number`: in place, if nobody else can see what came before.

        See accumulate.py, Note [Gradients that nobody else holds].
        """
        gradients = self.gradients
        if gradients[number] is None:
            gradients[number] = gradient
            return
        state = STATE.get()
        alone = not (state.grad_enabled or state.modes or state.levels)
        if (
            alone
            and held_by_list_alone(gradients, number)
            and gradients[number]._dtype is gradient._dtype
            and is_contiguous(gradients[number]._shape, gradients[number]._stride)
        ):
            gradients[number] += gradient
        else:
            gradients[number] = gradients[number] + gradient
        self.is_sum = alone and len(gradients) == 1 and type(gradients[0]) is Tensor


def fit_for_edge(node: Node, edge: Any, gradient: Any) -> Any:
    """A gradient that `node` gives, as the node behind the edge needs it. Errors: as `fit`."""
    output = edge[0].outputs[edge[1]]
    if isinstance(gradient, Tensor) and fits(gradient, output):
        return gradient
    index = next(index for index, one in enumerate(node.next_edges) if one is edge)
    return fit(node, index, gradient, output)


def dependencies(roots: Sequence[Target]) -> tuple[set[Node], dict[Node, Any]]:
    """The nodes that can be reached; and for those that wait, the number of gradients that they get.

    A node waits if more than one edge leads to it, the roots' own included, or if it has several outputs.
    """
    found: list[Node] = []
    reached: set[Node] = set()
    several: dict[Node, Any] = {}
    for root in roots:
        target = root[0]
        if target not in reached:
            reached.add(target)
            found.append(target)
            if len(target.outputs) != 1:
                several[target] = 1
        else:
            several[target] = several.get(target, 1) + 1
    for node in found:  # which grows meanwhile
        edges = node.next_edges
        for edge in edges:
            if edge is not None:
                target = edge[0]
                if target not in reached:
                    reached.add(target)
                    found.append(target)
                    if len(target.outputs) != 1:
                        several[target] = 1
                else:
                    several[target] = several.get(target, 1) + 1
        if not edges and type(node) is AccumulateGrad:
            node.look_again()
    return reached, several


def callers(nodes: Iterable[Node], targets: Sequence[Target]) -> set[Node]:
    """Returns the nodes from which some target can be reached by one edge or more."""
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


# The backward pass that runs now, for those that have to tell one pass from another (`utils.checkpoint`) --------------
#
# To say so takes as long as a small node does; so it is said only in a process in which somebody asked (hooks.py).


class BackwardPass:
    """One backward pass. `partial`: it goes only where some gradients were asked for."""

    __slots__ = ("partial", "__weakref__")

    def __init__(self, partial: bool) -> None:
        self.partial = partial


CURRENT_PASS: ContextVar[BackwardPass | None] = ContextVar("current backward pass", default=None)


def run_announced(roots: Sequence[Target], gradients: Sequence[Any], **options: Any) -> list[Any]:
    """`run_backward`, during which CURRENT_PASS says that it runs; then the hooks are those that were before."""
    packing = PACKING.set(PACKING.get())
    token = CURRENT_PASS.set(BackwardPass(partial=bool(options.get("targets"))))
    try:
        return run_backward(roots, gradients, **options)
    finally:
        CURRENT_PASS.reset(token)
        PACKING.reset(packing)
