"""Stochastic gradient descent, with momentum.

    g ← grad + weight_decay · p
    b ← momentum · b + (1 - dampening) · g          (b ← g in the first step)
    p ← p - lr · b                                  (nesterov: p - lr · (g + momentum · b))

Source: Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013), but with the
learning rate outside the momentum, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

from .optimizer import Group, Optimizer, check_lr, check_not_negative, number


class SGD(Optimizer):
    """Stochastic gradient descent. `maximize` goes uphill.

    `foreach` and `fused` choose between PyTorch's implementations and change no result; here there is one.
    Errors: ValueError for a negative option, or nesterov without momentum or with dampening.

    >>> import redispatch as rd
    >>> x = rd.tensor([1.0], requires_grad=True)
    >>> optimizer = rd.optim.SGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.800000011920929]
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])
        momentum = group["momentum"]
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        param.add_(grad, alpha=-number(group["lr"]))
