"""Schedules that go up and down, or start again: CyclicLR, OneCycleLR, CosineAnnealingWarmRestarts.

The first two also move the momentum, against the rate: Adam's first beta, where an optimizer has betas.

Sources: Smith, "Cyclical learning rates for training neural networks" (2015); Smith and Topin, "Super-convergence"
(2017); Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from ..optimizer import Optimizer
from .scheduler import LRScheduler, check_optimizer, for_each_group, set_rate


class Momentum:
    """The momentum of each group, whatever the optimizer calls it.

    Errors: ValueError for an optimizer that has none.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        if not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.is_beta = "betas" in optimizer.defaults

    def set(self, group: dict[str, Any], value: float) -> None:
        if self.is_beta:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(LRScheduler):
    """Up from `base_lr` to `max_lr` in `step_size_up` steps, down again in `step_size_down`, and so on.

    The height of a cycle is that of the first ("triangular"), half of the one before ("triangular2"), or shrinks by
    gamma in each step ("exp_range"). `scale_fn` gives another factor, of the cycle's number or, if `scale_mode` is
    "iterations", of the step's.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_rate(group, rate)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            momentum = Momentum(optimizer)
            self.use_beta1 = momentum.is_beta
            self.base_momentums = for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_each_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                begin_high(optimizer, momentum, self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    @property
    def _scale_fn_ref(self) -> Callable[[float], float]:
        """The factor that the mode gives."""
        if self.mode == "exp_range":
            return partial(self._exp_range_scale_fn, self.gamma)
        return self._triangular_scale_fn if self.mode == "triangular" else self._triangular2_scale_fn

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def scale_fn(self, x: float) -> float:
        """The factor of a cycle, or of a step."""
        return self._scale_fn_ref(x) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    def get_lr(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momentum = Momentum(self.optimizer)
            bounds = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in bounds:
                momentum.set(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer. A function is not saved; of a callable object, its attributes are."""
        saved = super().state_dict()
        function = saved["_scale_fn_custom"]
        plain = function is None or isinstance(function, FunctionType)
        return {**saved, "_scale_fn_custom": None if plain else function.__dict__.copy()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        attributes = state_dict["_scale_fn_custom"]
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


def begin_high(optimizer: Optimizer, momentum: Momentum, low: list[float], high: list[float]) -> None:
    """The momentum is highest where the rate is lowest, which is at the start."""
    for group, least, most in zip(optimizer.param_groups, low, high, strict=True):
        momentum.set(group, most)
        group["max_momentum"], group["base_momentum"] = most, least


def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
    """Returns a part of a cycle: where it ends, and between which of a group's options rate and momentum go."""
    names = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return {"end_step": end, **dict(zip(names, rates + momenta, strict=True))}


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to `max_lr` in the first `pct_start` of all steps, then down, in one cycle.

    Down to the initial rate / final_div_factor; with `three_phase`, to the initial rate first, as steeply as up.
    Errors: ValueError without a number of steps, and for a step beyond it.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.total_steps = number_of_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        share = pct_start * self.total_steps
        fall, rise = ("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")
        phases = [phase(share - 1, ("initial_lr", "max_lr"), fall)]
        if three_phase:
            phases.append(phase(2 * share - 2, ("max_lr", "initial_lr"), rise))
            phases.append(phase(self.total_steps - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")))
        else:
            phases.append(phase(self.total_steps - 1, ("max_lr", "min_lr"), rise))
        self._schedule_phases = phases
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, for_each_group("max_lr", optimizer, max_lr), strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            momentum = Momentum(optimizer)
            self.use_beta1 = momentum.is_beta
            low = for_each_group("base_momentum", optimizer, base_momentum)
            high = for_each_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                begin_high(optimizer, momentum, low, high)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        ends = [part["end_step"] for part in self._schedule_phases]
        place = next((i for i, end in enumerate(ends) if step <= end), len(ends) - 1)
        start = ends[place - 1] if place else 0
        done = (step - start) / (ends[place] - start)
        if self.cycle_momentum:
            momentum = Momentum(self.optimizer)
            for group in self.optimizer.param_groups:
                momentum.set(group, self._between(group, place, "momentum", done))
        return [self._between(group, place, "lr", done) for group in self.optimizer.param_groups]

    def _between(self, group: dict[str, Any], place: int, what: str, done: float) -> Any:
        start, end = (group[self._schedule_phases[place][f"{which}_{what}"]] for which in ("start", "end"))
        return self._anneal_func(start, end, done)

    def _anneal_func(self, start: Any, end: Any, pct: float) -> Any:
        if not hasattr(self, "_anneal_func_type"):  # an older checkpoint has the function itself
            return self.anneal_func(start, end, pct)  # type: ignore[attr-defined]  # of that checkpoint
        return (self._annealing_linear if self._anneal_func_type == "linear" else self._annealing_cos)(start, end, pct)

    @staticmethod
    def _annealing_cos(start: Any, end: Any, pct: float) -> Any:
        return end + (start - end) / 2 * (1 + math.cos(math.pi * pct))

    @staticmethod
    def _annealing_linear(start: Any, end: Any, pct: float) -> Any:
        return (end - start) * pct + start


def number_of_steps(total: int | None, epochs: int | None, each: int | None) -> int:
    """The given number, or that of all epochs together."""
    given = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": each}
    if None in given.values():
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(value for value in given.values() if value is not None)


class CosineAnnealingWarmRestarts(LRScheduler):
    """eta_min + (initial rate - eta_min) · (1 + cos(π t / T)) / 2, where t starts again at 0 when it reaches T.

    T is T_0 at first, and T_mult times itself with each start. `step(epoch)` goes to any epoch, fractions included.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes to `epoch`, or to the next one."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self.T_i, self.T_cur = self.T_0, epoch
            if self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            elif epoch >= self.T_0:  # behind n periods of T_0, T_0 T_mult, T_0 T_mult², ...
                n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())
