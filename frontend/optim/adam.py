"""Adam: every element has a step size of its own, from running means of its gradient and the gradient's square.

    m ← β₁ m + (1 - β₁) g          m̂ = m / (1 - β₁ᵗ)
    v ← β₂ v + (1 - β₂) g²         v̂ = v / (1 - β₂ᵗ)
    p ← p - lr · m̂ / (√v̂ + ε)

The running means start at zero; the divisors make up for that. `amsgrad` takes the largest v so far in the place of v.
Weight decay adds weight_decay · p to g; decoupled, it shrinks p by itself (adamw.py).

Sources: Kingma and Ba, "Adam: a method for stochastic optimization" (2014); Reddi, Kale and Kumar, "On the convergence
of Adam and beyond" (2018).
"""

from __future__ import annotations

import math
from typing import Any

from redispatch.kernels.ops import arithmetic
from redispatch.kernels.ops.fused_updates import adam_op, adamw_op, foreach_add_op

from .optimizer import Group, Optimizer, begin, check_betas, check_lr, check_not_negative, count_step, number


class Adam(Optimizer):
    """Adam. `maximize` goes uphill.

    `foreach`, `fused` and `capturable` choose between PyTorch's implementations and change no result; here is one.
    Errors: ValueError for a negative option, or betas outside [0, 1).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative("epsilon value", eps)
        betas = number(betas[0]), number(betas[1])
        check_betas(betas)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def update_all(self, params: list[Any], group: Group) -> None:
        """All at once, by one operator; one after the other where the steps are recorded, or are complex."""
        if not params:
            return
        if group["differentiable"] or any(param.is_complex() for param in params):
            super().update_all(params, group)
            return
        states = [self.state[param] for param in params]
        for param, state in zip(params, states, strict=True):
            if not state:
                self._start(param, state, group)
        steps = [state["step"] for state in states]
        largest = [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else []
        foreach_add_op.functional(steps, 1)
        update = adamw_op if group["decoupled_weight_decay"] else adam_op
        beta1, beta2 = group["betas"]
        update.functional(
            params,
            [param.grad for param in params],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            largest,
            steps,
            lr=number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=group["amsgrad"],
            maximize=group["maximize"],
        )

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            self._start(param, state, group)
        lr = number(group["lr"])
        beta1, beta2 = group["betas"]
        if group["weight_decay"] != 0:
            if group["decoupled_weight_decay"]:
                param.mul_(1 - lr * group["weight_decay"])
            else:
                grad = grad.add(param, alpha=group["weight_decay"])
        step = count_step(state)
        mean = state["exp_avg"].mul_(beta1).add_(grad, alpha=1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).add_(grad * grad, alpha=1 - beta2)
        if group["amsgrad"]:
            square = arithmetic.maximum(state["max_exp_avg_sq"], square, out=state["max_exp_avg_sq"])
        # The divisors of the means are numbers: they go into the step size and the root, not into every element twice.
        root = (square.sqrt() / math.sqrt(1 - beta2**step)).add_(group["eps"])
        param.add_(mean / root, alpha=-lr / (1 - beta1**step))

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        begin(param, state, "exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))
