"""Schedules by what happens, and schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer, number
from .scheduler import LRScheduler, check_optimizer, copied, set_rate


class ReduceLROnPlateau(LRScheduler):
    """Rate · `factor` behind more than `patience` epochs without improvement; `step(metrics)` tells of an epoch.

    mode:      "min" for what shall fall, "max" for what shall rise
    threshold: how much counts as better, as a share of the best ("rel") or by itself ("abs")
    cooldown:  epochs after a fall in which nothing counts
    min_lr:    below which no rate falls, for all groups or a list; a fall by less than `eps` is left out
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        if several and len(min_lr) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._present()
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]  # as PyTorch's does
        """Tells what the quantity was in this epoch."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._present()

    def _is_better(self, current: float) -> bool:
        up = 1 if self.mode == "max" else -1
        bound = (
            self.best * (1 + up * self.threshold) if self.threshold_mode == "rel" else self.best + up * self.threshold
        )
        return current > bound if self.mode == "max" else current < bound

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):  # some were added
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            rate = float(number(group["lr"]))
            lower = max(rate * self.factor, least)
            if rate - lower > self.eps:
                set_rate(group, copied(lower))


class _Compound(LRScheduler):
    """The common base of both kinds: a list of schedules, saved with them."""

    _schedulers: Sequence[Any]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, and the states of the schedules."""
        saved = super().state_dict()
        return {**saved, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def _update_lr(self, epoch: int | None = None) -> None:
        """Begins, from the initial rates: within a SequentialLR, its turn has come."""
        self._set(copied(group["initial_lr"]) for group in self.optimizer.param_groups)
        self._initial_step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(saved)


def check_schedulers(name: str, schedulers: Sequence[Any], optimizer: Optimizer | None, purpose: str) -> Optimizer:
    """The optimizer that all of them act on.

    Errors: ValueError for none, for several optimizers and for a schedule whose step needs an argument; TypeError for
    what is no schedule.
    """
    if not schedulers:
        raise ValueError(f"{name} expects at least one scheduler{purpose}, but got no scheduler.")
    for index, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {index} should have `optimizer` as its attribute.")
        optimizer = optimizer or scheduler.optimizer
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {index} in the given schedulers sequence."
            )
        if optimizer is not scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {index} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )
    assert optimizer is not None
    return optimizer


class SequentialLR(_Compound):
    """The first schedule up to the first of the `milestones`, then the second, from its epoch 0, and so on.

    Errors: ValueError where there is not one milestone fewer than schedules.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int], last_epoch: int = -1
    ) -> None:
        check_schedulers("SequentialLR", schedulers, optimizer, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for scheduler in simple(schedulers):
            scheduler.last_epoch -= 1  # its own step into epoch 0 comes when it is its turn
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._initial_step()

    def _initial_step(self) -> None:
        self.last_epoch = 0
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]  # to no other epoch, as PyTorch's
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def simple(schedulers: Sequence[Any]) -> list[Any]:
    """The schedules themselves, those within others in their place."""
    found: list[Any] = []
    for scheduler in schedulers:
        found += simple(scheduler._schedulers) if isinstance(scheduler, _Compound) else [scheduler]
    return found


class ChainedScheduler(_Compound):
    """All schedules at once: each changes the rate that the one before leaves."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        self.optimizer = check_schedulers("ChainedScheduler", schedulers, optimizer, " to be chained")
        self._schedulers = schedulers
        self._last_lr = self._present()

    def step(self) -> None:  # type: ignore[override]  # to no other epoch, as PyTorch's
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()

    def _initial_step(self) -> None:
        for scheduler in self._schedulers:
            scheduler._initial_step()
        self._last_lr = self._present()
