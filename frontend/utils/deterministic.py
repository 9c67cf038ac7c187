"""`fill_uninitialized_memory`: whether deterministic algorithms fill what `empty` gives. An attribute, to be set."""

from __future__ import annotations

import sys
from types import ModuleType

from redispatch.kernels.settings import change, settings


class Deterministic(ModuleType):
    """The class of this module, whose attribute asks and changes the switches of the thread."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        return _get_deterministic_fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        _set_deterministic_fill_uninitialized_memory(mode)


def _get_deterministic_fill_uninitialized_memory() -> bool:
    return settings().fill_uninitialized


def _set_deterministic_fill_uninitialized_memory(mode: bool) -> None:
    if not isinstance(mode, bool):
        raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
    change(fill_uninitialized=mode)


sys.modules[__name__].__class__ = Deterministic
