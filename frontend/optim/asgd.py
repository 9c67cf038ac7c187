"""Averaged stochastic gradient descent: steps of a falling rate, and the mean of where they have led since step t0.

    p ← (1 - λ η) p - η g          η = lr / (1 + λ lr t)^α
    a ← a + (p - a) · μ            μ = 1 / max(1, t - t0), where the mean is the parameter itself up to then

Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992).
"""

from __future__ import annotations

from typing import Any

from redispatch.kernels.ops import creation

from .optimizer import Group, Optimizer, begin, check_lr, check_not_negative, count_step, number


class ASGD(Optimizer):
    """Averaged SGD; the mean is `state["ax"]`. `maximize` goes uphill; `foreach` and `capturable` change no result.

    Errors: ValueError for a negative option.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        rate, decay = number(group["lr"]), group["lambd"]
        if not state:
            begin(param, state, "ax")
            state["eta"], state["mu"] = creation.full((), rate), creation.ones(())
        step = count_step(state)
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        eta, mu, mean = state["eta"].item(), state["mu"].item(), state["ax"]
        param.mul_(1 - decay * eta).add_(grad, alpha=-eta)
        if mu == 1:
            mean.copy_(param)
        else:
            mean.add_((param - mean).mul_(mu))
        # As default floats, whatever a checkpoint made of the state.
        state["eta"].copy_(creation.full((), rate / (1 + decay * rate * step) ** group["alpha"]))
        state["mu"].copy_(creation.full((), 1 / max(1, step - group["t0"])))
