"""Adagrad: the step of every element is divided by the root of the sum of its squared gradients so far.

    s ← s + g²
    p ← p - lr / (1 + (t - 1) · lr_decay) · g / (√s + ε)

Source: Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization" (2011).
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import preserve_format
from redispatch.kernels.ops import creation

from .optimizer import Group, Optimizer, begin, check_lr, check_not_negative, count_step, number


class Adagrad(Optimizer):
    """Adagrad. `maximize` goes uphill; `foreach` and `fused` change no result.

    Errors: ValueError for a negative option.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative("lr_decay value", lr_decay)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("initial_accumulator_value value", initial_accumulator_value)
        check_not_negative("epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                state = self.state[param]
                begin(param, state)
                value = group["initial_accumulator_value"]
                state["sum"] = creation.full_like(param, value, memory_format=preserve_format).detach()

    def share_memory(self) -> None:
        """Nothing: the memory is that of this process."""

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        step = count_step(state)
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        size = number(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        total = state["sum"].addcmul_(grad, grad, value=1)
        param.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-size)
