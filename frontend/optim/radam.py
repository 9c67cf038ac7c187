"""RAdam: Adam that goes by the mean alone until enough gradients were seen to know their variance.

    ρ∞ = 2 / (1 - β₂) - 1,   ρₜ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ)
    ρₜ > 5:  p ← p - lr m̂ · √((ρₜ - 4) (ρₜ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρₜ)) / (√v̂ + ε)
    else:    p ← p - lr m̂

Source: Liu et al., "On the variance of the adaptive learning rate and beyond" (2019).
"""

from __future__ import annotations

import math
from typing import Any

from .optimizer import Group, Optimizer, begin, check_betas, check_lr, check_not_negative, count_step, number


class RAdam(Optimizer):
    """RAdam. `maximize` goes uphill; `foreach` and `capturable` change no result.

    Errors: ValueError for a negative option, or betas outside [0, 1).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            begin(param, state, "exp_avg", "exp_avg_sq")
        t, rate = count_step(state), number(group["lr"])
        beta1, beta2 = group["betas"]
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - rate * group["weight_decay"])
            else:
                grad = grad.add(param, alpha=group["weight_decay"])
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        size, seen = rate / (1 - beta1**t), 1 - beta2**t
        most = 2 / (1 - beta2) - 1
        length = most - 2 * t * beta2**t / seen  # of the running mean of squares, in gradients
        if length <= 5:
            param.add_(mean, alpha=-size)
            return
        correction = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        param.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-size * correction * math.sqrt(seen))
