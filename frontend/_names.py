"""Names that only forward: one row of a table for each module that they come from.

    __all__ = take(globals(), {"redispatch.dispatch": "DispatchKey Tag", ".gradcheck": "gradcheck gradgradcheck"})
    PLACES, __getattr__, __dir__ = late(globals(), {".profiler": "ProfilerMode"})     # imported when asked for

Type checkers run no tables. They read the stub beside the file, which `python -m redispatch.stubs` writes of `TAKEN`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any

from ._absent import explains

TAKEN: dict[str, dict[str, str]] = {}  # a module -> a name in it -> the module that it comes from


def take(scope: dict[str, Any], rows: Mapping[str, str]) -> list[str]:
    """Gives the module of this scope the names of others, and returns them. rows: a module -> its names."""
    places = noted(scope, rows)
    for name, place in places.items():
        scope[name] = found(scope, name, place)
    return list(places)


def own(scope: dict[str, Any]) -> list[str]:
    """Returns the public names that the module of this scope defines itself: no others that it imports."""
    return [
        name
        for name, value in scope.items()
        if not name.startswith("_") and getattr(value, "__module__", None) == scope["__name__"]
    ]


def late(
    scope: dict[str, Any], rows: Mapping[str, str], make: Callable[[str], Any] = lambda name: None
) -> tuple[dict[str, str], Callable[[str], Any], Callable[[], Any]]:
    """Returns where each name is, and the `__getattr__` and `__dir__` of a module that imports it when asked for.

    Whoever wants one name needs none of the other modules. The row "." has modules of the package; `stem*` stands for
    all names of a module that begin so. What is in no row is what `make` makes of its name, if it is not None.
    Errors: AttributeError, from `__getattr__`, for other names.
    """
    families = {names[:-1]: place for place, names in rows.items() if names.endswith("*")}
    places = noted(scope, {place: names for place, names in rows.items() if not names.endswith("*")})

    def __getattr__(name: str) -> Any:
        if name in places:
            return kept(scope, name, places[name])
        for stem, place in families.items():
            if name.startswith(stem) and name in dir(import_module(place)):
                return kept(scope, name, place)
        made = make(name)
        if made is None:
            return explains(scope["__name__"])(name)
        return scope.setdefault(name, made)

    def __dir__() -> list[str]:
        all_of = (
            name for stem, place in families.items() for name in dir(import_module(place)) if name.startswith(stem)
        )
        return sorted({*scope, *places, *all_of})

    return places, __getattr__, __dir__


def former(function: Callable[..., Any], name: str, text: str, category: type[Warning] = FutureWarning) -> Any:
    """Returns a function under its former name, by which a call warns."""

    @wraps(function, updated=())  # not its attributes: it asks no handler, which `function` does
    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, category, stacklevel=2)
        return function(*args, **kwargs)

    deprecated.__name__ = deprecated.__qualname__ = name
    return deprecated


def noted(scope: dict[str, Any], rows: Mapping[str, str]) -> dict[str, str]:
    """Returns the module of each name, and notes it for the stub."""
    places = {name: place for place, names in rows.items() for name in names.split()}
    TAKEN.setdefault(scope["__name__"], {}).update(places)
    return places


def kept(scope: dict[str, Any], name: str, place: str) -> Any:
    """Returns what `found` returns, and keeps it if that module has it; what it computes when asked may change."""
    value = found(scope, name, place)
    if place == "." or name in vars(import_module(place, scope["__package__"])):
        scope[name] = value
    return value


def found(scope: dict[str, Any], name: str, place: str) -> Any:
    """Returns what a module has under a name; a module of this package for the place "."."""
    package = scope["__package__"]  # not its name, which is torch's while it is installed
    return import_module(f".{name}", package) if place == "." else getattr(import_module(place, package), name)
