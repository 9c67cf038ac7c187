"""How a call looks to a handler: PyTorch has some of its functions in Python and others in C++, and handlers can tell.

call_overridden (override.py)   a function in C++ that reads its arguments: they come as they were passed, with None
                                where there are no keywords; of the types, those that override
of_builtin_method               a method in C++ that has none to read: the same, but a plain tensor counts, too
OfPython                        a function in Python: what must be given comes by position, everything else by
                                keyword, with the defaults; plain tensors count among the types
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..core.state import State
from .override import ask, given_tensor_likes, handle_torch_function


def of_builtin_method(public: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The overridden result of a method whose class alone is asked, whatever the arguments are."""
    return ask(public, given_tensor_likes(args[:1], {}), args, kwargs or None)


def ask_mode_of_builtin_method(public: Callable[..., Any], state: State, args: tuple[Any, ...]) -> Any:
    """Asks function modes about a method of a tensor whose class has no say."""
    return of_builtin_method(public, args, {})


class OfPython:
    """The overridden result of calls of a function that PyTorch has in Python.

    like: a function with its parameters. alone: whether it asks for the class of its first argument and no other.
    by_keyword: whether even that comes by keyword, as do all arguments of `nn.init`.
    """

    def __init__(self, like: Callable[..., Any], alone: bool = False, by_keyword: bool = False) -> None:
        self.like, self.alone, self.by_keyword = like, alone, by_keyword

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.like)

    def __call__(self, public: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """TypeError for arguments that the function does not take."""
        first = args[:1]
        args, kwargs = self.normalized(args, kwargs)
        asked = first if self.alone else given_tensor_likes(args, kwargs)
        return handle_torch_function(public, asked, *args, **kwargs)

    def normalized(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the function hands them on: required ones by position, others by keyword."""
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
            elif (
                parameter.default is parameter.empty
                and parameter.kind is not parameter.KEYWORD_ONLY
                and not self.by_keyword
            ):
                positions.append(value)
            else:
                keywords[name] = value
        return tuple(positions), keywords
