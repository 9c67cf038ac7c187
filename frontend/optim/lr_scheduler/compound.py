"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler


class _Compound(LRScheduler):
    """What both kinds share: a list of schedules, saved with them."""

    _schedulers: Sequence[Any]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, and the states of the schedules."""
        saved = super().state_dict()
        return {**saved, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

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
        first = schedulers[bisect_right(milestones, 0)]
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        first.begin()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler.begin()
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def begin(self) -> None:
        """Starts the first schedule."""
        self.last_epoch = 0
        self._schedulers[bisect_right(self._milestones, 0)].begin()
        self._last_lr = self._present()


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

    def step(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()

    def begin(self) -> None:
        """Starts all of them."""
        for scheduler in self._schedulers:
            scheduler.begin()
        self._last_lr = self._present()
