"""The graph of a program: values that are set once, nodes that make them, and blocks of nodes inside of nodes.

    graph(%x : Tensor):
      %1 : int = prim::Constant[value=1]()
      %y : Tensor = aten::add(%x, %1)
      return (%y)

`prim::If` has two blocks, `prim::Loop` one, which takes the number of the turn and what it carries, and returns
whether to go on and what it carries. Constants stand at the graph's beginning, each once. Read next: interpreter.py.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any

from redispatch.dispatch.schema.schema import Type, _format_float
from redispatch.dispatch.tensor import Tensor, device

from .builtins import number_of
from .source import Place
from .types import AS_INTS, NONE, EnumType, of_value, shown


class Value:
    """A result of a node, or an argument of a block. loose: it may be a tuple, though it is called a Tensor."""

    def __init__(self, graph: Graph, kind: Type, node: Node | None = None, name: str = "", loose: bool = False) -> None:
        self.graph, self.type, self.node, self.loose = graph, kind, node, loose
        self.name = graph.unique(name)

    def debugName(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"%{self.name} : {shown(self.type)}"


class Node:
    """A step. op: of `aten::` and the like, which overload. attributes: what is known without running."""

    def __init__(
        self, graph: Graph, kind: str, inputs: Iterable[Value], place: Place | None, op: Any = None, **attributes: Any
    ) -> None:
        self.graph, self._kind, self.place, self.op, self.attributes = graph, kind, place, op, attributes
        self.input_values, self.output_values = list(inputs), list[Value]()
        self.blocks: list[Block] = []

    def kind(self) -> str:
        return self._kind

    def inputs(self) -> Iterator[Value]:
        return iter(self.input_values)

    def outputs(self) -> Iterator[Value]:
        return iter(self.output_values)

    def output(self) -> Value:
        (only,) = self.output_values
        return only

    def add_output(self, kind: Type, name: str = "", loose: bool = False) -> Value:
        value = Value(self.graph, kind, self, name, loose)
        self.output_values.append(value)
        return value

    def add_block(self) -> Block:
        block = Block(self.graph)
        self.blocks.append(block)
        return block

    def __str__(self) -> str:
        return "\n".join(_lines(self, 0))


class Block:
    """Nodes in order, with arguments and results."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.params: list[Value] = []
        self.nodes_: list[Node] = []
        self.results: list[Value] = []

    def nodes(self) -> list[Node]:
        return self.nodes_

    def add_param(self, kind: Type, name: str = "") -> Value:
        self.params.append(Value(self.graph, kind, None, name))
        return self.params[-1]


class Graph(Block):
    """The whole of a function."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.count = -1
        self.constants: dict[Any, Value] = {}
        super().__init__(self)

    def unique(self, name: str) -> str:
        """Returns a name that no value has: `x.1`, `x.2`, or a number."""
        if not name or name.isdigit():
            self.count += 1
            return str(self.count)
        self.names[name] = self.names.get(name, 0) + 1
        return f"{name}.{self.names[name]}"

    def constant(self, value: Any, kind: Type | None = None, place: Place | None = None) -> Value:
        """Returns the value of a constant, which stands once at the beginning."""
        kind = kind or of_value(value) or NONE
        key = (kind, type(value), id(value) if isinstance(value, Tensor) else repr(value))
        if key not in self.constants:
            node = Node(self, "prim::Constant", [], place, value=value)
            self.nodes_.insert(len(self.constants), node)
            self.constants[key] = node.add_output(kind)
        return self.constants[key]

    def inputs(self) -> Iterator[Value]:
        return iter(self.params)

    def outputs(self) -> Iterator[Value]:
        return iter(self.results)

    def all_nodes(self) -> Iterator[Node]:
        """Yields every node, those of inner blocks, too."""
        waiting: list[Block] = [self]
        while waiting:
            block = waiting.pop(0)
            for node in block.nodes_:
                yield node
                waiting += node.blocks

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        return [node for node in (self.all_nodes() if recurse else self.nodes_) if node._kind == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def __str__(self) -> str:
        head = ",\n      ".join(map(repr, self.params))
        lines = [line for node in self.nodes_ for line in _lines(node, 1)]
        return "\n".join([f"graph({head}):", *lines, f"  return ({_refs(self.results)})\n"])

    __repr__ = __str__


def _refs(values: Iterable[Value]) -> str:
    return ", ".join(f"%{value.name}" for value in values)


def _lines(node: Node, depth: int) -> Iterator[str]:
    indent = "  " * depth
    attributes = ", ".join(
        f"{name}={literal(value)}" for name, value in node.attributes.items() if is_shown(node, value)
    )
    head = ", ".join(map(repr, node.output_values))
    place = f" # {node.place}" if node.place is not None else ""
    listed = f"[{attributes}]" if attributes else ""
    yield f"{indent}{head} = {node._kind}{listed}({_refs(node.input_values)}){place}"
    for number, block in enumerate(node.blocks):
        yield f"{indent}  block{number}({', '.join(map(repr, block.params))}):"
        for inner in block.nodes_:
            yield from _lines(inner, depth + 2)
        yield f"{indent}    -> ({_refs(block.results)})"


def is_shown(node: Node, value: Any) -> bool:
    """Whether an attribute is printed: not None, nor the function that a call names already."""
    return value is not None and not hasattr(value, "graph")


def literal(value: Any) -> str:
    """Returns a constant as graphs show it."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, Tensor):
        return f"{{{value.item()}}}" if value.dim() == 0 else "<Tensor>"
    if isinstance(value, list | tuple):
        opening, closing = "[]" if isinstance(value, list) else "()"
        return f"{opening}{', '.join(map(literal, value))}{closing}"
    if isinstance(value, device):
        return f'"{value}"'
    if isinstance(value, Type):
        return f'"{shown(value)}"'
    if isinstance(value, enum.Enum):
        return f"{EnumType(type(value))}.{value.name}"
    kind = of_value(value)
    if kind in AS_INTS:
        return str(number_of(value))
    return str(getattr(value, "__name__", value))


def removed_dead(block: Block) -> None:
    """Takes out nodes without effects whose results nothing uses."""
    pure = ("prim::GetAttr", "prim::Constant", "prim::ListConstruct", "prim::TupleConstruct", "prim::TupleUnpack",
            "prim::Uninitialized", "prim::unchecked_cast", "prim::CreateFunction")  # fmt: skip
    used: set[Value] = set()

    def visit(inside: Block) -> None:
        used.update(inside.results)
        kept = []
        for node in reversed(inside.nodes_):
            if node._kind in pure and not used.intersection(node.output_values):
                continue
            for inner in reversed(node.blocks):
                visit(inner)
            used.update(node.input_values)
            kept.append(node)
        inside.nodes_ = kept[::-1]

    visit(block)
    graph = block.graph
    alive = {node.output() for node in graph.nodes_ if node._kind == "prim::Constant"}
    graph.constants = {key: value for key, value in graph.constants.items() if value in alive}
