"""Adamax: Adam with the largest gradient of late, which fades, in the place of the root of the mean square.

    m ← β₁ m + (1 - β₁) g
    u ← max(β₂ u, |g| + ε)
    p ← p - lr / (1 - β₁ᵗ) · m / u

Source: Kingma and Ba, "Adam: a method for stochastic optimization" (2014), section 7.
"""

from __future__ import annotations

from typing import Any

from redispatch.kernels.ops import arithmetic

from .optimizer import Group, Optimizer, begin, check_betas, check_lr, check_not_negative, count_step, number


class Adamax(Optimizer):
    """Adamax. `maximize` goes uphill; `foreach` and `capturable` change no result.

    Errors: ValueError for a negative option, or betas outside [0, 1).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            begin(param, state, "exp_avg", "exp_inf")
        step = count_step(state)
        beta1, beta2 = group["betas"]
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = state["exp_inf"].mul_(beta2)
        largest.copy_(arithmetic.maximum(largest, grad.abs().add_(group["eps"])))
        param.addcdiv_(mean, largest, value=-number(group["lr"]) / (1 - beta1**step))
