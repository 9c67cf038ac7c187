"""Tracer: hands each operator that a traced program calls to who records it, with what it returned.

The key is in the thread's state while `jit.trace` runs, and is taken out for what operators call in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ..core.interpreter import run
from ..core.keyset import below, keyset
from ..core.operator import OpOverload
from ..core.state import STATE, within
from ..specialiser.annotations import leaf
from .layer import layer

TRACER, BELOW_TRACER = keyset("Tracer"), below("Tracer")

# (operator, stack, function that runs it) -> its result
RECORDER: ContextVar[Callable[[OpOverload, list[Any], Callable[[], Any]], Any] | None] = ContextVar(
    "RECORDER", default=None
)


@layer("Tracer")
def tracer(op: OpOverload, keys: int, stack: list[Any]) -> Any:
    """Runs the operator below, and has it recorded."""
    return recorded(op, keys & BELOW_TRACER, stack)


@leaf
def recorded(op: OpOverload, keys: int, stack: list[Any]) -> Any:
    recorder = RECORDER.get()
    with within(STATE.get().excluding(TRACER)):  # the recorder's own operators are not recorded either
        return run(op, keys, stack) if recorder is None else recorder(op, stack, lambda: run(op, keys, stack))
