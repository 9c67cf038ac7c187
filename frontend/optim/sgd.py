"""Optimizers that follow the gradient: with momentum, with the mean of where it led, with a matrix made orthogonal.

In the formulas g is the gradient, with weight_decay · p added, and t counts the steps from 1.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch import _names
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops import creation, from_data, linalg

from .optimizer import (
    Formula,
    Group,
    Many,
    Optimizer,
    _get_scalar_dtype,
    _to_scalar,
    at,
    decayed,
    options,
    zeros_like,
)

_, __getattr__, __dir__ = _names.late(globals(), {"._functional": "asgd sgd"})


class SGD(Optimizer):
    """Stochastic gradient descent. `maximize` goes uphill.

        g ← grad + weight_decay · p
        b ← momentum · b + (1 - dampening) · g          (b ← g in the first step)
        p ← p - lr · b                                  (nesterov: p - lr · (g + momentum · b))

    `foreach` moves all parameters by operators on lists, `fused` by one operator.
    Errors: ValueError for a negative option, or nesterov without momentum or with dampening.
    Source: Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013), but with the
    learning rate outside the momentum, as in PyTorch.

    >>> import redispatch as rd
    >>> x = rd.tensor([1.0], requires_grad=True)
    >>> optimizer = rd.optim.SGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.800000011920929]
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        chosen = options(locals(), "lr", "momentum", "weight_decay")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, chosen)

    def _states(self, params: list[Any], group: Group) -> list[dict[str, Any]]:
        return super()._states(params, group) if group["momentum"] != 0 else [{} for _ in params]

    def move_fused(self, params: list[Any], grads: list[Any], states: list[dict[str, Any]], group: Group) -> None:
        momentum = group["momentum"] != 0
        first = momentum and not any(states)
        if first:
            for grad, state in zip(grads, states, strict=True):
                state["momentum_buffer"] = creation.empty_like(grad)
        names = "weight_decay", "momentum", "lr", "dampening", "nesterov", "maximize"
        own = {name: group[name] for name in names} | {"is_first_step": first}
        self.by_operator("_fused_sgd_", params, grads, states, "momentum_buffer", own)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        lr, momentum, many = group["lr"], group["momentum"], type(param) is Many
        if group["weight_decay"] != 0:
            grad = decayed(param, grad, group)
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if many and (buffer is None or any(one is None for one in buffer)):
                buffer = buffer or [None] * len(grad)
                buffer = Many(self._averaged(*pair, group) for pair in zip(buffer, grad, strict=True))
            else:
                buffer = self._averaged(buffer, grad, group)
            state["momentum_buffer"] = buffer
            if not group["nesterov"]:
                grad = buffer
            else:
                grad = (grad.add_ if many else grad.add)(buffer, alpha=momentum)
        if isinstance(lr, Tensor):
            lr = _to_scalar(lr)
            if lr.requires_grad and not many:
                param.addcmul_(grad, lr, value=-1)
                return
        param.add_(grad, alpha=-lr)

    def _averaged(self, buffer: Any, grad: Any, group: Group) -> Any:
        """The momentum with this gradient, which is the first of it."""
        if buffer is None:
            return grad.detach().clone()
        return buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])


class ASGD(Formula):
    """Averaged SGD: steps of a falling rate, and the mean of where they have led since step t0, `state["ax"]`.

        p ← (1 - λ η) p - η g          η = lr / (1 + λ lr t)^α
        a ← a + (p - a) · μ            μ = 1 / max(1, t - t0), where the mean is the parameter itself up to then

    `maximize` goes uphill; `foreach` moves all parameters together.
    Errors: ValueError for a negative option.
    Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, options(locals(), "lr", "weight_decay"))

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        how = {"dtype": _get_scalar_dtype(), "device": param.device}
        state["step"] = creation.zeros((), **how)
        state["eta"] = from_data.as_tensor(_to_scalar(group["lr"]), **how).clone().detach()
        state["mu"], state["ax"] = creation.ones((), **how), zeros_like(param)

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        decay, eta, mu, mean = group["lambd"], state["eta"], state["mu"], state["ax"]

        def rate(t: Any) -> Any:
            return from_data.as_tensor(lr / (1 + decay * lr * t) ** group["alpha"])

        def share(t: float) -> Any:
            return from_data.as_tensor(1 / max(1, t - group["t0"]))

        own = group["weight_decay"] != 0
        grad = decayed(param, grad, group)
        if isinstance(param, Many):
            step_by = (grad.add_ if own else grad.add)(param, alpha=decay)  # of the decayed gradient, which is its own
            param.addcmul_(step_by, eta, value=-1)
            mean.addcmul_(param.sub(mean), mu)
            rates, shares = Many(rate(t) for t in step), Many(at(step, share))
            eta.copy_(rates)
            mu.copy_(shares)
            return
        size = eta.item()
        param.mul_(1 - decay * size)
        param.add_(grad, alpha=-size)
        if mu.item() != 1:
            mean.add_(param.sub(mean).mul_(mu))
        else:
            mean.copy_(param)
        t = step.item()
        eta.copy_(rate(t))
        mu.copy_(share(t))


class Muon(Optimizer):
    """Momentum whose matrix is made nearly orthogonal, so that no direction of a weight is left behind; for matrices.

        b ← momentum · b + (1 - momentum) · g
        u ← g + momentum (b - g) if nesterov, else b
        o ← U Vᵀ, about, of the singular value decomposition u = U S Vᵀ
        p ← (1 - lr · weight_decay) p - lr' · o

    adjust_lr_fn: how the rate depends on the shape, "original" or "match_rms_adamw".
    Errors: ValueError for a negative option, or a parameter that is no matrix.
    Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        chosen = options(locals())
        for name, value in {"Learning rate": lr, "momentum": momentum, "weight decay": weight_decay}.items():
            if not value >= 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, chosen)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: " + str(param.size())
                    )

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        state["momentum_buffer"] = zeros_like(param.grad)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        momentum, rate = group["momentum"], _to_scalar(group["lr"])
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        param.mul_(1 - rate * group["weight_decay"])
        param.add_(update, alpha=-(rate * shape_factor(group["adjust_lr_fn"], *param.shape)))


def orthogonalized(matrix: Any, coefficients: Any, steps: int, eps: float) -> Any:
    """Returns the matrix with all its singular values near 1, in bfloat16, which is enough for that.

    The polynomial a x + b x³ + c x⁵, applied to a matrix, acts on its singular values; a few times over it takes all of
    them near 1.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.bfloat16()
    x = x.T if tall else x
    x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        square = x @ x.T
        x = linalg.addmm(x, linalg.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def shape_factor(rule: str | None, rows: int, columns: int) -> float:
    """Returns how much larger steps of a matrix of this shape are."""
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
