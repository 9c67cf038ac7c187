"""Averages of models over training: stochastic weight averaging, exponential moving averages, and what belongs to them.

    averaged = AveragedModel(model)          # beside the optimizer's steps:
    averaged.update_parameters(model)
    update_bn(loader, averaged)              # at the end: the statistics of the averaged model's batch norms

Source: Izmailov et al., "Averaging weights leads to wider optima and better generalization" (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops.from_data import tensor
from redispatch.nn import Module

from .lr_scheduler.scheduler import LRScheduler, for_each_group
from .optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_swa_avg_fn() -> Callable[[Any, Any, Any], Any]:
    """The mean of all models so far: average + (current - average) / (how many it is of + 1)."""

    def average(averaged: Any, current: Any, count: Any) -> Any:
        with no_grad():
            return averaged + (current - averaged) / (count + 1)

    return average


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], Any]:
    """A mean that forgets: decay · average + (1 - decay) · current. ValueError for a decay outside [0, 1]."""
    if not 0 <= decay <= 1:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    def average(averaged: Any, current: Any, count: Any) -> Any:
        with no_grad():
            return decay * averaged + (1 - decay) * current

    return average


def of_lists(average: Callable[[Any, Any, Any], Any]) -> Callable[[list[Any], list[Any], Any], None]:
    """Returns the average as a function of lists of tensors, in place."""

    def averages(averaged: list[Any], current: list[Any], count: Any) -> None:
        with no_grad():
            for one, other in zip(averaged, current, strict=True):
                one.copy_(average(one, other, count))

    return averages


def get_swa_multi_avg_fn() -> Callable[[list[Any], list[Any], Any], None]:
    return of_lists(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[list[Any], list[Any], Any], None]:
    return of_lists(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of a model whose parameters are an average; called, it is the averaged model.

    avg_fn, multi_avg_fn: how they are averaged, one by one or in lists; by default their mean.
    use_buffers: whether buffers are averaged, too; else they are those of the last model.
    """

    n_averaged: Any
    module: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[[Any, Any, Any], Any] | None = None,
        multi_avg_fn: Callable[[list[Any], list[Any], Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes a model into the average; the first one becomes it."""
        averaged, current = (self._averaged_of(one) for one in (self.module, model))
        current = [one.to(other.device) for one, other in zip(current, averaged, strict=True)]
        with no_grad():
            if self.n_averaged == 0:
                for one, other in zip(averaged, current, strict=True):
                    one.copy_(other)
            else:
                average = self.multi_avg_fn or of_lists(self.avg_fn or get_swa_avg_fn())
                average(averaged, current, self.n_averaged)
            if not self.use_buffers:
                for one, other in zip(self.module.buffers(), model.buffers(), strict=True):
                    one.copy_(other)
            self.n_averaged += 1

    def _averaged_of(self, model: Any) -> list[Any]:
        """Returns the tensors to be averaged, detached."""
        buffers = model.buffers() if self.use_buffers else ()
        return [one.detach() for one in chain(model.parameters(), buffers)]


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Makes the running statistics of all batch norms those of the inputs that `loader` gives, or pairs of them."""
    norms = [module for module in model.modules() if hasattr(module, "reset_running_stats")]
    if not norms:
        return
    was_training, momenta = model.training, [norm.momentum for norm in norms]
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over all batches
    with no_grad():
        for batch in loader:
            input = batch[0] if isinstance(batch, list | tuple) else batch
            model(input if device is None else input.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """To the rate `swa_lr` in `anneal_epochs`, along a cosine or a line; it stays there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for group, rate in zip(optimizer.param_groups, for_each_group("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (self._share(t) for t in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            end, rate = group["swa_lr"], group["lr"]
            start = end if before == 1 else (rate - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates

    def _share(self, step: int) -> float:
        """Returns how much of the way is gone."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2
