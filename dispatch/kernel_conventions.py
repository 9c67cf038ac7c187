"""Conventions of kernels: from a function as its author wrote it to a boxed kernel. Four, named in `Kernel.convention`:

boxed        function(op, keyset, stack)           a layer: one function for every operator
positional   function(*stack)                      a built-in kernel: every schema argument by position
python       function(*args, **kwargs)             a user's kernel: see `unbind`
keyset       function(keyset, *args, **kwargs)     a user's kernel that redispatches
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.boxing import unbind
from .core.table import Boxed, Kernel
from .keyset_class import DispatchKeySet
from .schema.results import checked
from .specialiser.annotations import inline


def box(function: Callable[..., Any], op: Any, convention: str) -> Boxed:
    """The boxed form of `function`, a kernel of `op` which takes its arguments by `convention`."""
    if convention == "boxed":
        return function
    if convention == "positional":

        @inline
        def positional_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            return function(*stack)

        return positional_kernel
    schema = op.schema
    if convention == "python":

        @inline
        def python_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            args, kwargs = unbind(schema, stack)
            return checked(schema, function(*args, **kwargs))

        return python_kernel
    if convention == "keyset":

        @inline
        def keyset_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            args, kwargs = unbind(schema, stack)
            return checked(schema, function(DispatchKeySet(keyset), *args, **kwargs))

        return keyset_kernel
    raise ValueError(f"unknown calling convention {convention!r}")


def box_fallback(function: Callable[..., Any], with_keyset: bool) -> Boxed:
    """The boxed form of a user's fallback for all operators: `function([keyset,] op, *args, **kwargs)`."""

    @inline
    def fallback(op: Any, keyset: int, stack: list[Any]) -> Any:
        args, kwargs = unbind(op.schema, stack)
        return function(DispatchKeySet(keyset), op, *args, **kwargs) if with_keyset else function(op, *args, **kwargs)

    return fallback


def _fall_through(op: Any, keyset: int, stack: list[Any]) -> Any:
    raise AssertionError(f"{op} ran a fallthrough kernel, which the table never hands out")


def fallthrough(place: str, library: str = "") -> Kernel:
    """The kernel that stands for "skip this key", at no cost when a call runs."""
    return Kernel(_fall_through, _fall_through, "fallthrough", place, library)
