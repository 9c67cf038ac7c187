"""Plain Python functions of the public face that `__torch_function__` and function modes may override.

Faces of operators ask by themselves (public.py). `tensor`, `from_numpy` and the functions of `nn.functional` are no
operators; these decorators ask for them. What a handler then gets follows PyTorch (dispatch/protocols/override.py),
which has some of them in Python and others in C++:

    overridable_function    in Python
    builtin_function        in C++
    factory_function        in C++, and it takes any data: modes are asked, and the classes of arguments are not
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from redispatch.dispatch import (
    STATE,
    OfPython,
    ask,
    asks,
    call_overridden,
    overridden,
    who_overrides,
    within,
)

# where PyTorch has functions, for those of our files that do not follow the rule in `marked`
HOMES = {
    "kernels.ops.embedding": "torch.nn.functional",
    "kernels.ops.spectra": "torch._lowrank",
    "nn.init": "torch.nn.init",
}
F = TypeVar("F", bound=Callable[..., Any])


def overridable_function(function: F) -> F:
    """`function`, which first asks whether a mode or an argument's class wants the call for itself."""
    return seen_as(OfPython(function), function)


def overridable_initializer(function: F) -> F:
    """Makes a function of `nn.init` overridable: all its arguments are handed on by keyword."""
    return seen_as(OfPython(function, by_keyword=True), function)


def builtin_function(function: F) -> F:
    """Makes a function overridable that PyTorch has in C++."""
    return seen_as(call_overridden, function)


def seen_as(convention: Callable[..., Any], function: Any) -> Any:
    @functools.wraps(function)
    def asking(*args: Any, **kwargs: Any) -> Any:
        if who_overrides(args, kwargs) is not None:
            return convention(asking, args, kwargs)
        return function(*args, **kwargs)

    return marked(asking, function, isinstance(convention, OfPython))


def factory_function(function: F) -> F:
    """Makes a function overridable that makes a tensor of any data, another tensor's too: only modes are asked."""

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


def marked(asking: Any, function: Any, in_python: bool = False) -> Any:
    room = function.__module__.partition(".")[2]
    if room in HOMES:
        room = HOMES[room]
    elif room.startswith("kernels.ops."):  # what PyTorch has in Python there, it has in its module `functional`
        room = "torch.functional" if in_python else "torch"
    else:
        room = "torch.nn.functional" if room.startswith("nn.") else "torch"
    home = room if in_python or room != "torch.nn.functional" else "torch._C._nn"
    asking.__module__ = home  # as handlers and graphs see it; the file is that of `__wrapped__`
    return asks(asking, f"{room}.{function.__name__}")  # the same parameters, which wraps() keeps for readers
