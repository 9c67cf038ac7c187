"""Adafactor: steps as large as the parameter, with a second moment of matrices kept as one row and one column.

    r ← (1 - b) r + b · mean of g² along rows,   c likewise along columns,   b = t^beta2_decay
    v = r c / mean(r)
    u = g / √max(v, ε₁²),   u ← u / max(1, rms(u) / d)
    p ← (1 - lr · weight_decay) p - min(lr, 1/√t) · max(ε₂, rms(p)) · u

Source: Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018).
"""

from __future__ import annotations

import math
from typing import Any

from .optimizer import Group, Optimizer, begin, count_step, number, zeros_like


class Adafactor(Optimizer):
    """Adafactor; `eps` is (ε₁, ε₂), with None for the dtype's smallest distance from 1. `maximize` goes uphill.

    Errors: ValueError for a negative option, a positive `beta2_decay` or a `d` below 1.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        for name, value in {
            "Learning rate": lr,
            "epsilon1": 0 if eps[0] is None else eps[0],
            "epsilon2": eps[1],
            "weight_decay": weight_decay,
        }.items():
            if not value >= 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            self._start(grad, state)
        step, rate = count_step(state), number(group["lr"])
        eps1, eps2 = group["eps"]
        eps1 = EPSILON[grad.dtype.name] if eps1 is None else eps1
        share = step ** group["beta2_decay"]
        size = max(eps2, rms(param)) * min(rate, 1 / math.sqrt(step))
        if group["weight_decay"] != 0:
            param.mul_(1 - rate * group["weight_decay"])
        squares = grad * grad
        if grad.dim() > 1:
            row = state["row_var"].lerp_(squares.mean(-1, True), share)
            column = state["col_var"].lerp_(squares.mean(-2, True), share)
            variance = (row @ column).div_(row.mean(-2, True).clamp_(min=eps1))
        else:
            variance = state["variance"].lerp_(squares, share).clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        param.add_(update, alpha=-size / max(1.0, rms(update) / group["d"]))

    def _start(self, grad: Any, state: dict[str, Any]) -> None:
        begin(grad, state)
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            state["variance"] = zeros_like(grad)


EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def rms(x: Any) -> float:
    """The root of the mean square."""
    return x.norm(2).item() / math.sqrt(x.numel())
