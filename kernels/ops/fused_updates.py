"""Many parameters at once: steps of an optimizer, _fused_adam_, _fused_adamw_, _fused_sgd_; loss scaling.

A list has a tensor for each parameter. Modes see one operator, and each parameter costs one loop. Read next:
frontend/optim/adam.py, which has the formula, and frontend/amp/grad_scaler.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import LATE, call
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, metadata_of, no_memory
from redispatch.kernels import is_dense

from ..declare.declare import Operator
from ..declare.operator import kernel
from ..declare.structured import not_implemented

UPDATED = "Tensor(a!)[] self, Tensor(b!)[] grads"
SCALED = "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()"


def update_operators(
    name: str, lists: str, options: str, tensor_lr_lists: str | None = None
) -> tuple[Operator, Operator]:
    """Declares a step with these lists and options beside the rate, and its overload with the rate in a tensor."""
    by_number = Operator(f"{name}({UPDATED}, {lists}, *, {options}, {SCALED}", refuses="whole complex")
    options = options.replace("float lr,", "Tensor lr,")
    by_tensor = Operator(
        f"{name}.tensor_lr({UPDATED}, {tensor_lr_lists or lists}, *, {options}, {SCALED}", refuses="whole complex"
    )
    place = by_tensor.names.index("lr")

    def read(*stack: Any) -> None:
        """Reads the rate, and takes the step."""
        call(by_number.functional, [*stack[:place], stack[place].item(), *stack[place + 1 :]])

    by_tensor.explicit(read)
    for op in (by_number, by_tensor):
        op.kernel("Meta")(adam_meta)
    return by_number, by_tensor


def adam_meta(*args: Any) -> None:
    """Nothing is there to be updated."""


MEANS = "Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps"
RATES = "float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize"
adam_op, adam_tensor_lr_op = update_operators("_fused_adam_", MEANS, RATES)
adamw_op, adamw_tensor_lr_op = update_operators("_fused_adamw_", MEANS, RATES)
sgd_op, sgd_tensor_lr_op = update_operators(
    "_fused_sgd_",
    "Tensor(c!)[] momentum_buffer_list",
    "float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step",
)
adagrad_op, adagrad_tensor_lr_op = update_operators(
    "_fused_adagrad_",
    "Tensor(c!)[] state_sums, Tensor(d!)[] state_steps",
    "float lr, float lr_decay, float weight_decay, float eps, bool maximize",
    "Tensor(c!)[] state_sums, Tensor[] state_steps",
)

FUSED_UPDATES = (
    *(adam_op, adam_tensor_lr_op, adamw_op, adamw_tensor_lr_op),
    *(sgd_op, sgd_tensor_lr_op, adagrad_op, adagrad_tensor_lr_op),
)


class Updates(NamedTuple):
    """The parts of a step on a device of another type: the number in a tensor, a division in place, and the update of
    (parameter, gradient, averages) by an element's numbers."""

    number: Callable[[Tensor], Any]
    divide: Callable[[Tensor, Tensor], object]
    update: Callable[[tuple[Tensor, ...], bool, tuple[Any, ...]], None]


ELSEWHERE: dict[str, Updates] = {}  # by type of device


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
        how = ELSEWHERE.get(self[0]._device.type) if self else None
        read = number_of if how is None else how.number
        if found_inf is not None and read(found_inf) == 1:
            return
        lists = {"grads": grads, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs, "state_steps": state_steps}
        check_lists("fused_adam_kernel", self, lists | ({"max_exp_avg_sqs": max_exp_avg_sqs} if amsgrad else {}))
        known: dict[Any, Any] = {}  # by count of steps, numbers; by dtype, a loop: most parameters share both
        for k, (p, g, m, v, step) in enumerate(zip(self, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)):
            if grad_scale is not None:
                (divide if how is None else how.divide)(g, grad_scale)
            count = read(step)
            numbers = known.get(count)
            if numbers is None:
                numbers = known[count] = numbers_of(
                    count, decoupled, lr, beta1, beta2, weight_decay, eps, -1.0 if maximize else 1.0
                )
            tensors = (p, g, m, v, *((max_exp_avg_sqs[k],) if amsgrad else ()))
            if how is None:
                loop = known.get(p._dtype) or known.setdefault(p._dtype, kernels.ADAM_LOOP(x=p._dtype.name))
                run_together(loop, (int(decoupled), int(amsgrad), *numbers), tensors)
            else:
                how.update(tensors, amsgrad, (int(decoupled), *numbers))

    return kernel


def check_lists(kernel: str, params: list[Tensor], lists: dict[str, list[Tensor]]) -> None:
    """RuntimeError for a list of another length than that of the parameters, or a parameter that is no float."""
    for param in params:
        if not param._dtype.is_floating_point:
            raise not_implemented(kernel, param._dtype)
    for name, given in lists.items():
        if len(given) != len(params):
            raise RuntimeError(f"Expected {name}.size() == n_tensors to be true, but got false.")


def divide(g: Tensor, scale: Tensor) -> None:
    as_numpy(g)[...] = as_numpy(g) / as_numpy(scale)


def numbers_of(
    count: Any, decoupled: bool, lr: float, beta1: float, beta2: float, weight_decay: float, eps: float, sign: float
) -> tuple[float, ...]:
    """Returns what kernels/cpu/adam.py wants to know of step number `count`, from `sign` to `eps`."""
    decay = 1 - lr * weight_decay if decoupled else weight_decay
    try:
        size, root = lr / float(1 - beta1**count), math.sqrt(1 - beta2**count)
    except (ArithmeticError, TypeError, ValueError):  # of a beta that is none, too, there is a NaN or infinity
        with np.errstate(all="ignore"):
            size, root = lr / float(1 - np.float64(beta1) ** count), float(np.sqrt(1 - np.float64(beta2) ** count))
    return sign, decay, 1 - beta1, beta2, 1 - beta2, size, root, eps


def number_of(x: Tensor) -> Any:
    """The one real number in a tensor."""
    if x._shape and x._shape.numel() != 1:
        raise RuntimeError(f"a Tensor with {x._shape.numel()} elements cannot be converted to Scalar")
    if x._dtype.is_complex:
        raise RuntimeError("value cannot be converted to type float without overflow")
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


def uphill(grad: Tensor, param: Tensor, weight_decay: float, maximize: bool, grad_scale: Tensor | None) -> Tensor:
    """The gradient, unscaled in place, with the weight decay."""
    if grad_scale is not None:
        grad.div_(grad_scale)
    grad = -grad if maximize else grad
    return grad.add(param, alpha=weight_decay) if weight_decay != 0 else grad


@sgd_op.explicit
def sgd_updates(
    self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step,
    grad_scale, found_inf,
):  # fmt: skip
    """p -= lr b of each parameter; `is_first_step`: what is in the momentum counts for nothing."""
    if found_inf is not None and found_inf.item() == 1:
        return
    lists = {"grads": grads} | ({"momentum_buffer_list": momentum_buffer_list} if momentum != 0 else {})
    check_lists("fused_sgd_kernel", self, lists)
    for k, (param, grad) in enumerate(zip(self, grads, strict=True)):
        grad = uphill(grad, param, weight_decay, maximize, grad_scale)
        if momentum != 0:
            buffer = momentum_buffer_list[k]
            if is_first_step:
                buffer.copy_(grad)
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        param.add_(grad, alpha=-lr)


@adagrad_op.explicit
def adagrad_updates(
    self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf
):
    """s += g², p -= lr g / (√s + ε) of each parameter."""
    if found_inf is not None and found_inf.item() == 1:
        return
    check_lists("fused_adagrad_kernel", self, {"grads": grads, "state_sums": state_sums, "state_steps": state_steps})
    for param, grad, total, step in zip(self, grads, state_sums, state_steps, strict=True):
        grad = uphill(grad, param, weight_decay, maximize, grad_scale)
        root = total.addcmul_(grad, grad, value=1).sqrt().add_(eps)
        param.addcdiv_(grad, root, value=-lr / (1 + (step.item() - 1) * lr_decay))


LATE["aten::_foreach_"] = "redispatch.kernels.ops.foreach"


# --- loss scaling: gradients divided by the scale and looked at; the scale of the next step ---------------------------

LARGEST = float(np.finfo(np.float32).max)


def check_number(tensor: Tensor, name: str, element: Any = dtypes.float32) -> None:
    """RuntimeError for a tensor of several elements, or of another dtype."""
    if tensor._shape.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if tensor._dtype is not element:
        raise RuntimeError(f"{name} must be a{'n int' if element is dtypes.int32 else ' float'} tensor.")


@kernel(
    "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
    "CPU",
    refuses="whole complex",
    derivative=False,
    method=False,
    doc="Multiplies each of `self` by `inv_scale`, and says whether all are finite.",
)
def _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale):
    """Multiplies each of `self` by `inv_scale`; sets `found_inf` to 1 where one of them holds an infinity or NaN."""
    check_number(found_inf, "found_inf")
    check_number(inv_scale, "inv_scale")
    factor, found = as_numpy(inv_scale).item(), as_numpy(found_inf)
    for tensor in self:
        if not tensor._dtype.is_floating_point:
            raise not_implemented("_amp_foreach_non_finite_check_and_unscale_cpu", tensor._dtype)
        values = as_numpy(tensor)
        if not np.isfinite(values).all():
            found[...] = 1
        if factor != 1:
            values[...] = values * (factor if tensor._dtype is dtypes.float64 else np.float32(factor))


@kernel(
    "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, "
    "float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
    "CPU",
    derivative=False,
    method=False,
    doc="Updates the scale in place: smaller after infinities, larger after enough steps.",
)
def _amp_update_scale_(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    """The scale, in place: smaller where `found_inf` is not 0; larger, unless that would be infinite, after
    `growth_interval` calls where it was 0, which `growth_tracker` counts."""
    check_number(growth_tracker, "growth_tracker", dtypes.int32)
    check_number(self, "current_scale")
    check_number(found_inf, "found_inf")
    scale, counted = as_numpy(self), as_numpy(growth_tracker)
    if as_numpy(found_inf).item() != 0:
        scale[...] = scale * np.float32(scale_backoff_factor)
        counted[...] = 0
    elif counted.item() + 1 < growth_interval:
        counted[...] = counted + 1
    else:
        grown = scale.item() * scale_growth_factor
        if grown <= LARGEST:
            scale[...] = grown
        counted[...] = 0
    return self


@_amp_foreach_non_finite_check_and_unscale_.op.kernel("Meta")
def unscale_meta(self, found_inf, inv_scale):
    """Nothing is there to be multiplied."""


@_amp_update_scale_.op.kernel("Meta")
def update_scale_meta(self, *rest):
    return self
