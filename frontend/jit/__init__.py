"""`redispatch.jit`: PyTorch's compiler of Python source, which is not here; what programs say to it changes nothing.

`script` hands a function or module on as it is, since it runs as it is written; the marks of functions do, too. What
asks whether anything is compiled or traced is told that nothing is. `trace` runs what it is given, once, and hands it
on, too; files of programs are an error.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from redispatch._absent import SCRIPTED, names_of
from redispatch.futures import Future

__all__ = [
    "Attribute",
    "Final",
    "Future",
    "annotate",
    "export",
    "fork",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "save",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
globals().update(names_of(__name__, SCRIPTED))


def is_scripting() -> bool:
    """False: Python runs this."""
    return False


def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


def script(obj: Any, *args: Any, **options: Any) -> Any:
    """Returns the function, class or module as it is."""
    return obj


def unchanged(fn: Any) -> Any:
    """Returns the function as it is: a mark for a compiler that is not here."""
    return fn


export = interface = script_if_tracing = _script_if_tracing = _overload = _overload_method = unchanged


def ignore(drop: Any = False, **options: Any) -> Any:
    """Marks a function for Python alone, which it is: a decorator, with options or without."""
    return drop if callable(drop) else unchanged


unused = ignore


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns the value; the type is for readers."""
    return the_value


class Attribute(typing.NamedTuple):
    """A value and the type that it is declared with."""

    value: Any
    type: Any


def isinstance(obj: Any, target_type: Any) -> bool:
    """Returns whether an object is of a type, which may be a container of types such as `list[int]`."""
    kinds = target_type if type(target_type) is tuple else (target_type,)
    return any(_is_of(obj, kind) for kind in kinds)


def _is_of(obj: Any, kind: Any) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is None:
        return kind is Any or issubclass(type(obj), kind)
    if origin in (list, set, frozenset):
        return issubclass(type(obj), origin) and all(_is_of(item, inner[0]) for item in obj)
    if origin is dict:
        return issubclass(type(obj), dict) and all(_is_of(k, inner[0]) and _is_of(v, inner[1]) for k, v in obj.items())
    if origin is tuple:
        return issubclass(type(obj), tuple) and len(obj) == len(inner) and all(map(_is_of, obj, inner))
    return any(_is_of(obj, one) for one in inner)  # a union


@contextmanager
def fuser(name: str) -> Any:
    """A region in which PyTorch fuses loops in one way or another; here they are what they are."""
    yield


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Returns a future whose value is there: Python calls the function at once, and lets its errors pass."""
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """Returns the value of a future, as soon as it is there."""
    return future.wait()


_fork, _wait = fork, wait


class Error(RuntimeError):
    """An error in a program that was compiled; there is none."""


def trace(func: Any, example_inputs: Any = (), *args: Any, example_kwarg_inputs: Any = None, **options: Any) -> Any:
    """Runs a function or module on the examples, and returns it as it is.

    What records a call's operators is `fx.experimental.proxy_tensor.make_fx(func)(*inputs)`.
    """
    return trace_module(func, {"__call__": example_kwarg_inputs or example_inputs})


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **options: Any) -> Any:
    """Runs methods on their examples, (name -> arguments), and returns the module as it is."""
    for method, given in inputs.items():
        call = mod if method == "__call__" else getattr(mod, method)
        if type(given) is dict:
            call(**given)
        else:
            call(*(given if type(given) in (tuple, list) else (given,)))
    return mod


def load(f: Any, *args: Any, **options: Any) -> NoReturn:
    """NotImplementedError: a file of jit.save holds a program in TorchScript."""
    raise NotImplementedError("jit.load: there is no TorchScript here; load(f) reads files of save()")


def save(m: Any, f: Any, *args: Any, **options: Any) -> NoReturn:
    """NotImplementedError: there is no program in TorchScript to write."""
    raise NotImplementedError("jit.save: there is no TorchScript here; save(m.state_dict(), f) writes the values")
