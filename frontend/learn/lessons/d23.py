"""D23, the engine: each node once, when all its gradients have come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redispatch as rd
from redispatch.dispatch import STATE, within
from redispatch.dispatch.autograd.accumulate import AccumulateGrad
from redispatch.dispatch.autograd.engine import run_backward
from redispatch.dispatch.autograd.node import Node, evaluate

from ..lesson import Lesson, Part, Wrong, on_library, same

TEXT = """
# Each node once, when all has come

A recorded call is a *node*. It has one gradient to get for each output of the call, and gives one for each input,
which goes on along an *edge*: to a node, and there to the output of some number. `backward` sends gradients from the
roots to the leaves. What could be simpler than a recursion?

    def send(node, gradient):
        for edge, result in zip(node.edges, node.run(gradient)):
            send(edge, result)

It computes the right gradients, and it is wrong. In `b = a + a; c = b + b; d = c + c ...` two edges lead from each
node to the one before: it runs once, twice, four times, and the last of 60 such *diamonds* 2**60 times. And a chain of
10,000 calls, which any recurrent network is, exhausts Python's stack. No value of a small example shows either; so
tests of engines count.

A gradient is linear: gradients that meet in a node can be added *first*, and the node run once, with the sum. For
that one has to know how many will come, before anything runs:

1. Find the nodes that the roots reach, without recursion, and count for each the edges from such nodes that lead to
   it. Two edges from one node are two. Edges from nodes that no root reaches do not count: nothing ever comes along
   them. A root's own gradient counts as well, for a root may lie behind another, and then has to wait too.
2. A node whose count has come down to zero is ready. A gradient that is `None`, a zero that nobody wrote down, has
   come, too; a node that gets nothing else still runs, and hands its Nones on.
3. Of the nodes that are ready, the one of the latest call runs first: a heap. Hooks see this order, so it is part of
   the contract.

`autograd.grad(y, x)` asks for the gradients of some *targets* alone: then only nodes run from which a target can be
reached by at least one edge. A target itself runs only if another target lies behind it. Its gradient is caught when
all of it has come.

In the library this is `dispatch/autograd/engine.py`: the same three steps, with hooks, and sums that are made in place
where nobody looks.
"""

DEMO = """
import redispatch as rd
from redispatch.dispatch.autograd.node import evaluate

x = rd.ones(2, requires_grad=True)
runs = []

def recursive(roots, gradients, **options):
    def send(node, gradient):
        runs.append(node)
        for edge, result in zip(node.next_edges, evaluate(node, [gradient], None)):
            if edge is not None:
                send(edge[0], result)
    for (node, number), gradient in zip(roots, gradients):
        send(node, gradient)
    return []

def diamonds(count):
    y = x
    for _ in range(count):
        y = y + y
    return y.sum()

for count in (2, 4, 8):
    runs.clear()
    with rd.swap("autograd.engine", recursive):
        diamonds(count).backward()
    print(f"{count} diamonds: a recursion runs {len(runs)} nodes, of {count + 2} that there are")
"""

TEMPLATE = '''"""D23: each node once, when all has come. `python -m redispatch learn D23` has the text."""


def counts(roots, edges):
    """Returns how many gradients will come for each node that the roots reach: node -> int.

    A node is an int, the number of its call: later calls have higher ones. roots: list of (node, number of output).
    edges: node -> list with one (node, number of output) for each of its inputs, or None where nobody needs one.
    A graph may be 10,000 nodes deep.
    """
    raise NotImplementedError


def backward(roots, gradients, edges, outputs, run, add, targets):
    """Sends gradients from the roots to where no edges are; returns those of `targets`, in a list: None for one to
    which nothing came.

    gradients: one for each root; roots may name an output twice. outputs: node -> how many it has.
    run(node, given): runs a node, and gives the list of its results, one for each of its edges, some perhaps None.
    given: the list of its gradients, one for each of its outputs; None where none came. A node runs once at most.
    add(a, b): the sum of two gradients. Gradients are not to be looked into: they are tensors.
    targets: list of (node, number of output). Where it is empty, every node runs that the roots reach; otherwise only
    those from which an edge or more lead to a target. Of the nodes that are ready, the highest runs first.
    """
    raise NotImplementedError
'''

HINTS = (
    "Write `counts` first: a list of nodes to look at, and a set of those seen. Then `backward` is a loop that takes a "
    "ready node, runs it, and notes for each edge that one more gradient has come.",
    "The roots' gradients arrive in the same way as those along edges: one function `arrive(node, number, gradient)` "
    "serves both. heapq with -node gives the highest first.",
    "Targets: turn the edges round (node -> its callers) and walk from the targets against them. Nodes found so run; "
    "catch a target's gradients where its count comes down to zero, whether it runs then or not.",
)

DEEP = 10_000

# The graphs, and the library's engine on them -------------------------------------------------------------------------


class Gradient:
    """A gradient that the student's engine sends: it can be added by `add` alone."""

    def __init__(self, value: int) -> None:
        self.value = value


def result(edge: int, gives: int, values: list[int | None]) -> int | None:
    """The gradient that a node hands on along an edge: linear, another one for each edge, None for some."""
    there = [(i + edge + 1) * value for i, value in enumerate(values) if value is not None]
    return sum(there) if there and gives else None


class Step(Node):
    """A node of the library's that does what a drawn one does, and notes that it ran."""

    def __init__(self, name: int, edges: Any, outputs: int, gives: int, log: list[Any]) -> None:
        super().__init__(edges)
        self.outputs = (None,) * outputs
        self.name_, self.gives, self.log = name, gives, log

    def apply(self, gradients: list[Any], wanted: Any = None) -> list[Any]:
        values = [None if one is None else int(one) for one in gradients]
        self.log.append((self.name_, values))
        found = [result(place, self.gives >> place & 1, values) for place in range(len(self.next_edges))]
        return [None if one is None else rd.tensor(one) for one in found]


def by_library(roots: Any, given: Any, edges: Any, outputs: Any, gives: Any, targets: Any) -> tuple[Any, Any]:
    """(nodes that ran, with their gradients, in turn; gradients of the targets), by the library's engine."""
    log: list[Any] = []
    nodes: dict[int, Step] = {}
    for name in sorted(edges):
        behind = tuple(None if edge is None else (nodes[edge[0]], edge[1]) for edge in edges[name])
        nodes[name] = Step(name, behind, outputs[name], gives[name], log)
    aims = [(nodes[name], number) for name, number in targets]
    starts = [(nodes[name], number) for name, number in roots]
    found = run_backward(starts, [rd.tensor(one) for one in given], targets=aims)
    return log, [None if one is None else int(one) for one in found]


def by_student(student: Any, question: str, drawn: Any) -> tuple[Any, Any]:
    """The same by the student's: nodes are run here, and so counted."""
    roots, given, edges, outputs, gives, targets = drawn
    log: list[Any] = []

    def run(node: int, gradients: Any) -> list[Gradient | None]:
        if node not in edges or not isinstance(gradients, list) or len(gradients) != outputs[node]:
            raise Wrong(f"{question}\nyours   run({node}, {gradients})\nright   a node, a gradient for each output")
        if node in [one for one, _ in log]:
            order = [one for one, _ in log]
            raise Wrong(f"{question}\nyours   ran {order}, and then {node} again\nright   each node once")
        values = [None if one is None else one.value for one in gradients]
        log.append((node, values))
        found = [result(place, gives[node] >> place & 1, values) for place in range(len(edges[node]))]
        return [None if one is None else Gradient(one) for one in found]

    def add(a: Any, b: Any) -> Gradient:
        return Gradient(a.value + b.value)

    found = student("backward", roots, [Gradient(one) for one in given], edges, outputs, run, add, targets)
    there = isinstance(found, list) and all(one is None or isinstance(one, Gradient) for one in found)
    return log, [one and one.value for one in found] if there else found


def graphs(st: Any) -> Any:
    """Draws graphs whose edges lead a short way back, so that many meet: for each node (edges, outputs, gives)."""
    edge = st.one_of(st.none(), st.tuples(st.integers(1, 3), st.integers(0, 1)), st.tuples(st.just(1), st.just(0)))
    node = st.tuples(st.lists(edge, max_size=3), st.integers(1, 2), st.sampled_from([7, 7, 7, 5, 0]))
    return st.lists(node, min_size=2, max_size=8)


def drawn_graph(drawn: Any) -> tuple[Any, Any, Any]:
    """Its (edges, outputs, gives) by node."""
    outputs = {name: many for name, (_, many, _) in enumerate(drawn)}
    edges: dict[int, list[Any]] = {}
    for name, (steps, _, _) in enumerate(drawn):
        there = [None if one is None or one[0] > name else (name - one[0], one[1]) for one in steps]
        edges[name] = [None if one is None else (one[0], one[1] % outputs[one[0]]) for one in there]
    return edges, outputs, {name: gives for name, (_, _, gives) in enumerate(drawn)}


def places(st: Any, least: int) -> Any:
    return st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=least, max_size=3)


def place(drawn: Any, outputs: Any, latest: bool) -> list[Any]:
    """Outputs of nodes: counted from the last node, or from the first."""
    names = [(len(outputs) - 1 - one if latest else one) % len(outputs) for one, _ in drawn]
    return [(name, number % outputs[name]) for name, (_, number) in zip(names, drawn, strict=True)]


# The parts ------------------------------------------------------------------------------------------------------------


def check_counts(student: Any, draw: Any) -> None:
    st = draw.st

    def test(graph: Any, roots: Any) -> None:
        edges, outputs, _ = drawn_graph(graph)
        starts = place(roots, outputs, latest=True)
        reached = {name for name, _ in starts}
        for name in sorted(edges, reverse=True):  # an edge leads to an earlier node
            reached |= {edge[0] for edge in edges[name] if edge and name in reached}
        ends = [edge[0] for name in reached for edge in edges[name] if edge] + [name for name, _ in starts]
        right = {name: ends.count(name) for name in sorted(reached)}
        yours = student("counts", starts, edges)
        same(f"counts: roots {starts}, edges {edges}", dict(sorted(yours.items())), right)

    draw(test, examples=120, graph=graphs(st), roots=places(st, 1))
    deep = {name: [(name - 1, 0)] if name else [] for name in range(DEEP)}
    yours = student("counts", [(DEEP - 1, 0)], deep)
    if yours != dict.fromkeys(deep, 1):
        raise Wrong(f"counts: a chain of {DEEP} nodes\nyours   another count\nright   one for each")


def check_backward(student: Any, draw: Any, aimed: bool = False) -> None:
    """Compares which nodes run, in which order, with what, to the library's engine."""
    st = draw.st

    def test(graph: Any, roots: Any, targets: Any) -> None:
        edges, outputs, gives = drawn_graph(graph)
        starts = place(roots, outputs, latest=True)
        given = [10**i for i in range(len(starts))]
        drawn = (starts, given, edges, outputs, gives, place(targets, outputs, latest=False))
        question = f"backward: roots {starts}, edges {edges}, targets {drawn[-1]}"
        log, found = by_student(student, question, drawn)
        right, caught = by_library(*drawn)
        if log != right:
            raise Wrong(f"{question}\n{told(log, right, 'yours')}\n{told(right, log, 'right')}")
        same(f"{question}: the gradients of targets", found, caught)

    draw(test, graph=graphs(st), roots=places(st, 1), targets=places(st, 1) if aimed else st.just([]))


def told(log: list[Any], other: list[Any], whose: str) -> str:
    """A log in words: the order, and the gradients of the first node at which it differs from the other."""
    place = next((i for i, (one, two) in enumerate(zip(log, other, strict=False)) if one != two), len(other))
    first = f"; {log[place][0]} with {log[place][1]}" if place < len(log) else ""
    return f"{whose}   ran {[name for name, _ in log]}{first}"


def check_targets(student: Any, draw: Any) -> None:
    check_backward(student, draw, aimed=True)


def check_deep(student: Any, draw: Any) -> None:
    """Counts node runs where values show nothing: in diamonds one on the other, and in a deep chain."""
    for what, many, width in (("diamonds one on the other", 60, 2), ("calls in a chain", DEEP, 1)):
        edges = {name: [(name - 1, 0)] * width if name else [] for name in range(many + 1)}
        runs = dict.fromkeys(edges, 0)

        def run(node: int, given: Any, runs: Any = runs, what: str = what, many: int = many, width: int = width) -> Any:
            runs[node] += 1
            if runs[node] > 1:
                again = f"yours   node {node} runs again, after {sum(runs.values()) - 1} runs"
                raise Wrong(f"backward: {many} {what}\n{again}\nright   each node runs once")
            return [given[0]] * (width if node else 0)

        arguments = ([(many, 0)], [1], edges, dict.fromkeys(edges, 1), run, lambda a, b: a + b, [(0, 0)])
        found = student("backward", *arguments)
        same(f"backward: {many} {what}, the gradient of the first", found, [width**many])
        if sum(runs.values()) != many:
            said = f"yours   {sum(runs.values())} nodes ran\nright   {many}: all but the target"
            raise Wrong(f"backward: {many} {what}\n{said}")


@contextmanager
def installed(student: Any) -> Iterator[None]:
    """Has the library send its gradients by the student's engine."""

    def engine(
        roots: Any, gradients: Any, *, retain_graph: bool = False, create_graph: bool = False, targets: Any = (),
        accumulate: bool = False,
    ) -> list[Any]:  # fmt: skip
        found: dict[Node, None] = dict.fromkeys(root[0] for root in roots)
        todo = [*found]
        while todo:
            new = {edge[0]: None for edge in todo.pop().next_edges if edge and edge[0] not in found}
            found |= new
            todo += new
        nodes = sorted(found, key=lambda node: node.sequence)
        number = {node: place for place, node in enumerate(nodes)}
        edges = {number[node]: [edge and (number[edge[0]], edge[1]) for edge in node.next_edges] for node in nodes}
        there = [(number[target[0]], target[1]) for target in targets if target[0] in number]

        def run(name: int, given: Any) -> list[Any]:
            results = evaluate(nodes[name], given, None)
            if not retain_graph:
                nodes[name].release()
            return list(results)

        def add(a: Any, b: Any) -> Any:
            return a + b

        starts = [(number[root[0]], root[1]) for root in roots]
        outputs = {place: len(node.outputs) for place, node in enumerate(nodes)}
        with within(STATE.get().with_grad(create_graph)):
            caught = iter(student("backward", starts, list(gradients), edges, outputs, run, add, there))
            answer = [next(caught) if target[0] in number else None for target in targets]
            for target, gradient in zip(targets, answer, strict=True):
                if accumulate and isinstance(target[0], AccumulateGrad):
                    evaluate(target[0], [gradient], None)
        return answer

    with rd.swap("autograd.engine", engine):
        yield


def programs() -> list[Any]:
    """A training step, a gradient of a gradient, gradients of some inputs alone, and of examples, to compare."""
    rd.manual_seed(0)
    model = rd.nn.Sequential(rd.nn.Linear(3, 4), rd.nn.Tanh(), rd.nn.Linear(4, 2))
    optimizer = rd.optim.SGD(model.parameters(), lr=0.1)
    rd.nn.functional.cross_entropy(model(rd.randn(3, 3)), rd.tensor([0, 1, 1])).backward()
    optimizer.step()
    x, y = rd.randn(3, requires_grad=True), rd.randn(3, requires_grad=True)
    (first,) = rd.autograd.grad((x * y * x.sin()).sum(), (x,), create_graph=True)
    a, b = first.split([1, 2])
    (a.sum() * b.sum()).backward(inputs=[y])
    gradients = rd.func.vmap(rd.func.grad(lambda w, x: (w * x).sin().sum()), (None, 0))(rd.randn(3), rd.randn(2, 3))
    return [*(one.tolist() for one in model.parameters()), x.grad is None, y.grad.tolist(), gradients.tolist()]


def check_swapped(student: Any, draw: Any) -> None:
    """The library runs on the student's engine."""
    on_library(installed(student), programs, "a training step")


LESSON = Lesson(
    row="D23",
    title="Each node once, when all has come",
    reading=8,
    writing=60,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("counts", 2, check_counts),
        Part("backward", 4, check_backward),
        Part("targets", 3, check_targets),
        Part("diamonds and depth", 3, check_deep),
        Part("the library on it", 3, check_swapped, on_library=True),
    ),
    hints=HINTS,
    needs=("D01",),
    installed=installed,
)
