"""Program: the nodes that results need, in order, without their values; found again by its key, which is its hash.

Two traces are one program where the same operators were called with the same constants on tensors of the same metadata,
connected in the same way, and the same results are wanted. So the third step of a training loop finds the program of
the second, and nothing is compiled. `compile` may make a function of a program; without one, operators run one by one.

A function is made for the program's numbers (recorder.py, Note [Numbers that change]). A number that is another one the
next time is *free* from then on: an input. So is at once one that its operator did not have in earlier programs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import md5
from typing import Any

from redispatch.dispatch import call
from redispatch.dispatch.pytree import tree_flatten
from redispatch.dispatch.tensor import CPU

from .recorder import Call, Node, filled

Root = tuple[Node, int]  # a node, and which of its results

LIMIT = 1024  # programs that are known; then the oldest is dropped


class Trace:
    """The nodes that results need, in order, the values that are there, and how they are connected.

    nodes: that have to run, in order. numbers: theirs. inputs: results that are there. edges: of each node, where its
    tensors come from: the number of a node, or below zero that of an input. key: equal for traces of one program.
    """

    def __init__(self, roots: list[Root]) -> None:
        self.roots = roots
        self.nodes = nodes_in_order(roots)
        at = {node: number for number, node in enumerate(self.nodes)}
        inputs: dict[Root, int] = {}
        self.edges: list[tuple[int, ...]] = []
        key: list[Any] = []

        def number_of(result: Root) -> int:
            if is_there(*result):
                return -1 - inputs.setdefault(result, len(inputs))
            return at[result[0]]

        for node in self.nodes:
            assert node.call is not None
            found = []
            for one, place in zip(node.inputs, node.call.places, strict=True):
                found.append(number_of((one, place)))
            self.edges.append(edge := tuple(found))
            key.append(node.call)
            key += edge
        self.outputs = [(number_of(root), root[1]) for root in roots]
        self.inputs = list(inputs)
        self.numbers = tuple(number for node in self.nodes for number in node.numbers)
        self.key = (*key, *self.outputs)

    def hash(self) -> bytes:
        """The key as 16 bytes."""
        words = [f"{one.op}{id(one)}" if isinstance(one, Call) else str(one) for one in self.key]
        return md5("\n".join(words).encode()).digest()

    def values(self) -> list[Any]:
        """The tensors that the program is given."""
        return [node.results[place] for node, place in self.inputs if node.results is not None]


def nodes_in_order(roots: list[Root]) -> list[Node]:
    """The nodes that have to run, each behind those that it takes."""
    order: list[Node] = []
    seen: set[Node] = set()
    path = [(node, False) for node, place in reversed(roots) if not is_there(node, place)]
    while path:
        node, done = path.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            path.append((node, True))
            assert node.call is not None
            for one, place in zip(reversed(node.inputs), reversed(node.call.places), strict=True):
                if not is_there(one, place) and one not in seen:
                    path.append((one, False))
    return order


def is_there(node: Node, place: int) -> bool:
    """Whether a result has been computed."""
    return node.results is not None and node.results[place] is not None


class Program:
    """See above. calls: what runs, in order; edges, outputs: as in the trace. widths: how many numbers each call takes.

    function: what was made of it, if any: for `numbers`, but those at `free` places, which follow its inputs.
    """

    def __init__(self, trace: Trace) -> None:
        self.calls: list[Call] = [node.call for node in trace.nodes if node.call is not None]
        self.edges, self.outputs, self.width = trace.edges, trace.outputs, len(trace.inputs)
        self.widths = [len(node.numbers) for node in trace.nodes]
        self.numbers, self.free = trace.numbers, tuple[int, ...]()
        self.function: Callable[..., Any] | None = None
        last = {number: step for step, edge in enumerate(self.edges) for number in edge if number >= 0}
        kept = {number for number, _ in self.outputs}
        self.gone: list[list[int]] = [[] for _ in self.calls]  # by step: whose results nobody needs any more
        for number, step in last.items():
            if number not in kept:
                self.gone[step].append(number)

    def changed(self, numbers: Any) -> list[int]:
        """The places of numbers for which the function was not made."""
        pairs = enumerate(zip(numbers, self.numbers, strict=True))
        return [place for place, (now, then) in pairs if now != then and place not in self.free]

    def unlike_the_past(self) -> tuple[int, ...]:
        """The places of numbers that their call did not have in earlier programs, but others."""
        takers = [one for one, width in zip(self.calls, self.widths, strict=True) for _ in range(width)]
        pairs = list(zip(takers, self.numbers, strict=True))
        found = tuple(place for place, (one, number) in enumerate(pairs) if one.past and number not in one.past)
        for one, number in pairs:
            one.past.add(number)
        return found

    def run(self, given: list[Any], numbers: Any) -> list[Any]:
        """Returns the outputs for these inputs and numbers."""
        if self.function is not None:
            return list(self.function(*given, *[numbers[place] for place in self.free]))
        results: list[Any] = []
        at = 0
        for call_, edge, width, gone in zip(self.calls, self.edges, self.widths, self.gone, strict=True):
            results.append(run_call(call_, edge, results, given, numbers[at : at + width]))
            at += width
            for number in gone:
                results[number] = None
        return [results[number][place] if number >= 0 else given[-1 - number] for number, place in self.outputs]


def run_call(one: Call, edge: tuple[int, ...], results: list[Any], given: list[Any], numbers: Any) -> list[Any]:
    """The results of a call on the CPU, as a list."""
    tensors = [
        results[number][place] if number >= 0 else given[-1 - number]
        for number, place in zip(edge, one.places, strict=True)
    ]
    result = call(one.op, filled(one.template, tensors, CPU, numbers))
    return [result] if one.spec is None else tree_flatten(result)[0]


class Programs:
    """The programs that are known. compile: makes a function of a program and inputs, or None."""

    def __init__(self) -> None:
        self.known: OrderedDict[Any, Program] = OrderedDict()
        self.by_hash: dict[bytes, Program] = {}  # those of which somebody wanted the hash
        self.compile: Callable[[Program, list[Any]], Callable[..., Any] | None] | None = None
        self.show: Callable[[Program], str] = repr  # a program as the compiler sees it

    def find(self, trace: Trace, counts: Any) -> Program:
        """The program of a trace; a new one is made, and compiled."""
        found = self.known.get(trace.key)
        if found is None:
            found = self.known[trace.key] = Program(trace)
            found.free = found.unlike_the_past()
            if len(self.known) > LIMIT:
                self.known.popitem(last=False)
        else:
            self.known.move_to_end(trace.key)
            changed = found.changed(trace.numbers) if found.function is not None else []
            if not changed:
                counts["CachedCompile"] += 1
                return found
            found.free = tuple(sorted((*found.free, *changed)))
        counts["UncachedCompile"] += 1
        if self.compile is not None:
            found.function = self.compile(found, trace.values())
        return found

    def run(self, recorder: Any, roots: list[Root]) -> None:
        """Computes results of nodes; a node whose values make an error keeps it."""
        trace = Trace(roots)
        recorder.counts["SyncedTensorsWithIR"] += len(roots)
        recorder.sizes[len(trace.nodes)] += 1
        given = trace.values()
        try:
            outputs = self.find(trace, recorder.counts).run(given, trace.numbers)
        except Exception:
            outputs = run_apart(trace, given)  # to find the nodes that fail, and have the others
        for (node, place), value in zip(roots, outputs, strict=True):
            if value is None:
                continue
            if node.results is None:
                assert node.call is not None
                node.results = [None] * len(node.call.outputs)
            node.results[place] = value
        for node, _ in roots:
            if all(x.is_there() for x in node.living()):
                node.inputs = ()  # they need not live any longer


def run_apart(trace: Trace, given: list[Any]) -> list[Any]:
    """The outputs, None for those that cannot be had: a node that fails, or takes from one that did, has its error."""
    results: list[Any] = []
    for node, edge in zip(trace.nodes, trace.edges, strict=True):
        assert node.call is not None
        node.error = next(
            (trace.nodes[number].error for number in edge if number >= 0 and trace.nodes[number].error), None
        )
        found = None
        if node.error is None:
            try:
                found = run_call(node.call, edge, results, given, node.numbers)
            except Exception as problem:
                node.error = problem
        results.append(found)
    return [results[number] and results[number][place] for number, place in trace.outputs]
