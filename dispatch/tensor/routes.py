"""Routes: questions about a tensor that its class's handler answers, in the place of the face that it was made with.

A wrapper subclass shows the shape, strides, device and layout which `_make_wrapper_subclass` was given. With
`dispatch_sizes_strides_policy`, `dispatch_device` or `dispatch_layout` its `__torch_dispatch__` is asked instead, each
time: `x.shape` then is a call of `aten.sym_size`. What the library reads for itself stays the face, and so does all of
it where Python dispatch is off.

Only tensors of classes that have such tensors pay for this: `never_plain` sends them by the long path of every method.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from redispatch.dispatch import STATE, keyset
from redispatch.dispatch.protocols.override import never_plain

PYTHON = keyset("Python")

# What `dispatch_sizes_strides_policy` may be, and what is asked of the handler then
POLICIES = {None: frozenset[str](), "strides": frozenset(["strides"]), "sizes": frozenset(["strides", "sizes"])}


class Route(NamedTuple):
    """subject: "sizes", "strides", "device" or "layout". ask: asks the handler; None from it means the face."""

    subject: str
    ask: Callable[..., Any]


# By the name of a method or property of Tensor. The room `ops`, which has the operators that are asked, fills it.
ROUTES: dict[str, Route] = {}


def routed(face: Callable[..., Any]) -> Callable[..., Any]:
    """`face`, which answers by what a tensor was made with; for a tensor with routes, first what its handler says."""
    name = face.__name__

    @wraps(face)
    def answer(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if tensor._routes:
            route = ROUTES.get(name)
            if route is not None and route.subject in tensor._routes and not STATE.get().excluded & PYTHON:
                result = route.ask(tensor, *args, **kwargs)
                if result is not None:
                    return result
        return face(tensor, *args, **kwargs)

    return answer


def give_routes(tensor: Any, sizes_strides: str | None, device: bool, layout: bool) -> None:
    """Has the handler of a new tensor asked about these subjects. ValueError for a policy of another name."""
    if sizes_strides not in POLICIES:
        raise ValueError(f"Unknown sizes_strides_policy: {sizes_strides}; expected 'strides' or 'sizes'")
    flags = [name for name, wanted in (("device", device), ("layout", layout)) if wanted]
    tensor._routes = POLICIES[sizes_strides].union(flags)
    never_plain(type(tensor))
