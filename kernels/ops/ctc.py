"""ctc_loss of sequences of distributions and the shorter label sequences they should spell: kernels/cpu/losses.py.

Labels come padded, a row for each sequence, or one sequence behind the other. The gradient takes the log probabilities
to be normalised, as those of log_softmax are: so it has a term for that, exp(log_probs), as in PyTorch.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels import numbers

from ..declare.declare import Operator, through
from ..declare.operator import CPU_FP32, composite
from ..declare.public import public
from ..declare.structured import not_implemented
from .comparison import where_op
from .convolution import flat, zeros
from .from_data import tensor
from .pair_losses import MEAN, NONE, reduced

GIVEN = "Tensor log_probs, Tensor targets, {lengths} input_lengths, {lengths} target_lengths"
SAVED = "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False"
REFUSED = "whole halves complex"


def as_lengths(lengths: Any, name: str) -> list[int]:
    """The lengths as numbers. RuntimeError for a tensor of anything else."""
    if not isinstance(lengths, Tensor):
        return list(lengths)
    if lengths._dtype.is_floating_point or lengths._dtype.is_complex or lengths._dtype is dtypes.bool:
        raise RuntimeError(f"{name} must be integral")
    return [int(n) for n in numbers(lengths._operand).reshape(-1)]


def check_ctc(log_probs: Tensor, targets: Tensor, times: list[int], counts: list[int], blank: int) -> None:
    """Raises where shapes, dtypes and lengths do not belong together."""
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if not log_probs._shape.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if log_probs._dtype not in (dtypes.float32, dtypes.float64):
        raise not_implemented("ctc_loss_cpu", log_probs._dtype)
    if targets._dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(
            "Expected tensor for argument #2 'targets' to have scalar type Int; but got "
            f"torch.{targets._dtype.tensor_name}Tensor instead {where}"
        )
    if len(log_probs._shape) != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {len(log_probs._shape)}-dimensional tensor for argument #1 "
            f"'log_probs' {where}"
        )
    longest, batch, classes = log_probs._shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, given in (("input_lengths", times), ("target_lengths", counts)):
        if len(given) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    for name, given in (("target_lengths", counts), ("input_lengths", times)):
        if min(given) < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {min(given)} {where}")
    size, dim, needed, how = (
        (targets._shape[0], 0, sum(counts), "size {}")
        if len(targets._shape) == 1
        else (targets._shape[0], 0, batch, "size {}")
        if targets._shape[0] != batch
        else (targets._shape[1], 1, max(counts), "size at least {}")
    )
    if size < needed if dim else size != needed:
        raise RuntimeError(
            f"Expected tensor to have {how.format(needed)} at dimension {dim}, but got size {size} for argument #2 "
            f"'targets' {where}"
        )
    if max(times) > longest:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {longest}, but got value {max(times)} {where}"
        )


def labels_of(targets: Tensor, times: list[int], counts: list[int], classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The labels in one row, and for each sequence how many times and labels it has and where these start."""
    labels = np.ascontiguousarray(numbers(targets._operand), np.int64)
    starts = [0, *accumulate(counts)][:-1] if labels.ndim == 1 else range(0, labels.size, max(labels.shape[1], 1))
    starts = list(starts) or [0] * len(counts)
    used = [labels.reshape(-1)[first : first + count] for first, count in zip(starts, counts, strict=False)]
    bad = [label for row in used for label in row if not 0 <= label < classes]
    if bad:  # PyTorch reads whatever lies there
        raise IndexError(f"Target {bad[0]} is out of bounds.")
    table = np.array(list(zip(times, counts, starts, strict=False)), np.int64).reshape(-1)
    return labels.reshape(-1), table


def ctc_kernel(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """(losses [batch], alpha [batch, time, 2 * longest + 1])"""
    times, counts = as_lengths(input_lengths, "input_lengths"), as_lengths(target_lengths, "target_lengths")
    check_ctc(log_probs, targets, times, counts, blank)
    longest, batch, classes = log_probs._shape
    labels, table = labels_of(targets, times, counts, classes)
    width = 2 * max(counts) + 1
    dtype, on = log_probs._dtype, log_probs._device
    losses, alpha = empty((batch,), dtype, on), empty((batch, longest, width), dtype, on)
    kernels.fill(alpha._operand, -math.inf)
    loop = kernels.CTC(x=log_probs._dtype.name)
    arrays = flat(losses), flat(alpha), flat(log_probs), labels, table
    kernels.parallel_for(loop, batch, (batch, classes, longest, width, blank, *arrays), 32 * longest * width)
    return losses, alpha


def check_saved(log_probs: Tensor, grad: Tensor, losses: Tensor, alpha: Tensor, width: int) -> None:
    """Raises for a gradient, or results of the forward pass, that are not of this call. (PyTorch reads whatever lies
    there.)"""
    longest, batch, _ = log_probs._shape
    wanted = (
        ("grad", grad, (batch,)),
        ("neg_log_likelihood", losses, (batch,)),
        ("log_alpha", alpha, (batch, longest, width)),
    )
    for name, given, shape in wanted:
        if tuple(given._shape) != shape or given._dtype is not log_probs._dtype:
            raise RuntimeError(
                f"_ctc_loss_backward: expected {name} of shape {list(shape)} and dtype {log_probs._dtype}, got "
                f"{list(given._shape)} and {given._dtype}"
            )


def ctc_backward_kernel(
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity
):
    times, counts = as_lengths(input_lengths, "input_lengths"), as_lengths(target_lengths, "target_lengths")
    check_ctc(log_probs, targets, times, counts, blank)
    longest, batch, classes = log_probs._shape
    check_saved(log_probs, grad, neg_log_likelihood, log_alpha, 2 * max(counts) + 1)
    labels, table = labels_of(targets, times, counts, classes)
    width = log_alpha._shape[2]
    result = zeros(log_probs._shape, log_probs._dtype, log_probs._device)
    scratch = kernels.memory(2 * batch * width, log_probs._dtype.numpy)
    loop = kernels.CTC_BACKWARD(x=log_probs._dtype.name)
    arrays = flat(grad), flat(neg_log_likelihood), flat(log_alpha), scratch, flat(log_probs), labels, table
    sizes = batch, classes, width, longest, blank, int(zero_infinity)
    kernels.parallel_for(loop, batch, (*sizes, flat(result), *arrays), 64 * longest * width)
    return result


def ctc_meta(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    check_ctc(log_probs, targets, list(input_lengths), list(target_lengths), blank)
    longest, batch, _ = log_probs._shape
    shape = (batch, longest, 2 * max(target_lengths) + 1)
    return tuple(empty(size, log_probs._dtype, log_probs._device) for size in ((batch,), shape))


def ctc_of(forward: Any, args: Any, lengths: Any, reduction: int, blank: int, zero_infinity: bool) -> Any:
    """The losses, those without any path as 0 if `zero_infinity`; a mean is that of the losses per label."""
    log_probs, *rest = args
    one = log_probs.dim() == 2  # a sequence without a batch
    loss = forward(log_probs.unsqueeze(1) if one else log_probs, *rest, blank, zero_infinity)[0]
    if zero_infinity:
        nothing = ops.aten.zeros.default([], dtype=loss.dtype, layout=loss.layout, device=loss.device)
        loss = where_op.functional(loss == math.inf, nothing, loss)
    if reduction == NONE:
        return loss.squeeze(0) if one else loss
    return reduced(loss / lengths(loss).clamp_min(1) if reduction == MEAN else loss, reduction)


def by_lengths(
    kind: str, overload: str, public_overload: str, node: str, lengths: Any, **facts: Any
) -> tuple[Operator, ...]:
    """Declares `_ctc_loss`, the operator of its gradient and `ctc_loss` for lengths that are lists, or tensors."""
    given = GIVEN.format(lengths=kind)
    op = Operator(
        f"_ctc_loss{overload}({given}, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)", refuses=REFUSED
    )
    backward = Operator(f"_ctc_loss_backward{overload}(Tensor grad, {given}, {SAVED}) -> Tensor", **facts)
    op.kernel("CPU")(ctc_kernel)
    backward.kernel("CPU")(ctc_backward_kernel)
    if kind == "int[]":
        op.kernel("Meta")(ctc_meta)
    saves = [{"neg_log_likelihood": "result0", "log_alpha": "result1"}.get(name, name) for name in backward.names]
    op.derivative(log_probs=through(backward, *saves), nondifferentiable=(1,), node=node)

    @composite(
        f"ctc_loss.{public_overload}({given}, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
        refuses=REFUSED,
        autocast=CPU_FP32,
    )
    def public_op(log_probs, targets, times, counts, blank, reduction, zero_infinity):
        args = log_probs, targets, times, counts
        return ctc_of(op.functional, args, lambda loss: lengths(counts, loss), reduction, blank, zero_infinity)

    return op, backward, public_op


ctc_list_op, ctc_backward_list_op, _lists = by_lengths(
    "int[]",
    "",
    "IntList",
    "CtcLossBackward0",
    lambda counts, loss: tensor(list(counts), dtype=loss.dtype, device=loss.device),
)
ctc_tensor_op, ctc_backward_tensor_op, _tensors = by_lengths(
    "Tensor", ".Tensor", "Tensor", "CtcLossBackward1", lambda counts, loss: counts.to(loss.device), late_out=False
)
ctc_loss = public(
    _lists,
    _tensors,
    method=False,
    doc="Returns the negative logarithm of the probability of target sequences, over all their alignments.",
)
