"""Marks: what a function or class tells the specialiser about itself. None of them changes what Python does with it.

    @inline     work this function out, statement by statement, where it is called
    @pure       the same arguments give the same answer: where all are known, ask once, when code is made
    @leaf       calls no operator, and asks nothing of the dispatch state but whether it is inference mode
    @frozen     a class whose instances, once made, keep their attributes: these may be read when code is made; or a
                function that keeps its own

A layer needs none of them; the helpers that it shares with others carry them. Read next: specialiser/.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")

FROZEN: set[type] = set()
BEHIND: dict[Any, CodeType] = {}  # what stands in a function that is swapped somewhere (../swap.py) -> its own code


def inline(function: F) -> F:
    """The function is worked out at each call, as if it had been written there."""
    function.__inline__ = True  # type: ignore[attr-defined]  # a mark of ours on Python's object
    return function


def pure(function: F) -> F:
    """The function has no effect and its answer depends on its arguments alone, tables that only grow included."""
    function.__pure__ = True  # type: ignore[attr-defined]  # a mark of ours on Python's object
    return function


def leaf(function: F) -> F:
    """The function calls no operator: what a layer sets in the dispatch state before it calls makes no difference."""
    function.__leaf__ = True  # type: ignore[attr-defined]  # a mark of ours on Python's object
    return function


def frozen(kind: C) -> C:
    """Attributes of instances are set once, or those of a function. (What an attribute holds, a dict for instance, may
    still change.)"""
    if isinstance(kind, type):
        FROZEN.add(kind)
    else:
        kind.__frozen__ = True  # type: ignore[attr-defined]  # a mark of ours on Python's object
    return kind


def code_of(function: Any) -> Any:
    """Returns the code with which a function was written, if it has any."""
    code = getattr(function, "__code__", None)
    return BEHIND.get(code, code)
