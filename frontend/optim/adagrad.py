"""Optimizers with a step size for each element, of its gradients so far: of their squares, or of their signs.

In the formulas g is the gradient, with weight_decay · p added, and t counts the steps from 1.
"""

from __future__ import annotations

from typing import Any

import redispatch
from redispatch import _names
from redispatch.dispatch.tensor import preserve_format
from redispatch.kernels.ops import creation, norms

from .optimizer import Formula, Group, Many, _to_scalar, at, begin, decayed, options, owns, put, zeros_like

_, __getattr__, __dir__ = _names.late(globals(), {"._functional": "adadelta adagrad rmsprop rprop"})


class Adagrad(Formula):
    """Adagrad: the step of every element is divided by the root of the sum of its squared gradients so far.

        s ← s + g²
        p ← p - lr / (1 + (t - 1) · lr_decay) · g / (√s + ε)

    `maximize` goes uphill; `foreach` moves all parameters by operators on lists, `fused` by one operator.
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
        begin(param, state, group)
        value = group["initial_accumulator_value"]
        state["sum"] = creation.full_like(param, value, memory_format=preserve_format)

    def share_memory(self) -> None:
        """Nothing: the memory is that of this process."""

    _counts_first = (True, False)

    def move_fused(self, params: list[Any], grads: list[Any], states: list[dict[str, Any]], group: Group) -> None:
        own = {name: group[name] for name in ("lr", "weight_decay", "lr_decay", "eps", "maximize")}
        self.by_operator("_fused_adagrad_", params, grads, states, "sum step", own)

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        total, own = state["sum"], owns(grad, group)
        if isinstance(param, Many):
            grad = decayed(param, grad, group)
            rate = at(step, lambda t: -lr / (1 + (t - 1) * group["lr_decay"]))
            total.addcmul_(grad, grad, value=1)
            root = total.sqrt().add_(group["eps"])
            param.addcdiv_((grad.mul_ if own else grad.mul)(rate), root)
            return
        rate = lr / (1 + (step.item() - 1) * group["lr_decay"])
        grad = decayed(param, -grad if group.get("maximize") else grad, group)
        total.addcmul_(grad, grad, value=1)
        root = total.sqrt() + group["eps"] if group.get("differentiable") else total.sqrt().add_(group["eps"])
        param.addcdiv_(grad, root, value=-rate)


class Adadelta(Formula):
    """Adadelta: steps as large as the steps before them, in units of the parameter, by the ratio of two running means.

        s ← ρ s + (1 - ρ) g²
        d ← g · √(u + ε) / √(s + ε)
        u ← ρ u + (1 - ρ) d²
        p ← p - lr · d

    `maximize` goes uphill; `foreach` moves all parameters together.
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

    _counts_first = (True, True)

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        begin(param, state, group, *self._buffers, counted_in=creation.zeros)

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        rho, eps, steps = group["rho"], group["eps"], state["acc_delta"]
        if group.get("maximize"):
            grad = grad.neg() if isinstance(grad, Many) else -grad
        grad = decayed(param, grad, group)
        root = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho).add(eps).sqrt_()
        delta = steps.add(eps).sqrt_()
        delta = delta.clone() if group.get("differentiable") else delta  # the derivative of the root needs it
        delta.div_(root).mul_(grad)
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-lr)


class RMSprop(Formula):
    """RMSprop: the gradient over the root of the running mean of its square; with momentum, if asked for.

        s ← α s + (1 - α) g²
        d ← g / (√s + ε)                 centered: g / (√(s - a²) + ε), with a the running mean of g
        b ← momentum · b + d
        p ← p - lr · b

    `maximize` goes uphill; `foreach` moves all parameters together.
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
        names = "square_avg", *["momentum_buffer"] * momentum, *["grad_avg"] * mean
        begin(param, state, group, *names, counted_in=creation.zeros)

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        alpha, eps, momentum = group["alpha"], group["eps"], group["momentum"]
        grad = decayed(param, grad, group)
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root = root.add(eps) if group.get("differentiable") else root.add_(eps)
        if momentum > 0:
            param.add_(state["momentum_buffer"].mul_(momentum).addcdiv_(grad, root), alpha=-lr)
        else:
            param.addcdiv_(grad, root, value=-lr)


class Rprop(Formula):
    """Rprop: only the gradient's sign counts. A step grows while the sign stays, and shrinks when it turns.

        turned:   step ← step · η₋, and the gradient counts as 0
        the same: step ← step · η₊
        p ← p - step · sign(g)

    `lr` is the first step. `maximize` goes uphill; `foreach` moves all parameters together.
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

    _counts_first = (False, True)

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        begin(param, state, group, "prev", counted_in=creation.zeros)
        lr = group["lr"]
        state["step_size"] = creation.full_like(param, complex(lr, lr) if param.is_complex() else _to_scalar(lr))

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        shrink, grow = group["etas"]
        before, size = state["prev"], state["step_size"]

        def set_factor(turn: Any) -> None:
            put(turn, turn.gt(0), grow)
            put(turn, turn.lt(0), shrink)
            put(turn, turn.eq(0), 1)

        if isinstance(param, Many):
            turns, uphill = grad.mul(before), group.get("maximize")
            if uphill:
                turns.neg_()
            before.copy_(grad)
            if uphill:
                before.neg_()
            turns.sign_()
            for turn in turns:
                set_factor(turn)
            size.mul_(turns)
            for one in size:
                one.clamp_(*group["step_sizes"])
            for turn, one in zip(turns, before, strict=True):
                one.copy_(redispatch.where(turn.eq(shrink), 0, one))
            param.addcmul_(Many(one.sign() for one in before), size, value=-1)
            return
        turn = grad.mul(before.clone() if group.get("differentiable") else before).sign()
        set_factor(turn)
        size.mul_(turn).clamp_(*group["step_sizes"])
        grad = grad.clone(memory_format=preserve_format)
        put(grad, turn.eq(shrink), 0)
        param.addcmul_(grad.sign(), size, value=-1)
        before.copy_(grad)


class Adafactor(Formula):
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

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        grad = param.grad
        begin(grad, state, group)
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros([*grad.shape[:-1], 1])
            state["col_var"] = grad.new_zeros([*grad.shape[:-2], 1, grad.shape[-1]])
        else:
            state["variance"] = zeros_like(grad)

    def _kind(self, param: Any) -> bool:
        return param.dim() > 1

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        eps1, eps2 = group["eps"]
        decay, limit = group["beta2_decay"], group["d"]

        def length(x: Any, divisor: float = 1) -> float:
            return x.norm(2).item() / (x.numel() ** 0.5 * divisor)

        def along(grad: Any, dim: int) -> Any:
            return norms.norm(grad, dim=dim, keepdim=True)

        many = isinstance(param, Many)
        eps1 = EPSILON[(grad[0] if many else grad).dtype.name] if eps1 is None else eps1
        if many:
            counted = [(one.item() ** decay, one.item(), min(lr, 1 / one.item() ** 0.5)) for one in step]
            share, sizes = (
                [one[0] for one in counted],
                [max(eps2, length(p)) * c[2] for p, c in zip(param, counted, strict=True)],
            )
        else:
            t = step.item()
            share, sizes = t**decay, max(eps2, length(param)) * min(lr, 1 / t**0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        if "variance" in state:
            variance = state["variance"].lerp_(grad.mul(grad) if many else grad * grad, share)
            variance = Many(one.clone() for one in variance) if many else variance.clone()
        elif many:
            for dim, name in ((-1, "row_var"), (-2, "col_var")):
                mean = Many(along(one, dim) for one in grad)
                state[name].lerp_(mean.mul_(mean).div_([one.size(dim) for one in grad]), share)
            row, column = state["row_var"], state["col_var"]
            variance = Many(one @ other for one, other in zip(row, column, strict=True))
            variance.div_(Many(one.mean(dim=-2, keepdim=True) for one in row).clamp_min_(eps1))
        else:
            for dim, name in ((-1, "row_var"), (-2, "col_var")):
                state[name].lerp_(along(grad, dim).square_().div_(grad.size(dim)), share)
            row = state["row_var"]
            variance = row @ state["col_var"]
            variance.div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        if many:
            update = variance.clamp_min_(eps1 * eps1).rsqrt_().mul_(grad)
            param.add_(update.mul_([-a / max(1.0, length(one, limit)) for a, one in zip(sizes, update, strict=True)]))
            return
        update = variance.clamp_(min=eps1 * eps1).rsqrt_()
        update.mul_(grad)
        param.add_(update, alpha=-sizes / max(1.0, length(update, limit)))


EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}
