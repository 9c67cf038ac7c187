"""Adam and its kin: every element has a step size of its own, from running means of its gradient and what is like its
square.

In the formulas g is the gradient, m and v the running means, t counts the steps from 1. The means start at zero, which
the divisors of m̂ and v̂ make up for. Weight decay adds weight_decay · p to g; decoupled, it shrinks p by itself, by
lr · weight_decay.
"""

from __future__ import annotations

from typing import Any

from redispatch import _names
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.ops import arithmetic, extremes, from_data, shape
from redispatch.nn.utils.lists import unseen

from .optimizer import (
    Formula,
    Group,
    Many,
    _get_scalar_dtype,
    _get_value,
    at,
    begin,
    decayed,
    largest_in,
    number,
    options,
    owns,
    read,
    zeros_like,
)

SWITCHES = ("fused", "foreach", "capturable", "differentiable")
SAME_BITS = (
    dtypes.float32,
    dtypes.float64,
)  # the fused step rounds once; with half precision others round at each operator

_, __getattr__, __dir__ = _names.late(globals(), {"._functional": "adam adamax adamw nadam radam"})


class Adam(Formula):
    """Adam. `maximize` goes uphill.

        m ← β₁ m + (1 - β₁) g          m̂ = m / (1 - β₁ᵗ)
        v ← β₂ v + (1 - β₂) g²         v̂ = v / (1 - β₂ᵗ)
        p ← p - lr · m̂ / (√v̂ + ε)

    `amsgrad` takes the largest v so far in the place of v. `foreach` moves all parameters by operators on lists, and
    `fused` by one operator, which the default uses, too, where nobody sees it.
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
        begin(param, state, group, "exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * group["amsgrad"])

    def move_all(self, params: list[Any], grads: list[Any], states: list[dict[str, Any]], group: Group) -> None:
        """Moves all; by one operator also where nobody sees it and the bits are the same."""
        if any(map(group.get, SWITCHES)) or isinstance(group["lr"], Tensor) or not params:
            super().move_all(params, grads, states, group)
            return
        kinds = {(x._dtype, x._device) for x in params}
        if not unseen({*map(type, params), *map(type, grads)}) or len(kinds) > 1 or kinds.pop()[0] not in SAME_BITS:
            super().move_all(params, grads, states, group)
            return
        self.move_fused(params, grads, states, group)

    def move_fused(self, params: list[Any], grads: list[Any], states: list[dict[str, Any]], group: Group) -> None:
        beta1, beta2 = group["betas"]
        own = {name: group[name] for name in ("amsgrad", "lr", "weight_decay", "eps", "maximize")}
        self.by_operator(
            "_fused_adamw_" if group.get("decoupled_weight_decay") else "_fused_adam_",
            *(params, grads, states, "exp_avg exp_avg_sq max_exp_avg_sq step"),
            {**own, "beta1": beta1, "beta2": beta2},
        )

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        beta1, beta2 = group["betas"]
        grad = decayed(param, grad, group, lr)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        largest = state["max_exp_avg_sq"] if group["amsgrad"] else None
        if group.get("differentiable"):  # the step and all that depends on it are recorded: numbers are tensors
            seen, seen_square = 1 - beta1**step, 1 - beta2**step
            size, divisor = -(lr / seen), seen_square.sqrt()
            if largest is not None:
                square = largest.copy_(arithmetic.maximum(largest.clone(), square))
            root = (square.sqrt() / (divisor * size)).add_(group["eps"] / size)
            param.addcdiv_(mean.clone(), root)
            return
        t = read(step)
        size, root = at(t, lambda t: lr / (1 - beta1**t)), at(t, lambda t: (1 - beta2**t) ** 0.5)
        if isinstance(param, Many):
            square = square if largest is None else largest.maximum_(square)
            param.addcdiv_(mean, square.sqrt().div_(root).add_(group["eps"]), value=[-one for one in size])
            return
        square = square if largest is None else largest_in(largest, square)
        param.addcdiv_(mean, (square.sqrt() / root).add_(group["eps"]), value=-size)


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

    `maximize` goes uphill; `foreach` moves all parameters together.
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

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        beta1, beta2 = group["betas"]
        grad, own = decayed(param, grad, group), owns(grad, group)
        mean, largest = state["exp_avg"].lerp_(grad, 1 - beta1), state["exp_inf"].mul_(beta2)
        recorded = group.get("differentiable")
        pair = [largest.unsqueeze(0)] if recorded else []
        size = (grad.abs_ if own else grad.abs)().add_(group["eps"])
        if isinstance(param, Many):
            largest.maximum_(size)
        elif recorded:
            largest.copy_(extremes.amax(shape.cat([*pair, size.unsqueeze_(0)], 0), 0, keepdim=False))
        else:
            largest_in(largest, size)
        param.addcdiv_(mean, largest, value=at(read(step), lambda t: -(number(lr) / (1 - beta1**t))))


class NAdam(Formula):
    """Adam with Nesterov's momentum, which looks a step ahead. The share of the old mean grows with the steps.

        μₜ = β₁ (1 - 0.96^(t ψ) / 2)
        p ← p - lr (1 - μₜ) / (1 - Π μ) · g / (√v̂ + ε) - lr μₜ₊₁ / (1 - Π μ · μₜ₊₁) · m / (√v̂ + ε)

    ψ is `momentum_decay`, m and v are Adam's. `maximize` goes uphill; `foreach` moves all parameters together.
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
        begin(param, state, group)
        state["mu_product"] = from_data.tensor(1.0, dtype=_get_scalar_dtype(), device=state["step"].device)
        state.update((name, zeros_like(param)) for name in self._buffers)

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        beta1, beta2 = group["betas"]
        t, product = read(step), state["mu_product"]

        def share(t: float) -> float:
            return beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"]))

        def now(product: Any, mu: float) -> Any:
            return -lr * (1 - mu) / (1 - product)

        def then(product: Any, mu: float) -> Any:
            return -lr * mu / (1 - product * mu)

        grad = decayed(param, grad, group, lr)
        if isinstance(param, Many):
            mean = state["exp_avg"].lerp_(grad, 1 - beta1)
            root = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2).sqrt()
            divisor, mu, ahead = at(t, lambda t: (1 - beta2**t) ** 0.5), at(t, share), at(t, lambda t: share(t + 1))
            product.mul_(mu)
            root.div_(divisor).add_(group["eps"])
            sizes = at(product, now, mu), at(product, then, ahead)
            param.addcdiv_(grad, root, value=sizes[0]).addcdiv_(mean, root, value=sizes[1])
            return
        mu, ahead = share(t), share(t + 1)
        product *= mu
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        root = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2).div(1 - beta2**t).sqrt()
        if group.get("differentiable"):
            root, later = root.add(group["eps"]), product * ahead
            grad, mean = grad * now(product, mu), mean * (-lr * ahead / (1 - later))
            param.addcdiv_(grad, root).addcdiv_(mean, root)
            return
        later = product.item() * ahead
        root.add_(group["eps"])
        param.addcdiv_(grad, root, value=now(product.item(), mu))
        param.addcdiv_(mean, root, value=-lr * ahead / (1 - later))


class RAdam(Formula):
    """Adam that goes by the mean alone until enough gradients were seen to know their variance.

        ρ∞ = 2 / (1 - β₂) - 1,   ρₜ = ρ∞ - 2 t β₂ᵗ / (1 - β₂ᵗ)
        ρₜ > 5:  p ← p - lr m̂ · √((ρₜ - 4) (ρₜ - 2) ρ∞ / ((ρ∞ - 4) (ρ∞ - 2) ρₜ)) / (√v̂ + ε)
        else:    p ← p - lr m̂

    `maximize` goes uphill; `foreach` moves all parameters together.
    Errors: ValueError for a negative option, or betas outside [0, 1).
    Source: Liu et al., "On the variance of the adaptive learning rate and beyond" (2019).
    """

    _buffers = ("exp_avg", "exp_avg_sq")
    _counts_first = (False, True)

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

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        beta1, beta2 = group["betas"]
        most = 2 / (1 - beta2) - 1

        def length_of(t: Any) -> float:
            return most - 2 * _get_value(t) * beta2 ** _get_value(t) / (1 - beta2 ** _get_value(t))

        def correction(length: float) -> float:
            """Of a running mean of so many gradients; 0 where they are too few."""
            if length <= 5:
                return 0
            return ((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) ** 0.5

        if isinstance(grad, Many) and group.get("maximize"):
            grad = grad.neg()
        t = read(step)
        lengths: Any = [length_of(one) for one in t] if isinstance(t, Many) else length_of(t)
        grad = decayed(param, grad, group, lr)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if isinstance(param, Many):  # p += m · (1 / ((√v + ε) / a) + b), where a or b is 0
            corrections = [correction(length) for length in lengths]
            seen = at(t, lambda t: 1 - beta1**t)
            plain = [-lr * (corrected == 0) / one for corrected, one in zip(corrections, seen, strict=True)]
            adaptive = at(
                t, lambda t, corrected, one: -((1 - beta2**t) ** 0.5) * (lr * corrected / one), corrections, seen
            )
            rate = square.sqrt().add_(group["eps"]).div_(adaptive).reciprocal_().add_(plain)
            param.addcmul_(mean, rate)
            return
        update, corrected = mean / (1 - beta1**t), correction(lengths)
        update = update * lr
        if corrected:
            root = square.sqrt()
            root = root.add(group["eps"]) if group.get("differentiable") else root.add_(group["eps"])
            update = update * ((1 - beta2**t) ** 0.5 / root) * corrected
        param.add_(update, alpha=-1.0)


class SparseAdam:
    """Adam that updates only the rows which a sparse gradient has. NotImplementedError: there are no sparse tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("SparseAdam: sparse gradients are not supported; please consider Adam instead")
