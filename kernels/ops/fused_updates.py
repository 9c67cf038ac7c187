"""One step of an optimizer for many parameters at once: _fused_adam_, _fused_adamw_; and the counts, _foreach_add_.

A list has a tensor for each parameter. Modes see one operator, and each parameter costs one loop. Read next:
frontend/optim/adam.py, which calls them and has the formula.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, metadata_of, no_memory
from redispatch.kernels import is_dense

from ..declare.declare import Operator
from ..declare.structured import not_implemented
from .arithmetic import add_op

LISTS = (
    "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, "
    "Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps"
)
OPTIONS = (
    "float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, "
    "Tensor? grad_scale=None, Tensor? found_inf=None"
)
adam_op = Operator(f"_fused_adam_({LISTS}, *, {OPTIONS}) -> ()", refuses="whole complex")
adamw_op = Operator(f"_fused_adamw_({LISTS}, *, {OPTIONS}) -> ()", refuses="whole complex")
foreach_add_op = Operator("_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()", refuses="bool")


def adam_kernel(decoupled: bool) -> Any:
    """The kernel with weight decay that acts on the parameter itself, or on the gradient."""

    def kernel(
        self: list[Tensor],
        grads: list[Tensor],
        exp_avgs: list[Tensor],
        exp_avg_sqs: list[Tensor],
        max_exp_avg_sqs: list[Tensor],
        state_steps: list[Tensor],
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
        """`grad_scale`: what gradients were multiplied by; `found_inf`: nothing is done where it is 1."""
        if found_inf is not None and as_numpy(found_inf).item() == 1:
            return
        known: dict[float, tuple[Any, ...]] = {}  # what depends on the number of steps: most have had the same
        for k, (p, g, m, v, step) in enumerate(zip(self, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)):
            if not p._dtype.is_floating_point:
                raise not_implemented("fused_adam_kernel", p._dtype)
            if grad_scale is not None:
                as_numpy(g)[...] = as_numpy(g) / as_numpy(grad_scale)
            count = number_of(step)
            numbers = known.get(count)
            if numbers is None:
                numbers = known[count] = numbers_of(
                    count, decoupled, lr, beta1, beta2, weight_decay, eps, -1.0 if maximize else 1.0
                )
            largest = (max_exp_avg_sqs[k],) if amsgrad else ()
            own = int(decoupled), int(amsgrad), *numbers
            run_together(kernels.ADAM_LOOP(x=p._dtype.name), own, (p, g, m, v, *largest))

    return kernel


def numbers_of(
    count: Any, decoupled: bool, lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, sign: float
) -> tuple[float, ...]:
    """What kernels/cpu/adam.py wants to know of step number `count`, from `sign` to `eps`."""
    decay = 1 - lr * weight_decay if decoupled else weight_decay
    size, root = lr / (1 - beta1**count), math.sqrt(1 - beta2**count)
    return sign, decay, 1 - beta1, beta2, 1 - beta2, size, root, eps


def number_of(x: Tensor) -> Any:
    """The one number in a tensor."""
    if x._array is None or x._shape or x._dtype.itemsize == 2:
        return as_numpy(x).item()
    return x._array.item(x._offset)


def run_together(loop: Any, numbers: tuple[Any, ...], tensors: tuple[Tensor, ...]) -> None:
    """Runs a loop over tensors of one shape and dtype, all of which it may write. Something stands for a fifth."""
    first = tensors[0]
    metadata, alike = first._interned or metadata_of(first), True
    arrays: list[Any] = []
    for x in tensors:
        if (x._interned or metadata_of(x)) is not metadata:
            alike = False
            if x._shape != first._shape or x._dtype is not first._dtype:
                raise RuntimeError("a parameter, its gradient and its state must have the same shape and dtype")
        if x._array is None:
            raise no_memory(x)
        arrays += [x._array, x._offset]
    count = first._shape.numel()
    if alike and is_dense(first._shape, first._stride):
        kernels.parallel_for(loop, count, (*numbers, *arrays, *arrays[: 10 - len(arrays)]), WORK)
        return
    copies = [np.ascontiguousarray(as_numpy(x)) for x in tensors]
    parts = [part for copy in copies for part in (copy.reshape(-1).view(arrays[0].dtype), 0)]
    kernels.parallel_for(loop, count, (*numbers, *parts, *parts[: 10 - len(parts)]), WORK)
    for x, copy in zip(tensors, copies, strict=True):
        as_numpy(x)[...] = copy


WORK = 8  # of one element, in cheap operations


adam_op.kernel("CPU")(adam_kernel(decoupled=False))
adamw_op.kernel("CPU")(adam_kernel(decoupled=True))


@adam_op.kernel("Meta")
@adamw_op.kernel("Meta")
def adam_meta(*args: Any) -> None:
    """Nothing is there to be updated."""


@foreach_add_op.kernel("CPU", "Meta", dispatches=True)
def foreach_add_kernel(self: list[Tensor], scalar: Any) -> None:
    plain = type(scalar) is int
    for x in self:
        if plain and x._dtype is dtypes.float32 and not x._shape and x._array is not None:  # as counts of steps are
            x._array[x._offset] += scalar
        else:
            add_op.inplace(x, scalar)  # type: ignore[misc]  # it has an in-place form
