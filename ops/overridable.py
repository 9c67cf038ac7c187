"""Plain Python functions of the public face that `__torch_function__` and function modes may override.

Faces of operators ask by themselves (public.py). `tensor`, `from_numpy` and the functions of `nn.functional` are no
operators; this decorator asks for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from redispatch.dispatch import asks, handle_torch_function, overridden, overriding

F = TypeVar("F", bound=Callable[..., Any])


def overridable_function(function: F) -> F:
    """`function`, which first asks whether a mode or an argument's class wants the call for itself."""

    @functools.wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        if overridden(args, kwargs):
            return handle_torch_function(asking, overriding(args, kwargs), *args, **kwargs)
        return function(*args, **kwargs)

    room = "torch.nn.functional" if ".nn." in function.__module__ else "torch"
    return asks(asking, f"{room}.{function.__name__}")  # the same parameters, which wraps() keeps for readers
