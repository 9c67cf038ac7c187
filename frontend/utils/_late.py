"""Names of a room that are imported when they are asked for: whoever wants one needs none of the others.

    __getattr__, __dir__ = late_names(__name__, {"ProfilerMode": "profiler"})

Read next: modes/__init__.py, which uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_names(room: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A room's `__getattr__` and `__dir__`. places: name -> the file in the room that has it.

    Errors: AttributeError, from `__getattr__`, for a name that is not in `places`.
    """

    def __getattr__(name: str) -> Any:
        if name in places:
            return getattr(import_module(f"{room}.{places[name]}"), name)
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[room]), *places})

    return __getattr__, __dir__
