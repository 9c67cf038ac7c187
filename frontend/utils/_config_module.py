"""Modules of settings: `patch` changes some for a block or a function.

with config.patch(check_custom_op_aliasing=False): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


def patch_of(module: ModuleType) -> Callable[..., Any]:
    """Returns the `patch` of a module of settings: a region, and a decorator."""

    @contextmanager
    def patch(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
        """Gives settings other values: `patch("name", value)`, `patch({"name": value})`, `patch(name=value)`."""
        changes = {**(arg1 if isinstance(arg1, dict) else {} if arg1 is None else {arg1: arg2}), **kwargs}
        former = {name: getattr(module, name) for name in changes}
        vars(module).update(changes)
        try:
            yield
        finally:
            vars(module).update(former)

    return patch
