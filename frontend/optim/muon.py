"""Muon: momentum whose matrix is made nearly orthogonal, so that no direction of a weight is left behind.

    b ← momentum · b + (1 - momentum) · g
    u ← g + momentum (b - g) if nesterov, else b
    o ← U Vᵀ, about, of the singular value decomposition u = U S Vᵀ
    p ← (1 - lr · weight_decay) p - lr' · o

The polynomial a x + b x³ + c x⁵, applied to a matrix, acts on its singular values; a few times over it takes all of
them near 1. It is computed in bfloat16, which is enough for that.

Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).
"""

from __future__ import annotations

import math
from typing import Any

from redispatch.kernels.ops import linalg

from .optimizer import Group, Optimizer, number, zeros_like


class Muon(Optimizer):
    """Muon, for matrices. `adjust_lr_fn` says how the rate depends on the shape: "original", "match_rms_adamw".

    Errors: ValueError for a negative option, or a parameter that is no matrix.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        for name, value in {"Learning rate": lr, "momentum": momentum, "weight decay": weight_decay}.items():
            if not value >= 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: " + str(param.size())
                    )

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            state["momentum_buffer"] = zeros_like(grad)
        momentum, rate = group["momentum"], number(group["lr"])
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        param.mul_(1 - rate * group["weight_decay"])
        param.add_(update, alpha=-rate * shape_factor(group["adjust_lr_fn"], *param.shape))


def orthogonalized(matrix: Any, coefficients: Any, steps: int, eps: float) -> Any:
    """The matrix with all its singular values near 1, in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    x = x.t() if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.t()
        x = linalg.addmm(x, linalg.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x


def shape_factor(rule: str | None, rows: int, columns: int) -> float:
    """How much larger steps of a matrix of this shape are."""
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
