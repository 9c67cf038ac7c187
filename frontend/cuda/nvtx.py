"""`redispatch.cuda.nvtx`: names of regions for NVIDIA's profilers. None looks on here, so regions only count how deep
they are in each other; `redispatch.profiler` has its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any

_DEPTH: ContextVar[int] = ContextVar("regions that are open", default=0)
_NUMBERS = count(1)

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg: str) -> int:
    """Opens a region; how many are open around it."""
    depth = _DEPTH.get()
    _DEPTH.set(depth + 1)
    return depth


def range_pop() -> int:
    """Closes the innermost region; how many are open around it, -1 if none was open."""
    depth = max(_DEPTH.get() - 1, -1)
    _DEPTH.set(max(depth, 0))
    return depth


def range_start(msg: str) -> int:
    """Opens a region that may overlap others, and returns its number."""
    return next(_NUMBERS)


def range_end(range_id: int) -> None:
    """Closes it."""


def mark(msg: str) -> None:
    """Names a moment."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A block, or a function, that is a region."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
