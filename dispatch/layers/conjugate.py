"""Conjugate: `x.conj()` is a view of x with a bit; here the conjugates are computed, for operators that need them.

Matrix products need them not, since the kernel conjugates on the way or afterwards, and copies do it while they copy:
they have a fallthrough at this key.
"""

from __future__ import annotations

from typing import Any

from ..core.keyset import keyset as keys
from ..core.operator import OpOverload
from .layer import layer
from .lazy_bit import run_worked_out

CONJUGATE = keys("Conjugate")


@layer("Conjugate")
def conjugate(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs `op` on the conjugates themselves, where an argument is a conjugate view."""
    return run_worked_out(op, keyset, stack, CONJUGATE)
