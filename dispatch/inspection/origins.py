"""Origins: where tensors were made, for the errors that one meets far from there.

That an inference tensor must not be written, or that a view was made under `no_grad`, is said where it is written; the
mistake is where it was made. With `config.debug_origins` on, each operator that returns a new tensor notes its own name
and the line of the program that called it, and such errors say so. Calls then run boxed, as while a trace records.
While it is off, nothing is noted and nothing is asked: the code that runs is the same as ever.

Read next: dispatch/config.py (the switch), dispatch/specialiser/specialise.py (`Table`, which puts `noting` around what
runs).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from ..config import ON_CHANGE, config
from ..core.base import Operator, TensorBase

PACKAGE = __name__.partition(".")[0]


class Origin(NamedTuple):
    """The operator that made a tensor, and the line ("file:line") on which the program called for it."""

    op: Operator
    place: str

    def __str__(self) -> str:
        return f"{self.place}, by {self.op}"


# By id: (the tensor, weakly; where it was made). The tensor itself would have to tell in its `__dict__`, which is its
# user's; and its `==` and `hash` may be overridden.
_ORIGINS: dict[int, tuple[weakref.ref[Any], Origin]] = {}


def noting(op: Operator, code: Callable[..., Any]) -> Callable[..., Any]:
    """`code`, which runs `op`, such that the origins of what it makes are noted. Of the operators inside one another,
    the innermost made it."""

    def run_and_note(*arguments: Any) -> Any:
        result = code(*arguments)
        for made in result if isinstance(result, list | tuple) else (result,):
            if isinstance(made, TensorBase) and origin_of(made) is None and not is_among(made, arguments):
                note(made, Origin(op, place_of_the_program()))
        return result

    return run_and_note


def note(made: Any, origin: Origin) -> None:
    """Notes where a tensor was made, as long as it lives."""
    key = id(made)
    _ORIGINS[key] = weakref.ref(made, lambda _: _ORIGINS.pop(key, None)), origin


def is_among(tensor: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a result is an argument, which was made earlier."""
    return any(
        tensor is value or isinstance(value, list | tuple) and any(tensor is item for item in value)
        for value in arguments
    )


def place_of_the_program() -> str:
    """The innermost line that runs now and is not the library's own."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and is_of_the_package(frame.f_globals.get("__name__") or ""):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_of_the_package(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.") and not module.startswith(f"{PACKAGE}.tests.")


def origin_of(tensor: Any) -> Origin | None:
    """The origin of a tensor; None where it is not known."""
    found = _ORIGINS.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None


def telling_origin(error: RuntimeError, **tensors: Any) -> RuntimeError:
    """`error`, which is about these tensors, with where they were made; or with a note how to be told of it.

    tensors: what the message calls each of them -> the tensor.
    """
    if config.debug_origins:
        known = [(name, origin_of(tensor)) for name, tensor in tensors.items()]
        lines = [f"\n  {f'the {name} was made at':28} {origin}" for name, origin in known if origin is not None]
        error = type(error)(str(error) + "".join(lines))
    else:
        error.add_note("To be told where it was made, set redispatch.config.debug_origins = True before.")
    if any(tensor._counter is None for tensor in tensors.values()):
        error.add_note("To fix: x.to_normal_() makes it a normal tensor in place; x.clone() gives one beside it.")
    return error


def forget_origins(_: bool | str) -> None:
    """Drops what was noted, where it is not to be told any more."""
    if not config.debug_origins:
        _ORIGINS.clear()


ON_CHANGE.append(forget_origins)
