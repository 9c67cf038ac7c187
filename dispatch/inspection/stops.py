"""Stops: the breakpoints that stand. An operator that one concerns runs boxed. Read next: breakpoint.py."""

from __future__ import annotations

from typing import Any

STOPS: list[Any] = []


def with_stops(op: Any, entry: Any) -> Any:
    """The entry of an operator, with the breakpoints that stand before its kernel."""
    for stop in STOPS:
        entry = stop.before(op, entry)
    return entry
