"""A compiled function: its graph, its schema, and how Python calls it.

Read next: classes.py.
"""

from __future__ import annotations

import copy
import io
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property
from typing import Any

from redispatch.dispatch.schema.schema import INT, NO_DEFAULT, Argument, FunctionSchema, Type

from . import code
from .graph import Block, Graph, Node, Value
from .interpreter import Program
from .types import AS_INTS, convert, shown, spoken

RECORDING: ContextVar[Any] = ContextVar("RECORDING", default=None)  # the recorder of the trace that is made, if any


class ScriptFunction:
    """A function of TorchScript. Fields: `name`, `qualified_name`, `graph`, `schema`; `code` is its source again.

    loose: whether its result may be a tuple, though its type is Tensor.
    """

    save: Any  # (file, _extra_files=None), of archive.py

    def __init__(
        self, name: str, graph: Graph, arguments: list[Argument], returns: Type, qualified_name: str = ""
    ) -> None:
        self.name = self.__name__ = name
        self.qualified_name = qualified_name or f"__torch__.{name}"
        self.graph = graph
        arguments = [replace(one, type=INT) if one.type in AS_INTS else one for one in arguments]
        self.schema = FunctionSchema(name, "", tuple(arguments), (Argument("", returns),))
        self.loose = bool(graph.results) and graph.results[0].loose
        self.wrapped: Any = None

    @cached_property
    def program(self) -> Program:
        return Program(self.graph, self.name)

    def run(self, *values: Any) -> Any:
        """Runs the graph on a value for each argument."""
        return self.program.run(list(values))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, recorder = self.bound(args, kwargs), RECORDING.get()
        return self.run(*values) if recorder is None else recorder.called(self, values)

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Returns the values of a call in order. RuntimeError, in PyTorch's words, where it does not fit."""
        arguments = self.schema.arguments
        said = self.declaration
        if len(args) > len(arguments):
            raise RuntimeError(
                f"{self.name}() expected at most {len(arguments)} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {said}"
            )
        left, values = dict(kwargs), []
        for place, argument in enumerate(arguments):
            if place < len(args):
                if argument.name in left:
                    raise RuntimeError(
                        f"{self.name}() specified twice: argument '{argument.name}'. Declaration: {said}"
                    )
                value = args[place]
            elif argument.name in left:
                value = left.pop(argument.name)
            elif argument.default is not NO_DEFAULT:
                values.append(copy.copy(argument.default))
                continue
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {said}"
                )
            try:
                values.append(convert(value, argument.type))
            except (TypeError, ValueError, OverflowError) as problem:
                raise RuntimeError(
                    f"{self.name}() Expected a value of type '{spoken(argument.type)}' for argument "
                    f"'{argument.name}' but "
                    f"instead found type '{type(value).__name__}'.\nPosition: {place}\nValue: "
                    f"{value!r}\nDeclaration: {said}\n"
                    f"Cast error details: {problem}"
                ) from None
        if left:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(left))}' for operator '{self.name}'. Schema: {said}"
            )
        return values

    @property
    def declaration(self) -> str:
        parts = [
            f"{shown(one.type)} {one.name}" + ("" if one.default is NO_DEFAULT else f"={one.default}")
            for one in self.schema.arguments
        ]
        return f"{self.name}({', '.join(parts)}) -> {shown(self.schema.returns[0].type)}"

    @property
    def code(self) -> str:
        return code.printed(self)

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        return code.printed(self), code.constants_of(self.graph)

    @property
    def inlined_graph(self) -> Graph:
        """The graph with the graphs of all functions that it calls in their places."""
        return inlined(self.graph)

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        return self.inlined_graph

    def save_to_buffer(self) -> bytes:
        file = io.BytesIO()
        self.save(file)
        return file.getvalue()

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction object {self.qualified_name}>"


def inlined(graph: Graph) -> Graph:
    """Returns a copy of a graph in which the functions that it calls stand themselves."""
    made = Graph()
    values = {param: made.add_param(param.type, param.name.partition(".")[0]) for param in graph.params}
    made.results = _copied(graph, made, values)
    return made


def _copied(source: Block, target: Block, values: dict[Value, Value]) -> list[Value]:
    """Appends copies of a block's nodes to another; returns its results there."""
    for node in source.nodes_:
        function: Any = node.attributes.get("value")
        if node._kind == "prim::Constant":
            values[node.output()] = target.graph.constant(node.attributes["value"], node.output().type, node.place)
            continue
        inputs = [values[one] for one in node.input_values]
        if node._kind in ("prim::CallFunction", "prim::CallMethod") and not function.graph.findNode("prim::ModuleCall"):
            results = _copied(function.graph, target, dict(zip(function.graph.params, inputs, strict=True)))
            values.update(zip(node.output_values, results, strict=True))
            continue
        made = Node(target.graph, node._kind, inputs, node.place, node.op, **node.attributes)
        target.nodes_.append(made)
        for block in node.blocks:
            inner = made.add_block()
            for param in block.params:
                values[param] = inner.add_param(param.type, param.name.partition(".")[0])
            inner.results = _copied(block, inner, values)
        for one in node.output_values:
            values[one] = made.add_output(one.type, one.name.partition(".")[0], one.loose)
    return [values[one] for one in source.results]
