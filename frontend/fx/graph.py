"""Graph: a program as a list of steps in the order in which they run.

    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.relu, (x,))
    graph.output(y)
    print(graph)

New nodes go where `inserting_before` or `inserting_after` says, by default to the end. A graph may be changed at will:
move uses from one node to another, erase what nobody uses, then `lint`; a GraphModule makes code of it when it is told
to `recompile`.

Read next: codegen.py, graph_module.py.
"""

from __future__ import annotations

import builtins
import copy
import inspect
import keyword
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import redispatch

from .codegen import INPLACE, MAGIC, REFLECTED, CodeGen, Globals, PythonCode, found_at
from .codegen import PyTreeCodeGen as _PyTreeCodeGen
from .codegen import PyTreeInfo as _PyTreeInfo
from .node import Node, Target, map_aggregate, map_arg, qualified_name, written_at

BUILTIN_NAMES = set(dir(builtins))
RESERVED = {*keyword.kwlist, "torch", "self", "inf", "nan", "NoneType", "device", "pytree", "fx_pytree"}


class Namespace:
    """Gives names that nobody has yet: `add`, `add_1`, `add_2`."""

    def __init__(self) -> None:
        self.used: set[str] = set(RESERVED)
        self.counts: dict[str, int] = {}

    def create_name(self, candidate: str) -> str:
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        found = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (found[1], int(found[2])) if found else (candidate, None)
        name = candidate
        count = self.counts.get(base, 0) if number is None else number
        while name in self.used or (number is None and base in BUILTIN_NAMES and name == base):
            count += 1
            name = f"{base}_{count}"
        self.counts[base] = max(count, self.counts.get(base, 0))
        self.used.add(name)
        return name

    def copy(self) -> Namespace:
        made = Namespace()
        made.used, made.counts = set(self.used), dict(self.counts)
        return made


# PyTorch's names: by the function of `operator`, how it is written
magic_methods = MAGIC
reflectable_magic_methods = {name: MAGIC[name] for name in REFLECTED}
inplace_methods = {name: f"{{}} {text} {{}}" for name, text in INPLACE.items()}
_Namespace = Namespace
__all__ = ["CodeGen", "Graph", "PythonCode", "_PyTreeCodeGen", "_PyTreeInfo"]


class NodeList:
    """The nodes of a graph in order; `reversed(graph.nodes)` from the end. Nodes may be erased meanwhile."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self.graph, self.backwards = graph, backwards

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = root._prev if self.backwards else root._next
        while node is not root:
            if not node._erased:
                yield node
            node = node._prev if self.backwards else node._next

    def __reversed__(self) -> NodeList:
        return NodeList(self.graph, not self.backwards)


class Graph:
    """See above."""

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None) -> None:
        self._root = Node(self, "", "placeholder", "", (), {})
        self._len = 0
        self._namespace = Namespace()
        self._insert_before: Node = self._root
        self._codegen = CodeGen()
        self._tracer_cls = tracer_cls
        self.owning_module = owning_module

    @property
    def nodes(self) -> NodeList:
        return NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of an op, and of a target where one is given, in order."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        """The node that returns."""
        (found,) = self.find_nodes(op="output")
        return found

    # Making nodes -------------------------------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the insertion point. `name` is made one of its own if it is taken."""
        candidate = name or self._target_to_str(target)
        node = Node(self, self._namespace.create_name(candidate), op, target, args or (), kwargs or {}, type_expr)
        self._insert_before.prepend(node)
        self._len += 1
        self._tell("create", node)
        return node

    def _tell(self, event: str, *about: Any) -> None:
        """Calls the hooks that the owning module has for an event."""
        for hook in vars(self.owning_module).get(f"_{event}_node_hooks", ()) if self.owning_module is not None else ():
            hook(*about)

    def _target_to_str(self, target: Target) -> str:
        if callable(target):
            text = getattr(target, "__name__", type(target).__name__)
        else:
            text = target
            if text.startswith("__") and text.endswith("__"):
                text = text[2:-2]
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty) -> Node:
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda node: node) -> Node:
        """A node like one of another graph; `arg_transform` says what stands for the nodes in its arguments."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies the nodes of another graph to the insertion point; gives the value that the other one returns.

        val_map: what stands for nodes of the other graph; those that are in it already are not copied.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda one: val_map[one])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda one: val_map[one])
        return None

    # Changing it --------------------------------------------------------------------------------------------------

    @contextmanager
    def _inserting(self, before: Node) -> Iterator[None]:
        former, self._insert_before = self._insert_before, before
        try:
            yield
        finally:
            self._insert_before = former

    def inserting_before(self, n: Node | None = None) -> Any:
        """A region in which new nodes go before `n`, in their order; without `n`, to the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return self._inserting(n)

    def inserting_after(self, n: Node | None = None) -> Any:
        """A region in which new nodes go behind `n`, in their order; without `n`, to the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return self._inserting(n._next)

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out that nobody uses. RuntimeError where somebody does."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        if to_erase is self._insert_before:
            self._insert_before = to_erase._next
        self._tell("erase", to_erase)
        to_erase._set((), {})
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Takes out the nodes whose values nobody uses and that do nothing else; whether there were any."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._len != before

    # Checking and showing it --------------------------------------------------------------------------------------

    def lint(self) -> None:
        """RuntimeError where the graph is no program: a value is used before it is there, a name is there twice, or
        what a node is to find in the module that owns the graph is missing; with the line of the user's program that
        the node comes from, where that was noted."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!{written_at(node)}")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument! If you are copying nodes from another graph, make sure to use "
                        f"``arg_transform`` on node_copy() to remap values{written_at(node)}"
                    )
                if used not in seen:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check "
                        f"that Nodes in the graph are topologically ordered\n{self}{written_at(node)}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!{written_at(node)}")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        found = self.owning_module
        for atom in str(node.target).split("."):
            if not hasattr(found, atom):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {atom} of {found}"
                    f"{written_at(node)}"
                )
            found = getattr(found, atom)
        if node.op == "call_module" and not callable(found):
            raise RuntimeError(f"Node {node} target {node.target} {atom} of {found} is not a module that can be called")

    def python_code(self, root_module: str = "self", *, verbose: bool = False) -> PythonCode:
        """The graph as a function: its source, and the globals that it needs.

        root_module: what the source calls the owning module. verbose: whether types and shapes stand beside values.
        """
        return self._codegen.generate(self.nodes, root_module, verbose)

    def set_codegen(self, codegen: CodeGen) -> None:
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Has a function change the lines of the body whenever code is made; gives a region in which it does.

        make_transformer: is given the function that does so now, or None, and returns the one that does from now on.
        """
        codegen, before = self._codegen, self._codegen._body_transformer
        codegen._body_transformer = make_transformer(before)
        stack = ExitStack()
        stack.callback(lambda: setattr(codegen, "_body_transformer", before))
        return stack

    def process_inputs(self, *args: Any) -> Any:
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        print(self.table())

    def table(self) -> str:
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        for node in self.nodes:
            target = node.target if isinstance(node.target, str) else qualified_name(node.target)
            rows.append([node.op, node.name, target, str(node.args), str(node.kwargs)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, ["-" * width for width in widths])
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "graph():\n" + "\n".join(f"    {line}" for line in lines)

    __repr__ = object.__repr__

    # Copies -------------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        memo = {} if memo is None else memo
        values: dict[Node, Node] = {}
        for node in self.nodes:
            copied = values[node] = made.node_copy(node, lambda one: values[one])
            copied.name = node.name
            memo[id(node)] = copied
        made._namespace = self._namespace.copy()
        made._codegen = copy.deepcopy(self._codegen)
        return made

    def __reduce__(self) -> Any:
        entries = [
            (node.op, node.name, *map_aggregate((node.target, node.args, node.kwargs), to_pickle), node.type)
            for node in self.nodes
        ]
        return restored, (entries, self._codegen)


@dataclass(frozen=True)
class NodeNamed:
    """A node in the arguments of another, as it is pickled."""

    name: str


@dataclass(frozen=True)
class FunctionNamed:
    """A function of this library, as it is pickled: by its public name."""

    name: str


def to_pickle(leaf: Any) -> Any:
    """Returns the pickled stand-in of a node or function; anything else as it is."""
    if isinstance(leaf, Node):
        return NodeNamed(leaf.name)
    if callable(leaf) and not isinstance(leaf, type):
        name = Globals().name_of(leaf)
        if name.startswith("torch.") and not name.startswith("torch.ops."):
            return FunctionNamed(name.removeprefix("torch."))
    return leaf


def restored(entries: list[Any], codegen: CodeGen) -> Graph:
    """The graph whose nodes were pickled. What stood in their `meta` is not kept."""
    graph = Graph()
    graph._codegen = codegen
    made: dict[str, Node] = {}

    def unpickled(leaf: Any) -> Any:
        if isinstance(leaf, NodeNamed):
            return made[leaf.name]
        return found_at(redispatch, leaf.name) if isinstance(leaf, FunctionNamed) else leaf

    for op, name, target, args, kwargs, type_expr in entries:
        target, args, kwargs = map_aggregate((target, args, kwargs), unpickled)
        node = made[name] = graph.create_node(op, target, args, kwargs, name, type_expr)
        node.name = name
    return graph
