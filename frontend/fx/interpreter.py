"""Interpreter: runs a graph node by node; Transformer: makes another graph of it on the way.

    class Noting(Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            print(n.name, result.shape)
            return result

    Noting(module).run(x)

Override `run_node` for all nodes, or `call_function` and its like for one kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from ._lazy_graph_module import _make_graph_module
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, Target, map_aggregate, map_arg, written_at
from .proxy import Proxy
from .traceback import preserve_node_meta, set_current_meta


class Interpreter:
    """Runs the graph of a module. garbage_collect_values: whether values are let go after their last use."""

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.extra_traceback = True

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The result of the graph for these arguments.

        initial_env: values of nodes that are not to be run. enable_io_processing: whether arguments and result are
        those of the module, and not those of placeholders and output.
        """
        self.env = {} if initial_env is None else dict(initial_env)
        inputs = self.graph.process_inputs(*args) if enable_io_processing else args
        self.args_iter: Iterator[Any] = iter(inputs)
        last = last_users(self.graph) if self.garbage_collect_values else {}
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    told(error, f"While executing {node.format_node()}{written_at(node)}")
                raise
            for used in last.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """The result for these arguments, which are taken out of the list: so each may be let go after its last use."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """The value of one node, for the present values of those before it."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        with set_current_meta(n, f"Interpreter_{type(self).__name__}"):
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if str(target).startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(str(target))

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner, *rest = args
        return getattr(owner, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Returns the attribute at a dotted path of the module. RuntimeError where there is none."""
        found = self.module
        for atom in target.split("."):
            if not hasattr(found, atom):
                raise RuntimeError(f"Node referenced nonexistent target {target}: there is no {atom}")
            found = getattr(found, atom)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, with values in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        def value_of(one: Node) -> Any:
            if one not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {one}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[one]

        return plain(map_arg(args, value_of))


def told(error: Exception, where: str) -> None:
    """Adds to the message of an error where it was raised; as a note where the message is no text."""
    if type(error) is not KeyError and error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n\n{where}", *error.args[1:])
    else:
        error.add_note(where)


def plain(value: Any) -> Any:
    """Lists and dicts that may be changed, in the place of those that may not."""
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(plain, value))
    if isinstance(value, list):
        return [plain(one) for one in value]
    return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value


def last_users(graph: Graph) -> dict[Node, list[Node]]:
    """For each node, the nodes whose values nobody needs after it."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(node, []).append(used)
    return found


class Transformer(Interpreter):
    """Runs a graph on proxies, so that another graph comes of it; what its methods call takes the place of each
    node."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("get_attr", str(target), args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_module", str(target), args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module with the new graph."""
        with preserve_node_meta():
            result = self.run(enable_io_processing=False)
        if result is not None:
            new = self.new_graph.output(map_aggregate(result, lambda one: one.node if isinstance(one, Proxy) else one))
            new.meta.update(self.graph.output_node().meta)
        return _make_graph_module(self.module, self.new_graph)


class TransformerTracer(Tracer):
    """Makes the nodes of a Transformer; parameters stay those of its module."""

    def __init__(self, graph: Graph, module: GraphModule) -> None:
        super().__init__()
        self.graph, self.root = graph, module
