"""Proxy: what a function is called with to find out what it does. Whatever is done to it becomes a node of a graph.

Operators, methods, attributes and functions of this library give further proxies. What needs a value is refused: a
branch, a length, a loop; the graph would hold for one value alone.

Read next: _symbolic_trace.py.
"""

from __future__ import annotations

import dis
import inspect
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from redispatch.dispatch import OpOverload, OpOverloadPacket
from redispatch.dispatch.higher_order import HigherOrderOperator
from redispatch.dispatch.pytree import is_namedtuple_instance

from .graph import Graph
from .node import AGGREGATES, Node, Target, map_aggregate, map_items
from .traceback import has_preserved_node_meta, taken_over, user_stack


class TraceError(ValueError):
    """A function does something that a graph cannot show."""


class TracerBase:
    """Makes nodes and proxies for them. `graph`: where the nodes go. `record_stack_traces`: whether each node notes the
    line of the program that it comes from, as it does within `fx.traceback.preserve_node_meta()`."""

    graph: Graph
    record_stack_traces = False

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node. To note something of each, override this."""
        node = taken_over(self.graph.create_node(kind, target, args, kwargs, name, type_expr))
        if not node.stack_trace and kind != "placeholder" and (self.record_stack_traces or has_preserved_node_meta()):
            node.stack_trace = user_stack()
        return node

    def proxy(self, node: Node) -> Proxy:
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Any:
        """A new node for a call with proxies among its arguments, and the proxy of its value."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        return self.proxy(self.create_node(kind, target, args, kwargs, name, type_expr))

    def create_arg(self, a: Any) -> Any:
        """An argument as it stands in a node: what is in it by this method, which may be overridden.

        Errors: NotImplementedError for what cannot stand in code.
        """
        if is_namedtuple_instance(a):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        return map_items(a, self.create_arg) if isinstance(a, AGGREGATES) else self.create_leaf(a)

    def create_leaf(self, a: Any) -> Any:
        if isinstance(a, Proxy):
            return a.node
        if (
            a is None
            or a is ...
            or isinstance(a, PLAIN)
            or callable(a)
            or type(a).__module__.startswith(("redispatch", "torch"))
        ):
            return a
        if is_dataclass(a):
            parts = {one.name: self.create_arg(getattr(a, one.name)) for one in fields(a)}
            return self.create_node("call_function", type(a), (), parts)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        raise TraceError(
            f"symbolically traced variables cannot be used as inputs to control flow\nIt is asked here:\n{user_stack()}"
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Unpacks a proxy into as many items as there are names on the left. TraceError in a loop."""
        frame = inspect.currentframe()
        caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
        if caller is not None:
            steps = [one for one in dis.get_instructions(caller.f_code) if one.opname != "CACHE"]
            here = next((one for one in steps if one.offset == caller.f_lasti), None)
            if here is not None and here.opname == "UNPACK_SEQUENCE":
                return (operator.getitem(obj, index) for index in range(here.argval))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. A graph holds for one number of items alone: take them by index, or trace "
            "with concrete_args"
        )

    def keys(self, obj: Proxy) -> Any:
        """Answers `**proxy`."""
        return Attribute(obj, "keys")()


PLAIN = (bool, int, float, complex, str, bytes, range)


class Proxy:
    """See above. `node`: what computes its value; `tracer`: who makes the nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node, self.tracer = node, GraphAppendingTracer(node.graph) if tracer is None else tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"'Proxy' object has no attribute {name!r}")
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, "
            "please call torch.fx.wrap('len') at module scope"
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("'Proxy' object does not support item assignment")

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __deepcopy__(self, memo: Any) -> Any:
        raise RuntimeError("a Proxy cannot be copied: it stands for a value that is not there yet")

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found: list[TracerBase] = []

        def note(one: Any) -> Any:
            if isinstance(one, Proxy) and one.tracer not in found:
                found.append(one.tracer)
            return one

        map_aggregate((args, kwargs), note)
        if len(found) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {found} while trying to trace operations {orig_method}"
            )
        if is_method(orig_method):
            return found[0].create_proxy("call_method", orig_method.__name__, args, kwargs)
        return found[0].create_proxy("call_function", orig_method, args, kwargs)


def is_method(function: Any) -> bool:
    return getattr(function, "__qualname__", "").startswith("Tensor.") and not isinstance(
        function, OpOverload | OpOverloadPacket | HigherOrderOperator
    )


def annotate(val: Any, type: Any) -> Any:
    """Returns the value, with a type in the node of a proxy. RuntimeError where the node has one."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new "
                f"type is {type}. This could happen if you tried to annotate a function parameter value (in which case "
                "you should use the type slot on the function signature) or you called annotate on the same value twice"
            )
        val.node.type = type
    return val


class ParameterProxy(Proxy):
    """A parameter of a module, whose shape and dtype a program may ask for while it is traced."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self) -> Any:
        return self.param.size()

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


@dataclass
class Scope:
    """The module whose forward is being traced: its path and its class."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """A region in which a scope is another one."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._former = scope, vars(scope).copy()
        vars(scope).update(vars(current_scope))

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *problem: Any) -> None:
        vars(self._scope).update(self._former)


class GraphAppendingTracer(TracerBase):
    """A tracer whose nodes go to the end of a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Attribute(Proxy):
    """An attribute of a proxy. A node comes of it when its value is used; a call of it is a `call_method`."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]  # another signature than the base class, as PyTorch's
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(*operands: Any) -> Any:
        return operands[0].tracer.create_proxy("call_function", function, operands, {})

    return method


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


for _name in (
    "eq", "ne", "lt", "gt", "le", "ge", "pos", "neg", "invert", "abs", "getitem",
):  # fmt: skip
    setattr(Proxy, f"__{_name}__", _operator(getattr(operator, _name)))
for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "matmul",
):  # fmt: skip
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(getattr(operator, _name)))
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(getattr(operator, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # attached here
