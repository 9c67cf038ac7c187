"""Helpers with public module paths of their own, such as `_pytree`, `_python_dispatch`, `checkpoint` and `data`."""

from importlib import import_module
from typing import Any

from redispatch import _moved

LATE = (
    "backend_registration",
    "checkpoint",
    "collect_env",
    "data",
    "dlpack",
    "flop_counter",
    "hooks",
    "module_tracker",
)
OF_PRIVATEUSE1 = ("rename_privateuse1_backend", "generate_methods_for_privateuse1_backend")


def __getattr__(name: str) -> Any:
    """Imports a module when it is first asked for: lower rooms use this one, and few programs need these."""
    if name in LATE:
        return import_module(f"{__name__}.{name}")
    if name in OF_PRIVATEUSE1:
        return getattr(import_module(f"{__name__}.backend_registration"), name)
    if name == "swap_tensors":
        return import_module("redispatch.dispatch.tensor").swap_tensors
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


_moved.join(__name__)
