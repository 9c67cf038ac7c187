"""Losses as functions, with PyTorch's names, arguments and errors: `functional.cross_entropy(input, target)`.

`reduction` is "none", "mean" or "sum". Read next: loss.py, for the modules.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels import broadcast_shapes
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import ctc, distances, linalg, loss, margin_losses, pair_losses
from redispatch.kernels.ops.activations import log_sigmoid
from redispatch.kernels.ops.arithmetic import minimum
from redispatch.kernels.ops.creation import ones_like
from redispatch.kernels.ops.pair_losses import reduced

_REDUCTIONS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


@overridable_function
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-log softmax(input) at the target, a class number or probabilities of the classes.

    Shapes: input [classes] or [batch, classes, ...]; target without the dimension of classes, or probabilities of the
    input's shape. Errors: IndexError for a target that is no class, ValueError for batches of different size.
    """
    kind = _reduction(size_average, reduce, reduction)
    return loss.cross_entropy_loss(input, target, weight, kind, ignore_index, label_smoothing)


@overridable_function
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-input at the target: the loss of log probabilities. Shapes as in `cross_entropy`."""
    return loss.nll_loss_nd(input, target, weight, _reduction(size_average, reduce, reduction), ignore_index)


def _elementwise_loss(each: Any, input: Tensor, target: Tensor, reduction: int, weight: Tensor | None) -> Any:
    """A loss that is a mean or sum of one value per element; with weights, a weighted mean or sum."""
    left, right = _same_shape(input, target)
    if weight is None:
        return each(left, right, reduction)
    weighted = each(left, right, 0) * weight
    return weighted.sum() / weight.sum() if reduction == 1 else reduced(weighted, reduction)


@overridable_function
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Any:
    """(input - target)², with the weight's elements as factors if one is given."""
    return _elementwise_loss(pair_losses.mse_loss, input, target, _reduction(size_average, reduce, reduction), weight)


@overridable_function
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Any:
    """|input - target|, with the weight's elements as factors if one is given."""
    return _elementwise_loss(pair_losses.l1_loss, input, target, _reduction(size_average, reduce, reduction), weight)


@overridable_function
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of the probability σ(input) against the target, without ever forming that probability."""
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    kind = _reduction(size_average, reduce, reduction)
    return pair_losses.binary_cross_entropy_with_logits(input, target, weight, pos_weight, kind)


@overridable_function
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Any:
    """(input - target)² / 2 where they are closer than delta, delta (|input - target| - delta / 2) elsewhere.

    Errors: ValueError for weights of another size.
    """
    left, right = _same_shape(input, target)
    kind = _reduction(None, None, reduction)
    if weight is None:
        return pair_losses.huber_loss(left, right, kind, delta)
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    return reduced(pair_losses.huber_loss(left, right, 0, delta) * weight, kind)


@overridable_function
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """(input - target)² / (2 beta) where they are closer than beta, |input - target| - beta / 2 elsewhere."""
    left, right = _same_shape(input, target)
    kind = _reduction(size_average, reduce, reduction)
    return pair_losses.l1_loss(left, right, kind) if beta == 0 else pair_losses.smooth_l1_loss(left, right, kind, beta)


@overridable_function
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target input)), of targets 1 and -1."""
    return pair_losses.soft_margin_loss(input, target, _reduction(size_average, reduce, reduction))


@overridable_function
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of the probability `input` against the target.

    Errors: ValueError for different sizes, RuntimeError for an element outside [0, 1].
    """
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(broadcast_shapes(tuple(target.size()), tuple(weight.size())))
    return pair_losses.binary_cross_entropy(input, target, weight, _reduction(size_average, reduce, reduction))


@overridable_function
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target (log target - input), of log probabilities; "batchmean" divides the sum by the number of samples."""
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=3,
        )
    kind = _reduction(size_average, reduce, "sum" if reduction == "batchmean" else reduction)
    total = pair_losses.kl_div(input, target, kind, log_target=log_target)
    return total / input.size(0) if reduction == "batchmean" and input.dim() else total


@overridable_function
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The loss of counts under Poisson distributions of these rates, or of rates with these logarithms."""
    kind = _reduction(size_average, reduce, reduction)
    return pair_losses.poisson_nll_loss(input, target, log_input, full, eps, kind)


@overridable_function
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """(log var + (input - target)² / var) / 2: of normal distributions; `full` adds log(2 π) / 2.

    var is a number, or has the shape of `input`, or 1 in the place of a dimension, or nothing in that of the last.
    Errors: ValueError for a negative variance or another shape.
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ones_like(input)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(v for n, v in zip(input.size(), var.size(), strict=True) if n != v) != 1:
            raise ValueError("var is of incorrect size")
    kind = _reduction(None, None, reduction)
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    each = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        each += 0.5 * math.log(2 * math.pi)
    return reduced(each, kind)


@overridable_function
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target (input1 - input2)): the target is 1 where input1 shall rank higher, else -1."""
    kind = _reduction(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return margin_losses.margin_ranking_loss(input1, input2, target, margin, kind)


@overridable_function
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """input where the target is 1, max(0, margin - input) where it is -1."""
    kind = _reduction(size_average, reduce, reduction)
    return margin_losses.hinge_embedding_loss(input, target, margin, kind)


@overridable_function
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(input1, input2) where the target is 1, max(0, cos(input1, input2) - margin) where it is -1."""
    kind = _reduction(size_average, reduce, reduction)
    return margin_losses.cosine_embedding_loss(input1, input2, target, margin, kind)


@overridable_function
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the other classes of max(0, margin - input[target] + input)^p, times the target's weight."""
    kind = _reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return margin_losses.multi_margin_loss(input, target, p, margin, weight, kind)


@overridable_function
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over the targets' classes y and the others j of max(0, 1 - input[y] + input[j]), over all classes.

    A row of the target holds the numbers of its classes, behind which comes a negative one.
    """
    return margin_losses.multilabel_margin_loss(input, target, _reduction(size_average, reduce, reduction))


@overridable_function
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of the binary cross entropy of σ(input) against the target."""
    each = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        each = each * weight
    return reduced(each.sum(dim=input.dim() - 1) / input.size(-1), _reduction(size_average, reduce, reduction))


@overridable_function
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + |anchor - positive| - |anchor - negative|), with p-norms along the last dimension.

    `swap` takes |positive - negative| where that is smaller. Errors: ValueError for a margin that is not positive.
    """
    kind = _reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return margin_losses.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, kind)


@overridable_function
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The same with a distance of one's own; by default that of pairs of vectors."""
    kind = _reduction(None, None, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or distances.pairwise_distance
    dims = anchor.ndim, positive.ndim, negative.ndim
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), kind)


@overridable_function
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability that sequences of distributions spell the labels, blanks between them apart.

    Shapes: log_probs [time, batch, classes] or [time, classes]; targets [batch, longest], or the labels of all in one
    row; the lengths [batch], numbers in a tuple or a tensor. "mean" is that of the losses per label.
    """
    kind = _reduction(None, None, reduction)
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, kind, zero_infinity)


@overridable_function
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of the scores `linear(input, linear_weight, linear_bias)`.

    Shapes: input [n, in_features] or [in_features], linear_weight [classes, *image, in_features].
    `options`, which in PyTorch ask for the scores in chunks that are never all there, are not supported.
    """
    if options is not None:
        raise NotImplementedError(
            "linear_cross_entropy: options, which ask for the scores in chunks, are not supported"
        )
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    classes, *image, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {features}, respectively"
        )
    flat_weight = linear_weight.flatten(0, -2) if image else linear_weight
    flat_bias = linear_bias.flatten() if image and linear_bias is not None else linear_bias
    scores = linalg.linear(input, flat_weight, flat_bias)
    if image:
        scores = scores.reshape([-1, classes, *image])
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        scores, target, weight=weight, reduction=reduction, ignore_index=ignored, label_smoothing=label_smoothing
    )


def _same_shape(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both, broadcast; with a warning where that was needed, since it is seldom meant."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        UserWarning,
        stacklevel=4,
    )
    shape = broadcast_shapes(tuple(input.shape), tuple(target.shape))
    left, right = (t if tuple(t.shape) == shape else t.expand(shape) for t in (input, target))
    return left, right


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """The number of a reduction, from its name or from the two switches that it replaced."""
    reduction = named_reduction(size_average, reduce, reduction)
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[reduction]


def named_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The name of a reduction; with a warning, if the two switches that it replaced are used."""
    if size_average is None and reduce is None:
        return reduction
    each, summed = reduce is False, size_average is False
    reduction = "none" if each else "sum" if summed else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
        UserWarning,
        stacklevel=5,
    )
    return reduction
