"""Adam and its kin: every element has a step size of its own, from running means of its gradient and what is like its
square.

In the formulas g is the gradient, m and v the running means, t counts the steps from 1. The means start at zero, which
the divisors of m̂ and v̂ make up for. Weight decay adds weight_decay · p to g; decoupled, it shrinks p by itself, by
lr · weight_decay.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch import _names
from redispatch.dispatch import ops
from redispatch.kernels.ops import arithmetic, creation
from redispatch.kernels.ops.fused_updates import adam_op, adamw_op

from .optimizer import Formula, Group, begin, number, options, root_above

_, __getattr__, __dir__ = _names.late(globals(), {"._functional": "adam adamax adamw nadam radam"})


class Adam(Formula):
    """Adam. `maximize` goes uphill.

        m ← β₁ m + (1 - β₁) g          m̂ = m / (1 - β₁ᵗ)
        v ← β₂ v + (1 - β₂) g²         v̂ = v / (1 - β₂ᵗ)
        p ← p - lr · m̂ / (√v̂ + ε)

    `amsgrad` takes the largest v so far in the place of v. `foreach`, `fused` and `capturable` choose between PyTorch's
    implementations and change no result; here is one.
    Errors: ValueError for a negative option, or betas outside [0, 1).
    Sources: Kingma and Ba, "Adam: a method for stochastic optimization" (2014); Reddi, Kale and Kumar, "On the
    convergence of Adam and beyond" (2018).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        betas = number(betas[0]), number(betas[1])
        super().__init__(params, options(locals(), "lr", "eps", "betas", "weight_decay"))

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        begin(param, state, "exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * group["amsgrad"])

    def update_all(self, params: list[Any], group: Group) -> None:
        """Moves all at once, by one operator; one after the other where the steps are recorded, or are complex."""
        if not params:
            return
        if group["differentiable"] or any(param.is_complex() for param in params):
            super().update_all(params, group)
            return
        states = [self.state[param] for param in params]
        for param, state in zip(params, states, strict=True):
            if not state:
                self._start(param, state, group)
        steps = [state["step"] for state in states]
        largest = [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else []
        ops.aten._foreach_add_.Scalar(steps, 1)
        update = adamw_op if group["decoupled_weight_decay"] else adam_op
        beta1, beta2 = group["betas"]
        update.functional(
            params,
            [param.grad for param in params],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            largest,
            steps,
            lr=number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            **{name: group[name] for name in ("weight_decay", "eps", "amsgrad", "maximize")},
        )

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: float, t: float) -> None:
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].mul_(beta1).add_(grad, alpha=1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).add_(grad * grad, alpha=1 - beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            if square.requires_grad:  # recorded: nothing that is saved may change
                square = largest.copy_(arithmetic.maximum(largest.clone(), square))
            else:
                square = arithmetic.maximum(largest, square, out=largest)
        # The divisors of the means are numbers: they go into the step size and the root, not into every element twice.
        root = root_above(square, group["eps"], math.sqrt(1 - beta2**t))
        param.add_(mean / root, alpha=-lr / (1 - beta1**t))


class AdamW(Adam):
    """Adam which shrinks every parameter by lr · weight_decay of itself before each update.

    So the decay is not divided by the running size of the gradient.
    Source: Loshchilov and Hutter, "Decoupled weight decay regularization" (2017).
    """

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
        super().__init__(params, **options(locals()), decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # whatever a checkpoint of Adam says: it is what makes this AdamW


class Adamax(Formula):
    """Adam with the largest gradient of late, which fades, in the place of the root of the mean square.

        m ← β₁ m + (1 - β₁) g
        u ← max(β₂ u, |g| + ε)
        p ← p - lr / (1 - β₁ᵗ) · m / u

    `maximize` goes uphill; `foreach` and `capturable` change no result.
    Errors: ValueError for a negative option, or betas outside [0, 1).
    Source: Kingma and Ba, "Adam: a method for stochastic optimization" (2014), section 7.
    """

    _buffers = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "lr", "eps", "betas", "weight_decay"))

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: float, t: float) -> None:
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = arithmetic.maximum(state["exp_inf"] * beta2, grad.abs().add_(group["eps"]))
        state["exp_inf"].copy_(largest)
        param.addcdiv_(mean, largest, value=-lr / (1 - beta1**t))


class NAdam(Formula):
    """Adam with Nesterov's momentum, which looks a step ahead. The share of the old mean grows with the steps.

        μₜ = β₁ (1 - 0.96^(t ψ) / 2)
        p ← p - lr (1 - μₜ) / (1 - Π μ) · g / (√v̂ + ε) - lr μₜ₊₁ / (1 - Π μ · μₜ₊₁) · m / (√v̂ + ε)

    ψ is `momentum_decay`, m and v are Adam's. `maximize` goes uphill; `foreach` and `capturable` change no result.
    Errors: ValueError for a negative option, or betas outside [0, 1).
    Source: Dozat, "Incorporating Nesterov momentum into Adam" (2016).
    """

    _buffers = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "lr", "eps", "betas", "weight_decay", "momentum_decay"))

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        super()._start(param, state, group)
        state["mu_product"] = creation.ones(())

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: float, t: float) -> None:
        beta1, beta2 = group["betas"]
        mu, ahead = (beta1 * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"])) for step in (t, t + 1))
        state["mu_product"] *= mu
        product = state["mu_product"] if group["differentiable"] else state["mu_product"].item()
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = root_above(square, group["eps"], math.sqrt(1 - beta2**t))
        now, then = -lr * (1 - mu) / (1 - product), -lr * ahead / (1 - product * ahead)
        if group["differentiable"]:  # the product is a tensor, too
            param.addcdiv_(grad * now, root).addcdiv_(mean * then, root)
        else:
            param.addcdiv_(grad, root, value=now).addcdiv_(mean, root, value=then)


class RAdam(Formula):
    """Adam that goes by the mean alone until enough gradients were seen to know their variance.

        ρ∞ = 2 / (1 - β₂) - 1,   ρₜ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ)
        ρₜ > 5:  p ← p - lr m̂ · √((ρₜ - 4) (ρₜ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρₜ)) / (√v̂ + ε)
        else:    p ← p - lr m̂

    `maximize` goes uphill; `foreach` and `capturable` change no result.
    Errors: ValueError for a negative option, or betas outside [0, 1).
    Source: Liu et al., "On the variance of the adaptive learning rate and beyond" (2019).
    """

    _buffers = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "lr", "eps", "betas", "weight_decay"))

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: float, t: float) -> None:
        beta1, beta2 = group["betas"]
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        size, seen = lr / (1 - beta1**t), 1 - beta2**t
        most = 2 / (1 - beta2) - 1
        length = most - 2 * t * beta2**t / seen  # of the running mean of squares, in gradients
        if length <= 5:
            param.add_(mean, alpha=-size)
            return
        correction = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        param.addcdiv_(mean, root_above(square, group["eps"]), value=-size * correction * math.sqrt(seen))


class SparseAdam:
    """Adam that updates only the rows which a sparse gradient has. NotImplementedError: there are no sparse tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("SparseAdam: sparse gradients are not supported; please consider Adam instead")
