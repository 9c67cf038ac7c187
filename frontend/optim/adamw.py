"""AdamW: Adam with weight decay that is decoupled from the gradient, and so not divided by its running size.

Source: Loshchilov and Hutter, "Decoupled weight decay regularization" (2017).
"""

from __future__ import annotations

from typing import Any

from .adam import Adam


class AdamW(Adam):
    """Adam which shrinks every parameter by lr · weight_decay of itself before each update."""

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # whatever a checkpoint of Adam says: it is what makes this AdamW
