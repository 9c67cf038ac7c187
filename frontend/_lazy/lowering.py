"""From what was recorded to loops: a program as a graph, and the graph as a function (`_inductor`)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from redispatch.dispatch.pytree import tree_unflatten
from redispatch.dispatch.schema.convert import default_of, is_default
from redispatch.dispatch.tensor import CPU
from redispatch.fx.graph import Graph
from redispatch.fx.graph_module import GraphModule
from redispatch.fx.node import Node
from redispatch.kernels.lazy import Program, recorder
from redispatch.kernels.lazy.recorder import Call, filled

FEW, MANY = 3, 300  # calls: fewer do not pay for a function, more take too long to make one of


def graph_of(program: Program) -> Graph:
    """The graph of a program: its inputs are placeholders, its calls nodes."""
    graph = Graph()
    inputs = [graph.placeholder(f"p{number}") for number in range(program.width)]
    free = {place: graph.placeholder(f"n{place}") for place in program.free}
    numbers = iter([free.get(place, number) for place, number in enumerate(program.numbers)])
    calls: list[Node] = []
    parts: dict[tuple[int, int], Node] = {}

    def result(number: int, place: int) -> Node:
        if number < 0:
            return inputs[-1 - number]
        if program.calls[number].spec is None:
            return calls[number]
        if (number, place) not in parts:
            parts[number, place] = graph.call_function(operator.getitem, (calls[number], place))
        return parts[number, place]

    for call, edge, width in zip(program.calls, program.edges, program.widths, strict=True):
        given = [result(number, place) for number, place in zip(edge, call.places, strict=True)]
        calls.append(node_of(graph, call, given, [next(numbers) for _ in range(width)]))
    graph.output(tuple(result(number, place) for number, place in program.outputs))
    return graph


def node_of(graph: Graph, call: Call, given: list[Node], numbers: list[Any]) -> Node:
    """The node of a call, arguments that have their defaults left out at the end."""
    stack = filled(call.template, given, CPU, numbers)
    arguments = call.op.schema.arguments
    positional = [value for value, argument in zip(stack, arguments, strict=True) if not argument.kwarg_only]
    while positional and is_default(positional[-1], default_of(arguments[len(positional) - 1])):
        positional.pop()
    named = {
        argument.name: value
        for value, argument in zip(stack, arguments, strict=True)
        if argument.kwarg_only and not is_default(value, default_of(argument))
    }
    return graph.call_function(call.op, tuple(positional), named)


def is_flat(call: Call) -> bool:
    """Whether the results of a call are one tensor, or stand side by side."""
    width = len(call.outputs)
    return call.spec is None or list(tree_unflatten(list(range(width)), call.spec)) == list(range(width))


def compiled(program: Program, given: list[Any]) -> Callable[..., Any] | None:
    """A function that computes a program; None for one that is run as it stands."""
    if not FEW <= len(program.calls) <= MANY or not all(map(is_flat, program.calls)):
        return None
    from redispatch._inductor.compile_fx import compile_fx_inner  # which is needed by programs that run, alone

    examples = [*given, *[program.numbers[place] for place in program.free]]
    return compile_fx_inner(GraphModule({}, graph_of(program)), examples)


def lower() -> None:
    """Has programs be compiled from now on."""
    programs = recorder.programs
    programs.compile, programs.show = compiled, lambda program: str(graph_of(program))
