"""Names of operations on symbolic numbers: what PyTorch calls the methods of its SymNode."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import redispatch
from redispatch.dispatch.symbolic import Symbolic, SymNode

__all__ = ["SymNode", "method_to_operator", "to_node"]

SPECIAL = {
    "pow_by_natural": operator.pow,
    "float_pow": operator.pow,
    "int_truediv": operator.truediv,
    "float_truediv": operator.truediv,
    "int_floordiv": operator.floordiv,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.not_,
}


def method_to_operator(method: str) -> Callable[..., Any]:
    """Returns the function that does what a method of a SymNode does, by its name: `operator.add` for "add"."""
    name = method.removeprefix("bitwise_") if method.startswith("bitwise_") else method
    found: Any = SPECIAL.get(name)
    if found is not None:
        return found
    for place, candidate in (
        (redispatch, method),
        (redispatch, f"_{method}"),
        (math, method),
        (operator, name),
        (builtins, method),
    ):
        if hasattr(place, candidate) and (place is not redispatch or method.startswith("sym_")):
            found = getattr(place, candidate)
            return found
    raise ValueError(f"no function does what {method!r} says; expected a method of SymNode, such as add or sym_float")


def to_node(self: SymNode, num: Any) -> Any:
    """Returns the inside of a number: its own where it is symbolic, else the number."""
    return num.node if isinstance(num, Symbolic) else num
