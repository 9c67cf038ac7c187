"""Losses with a margin: the right answer shall lead the wrong ones by so much, and then costs nothing.

    multi_margin_loss       of the scores of classes, of which one is right
    multilabel_margin_loss  of which several are
    margin_ranking_loss, hinge_embedding_loss, cosine_embedding_loss, triplet_margin_loss

The last four are written in other operators. Read next: loss.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, contiguous_format, dtypes, empty, preserve_format
from redispatch.kernels import numbers

from ..declare.operator import CPU_FP32, FP32, composite, leaf_kernel, structured
from ..declare.structured import Meta, not_implemented
from .arithmetic import add_scalar_op, minimum, sub_scalar_op
from .comparison import where_op
from .convolution import flat
from .distances import pairwise_distance
from .moments import scratch
from .pair_losses import MEAN, NONE, reduced

FLOATS = (dtypes.float32, dtypes.float64)


def rows_and_classes(self: Tensor) -> tuple[int, int]:
    """Returns the sizes of [n, classes], or of the scores of one sample. RuntimeError for anything else."""
    shape = self._shape
    if len(shape) > 2 or (shape and not shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}"
        )
    return (shape[0], shape[1]) if len(shape) == 2 else (1, math.prod(shape))


def check_is(x: Tensor, wanted: Any) -> None:
    if x._dtype is not wanted:
        raise RuntimeError(f"expected scalar type {wanted.tensor_name} but found {x._dtype.tensor_name}")


def store_reduced(out: Tensor, losses: Tensor, reduction: int) -> None:
    if reduction == NONE:
        kernels.copy(out._operand, losses._operand._replace(shape=out._shape, strides=(1,) * len(out._shape)))
        return
    wide = scratch(losses._shape)
    kernels.copy(wide, losses._operand)
    mean = reduction == MEAN and losses._shape[0]  # of no losses it is 0
    (kernels.MEAN if mean else kernels.SUM).run(out._operand, wide, (0,))


# --- multi_margin_loss -----------------------------------------------------------------------------------------------

CALL = "Tensor self, Tensor target, Scalar p{one}, Scalar margin{one}, Tensor? weight=None, int reduction=1"


def check_multi_margin(self: Tensor, target: Tensor, p: Any, weight: Tensor | None, kernel: str) -> None:
    rows, classes = rows_and_classes(self)
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    if len(target._shape) > 1 or target._shape.numel() != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{rows}], but got {list(target._shape)}. Input has shape "
            f"{list(self._shape)}."
        )
    if weight is not None and (len(weight._shape) > 1 or weight._shape.numel() != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight._shape)}")
    if self._dtype not in FLOATS:
        raise not_implemented(kernel, self._dtype)
    check_is(target, dtypes.int64)
    if weight is not None:
        check_is(weight, self._dtype)


@structured(
    f"multi_margin_loss({CALL.format(one='=1')}) -> Tensor",
    out="out",
    refuses="whole halves complex",
    derivative={
        "self": lambda grad, self, target, p, margin, weight, reduction: multi_margin_backward_op.functional(
            grad, self, target, p, margin, weight, reduction
        )
    },
    autocast=FP32,
    module="nn",
)
def multi_margin_loss(self, target, p, margin, weight, reduction):
    """Returns by how much other classes' scores come closer than `margin` to the target's, or the mean or sum."""
    check_multi_margin(self, target, p, weight, "multi_margin_loss_cpu_kernel")
    return Meta(tuple(target._shape) if reduction == NONE else (), self._dtype, self._device)


def labels_among(target: Tensor, classes: int) -> Any:
    labels = numbers(target._operand)
    if ((labels < 0) | (labels >= classes)).any():
        raise RuntimeError("target out of range")
    return flat(target)


def weights(weight: Tensor | None, self: Tensor) -> tuple[Any, int]:
    """The weights, and whether there are any."""
    return (kernels.memory(0, self._dtype.numpy), 0) if weight is None else (flat(weight), 1)


@multi_margin_loss.op.body
def multi_margin_body(out, self, target, p, margin, weight, reduction):
    rows, classes = rows_and_classes(self)
    losses = empty((rows,), self._dtype, self._device)
    arrays = flat(losses), flat(self), labels_among(target, classes), *weights(weight, self)
    loop = kernels.MULTI_MARGIN(x=self._dtype.name)
    kernels.parallel_for(loop, rows, (classes, int(p), float(margin), *arrays), 2 * classes)
    store_reduced(out, losses, reduction)


@structured(
    f"multi_margin_loss_backward(Tensor grad_output, {CALL.format(one='')}) -> Tensor",
    refuses="whole halves complex",
    late_out="grad_input",
    face=False,
    relies="multi_margin_loss",
)
def multi_margin_backward_op(grad_output, self, target, p, margin, weight, reduction):
    check_multi_margin(self, target, p, weight, "multi_margin_loss_backward_cpu_kernel")
    return Meta(tuple(self._shape), self._dtype, self._device)


@multi_margin_backward_op.body
def multi_margin_backward_body(out, grad_output, self, target, p, margin, weight, reduction):
    rows, classes = rows_and_classes(self)
    result = empty(self._shape, self._dtype, self._device)
    given = labels_among(target, classes), *weights(weight, self)
    grad = *each_gradient(grad_output, rows), 1 / rows if reduction == MEAN and rows else 1.0
    loop = kernels.MULTI_MARGIN_BACKWARD(x=self._dtype.name)
    kernels.parallel_for(
        loop, rows, (classes, int(p), float(margin), flat(result), *grad, flat(self), *given), 2 * classes
    )
    kernels.copy(out._operand, result._operand)


def each_gradient(grad_output: Tensor, rows: int) -> tuple[Any, int]:
    """The gradients of the losses, and the step from one to the next: 0 where all have the same."""
    return flat(grad_output), int(grad_output._shape.numel() == rows)


# --- multilabel_margin_loss ------------------------------------------------------------------------------------------


def check_multilabel(self: Tensor, target: Tensor, kernel: str) -> None:
    rows_and_classes(self)
    if tuple(target._shape) != tuple(self._shape):
        raise RuntimeError(f"inconsistent target size: {list(target._shape)} for input of size: {list(self._shape)}")
    if self._dtype not in FLOATS:
        raise not_implemented(kernel, self._dtype)
    check_is(target, dtypes.int64)


@leaf_kernel(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
    refuses="whole halves complex",
    autocast=CPU_FP32,
    late_out=("output", "output", "is_target"),
    derivative=lambda grad, self, target, reduction, result1: multilabel_backward_op.functional(
        grad, self, target, reduction, result1
    ),
    nondifferentiable=(1,),
    node="MultilabelMarginLossBackward0",
    face=False,
)
def multilabel_forward_op(self, target, reduction):
    """(loss, 1 for each class that is a target and 0 for others)"""
    check_multilabel(self, target, "multilabel_margin_loss_forward_out_frame")
    rows, classes = rows_and_classes(self)
    each = reduction == NONE and len(self._shape) == 2
    out = empty((rows,) if each else (), self._dtype, self._device)
    is_target = empty(target._shape, self._dtype, self._device)
    if self._device.type != "meta":
        labels = bounded(target, classes)
        losses = empty((rows,), self._dtype, self._device)
        loop = kernels.MULTI_LABEL(x=self._dtype.name)
        arrays = flat(losses), flat(is_target), flat(self), labels
        kernels.parallel_for(loop, rows, (classes, *arrays), classes * classes)
        store_reduced(out, losses, reduction)
    return out, is_target


def bounded(target: Tensor, classes: int) -> Any:
    labels = numbers(target._operand)
    if ((labels < -1) | (labels >= classes)).any():
        raise RuntimeError("argument #2 'target' is out of range")
    return flat(target)


@structured(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, "
    "Tensor is_target) -> Tensor",
    refuses="whole halves complex",
    late_out="grad_input",
    face=False,
    relies="multilabel_margin_loss_forward",
)
def multilabel_backward_op(grad_output, self, target, reduction, is_target):
    check_multilabel(self, target, "multilabel_margin_loss_backward_out_frame")
    check_is(is_target, self._dtype)
    return Meta(tuple(self._shape), self._dtype, self._device)


@multilabel_backward_op.body
def multilabel_backward_body(out, grad_output, self, target, reduction, is_target):
    rows, classes = rows_and_classes(self)
    result = empty(self._shape, self._dtype, self._device)
    grad = *each_gradient(grad_output, rows), 1 / rows if reduction == MEAN and rows else 1.0
    loop = kernels.MULTI_LABEL_BACKWARD(x=self._dtype.name)
    arrays = flat(self), bounded(target, classes), flat(is_target)
    kernels.parallel_for(loop, rows, (classes, flat(result), *grad, *arrays), classes * classes)
    kernels.copy(out._operand, result._operand)


@composite(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    refuses="whole halves complex",
    late_out=True,
    autocast=FP32,
    module="nn",
)
def multilabel_margin_loss(self, target, reduction):
    """Returns by how much scores of classes that are not targets come close to those that are, or the mean or sum."""
    return multilabel_forward_op.functional(self, target, reduction)[0]


# --- of pairs and triples --------------------------------------------------------------------------------------------


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
    refuses="bool complex",
    autocast=FP32,
    method=False,
)
def margin_ranking_loss(input1, input2, target, margin, reduction):
    """Returns max(0, margin - y (x₁ - x₂)), or its mean or sum: y is 1 where the first shall rank higher, else -1."""
    lead = input1 - input2
    return reduced(add_scalar_op.functional(-target * lead, margin).clamp_min_(0), reduction)


def full_like(x: Any, value: float) -> Any:
    """A dense fill, as PyTorch's C++ makes it."""
    return ops.aten.fill_.Scalar(ops.aten.empty_like.default(x, memory_format=preserve_format), value)


def zeros_like(x: Any) -> Any:
    return ops.aten.zeros_like.default(x, memory_format=contiguous_format)


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
    refuses="bool complex",
    autocast=FP32,
    method=False,
)
def hinge_embedding_loss(self, target, margin, reduction):
    """Returns x where y is 1, max(0, margin - x) where y is -1, or the mean or sum."""
    nothing = zeros_like(self)
    lack = full_like(self, margin).sub_(self).clamp_min_(0)
    far = where_op.functional(ops.aten.ne.Scalar(target, 1), lack, nothing)
    near = where_op.functional(ops.aten.ne.Scalar(target, -1), self, nothing)
    return reduced(far + near, reduction)


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
    refuses="complex",
    autocast=FP32,
    method=False,
)
def cosine_embedding_loss(input1, input2, target, margin, reduction):
    """Returns 1 - cos(x₁, x₂) where y is 1, max(0, cos(x₁, x₂) - margin) where y is -1, or the mean or sum."""
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.dim() != target.dim() + 1 or input2.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    dim = target.dim()
    product = (input1 * input2).sum(dim)
    # As PyTorch adds it, which has it as a float32.
    one, other = (add_scalar_op.functional((x * x).sum(dim), float(np.float32(1e-12))) for x in (input1, input2))
    cosine = product / (one * other).sqrt_()
    nothing = zeros_like(cosine)
    near = full_like(cosine, 1).sub_(cosine)
    far = sub_scalar_op.functional(cosine, margin).clamp_min_(0)
    near = where_op.functional(ops.aten.eq.Scalar(target, 1), near, nothing)
    far = where_op.functional(ops.aten.eq.Scalar(target, -1), far, nothing)
    return reduced(near + far, reduction)


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., "
    "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor",
    refuses="bool",
    autocast=FP32,
    method=False,
)
def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction):
    """Returns max(0, margin + |a - p| - |a - n|), or its mean or sum; `swap` takes |p - n| where that is smaller."""
    dims = anchor.dim(), positive.dim(), negative.dim()
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    near = pairwise_distance.op.functional(anchor, positive, p, eps)
    far = pairwise_distance.op.functional(anchor, negative, p, eps)
    if swap:
        far = minimum.op.functional(far, pairwise_distance.op.functional(positive, negative, p, eps))
    return reduced((add_scalar_op.functional(near, margin) - far).clamp_min(0), reduction)
