"""Rprop: only the gradient's sign counts. A step grows while the sign stays, and shrinks when it turns.

    turned:   step ← step · η₋, and the gradient counts as 0
    the same: step ← step · η₊
    p ← p - step · sign(g)

Source: Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993).
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import preserve_format
from redispatch.kernels.ops import creation

from .optimizer import Group, Optimizer, begin, check_lr, count_step, number


class Rprop(Optimizer):
    """Rprop; `lr` is the first step. `maximize` goes uphill; `foreach` and `capturable` change no result.

    Errors: ValueError for a negative learning rate, or etas that are not below and above 1.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            begin(param, state, "prev")
            state["step_size"] = creation.full_like(param, number(group["lr"]), memory_format=preserve_format).detach()
        count_step(state)
        shrink, grow = group["etas"]
        turn = grad * state["prev"]
        factor = creation.ones_like(turn).masked_fill_(turn > 0, grow).masked_fill_(turn < 0, shrink)
        size = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(turn < 0, 0)
        param.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)
