"""Steps of Adam on a device: one launch for each parameter (kernels/adam.py has the element)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.kernels.adam import ADAM, AMSGRAD
from redispatch.ops.fused_updates import numbers_of
from redispatch.ops.structured import not_implemented
from redispatch.tensor import Tensor

from .copies import on_cuda
from .operands import operand


def adam_kernel(decoupled: bool) -> Callable[..., None]:
    """The kernel of `_fused_adam_`, or of `_fused_adamw_`. Counts of steps are on the CPU or on the device."""

    def kernel(
        self: Sequence[Tensor],
        grads: Sequence[Tensor],
        exp_avgs: Sequence[Tensor],
        exp_avg_sqs: Sequence[Tensor],
        max_exp_avg_sqs: Sequence[Tensor],
        state_steps: Sequence[Tensor],
        lr: float,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Tensor | None,
        found_inf: Tensor | None,
    ) -> None:
        if found_inf is not None and found_inf.item() == 1:
            return
        for k, (p, g, m, v, step) in enumerate(zip(self, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)):
            if not p._dtype.is_floating_point:
                raise not_implemented("fused_adam_kernel", p._dtype)
            if grad_scale is not None:
                g.div_(grad_scale)
            sign = -1.0 if maximize else 1.0
            numbers = numbers_of(step.item(), decoupled, lr, beta1, beta2, weight_decay, eps, sign)
            top = [max_exp_avg_sqs[k]] if amsgrad else []
            outs: list[Any] = [operand(x) for x in (p, m, v, *top)]
            inputs = [operand(x) for x in (p, g, m, v, *top)]
            if p._shape.numel():
                loops = on_cuda(AMSGRAD if amsgrad else ADAM)
                loops.launch(outs, [*inputs, int(decoupled), *numbers], p._dtype.name)

    return kernel
