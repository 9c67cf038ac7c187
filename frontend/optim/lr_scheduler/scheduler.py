"""LRScheduler: after each epoch (or batch), `scheduler.step()` sets the learning rate of every group.

`get_lr` says what the rates become in epoch `last_epoch`. Most schedules change the present rate by a factor, and so
several of them can act on one optimizer; some start from the initial rate each time. Making a scheduler is its step
into epoch 0. The schedules by a factor stand here, too: each epoch's rate is the present one times something, or the
initial one; the formula is in the docstring, with t for the epoch. Read next: cycles.py.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from redispatch.dispatch.tensor import Tensor

from ..optimizer import Optimizer, number

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)


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
        self._initial_step()

    def get_lr(self) -> list[Any]:
        """The rates of all groups in epoch `last_epoch`; the optimizer still has those of the epoch before."""
        raise NotImplementedError(f"{type(self).__name__} does not give get_lr()")

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, or to any, which warns: PyTorch means to take that argument away.

        To be called after the optimizer's step; warns where there was none yet.
        """
        if self._step_count == 1 and not hasattr(self.optimizer.step, "hooked"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=2,
            )
        elif self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure "
                "to do this will result in PyTorch skipping the first value of the learning rate schedule. See "
                "more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch, or of any: those that a formula gives, where there is one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        self._set((closed or self.get_lr)())

    def _initial_step(self) -> None:
        """Makes the first step."""
        self._step_count = 0
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


class _LRScheduler(LRScheduler):
    """The former name of LRScheduler, of which programs derive schedules."""


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


# --- by a factor -----------------------------------------------------------------------------------------------------


class _LambdaScheduler(LRScheduler):
    """A schedule by functions of the epoch: one for all groups, or a list with one for each."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def _factors(self) -> list[float]:
        return [function(self.last_epoch) for function in self.lr_lambdas]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer. A function is not saved; of a callable object, its attributes are."""
        saved = super().state_dict()
        saved["lr_lambdas"] = [
            None if isinstance(function, FunctionType) else function.__dict__.copy() for function in self.lr_lambdas
        ]
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        rest = {key: value for key, value in state_dict.items() if key != "lr_lambdas"}
        super().load_state_dict(rest)
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_LambdaScheduler):
    """initial rate · lr_lambda(t)."""

    def get_lr(self) -> list[Any]:
        return [base * factor for base, factor in zip(self.base_lrs, self._factors(), strict=True)]


class MultiplicativeLR(_LambdaScheduler):
    """Present rate · lr_lambda(t), from t = 1 on."""

    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return self._present()
        return [rate * factor for rate, factor in zip(self._present(), self._factors(), strict=True)]


class _ClosedForm(LRScheduler):
    """A schedule that knows the rates of any epoch: eta_min + (initial rate - eta_min) · share(t)."""

    eta_min = 0.0

    def _share(self, t: int) -> float:
        """Returns what of the initial rate is left in epoch t."""
        raise NotImplementedError

    def _get_closed_form_lr(self) -> list[Any]:
        share, least = self._share(self.last_epoch), self.eta_min
        return [least + (base - least) * share for base in self.base_lrs]


class StepLR(_ClosedForm):
    """Present rate · gamma, every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._times(self.gamma) if due else self._present()

    def _share(self, t: int) -> float:
        return self.gamma ** (t // self.step_size)


class MultiStepLR(_ClosedForm):
    """Present rate · gamma, at each of the milestones; one that is named twice counts twice."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        times = self.milestones[self.last_epoch]
        return self._times(self.gamma**times) if times else self._present()

    def _share(self, t: int) -> float:
        return self.gamma ** sum(times for milestone, times in self.milestones.items() if milestone <= t)


class ExponentialLR(_ClosedForm):
    """Present rate · gamma, in every epoch from t = 1 on."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return self._present() if self._is_initial else self._times(self.gamma)

    def _share(self, t: int) -> float:
        return self.gamma**t


class ConstantLR(_ClosedForm):
    """The rate · `factor` for `total_iters` epochs, and then as it was.

    Errors: ValueError for a factor outside [0, 1].
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._times(self.factor)
        return self._times(1 / self.factor) if self.last_epoch == self.total_iters else self._present()

    def _share(self, t: int) -> float:
        return 1.0 if t >= self.total_iters else self.factor


class LinearLR(_ClosedForm):
    """The rate · f(t), where f goes in a straight line from `start_factor` to `end_factor` in `total_iters` epochs.

    The present rate holds f(t - 1); it is multiplied by f(t) / f(t - 1).
    Errors: ValueError for a start outside (0, 1] or an end outside [0, 1].
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        t = self.last_epoch
        if t == 0:
            return self._times(self.start_factor)
        if self._is_initial or t > self.total_iters:
            return self._present()
        slope = self.end_factor - self.start_factor
        # f(t) / f(t - 1) = 1 + slope / (total_iters · f(t - 1))
        return self._times(1 + slope / (self.total_iters * self.start_factor + (t - 1) * slope))

    def _share(self, t: int) -> float:
        slope = self.end_factor - self.start_factor
        return self.start_factor + slope * min(self.total_iters, t) / self.total_iters


class PolynomialLR(_ClosedForm):
    """Initial rate · (1 - t / total_iters)^power, and 0 from then on: the present rate holds that of t - 1."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        now, before = (1 - t / self.total_iters for t in (self.last_epoch, self.last_epoch - 1))
        return self._times((now / before) ** self.power)

    def _share(self, t: int) -> float:
        return (1 - min(self.total_iters, t) / self.total_iters) ** self.power


class CosineAnnealingLR(_ClosedForm):
    """eta_min + (initial rate - eta_min) · c(t), with c(t) = (1 + cos(π t / T_max)) / 2: down in T_max epochs, then up.

    The present rate holds c(t - 1); its distance from eta_min is multiplied by c(t) / c(t - 1). Just after the minimum
    c(t - 1) is 0; there, the distance starts again from the initial rate.

    Source: Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2016), without the restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return self._present()
        t, least = self.last_epoch, self.eta_min
        rates = list(zip(self._present(), self.base_lrs, strict=True))
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [rate + (base - least) * self._share(self.T_max + 1) for rate, base in rates]
        growth = self._share(t) / self._share(t - 1)
        return [growth * (rate - least) + least for rate, _ in rates]

    def _share(self, t: int) -> float:
        return (1 + math.cos(math.pi * t / self.T_max)) / 2
