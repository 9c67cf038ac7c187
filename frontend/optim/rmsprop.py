"""RMSprop: the gradient over the root of the running mean of its square; with momentum, if asked for.

    s ← α s + (1 - α) g²
    d ← g / (√s + ε)                 centered: g / (√(s - a²) + ε), with a the running mean of g
    b ← momentum · b + d
    p ← p - lr · b

Source: Hinton, "Neural networks for machine learning", lecture 6 (2012); Graves, "Generating sequences with recurrent
neural networks" (2013), for the centered form.
"""

from __future__ import annotations

from typing import Any

from .optimizer import Group, Optimizer, begin, check_lr, check_not_negative, count_step, number


class RMSprop(Optimizer):
    """RMSprop. `maximize` goes uphill; `foreach` and `capturable` change no result.

    Errors: ValueError for a negative option.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("alpha value", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            momentum, mean = group["momentum"] > 0, group["centered"]
            begin(param, state, "square_avg", *["momentum_buffer"] * momentum, *["grad_avg"] * mean)
        count_step(state)
        alpha, size = group["alpha"], number(group["lr"])
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        root = square.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, root)
            param.add_(buffer, alpha=-size)
        else:
            param.addcdiv_(grad, root, value=-size)
