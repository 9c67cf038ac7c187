"""`redispatch.utils._mode_utils`: two helpers of those who write modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._python_dispatch import no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Returns whether these are one mode, again and again."""
    return all(mode is modes[0] for mode in modes)
