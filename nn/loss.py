"""Losses as modules. `reduction` says what becomes of the losses of a batch: "mean", "sum" or "none"."""

from __future__ import annotations

from typing import Any

from . import functional
from .module import Module


class L1Loss(Module):
    """|input - target|."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Any:
        return functional.l1_loss(input, target, reduction=self.reduction)


class MSELoss(Module):
    """(input - target)²."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Any:
        return functional.mse_loss(input, target, reduction=self.reduction)


class NLLLoss(Module):
    """-weight[target] * input[target], for log-probabilities over the classes in dimension 1.

    Targets equal to `ignore_index` count for nothing. The mean is weighted: the sum, divided by the sum of the weights.
    """

    weight: Any

    def __init__(self, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, input: Any, target: Any) -> Any:
        return functional.nll_loss(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class CrossEntropyLoss(Module):
    """The negative log-likelihood of the targets under softmax(input), over the classes in dimension 1.

    `label_smoothing` mixes that share of a uniform distribution into the targets.
    """

    weight: Any

    def __init__(
        self,
        weight: Any = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def forward(self, input: Any, target: Any) -> Any:
        return functional.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
