"""Slots: which value of a run is computed by which node, as those ask who trace an operator of their own.

out = operator(*args)
proxy = mode.tracer.create_proxy("call_function", operator, tree_map(mode.tracer.unwrap_proxy, args), {})
return track_tensor_tree(out, proxy, constant=None, tracer=mode.tracer)

Read next: proxy_tensor.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from redispatch.dispatch.symbolic import SymBool, SymFloat, SymInt
from redispatch.dispatch.tensor import Tensor

py_sym_types = (SymInt, SymFloat, SymBool)
MISSING = object()


def is_sym_node(node: Any) -> bool:
    """Returns whether a node's value is a symbolic number."""
    return "val" in node.meta and isinstance(node.meta["val"], py_sym_types)


def get_proxy_slot(
    obj: Any, tracer: Any, default: Any = MISSING, transform: Callable[[Any], Any] = lambda one: one
) -> Any:
    """Returns what a tracer knows of a tensor, with its `proxy`, or the proxy of a symbolic number.

    transform: is called with it. default: the answer for what the tracer does not know; else that is a KeyError.
    """
    found = tracer.find(obj) if isinstance(obj, Tensor) else tracer.symbols.get(obj.node)
    if callable(found) and not isinstance(obj, Tensor):  # a size, whose node is made when it is asked for
        found = tracer.unwrap_proxy(obj)
    if found is not None:
        return transform(found)
    if default is MISSING:
        raise KeyError(f"{obj} has no proxy in {tracer}: no node of the graph computes it")
    return default


def has_proxy_slot(obj: Any, tracer: Any) -> bool:
    """Returns whether a tracer knows which node computes a tensor or symbolic number."""
    return get_proxy_slot(obj, tracer, None) is not None


def set_proxy_slot(obj: Any, tracer: Any, proxy: Any) -> None:
    """Notes that a node computes a tensor or symbolic number. proxy: of the node, or what `get_proxy_slot` gives."""
    tracer.track_tree(obj, getattr(proxy, "proxy", proxy) if isinstance(obj, Tensor) else proxy)


def track_tensor(tensor: Any, proxy: Any, *, constant: Any, tracer: Any) -> None:
    """Notes that a node computes a tensor. constant: its value, where that is known."""
    tracer.track(tensor, proxy, constant)


def track_tensor_tree(inner_res: Any, proxy_res: Any, *, constant: Any, tracer: Any) -> Any:
    """Returns a value of which the tensors, in lists and tuples, are noted as computed by a node."""
    tracer.track_tree(inner_res, proxy_res, constant)
    return inner_res


def set_meta(proxy: Any, val: Any) -> Any:
    """Notes a fake of a value at its node."""
    proxy.node.meta["val"] = extract_val(val)
    return proxy


def extract_val(val: Any, include_real: bool = False) -> Any:
    """Returns a value as nodes note it: a fake that later writes do not change."""
    if isinstance(val, list | tuple):
        return type(val)(extract_val(one) for one in val)
    return snapshot_fake(val) if isinstance(val, Tensor) else val


def snapshot_fake(val: Any, include_real: bool = False) -> Any:
    """Returns a tensor with the metadata that one has now."""
    return val.detach()


def maybe_disable_thunkify() -> Any:
    """A region in which arithmetic of sizes makes nodes at once. Here it does so when a node needs them."""
    return nullcontext()


def maybe_enable_thunkify() -> Any:
    """A region in which arithmetic of sizes makes nodes when they are needed, as it always does here."""
    return nullcontext()
