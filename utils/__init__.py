"""Helpers with public module paths of their own, such as `_pytree`, `_python_dispatch`, `checkpoint` and `data`."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """`checkpoint` and `data` are imported when first asked for: lower rooms use this one, few programs need them."""
    if name in ("checkpoint", "data"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
