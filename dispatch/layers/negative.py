"""Negative: the imaginary part of `x.conj()` is a view of x with a bit, since it is that of x with the other sign."""

from __future__ import annotations

from typing import Any

from ..core.keyset import keyset as keys
from ..core.operator import OpOverload
from .layer import layer
from .lazy_bit import run_worked_out

NEGATIVE = keys("Negative")


@layer("Negative")
def negative(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` on the negatives themselves, where an argument is a negative view."""
    return run_worked_out(op, keyset, stack, NEGATIVE)
