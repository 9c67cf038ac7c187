"""Derivatives of a function that is written in operators: run once more, recorded, and sent back.

An operator's kernel cannot be differentiated, but what it computes can often be written as mathematics, too. Then the
derivative need not be worked out by hand: it follows from the mathematics, and so do all further derivatives.

Read next: grad_level.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .grad_level import GradLevel
from .transposition import is_tensor


def pulled_back(
    function: Callable[..., Any], inputs: Sequence[Any], gradients: Sequence[Any], needs: Sequence[bool] | None = None
) -> list[Any]:
    """The gradients of `inputs`, of which some may be None, where those of the results of `function` are `gradients`.

    A result that is None has no gradient among these. None stands for zero, and for the gradient of an input that
    `needs` leaves out.
    """
    wanted = [is_tensor(x) and need for x, need in zip(inputs, needs or [True] * len(inputs), strict=True)]
    with GradLevel() as level:
        given = [level.leaf(x) if want else x for x, want in zip(inputs, wanted, strict=True)]
        results = [y for y in function(*given) if y is not None]
        pairs = [(y, g) for y, g in zip(results, gradients, strict=True) if g is not None]
        leaves = [x for x, want in zip(given, wanted, strict=True) if want]
        found = iter(level.gradients([y for y, _ in pairs], leaves, [g for _, g in pairs]))
        return [next(found) if want else None for want in wanted]
