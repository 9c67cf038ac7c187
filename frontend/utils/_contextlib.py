"""PyTorch's names for regions that are decorators, too: programs derive their own settings from them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from redispatch.dispatch.regions import Region

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


class _DecoratorContextManager(Region):
    """A region that is entered anew for each call of what it decorates."""

    def clone(self) -> Any:
        """Returns a region made without arguments; one that has some says how it is made."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same, as a decorator without brackets."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


class _Made(_DecoratorContextManager):
    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self.make = make

    def __enter__(self) -> Any:
        self.entered = self.make()
        return self.entered.__enter__()

    def __exit__(self, *error: Any) -> Any:
        return self.entered.__exit__(*error)

    def clone(self) -> _Made:
        return _Made(self.make)


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `func` within a context manager, or within one that `ctx()` makes for each call."""
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise ValueError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), making it ambiguous "
            "which interface to use. If you intended to pass a context manager factory, rewrite your call as "
            "context_decorator(lambda: ctx()); if you intended to pass a context manager directly, rewrite your call "
            "as context_decorator(lambda: ctx)"
        )
    return _Made(ctx if callable(ctx) else lambda: ctx)(func)
