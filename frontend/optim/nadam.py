"""NAdam: Adam with Nesterov's momentum, which looks a step ahead. The share of the old mean grows with the steps.

    μₜ = β₁ (1 - 0.96^(t ψ) / 2)
    m ← β₁ m + (1 - β₁) g,   v ← β₂ v + (1 - β₂) g²
    p ← p - lr (1 - μₜ) / (1 - Π μ) · g / (√v̂ + ε) - lr μₜ₊₁ / (1 - Π μ · μₜ₊₁) · m / (√v̂ + ε)

Source: Dozat, "Incorporating Nesterov momentum into Adam" (2016).
"""

from __future__ import annotations

import math
from typing import Any

from redispatch.kernels.ops import creation

from .optimizer import Group, Optimizer, begin, check_betas, check_lr, check_not_negative, count_step, number


class NAdam(Optimizer):
    """NAdam; `momentum_decay` is ψ. `maximize` goes uphill; `foreach` and `capturable` change no result.

    Errors: ValueError for a negative option, or betas outside [0, 1).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            begin(param, state, "exp_avg", "exp_avg_sq")
            state["mu_product"] = creation.ones(())
        step, rate = count_step(state), number(group["lr"])
        beta1, beta2 = group["betas"]
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - rate * group["weight_decay"])
            else:
                grad = grad.add(param, alpha=group["weight_decay"])
        mu, ahead = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        state["mu_product"] *= mu
        product = state["mu_product"].item()
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = (square.sqrt() / math.sqrt(1 - beta2**step)).add_(group["eps"])
        param.addcdiv_(grad, root, value=-rate * (1 - mu) / (1 - product))
        param.addcdiv_(mean, root, value=-rate * ahead / (1 - product * ahead))
