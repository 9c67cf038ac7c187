"""Switches that a program sets and a kernel may obey: determinism, precision of products, threads, warnings.

`redispatch.utils.settings` has the public functions.
"""

from __future__ import annotations

import os
import warnings
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from redispatch.dispatch import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that a program has asked for."""

    deterministic: int = 0  # 0 "default", 1 "warn", 2 "error"
    fill_uninitialized: bool = True  # where it is not 0
    precision: str = "highest"
    interop_threads: int = os.cpu_count() or 1
    warn_always: bool = False


_SETTINGS: ContextVar[Settings] = ContextVar("settings that programs ask for")
_AT_FIRST = Settings()


def settings() -> Settings:
    """Returns the switches of this thread or task."""
    return _SETTINGS.get(_AT_FIRST)


def check_determinism(name: str) -> None:
    """Raises RuntimeError, or warns, where a program asks for determinism; for a kernel that PyTorch says has none.

    The kernels here are deterministic: they write in order. A program that PyTorch refuses is refused all the same.
    """
    level = settings().deterministic
    if level <= 0:
        return
    message = (
        f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    )
    if level == 1:
        warnings.warn(f"{message}, warn_only=True)'.", UserWarning, stacklevel=2)
        return
    raise RuntimeError(
        f"{message})'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' "
        "option, if that's acceptable for your application."
    )


def change(**changes: Any) -> None:
    """Changes some of the switches."""
    _SETTINGS.set(replace(settings(), **changes))
