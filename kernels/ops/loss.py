"""Losses against the numbers of classes: nll_loss, and what is written in it, cross_entropy; and ctc_loss.

`reduction` is 0 (none), 1 (mean) or 2 (sum), as schemas have it; frontend/nn/functional.py has the names.

`ctc_loss` is of sequences of distributions and the shorter label sequences they should spell: kernels/cpu/losses.py.
Labels come padded, a row for each sequence, or one sequence behind the other. The gradient takes the log probabilities
to be normalised, as those of log_softmax are: so it has a term for that, exp(log_probs), as in PyTorch.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import call, ops
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels import BadIndex, Operand, numbers

from ..declare.declare import Operator, through
from ..declare.operator import CPU_FP32, FP32, composite, planned, planned_several
from ..declare.planned import on_dense
from ..declare.public import public
from ..declare.structured import Meta, not_implemented
from .comparison import where_op
from .convolution import flat, zeros
from .copying import updated
from .from_data import tensor
from .normalization import log_softmax
from .pair_losses import MEAN, NONE, SUM, reduced
from .reductions import converted

# --- nll_loss: of classes [n, classes] or [classes], and of images [n, classes, height, width] -----------------------

NLL = "Tensor self, Tensor target, Tensor? weight"


def check_nll(self: Tensor, target: Tensor, weight: Any, kernel: str) -> None:
    """Raises where the shapes do not belong together."""
    if len(self._shape) not in (1, 2):
        raise RuntimeError("input tensor should be 1D or 2D")
    if len(target._shape) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(self._shape) == 2 and self._shape[:1] != target._shape:
        raise RuntimeError(f"size mismatch (got input: {list(self._shape)}, target: {list(target._shape)})")
    if len(self._shape) == 1 and target._shape.numel() != 1:
        raise RuntimeError(f"size mismatch (got input: {list(self._shape)}, target: {list(target._shape)})")
    check_nll_dtypes(self, target, weight, self._shape[-1], kernel)


def check_nll2d(self: Tensor, target: Tensor, weight: Any, kernel: str) -> None:
    if len(target._shape) != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(target._shape)}"
        )
    if len(self._shape) != 4:
        raise RuntimeError(
            f"only batches of spatial inputs supported (4D tensors), but got input of dimension: {len(self._shape)}"
        )
    n, classes, *image = self._shape
    if tuple(target._shape) != (n, *image):
        raise RuntimeError(f"size mismatch (got input: {list(self._shape)} , target: {list(target._shape)}")
    check_nll_dtypes(self, target, weight, classes, kernel)


def check_nll_dtypes(self: Tensor, target: Tensor, weight: Any, classes: int, kernel: str) -> None:
    if weight is not None and tuple(weight._shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight._shape)}"
        )
    if not self._dtype.is_floating_point:
        raise not_implemented(kernel, self._dtype)
    if target._dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target._dtype.tensor_name}")
    if weight is not None and weight._dtype is not self._dtype:
        raise RuntimeError(f"expected scalar type {self._dtype.tensor_name} but found {weight._dtype.tensor_name}")


def as_rows(x: Tensor, lead: int) -> Operand:
    """`x` with the dimensions after the first `lead` seen as one; a dense copy where they do not lie in a row."""
    operand, rest = x._operand, math.prod(x._shape[lead:])
    shape = (*x._shape[:lead], rest)
    if len(x._shape) == lead:
        return operand._replace(shape=shape, strides=(*x._stride, 1))
    if not in_rows(x, lead):
        operand = converted(x, x._dtype)._operand
    return operand._replace(shape=shape, strides=(*operand.strides[:lead], operand.strides[-1]))


def in_rows(x: Tensor, lead: int) -> bool:
    """Whether the dimensions after the first `lead`, two if any, can be walked as one."""
    return len(x._shape) != lead + 2 or x._stride[lead] == x._stride[lead + 1] * x._shape[lead + 1]


def as_classes(x: Tensor) -> Operand:
    """Scores as [n, classes, rest]."""
    if len(x._shape) == 1:
        return x._operand._replace(shape=(1, x._shape[0], 1), strides=(1, x._stride[0], 1))
    return as_rows(x, 2)


def as_labels(target: Tensor) -> Operand:
    """Labels, or the losses or gradients that belong to them, as [n, rest]."""
    if target._shape.numel() == 1 and len(target._shape) <= 1:
        return target._operand._replace(shape=(1, 1), strides=(1, 1))
    return as_rows(target, 1)


def nll_metadata(self: Tensor, target: Tensor, reduction: int) -> tuple[Meta, Meta]:
    """(loss, the sum of the weights used)"""
    each = reduction == NONE and len(self._shape) > 1
    total = Meta((), self._dtype, self._device)
    return (Meta(tuple(target._shape), self._dtype, self._device) if each else total), total


def raise_bad(bad: BadIndex | None) -> None:
    if bad is not None:
        raise IndexError(f"Target {bad.value} is out of bounds.")


def nll_forward_loop(outs, self, target, weight, reduction, ignore_index):
    each = reduction == NONE and len(self._shape) > 1
    walked = all(in_rows(x, lead) for x, lead in ((self, 2), (target, 1)))
    x, labels = (self, target) if walked else (empty(t._shape, t._dtype) for t in (self, target))
    find = kernels.ready_nll_loss(
        as_labels(outs[0]) if each else outs[0]._operand,
        as_classes(x),
        as_labels(labels),
        None if weight is None else weight._operand,
        ignore_index=ignore_index,
        reduction="none" if each else "mean" if reduction == MEAN else "sum",
    )

    def run(*arrays: Any) -> None:
        bad = find(*arrays)
        if bad is not None:
            raise_bad(bad)

    return run if walked else on_dense(run, 2, [(self, self._dtype), (target, target._dtype)])


def check_nll_gradient(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, total: Tensor) -> bool:
    """Whether there is a gradient for each label. RuntimeError where it, or the total weight, has another shape."""
    each = reduction == NONE and len(self._shape) > 1
    wanted = tuple(target._shape) if each else ()
    if tuple(grad_output._shape) != wanted:
        raise RuntimeError(
            f"Expected a tensor of shape {list(wanted)} for grad_output, but got {list(grad_output._shape)}"
        )
    if total._shape.numel() != 1:
        raise RuntimeError(f"Expected total_weight to be a single element tensor, got shape {list(total._shape)}")
    return each


def nll_backward_loop(out, grad_output, self, target, weight, reduction, ignore_index, total):
    each = check_nll_gradient(grad_output, self, target, reduction, total)
    kind = self._dtype
    grad, labels = empty(grad_output._shape, kind), empty(target._shape, target._dtype)
    find = kernels.ready_nll_loss_backward(
        as_classes(out),
        as_labels(grad) if each else grad._operand,
        as_labels(labels),
        None if weight is None else empty(weight._shape, kind)._operand,
        ignore_index=ignore_index,
        mean=reduction == MEAN,
    )

    def fill(*arrays: Any) -> None:
        raise_bad(find(*arrays))

    weights = [] if weight is None else [(weight, kind)]
    dense_fill = on_dense(fill, 1, [(grad_output, kind), (total, kind), (target, target._dtype), *weights])

    def run(*arrays: Any) -> None:
        """Arrays and offsets of the result and of the arguments in their order, of which the scores are not read."""
        dense_fill(*arrays[:4], *arrays[-2:], *arrays[6:-2])

    return run


def nll(name: str, node: str, check: Any, refuser: str, whose: str) -> tuple[Any, Operator, Operator]:
    """Declares a loss of these classes: its public function, the operator behind it, which gives the sum of the weights
    used, too, and the operator of the gradient. `refuser` refuses dtypes in PyTorch's words."""

    @planned(
        f"{name}_backward(Tensor grad_output, {NLL}, int reduction, SymInt ignore_index, Tensor total_weight) -> "
        "Tensor",
        refuses="whole complex",
        late_out="grad_input",
        derivative={  # the loss is linear in the scores: its gradient knows them by their shape only
            "grad_output": lambda grad, target, weight, reduction, ignore_index: loss.op.functional(
                grad, target, weight, reduction, ignore_index
            ),
            "self": lambda grad: None,
        },
        node=f"{node}BackwardBackward0",
        face=False,
    )
    def backward(grad_output, self, target, weight, reduction, ignore_index, total):
        check(self, target, weight, f"{name}_backward_out_frame")
        return Meta(self._shape, self._dtype, self._device)

    @planned_several(
        f"{name}_forward({NLL}, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
        refuses="whole complex",
        late_out=("output", "output", "total_weight"),
        derivative=through(backward, "grad", "self", "target", "weight", "reduction", "ignore_index", "result1"),
        nondifferentiable=(1,),
        node=f"{node}Backward0",
        face=False,
    )
    def forward(self, target, weight, reduction, ignore_index):
        check(self, target, weight, refuser)
        return nll_metadata(self, target, reduction)

    forward.loop(nll_forward_loop)
    backward.loop(nll_backward_loop)

    @composite(
        f"{name}({NLL}=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
        refuses="whole complex",
        autocast=FP32,
        late_out=True,
        module="nn",
        doc=f"Returns minus the score of each {whose}, weighted, or their mean or sum.",
    )
    @inline
    def loss(self, target, weight, reduction, ignore_index):
        return call(forward.functional, [self, target, weight, reduction, ignore_index])[0]

    return loss, forward, backward


nll_loss, nll_forward_op, nll_backward_op = nll("nll_loss", "NllLoss", check_nll, "nll_loss_out_frame", "target")
nll_loss2d, nll2d_forward_op, nll2d_backward_op = nll(
    "nll_loss2d", "NllLoss2D", check_nll2d, "nll_loss2d_forward_out_frame", "pixel's target"
)


@composite(
    f"nll_loss_nd({NLL}=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    refuses="whole complex",
    module="nn",
)
@inline
def nll_loss_nd(self, target, weight, reduction, ignore_index):
    """Returns minus the score of each target, weighted, for any number of dimensions, or their mean or sum."""
    if len(self._shape) == 2 and len(target._shape) == 1 and self._shape[0] == target._shape[0]:  # as most
        return call(nll_loss.op.functional, [self, target, weight, reduction, ignore_index])
    return nll_slow(self, target, weight, reduction, ignore_index)


def nll_slow(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    if self.dim() < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {self.dim()})")
    if self.dim() == 1 and target.dim() == 1 and target.shape[0] != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
    if self.dim() != 1 and (target.dim() == 0 or self.shape[0] != target.shape[0]):
        size = target.shape[0] if target.dim() else 0
        raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({size}).")
    if self.dim() <= 2:
        return nll_loss.op.functional(self, target, weight, reduction, ignore_index)
    if self.dim() == 4:
        return nll_loss2d.op.functional(self, target, weight, reduction, ignore_index)
    n, classes, *rest = self.shape
    if list(target.shape[1:]) != rest:
        raise RuntimeError(f"Expected target size {[n, *rest]}, got {list(target.shape)}")
    image = [1, -1] if self.numel() else [0, 0]
    flat = self.contiguous().view([n, classes, *image])
    loss = nll_loss2d.op.functional(flat, target.contiguous().view([n, *image]), weight, reduction, ignore_index)
    return loss.view([n, *rest]) if reduction == NONE else loss


# --- cross_entropy_loss ----------------------------------------------------------------------------------------------


@composite(
    f"cross_entropy_loss({NLL}=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    refuses="whole complex",
    autocast=CPU_FP32,
    module="nn",
)
@inline
def cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    """Returns the cross entropy of scores and targets, which are classes or probabilities, or its mean or sum."""
    if label_smoothing == 0 and len(self._shape) != 1 and self._shape != target._shape:  # as most
        scores = call(log_softmax.op.functional, [self, 1, None])
        return call(nll_loss_nd.op.functional, [scores, target, weight, reduction, ignore_index])
    return cross_entropy_slow(self, target, weight, reduction, ignore_index, label_smoothing)


def cross_entropy_slow(
    self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, label_smoothing: float
) -> Any:
    """Returns the cross entropy with probabilities, or smoothed."""
    if self.shape == target.shape:
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {target.dtype.tensor_name}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        if label_smoothing > 1:
            raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
        return of_probabilities(self, target, weight, reduction, label_smoothing)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    scores = log_softmax.op.functional(self, class_dim(self))
    loss = nll_loss_nd.op.functional(scores, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return loss
    smooth = smoothed(scores, target, weight, reduction, ignore_index)
    mul = ops.aten.mul.Scalar
    spread = mul(smooth, label_smoothing / self.shape[class_dim(self)])
    return mul(loss, 1 - label_smoothing).add(spread)


def class_dim(self: Any) -> int:
    return 0 if self.dim() == 1 else 1


def along_classes(self: Any, weight: Any) -> Any:
    """The weights of the classes, shaped to broadcast against the scores."""
    shape = [1] * self.dim()
    shape[class_dim(self)] = weight.shape[0]
    return weight.view(shape)


def of_probabilities(self: Any, target: Any, weight: Any, reduction: int, label_smoothing: float) -> Any:
    """-sum of p * log softmax over the classes; the mean is taken over everything else."""
    classes = self.shape[class_dim(self)]
    scores = log_softmax.op.functional(self, class_dim(self))
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    if weight is not None:
        if weight.dim() != 1 or weight.numel() != classes:
            raise RuntimeError(
                f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but "
                f"got weight tensor of shape: {list(weight.shape)}"
            )
        weight = along_classes(self, weight)
    product = scores * target if weight is None else scores * target * weight
    if reduction == NONE:
        return -product.sum(class_dim(self))
    loss = -product.sum()
    if reduction != MEAN:
        return loss
    return ops.aten.div.Scalar(loss, self.numel() // classes if classes else math.nan)


def smoothed(scores: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """The loss against equal probabilities of all classes, times their number: what label smoothing mixes in."""
    terms = scores if weight is None else scores * along_classes(scores, weight)
    smooth = -terms.sum(class_dim(scores))
    ignored = target == ignore_index
    smooth = updated(smooth, "masked_fill", ignored, 0.0)
    if reduction == SUM:
        return smooth.sum()
    if reduction == NONE:
        return smooth
    if weight is None:
        counted = (~ignored).sum()
        return smooth.sum() / counted
    weights = weight.gather(0, target.masked_fill(ignored, 0).flatten())
    total = updated(weights, "masked_fill", ignored.flatten(), 0).sum()
    return smooth.sum() / total


# --- ctc_loss: of sequences of distributions and the shorter sequences of labels that they should spell ---------------

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


def ctc_backward_meta(grad, log_probs, *saved):
    return empty(log_probs._shape, log_probs._dtype, log_probs._device)


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
        f"_ctc_loss{overload}({given}, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
        refuses=REFUSED,
        tags=() if kind == "int[]" else ("dynamic_output_shape",),
    )
    backward = Operator(
        f"_ctc_loss_backward{overload}(Tensor grad, {given}, {SAVED}) -> Tensor", refuses=REFUSED, **facts
    )
    op.kernel("CPU")(ctc_kernel)
    backward.kernel("CPU")(ctc_backward_kernel)
    backward.kernel("Meta")(ctc_backward_meta)
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
