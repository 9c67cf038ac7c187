"""wrap: functions that symbolic tracing takes as one step, and does not run through.

    def norm(x): ...        # looks at values, or is to be replaced later
    fx.wrap("norm")         # or wrap(norm), or @wrap; at the top of the module that calls it

While a tracer is at work, the module's name stands for a function that makes a `call_function` node wherever a proxy is
among the arguments. Read next: _symbolic_trace.py.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from redispatch.utils._pytree import tree_leaves

from .proxy import Proxy

Places = dict[tuple[int, str], dict[str, Any]]  # (which module, the name in it) -> the module's names
WRAPPED: Places = {}
_LOCK = threading.RLock()
_IN_PLACE: dict[
    tuple[int, str], list[Any]
] = {}  # place -> [how many tracers want it, whether it was there, what it was]


def wrap(fn_or_name: Any) -> Any:
    """Makes a function of the calling module a step of its own for symbolic tracing; returns what it was given.

    Errors: RuntimeError for what is neither a function nor a name; NotImplementedError inside a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    WRAPPED[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


@contextmanager
def steps_in_place(
    functions: Iterable[Callable[..., Any]], names: dict[str, Any], modules: Iterable[ModuleType] = ()
) -> Iterator[None]:
    """A region in which wrapped functions make nodes: those of `wrap`, and `functions` where `names` has them.

    modules: those whose functions do, too, called by the module's name or by one that `names` has for them.
    """
    theirs = [(vars(module), name, one) for module in modules for name, one in vars(module).items() if callable(one)]
    theirs = [(space, name, one) for space, name, one in theirs if not name.startswith("_")]
    chosen = [*functions, *(one for _, _, one in theirs)]
    own = {(id(space), name): space for space, name, _ in theirs}
    own |= {(id(names), name): names for name, value in names.items() if any(value is one for one in chosen)}
    places = {**WRAPPED, **own}
    with _LOCK:
        for place, module in places.items():
            put(place, module)
    try:
        yield
    finally:
        with _LOCK:
            for place, module in places.items():
                take_back(place, module)


def put(place: tuple[int, str], module: dict[str, Any]) -> None:
    entry = _IN_PLACE.get(place)
    if entry is None:
        name = place[1]
        function = module.get(name, getattr(builtins, name, None))
        entry = _IN_PLACE[place] = [0, name in module, function]
        if function is not None:
            module[name] = step(function)
    entry[0] += 1


def take_back(place: tuple[int, str], module: dict[str, Any]) -> None:
    entry, name = _IN_PLACE[place], place[1]
    entry[0] -= 1
    if entry[0]:
        return
    del _IN_PLACE[place]
    if entry[1]:
        module[name] = entry[2]
    else:
        module.pop(name, None)


def step(function: Any) -> Any:
    """The function that makes a node for a call with a proxy, and calls `function` otherwise."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        proxy = next((leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Proxy)), None)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    return called


__all__ = ["steps_in_place", "wrap"]
