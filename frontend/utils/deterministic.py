"""`fill_uninitialized_memory`: whether deterministic algorithms fill what `empty` gives. An attribute, to be set."""

from __future__ import annotations

import sys
from types import ModuleType

from redispatch.kernels.settings import change, settings


class Deterministic(ModuleType):
    """The class of this module, whose attribute asks and changes the switches of the thread."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        return settings().fill_uninitialized

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode)}")
        change(fill_uninitialized=mode)


sys.modules[__name__].__class__ = Deterministic
