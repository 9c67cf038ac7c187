"""Adadelta: steps as large as the steps before them, in units of the parameter, by the ratio of two running means.

    s ← ρ s + (1 - ρ) g²
    d ← g · √(u + ε) / √(s + ε)
    u ← ρ u + (1 - ρ) d²
    p ← p - lr · d

Source: Zeiler, "ADADELTA: an adaptive learning rate method" (2012).
"""

from __future__ import annotations

from typing import Any

from .optimizer import Group, Optimizer, begin, check_lr, check_not_negative, count_step, number


class Adadelta(Optimizer):
    """Adadelta. `maximize` goes uphill; `foreach` and `capturable` change no result.

    Errors: ValueError for a negative option, or a rho outside [0, 1].
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative("epsilon value", eps)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            begin(param, state, "square_avg", "acc_delta")
        count_step(state)
        rho, eps = group["rho"], group["eps"]
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        square = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = state["acc_delta"].add(eps).sqrt_().div_(square.add(eps).sqrt_()) * grad
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-number(group["lr"]))
