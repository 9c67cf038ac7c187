"""Optimizers with a step size for each element, of its gradients so far: of their squares, or of their signs.

In the formulas g is the gradient, with weight_decay · p added, and t counts the steps from 1.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch import _names
from redispatch.dispatch.tensor import preserve_format
from redispatch.kernels.ops import creation

from .optimizer import Formula, Group, Optimizer, begin, count_step, number, options, root_above, zeros_like

_, __getattr__, __dir__ = _names.late(globals(), {"._functional": "adadelta adagrad rmsprop rprop"})


class Adagrad(Formula):
    """Adagrad: the step of every element is divided by the root of the sum of its squared gradients so far.

        s ← s + g²
        p ← p - lr / (1 + (t - 1) · lr_decay) · g / (√s + ε)

    `maximize` goes uphill; `foreach` and `fused` change no result.
    Errors: ValueError for a negative option.
    Source: Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization"
    (2011).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        chosen = options(locals(), "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
        super().__init__(params, chosen)
        for group in self.param_groups:
            for param in group["params"]:
                self._start(param, self.state[param], group)

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        begin(param, state)
        value = group["initial_accumulator_value"]
        state["sum"] = creation.full_like(param, value, memory_format=preserve_format).detach()

    def share_memory(self) -> None:
        """Nothing: the memory is that of this process."""

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: float, t: float) -> None:
        total = state["sum"].addcmul_(grad, grad, value=1)
        param.addcdiv_(grad, root_above(total, group["eps"]), value=-lr / (1 + (t - 1) * group["lr_decay"]))


class Adadelta(Formula):
    """Adadelta: steps as large as the steps before them, in units of the parameter, by the ratio of two running means.

        s ← ρ s + (1 - ρ) g²
        d ← g · √(u + ε) / √(s + ε)
        u ← ρ u + (1 - ρ) d²
        p ← p - lr · d

    `maximize` goes uphill; `foreach` and `capturable` change no result.
    Errors: ValueError for a negative option, or a rho outside [0, 1].
    Source: Zeiler, "ADADELTA: an adaptive learning rate method" (2012).
    """

    _buffers = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        chosen = options(locals(), "lr", "eps", "weight_decay")
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, chosen)

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: float, t: float) -> None:
        rho, eps = group["rho"], group["eps"]
        square = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = state["acc_delta"].add(eps).sqrt_()
        delta = delta / square.add(eps).sqrt_() * grad  # not in place: the derivative of the root needs it
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-lr)


class RMSprop(Formula):
    """RMSprop: the gradient over the root of the running mean of its square; with momentum, if asked for.

        s ← α s + (1 - α) g²
        d ← g / (√s + ε)                 centered: g / (√(s - a²) + ε), with a the running mean of g
        b ← momentum · b + d
        p ← p - lr · b

    `maximize` goes uphill; `foreach` and `capturable` change no result.
    Errors: ValueError for a negative option.
    Source: Hinton, "Neural networks for machine learning", lecture 6 (2012); Graves, "Generating sequences with
    recurrent neural networks" (2013), for the centered form.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "lr", "eps", "momentum", "weight_decay", "alpha"))

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        momentum, mean = group["momentum"] > 0, group["centered"]
        begin(param, state, "square_avg", *["momentum_buffer"] * momentum, *["grad_avg"] * mean)

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: float, t: float) -> None:
        alpha, momentum = group["alpha"], group["momentum"]
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        root = root_above(square, group["eps"])
        if momentum > 0:
            param.add_(state["momentum_buffer"].mul_(momentum).addcdiv_(grad, root), alpha=-lr)
        else:
            param.addcdiv_(grad, root, value=-lr)


class Rprop(Optimizer):
    """Rprop: only the gradient's sign counts. A step grows while the sign stays, and shrinks when it turns.

        turned:   step ← step · η₋, and the gradient counts as 0
        the same: step ← step · η₊
        p ← p - step · sign(g)

    `lr` is the first step. `maximize` goes uphill; `foreach` and `capturable` change no result.
    Errors: ValueError for a negative learning rate, or etas that are not below and above 1.
    Source: Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        chosen = options(locals(), "lr")
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, chosen)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            begin(param, state, "prev")
            state["step_size"] = creation.full_like(param, number(group["lr"]), memory_format=preserve_format).detach()
        count_step(state)
        shrink, grow = group["etas"]
        turn = grad * state["prev"]
        factor = creation.ones_like(turn).masked_fill_(turn > 0, grow).masked_fill_(turn < 0, shrink)
        size = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(turn < 0, 0)
        param.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)


class Adafactor(Optimizer):
    """Adafactor: steps as large as the parameter, with a second moment of matrices kept as one row and one column.

        r ← (1 - b) r + b · mean of g² along rows,   c likewise along columns,   b = t^beta2_decay
        v = r c / mean(r)
        u = g / √max(v, ε₁²),   u ← u / max(1, rms(u) / d)
        p ← (1 - lr · weight_decay) p - min(lr, 1/√t) · max(ε₂, rms(p)) · u

    `eps` is (ε₁, ε₂), with None for the dtype's smallest distance from 1. `maximize` goes uphill.
    Errors: ValueError for a negative option, a positive `beta2_decay` or a `d` below 1.
    Source: Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        chosen = options(locals())
        smallest = 0 if eps[0] is None else eps[0]
        limits = {"Learning rate": lr, "epsilon1": smallest, "epsilon2": eps[1], "weight_decay": weight_decay}
        for name, value in limits.items():
            if not value >= 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        super().__init__(params, chosen)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            begin(grad, state)
            if grad.dim() > 1:
                state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
                state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
            else:
                state["variance"] = zeros_like(grad)
        step, rate = count_step(state), number(group["lr"])
        eps1, eps2 = group["eps"]
        eps1 = EPSILON[grad.dtype.name] if eps1 is None else eps1
        share = step ** group["beta2_decay"]
        size = max(eps2, rms(param)) * min(rate, 1 / math.sqrt(step))
        if group["weight_decay"] != 0:
            param.mul_(1 - rate * group["weight_decay"])
        squares = grad * grad
        if grad.dim() > 1:
            row = state["row_var"].lerp_(squares.mean(-1, True), share)
            column = state["col_var"].lerp_(squares.mean(-2, True), share)
            variance = (row @ column).div_(row.mean(-2, True).clamp_(min=eps1))
        else:
            variance = state["variance"].lerp_(squares, share).clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        param.add_(update, alpha=-size / max(1.0, rms(update) / group["d"]))


EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def rms(x: Any) -> float:
    """Returns the root of the mean square."""
    return x.norm(2).item() / math.sqrt(x.numel())
