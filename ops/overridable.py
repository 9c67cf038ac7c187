"""Plain Python functions of the public face that `__torch_function__` and function modes may override.

Faces of operators ask by themselves (public.py). `tensor`, `from_numpy` and the functions of `nn.functional` are no
operators; these decorators ask for them. What a handler then gets follows PyTorch, which has some of them in Python
and others in C++:

    overridable_function    in Python: what must be given by position, everything else by keyword, defaults included;
                            plain tensors count among the types
    builtin_function        in C++: the arguments as they were passed, and None where there are no keywords
    factory_function        in C++, and it takes any data: modes are asked, and the classes of arguments are not
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from redispatch.dispatch import (
    STATE,
    ask,
    asks,
    call_overridden,
    given_tensor_likes,
    handle_torch_function,
    overridden,
    within,
)

F = TypeVar("F", bound=Callable[..., Any])


def overridable_function(function: F) -> F:
    """`function`, which first asks whether a mode or an argument's class wants the call for itself."""
    normalized = Normalized(function)

    @functools.wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        if overridden(args, kwargs):
            args, kwargs = normalized(args, kwargs)
            return handle_torch_function(asking, given_tensor_likes(args, kwargs), *args, **kwargs)
        return function(*args, **kwargs)

    return marked(asking, function)


def builtin_function(function: F) -> F:
    """The same for a function that PyTorch has in C++."""

    @functools.wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        if overridden(args, kwargs):
            return call_overridden(asking, args, kwargs)
        return function(*args, **kwargs)

    return marked(asking, function)


def factory_function(function: F) -> F:
    """The same for one that makes a tensor of any data, another tensor's too: only modes are asked."""

    @functools.wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        state = STATE.get()
        if state.function_modes and state.overrides != "none":
            return ask(asking, (), args, kwargs or None)
        if state.overrides == "all" and overridden(args, kwargs):
            with within(state.without_subclasses()):
                return function(*args, **kwargs)
        return function(*args, **kwargs)

    return marked(asking, function)


def marked(asking: Any, function: Any) -> Any:
    room = "torch.nn.functional" if ".nn." in function.__module__ else "torch"
    return asks(asking, f"{room}.{function.__name__}")  # the same parameters, which wraps() keeps for readers


class Normalized:
    """The arguments of a call as functions in Python hand them on: required ones by position, others by keyword."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """TypeError for arguments that the function does not take."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        positions: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            value = bound.arguments[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positions += value
            elif parameter.kind is parameter.VAR_KEYWORD:
                keywords |= value
            elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
                positions.append(value)
            else:
                keywords[name] = value
        return tuple(positions), keywords
