"""Steps of Adam on a device: one launch for each parameter (kernels/cpu/adam.py has the element)."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, metadata_of
from redispatch.kernels import DTYPES, Elementwise
from redispatch.kernels.cpu.adam import ADAM, AMSGRAD
from redispatch.kernels.declare.pointwise import as_it_is
from redispatch.kernels.declare.structured import not_implemented
from redispatch.kernels.ops.fused_updates import numbers_of

from ..elementwise import VECTOR, as_argument
from ..runtime.copies import READY, on_cuda
from ..runtime.definitions import kernel_of
from ..runtime.operands import address_of, allocator, operand, stream_for


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
        known: dict[Any, tuple[int, ...]] = {}  # what depends on the number of steps: most have had the same
        loops, sign = AMSGRAD if amsgrad else ADAM, -1.0 if maximize else 1.0
        for k, (p, g, m, v, step) in enumerate(zip(self, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)):
            if not p._dtype.is_floating_point:
                raise not_implemented("fused_adam_kernel", p._dtype)
            if grad_scale is not None:
                g.div_(grad_scale)
            count, compute = step.item(), DTYPES[p._dtype.name].compute
            told = known.get((count, compute))
            if told is None:
                numbers = numbers_of(count, decoupled, lr, beta1, beta2, weight_decay, eps, sign)
                told = tuple(as_argument(one, compute) for one in (int(decoupled), *numbers))
                known[count, compute] = told
            if p._shape.numel():
                update(loops, (p, m, v, max_exp_avg_sqs[k]) if amsgrad else (p, m, v), g, told)

    return kernel


def update(loops: Elementwise, outs: Sequence[Tensor], grad: Tensor, told: tuple[int, ...]) -> None:
    """One launch, remembered by how the tensors look where they are as aligned as can be."""
    key = loops, grad._interned or metadata_of(grad), *[x._interned or metadata_of(x) for x in outs]
    at = [address_of(x) for x in outs]
    gradient = address_of(grad)
    aligned = not (gradient | functools.reduce(operator.or_, at)) & VECTOR - 1
    ready = READY.get(key) if aligned else None
    if ready is None:
        written: list[Any] = [operand(x) for x in outs]
        inputs = [written[0], operand(grad), *written[1:], *told]
        prepared = on_cuda(loops).prepared(written, inputs, outs[0]._dtype.name)
        ready = prepared.ready(allocator().driver, as_it_is)
        if aligned:
            READY[key] = ready
    ready.start((ready.numel, *at, at[0], gradient, *at[1:], *told), stream_for(outs[0]))


kernel_of("_fused_adam_")(adam_kernel(decoupled=False))
kernel_of("_fused_adamw_")(adam_kernel(decoupled=True))
