"""Helpers with public module paths of their own, such as `_pytree`, `_python_dispatch` and `data`."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """`data` is imported when it is first asked for: lower rooms use this one, and few programs need its threads."""
    if name == "data":
        return import_module(f"{__name__}.data")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
