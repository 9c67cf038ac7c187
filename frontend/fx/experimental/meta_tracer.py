"""MetaTracer: symbolic tracing that knows metadata, so that a program may ask for shapes and branch on them.

module = symbolic_trace(f, meta_args={"x": torch.empty(4, 3, device="meta")})

Each proxy has a tensor of the meta device beside it; what the program asks of metadata is answered by it, and is a
number: the graph holds for such shapes alone. `make_fx(tracing_mode="symbolic")` keeps sizes as symbols.
"""

from __future__ import annotations

from typing import Any

import redispatch
from redispatch import nn

from .._lazy_graph_module import _make_graph_module
from .._symbolic_trace import TRACER, Tracer
from ..graph_module import GraphModule
from ..node import map_aggregate
from ..proxy import Attribute, Proxy

METADATA = frozenset("shape dtype device layout ndim itemsize is_leaf is_cuda is_sparse is_quantized is_meta".split())
QUESTIONS = frozenset("size dim numel nelement stride ndimension is_floating_point is_complex element_size".split())


class MetaProxy(Proxy):
    """A proxy with a value on the meta device, where that is known."""

    _tensor_meta_data: Any = None

    def install_tensor_meta(self, tensor_meta: Any) -> None:
        """Notes the value on the meta device."""
        self._tensor_meta_data = tensor_meta

    def known(self) -> bool:
        return isinstance(self._tensor_meta_data, redispatch.Tensor)

    def __getattr__(self, name: str) -> Any:
        if name in METADATA and self.known():
            return getattr(self._tensor_meta_data, name)
        if name in QUESTIONS and self.known():
            return lambda *args, **kwargs: getattr(self._tensor_meta_data, name)(*args, **kwargs)
        if name.startswith("__"):
            return super().__getattr__(name)
        return MetaAttribute(self, name)

    def __len__(self) -> int:
        return len(self._tensor_meta_data) if self.known() else super().__len__()

    def __index__(self) -> int:
        return self._tensor_meta_data.__index__()


class MetaAttribute(MetaProxy, Attribute):
    """An attribute of a proxy that has a value on the meta device."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Attribute.__call__(self, *args, **kwargs)


class MetaTracer(Tracer):
    """A tracer whose proxies have values on the meta device."""

    meta_args: dict[str, Any] = {}

    def proxy(self, node: Any) -> Proxy:
        return MetaProxy(node, self)

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, *more: Any, **options: Any) -> Any:
        made = super().create_proxy(kind, target, args, kwargs, *more, **options)
        if kind == "placeholder":
            value = self.meta_args.get(str(target))
            made.install_tensor_meta(value.to("meta") if isinstance(value, redispatch.Tensor) else value)
        elif kind != "output":
            made.install_tensor_meta(self.value_of(kind, target, args, kwargs))
        return made

    def value_of(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        """Returns the value of a step on the meta device; None where that of an argument is not known."""
        proxies: list[Any] = []

        def known(one: Any) -> Any:
            if isinstance(one, Proxy):
                proxies.append(one)
                return getattr(one, "_tensor_meta_data", None)
            return on_meta(one)

        args, kwargs = map_aggregate(args, known), map_aggregate(kwargs, known)
        if any(getattr(one, "_tensor_meta_data", None) is None for one in proxies):
            return None
        if kind == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs)
        if kind == "call_function":
            return target(*args, **kwargs)
        owner: Any = self.root
        for atom in str(target).split("."):
            owner = getattr(owner, atom)
        if kind == "get_attr":
            return on_meta(owner)
        state = {name: one.to("meta") for name, one in (*owner.named_parameters(), *owner.named_buffers())}
        token = TRACER.set(None)  # what runs inside of the module is no step
        try:
            return redispatch.func.functional_call(owner, state, args, kwargs)
        finally:
            TRACER.reset(token)

    def trace(self, root: Any, meta_args: dict[str, Any] | None = None, concrete_args: Any = None) -> Any:  # type: ignore[override]  # as PyTorch's
        """The graph of a module or function. meta_args: by parameter, a tensor of which the metadata count."""
        self.meta_args = meta_args or {}
        return super().trace(root, concrete_args)


def on_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, redispatch.Tensor) else value


def symbolic_trace(root: Any, meta_args: dict[str, Any] | None = None, concrete_args: Any = None) -> GraphModule:
    """Returns a GraphModule that does what a module or function does to tensors of such metadata."""
    tracer = MetaTracer()
    graph = tracer.trace(root, meta_args, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name if name.isidentifier() else "GraphModule")
