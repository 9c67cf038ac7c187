"""compatibility: a mark on functions that says whether programs for one version may count on them in the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}  # what stays as it is
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}  # what has said whether it does

NOTES = {
    True: "Backwards-compatibility for this API is guaranteed.",
    False: "This API is experimental and is *NOT* backward-compatible.",
}


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Returns a decorator that marks a function or class, and says so in its docstring."""

    def marked(fn: T) -> T:
        fn.__doc__ = f"{(fn.__doc__ or '').strip()}\n\n.. note::\n    {NOTES[is_backward_compatible]}\n"
        _MARKED_WITH_COMPATIBILITY[fn] = None
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS[fn] = None
        return fn

    return marked
