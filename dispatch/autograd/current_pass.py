"""The backward pass that runs now, for those that have to tell one pass from another (`utils.checkpoint`).

To say so takes as long as a small node does; so it is said only in a process in which somebody asked (watch.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from .engine import Target, run_backward


class BackwardPass:
    """One backward pass. `partial`: it goes only where some gradients were asked for."""

    __slots__ = ("partial", "__weakref__")

    def __init__(self, partial: bool) -> None:
        self.partial = partial


CURRENT_PASS: ContextVar[BackwardPass | None] = ContextVar("current backward pass", default=None)


def run_announced(roots: Sequence[Target], gradients: Sequence[Any], **options: Any) -> list[Any]:
    """`run_backward`, during which CURRENT_PASS says that it runs."""
    token = CURRENT_PASS.set(BackwardPass(partial=bool(options.get("targets"))))
    try:
        return run_backward(roots, gradients, **options)
    finally:
        CURRENT_PASS.reset(token)
