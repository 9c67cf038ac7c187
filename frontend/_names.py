"""Names that only forward: one row of a table for each module that they come from.

    __all__ = take(globals(), {"redispatch.dispatch": "DispatchKey Tag", ".gradcheck": "gradcheck gradgradcheck"})

Type checkers run no tables. They read the stub beside the file, which `python -m redispatch.stubs` writes of `TAKEN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

TAKEN: dict[str, dict[str, str]] = {}  # a module -> a name in it -> the module that it comes from


def take(scope: dict[str, Any], rows: Mapping[str, str]) -> list[str]:
    """Gives the module of this scope the names of others, and returns them. rows: a module -> its names."""
    here = scope["__name__"]
    package = here if "__path__" in scope else here.rpartition(".")[0]
    taken = TAKEN.setdefault(here, {})
    for place, names in rows.items():
        module = import_module(place, package)
        for name in names.split():
            scope[name] = getattr(module, name)
            taken[name] = place
    return list(taken)
