"""LRScheduler: after each epoch (or batch), `scheduler.step()` sets the learning rate of every group.

`get_lr` says what the rates become in epoch `last_epoch`. Most schedules change the present rate by a factor, and so
several of them can act on one optimizer; some start from the initial rate each time. Making a scheduler is its step
into epoch 0. Read next: simple.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from redispatch.dispatch.tensor import Tensor

from ..optimizer import Optimizer, number


class LRScheduler:
    """Sets the learning rates of an optimizer's groups; a subclass gives `get_lr`.

    `last_epoch` is the epoch to go on from; then the groups must have an "initial_lr".
    Errors: TypeError for what is no optimizer, KeyError for a group without "initial_lr".
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for number_of_group, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number_of_group}] when resuming scheduler "
                    "with last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a "
                    "fresh training run (not recommended)"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[Any]:
        """The rates of all groups in epoch `last_epoch`; the optimizer still has those of the epoch before."""
        raise NotImplementedError(f"{type(self).__name__} does not give get_lr()")

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set."""
        return self._last_lr

    def step(self) -> None:
        """Goes on to the next epoch. To be called after the optimizer's step; warns where there was none yet."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                "to do this will result in PyTorch skipping the first value of the learning rate schedule. See "
                "more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch += 1
        self._set(self.get_lr())

    def begin(self) -> None:
        """Steps into epoch 0, from the initial rates, whatever was before: another schedule's turn may come late."""
        self._set(self.base_lrs)
        self.last_epoch, self._step_count = -1, 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def _set(self, rates: Iterable[Any]) -> None:
        """Gives the groups these rates."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = self._present()

    def _present(self) -> list[Any]:
        """The rates that the optimizer has now."""
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _times(self, factor: float) -> list[Any]:
        """The present rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict()` of such a scheduler gave."""
        self.__dict__.update(state_dict)


def set_rate(group: dict[str, Any], rate: Any) -> None:
    """Gives a group this rate; one that is a tensor stays the same tensor."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(number(rate))
    else:
        group["lr"] = rate


def copied(rate: Any) -> Any:
    """A rate that does not change when the optimizer's does, if it is a tensor."""
    return rate.clone() if isinstance(rate, Tensor) else rate


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group: the same for all, or a list of as many. ValueError for a list of another length."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [copied(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {groups}."
        )
    return list(map(copied, value))


def check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
