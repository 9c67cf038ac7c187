"""Schedules by a factor: each epoch's rate is the present one times something, or the initial one.

Each schedule's formula is in its docstring, with t for the epoch. Read next: cycles.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from ..optimizer import Optimizer
from .scheduler import LRScheduler


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


class StepLR(LRScheduler):
    """Present rate · gamma, every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return self._times(self.gamma) if due else self._present()


class MultiStepLR(LRScheduler):
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


class ExponentialLR(LRScheduler):
    """Present rate · gamma, in every epoch from t = 1 on."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return self._present() if self._is_initial else self._times(self.gamma)


class ConstantLR(LRScheduler):
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


class LinearLR(LRScheduler):
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


class PolynomialLR(LRScheduler):
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


class CosineAnnealingLR(LRScheduler):
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
