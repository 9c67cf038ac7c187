"""Losses, as functions and as modules: `functional.cross_entropy(input, target)` and `CrossEntropyLoss()`.

`reduction` says what becomes of the losses of a batch: "mean", "sum" or "none". `size_average` and `reduce` are
switches that PyTorch had before it. Shapes: the result has no dimensions, or with "none" those of the losses, as a rule
of the input. Errors: ValueError for another reduction.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from redispatch._checks import _check_with
from redispatch.autograd import no_grad
from redispatch.dispatch.symbolic import GuardOnDataDependentSymNode
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels import broadcast_shapes
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import distances, linalg, loss, margin_losses, pair_losses
from redispatch.kernels.ops.activations import log_sigmoid
from redispatch.kernels.ops.arithmetic import minimum
from redispatch.kernels.ops.creation import ones_like
from redispatch.kernels.ops.pair_losses import MEAN, NONE, reduced
from redispatch.kernels.ops.shape import cat

from .containers import ModuleList, Sequential
from .derived import emitted, functional, module_of, signature
from .linear import Linear, PairwiseDistance
from .linear_cross_entropy import loss_in_chunks
from .module import Module

# --- reductions ------------------------------------------------------------------------------------------------------

_REDUCTIONS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def reducing(function: Callable[..., Any], size_average_before: str = "reduce") -> Any:
    """Returns the public function of one that takes a reduction's number: it takes the name, by default "mean".

    Before the name come PyTorch's former switches, `reduce` and, there or before another parameter, `size_average`.
    """
    own = dict(inspect.signature(function).parameters)
    switch = own["reduction"].replace(annotation="bool | None", default=None)
    public = []
    for name, parameter in own.items():
        if name == "reduction":
            public += [switch.replace(name="reduce"), parameter.replace(annotation="str", default="mean")]
        else:
            public.append(parameter)
    place = [parameter.name for parameter in public].index(size_average_before)
    public.insert(place, switch.replace(name="size_average"))
    text = (
        f"def {function.__name__}({signature([], public)}) -> {function.__annotations__['return']}:\n"
        "    number = number_of(size_average, reduce, reduction)\n"
        f"    return function({', '.join('number' if name == 'reduction' else name for name in own)})\n"
    )
    made = emitted(function.__name__, text, __name__, {"function": function, "number_of": _reduction})
    made.__doc__ = function.__doc__
    return overridable_function(made)


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """Returns the number of a reduction, from its name or from the two switches that it replaced."""
    return get_enum(named_reduction(size_average, reduce, reduction))


# What programs find in `nn._reduction`
def get_enum(reduction: str) -> int:
    """Returns the number of a reduction's name."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[reduction]


def named_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Returns the name of a reduction; with a warning, if the two switches that it replaced are used."""
    return reduction if size_average is None and reduce is None else legacy_get_string(size_average, reduce)


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Returns the name of the reduction that two switches mean, which are on where they are None."""
    reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
    if emit_warning:
        text = f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead."
        warnings.warn(text, UserWarning, stacklevel=6)
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Returns the number of the reduction that two switches mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


class _Loss(Module):
    """A loss with a reduction and options, which become attributes."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", **options: Any
    ) -> None:
        super().__init__()
        self.reduction = named_reduction(size_average, reduce, reduction)
        for name, value in options.items():
            setattr(self, name, value)


class _WeightedLoss(_Loss):
    """A loss with weights of the classes, a buffer."""

    weight: Any

    def __init__(
        self,
        weight: Any = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        **options: Any,
    ) -> None:
        super().__init__(size_average, reduce, reduction, **options)
        self.register_buffer("weight", weight)


loss_of = partial(module_of, base=_Loss, shown="")
weighted_loss_of = partial(module_of, base=_WeightedLoss, shown="")

# --- of a prediction and its target ----------------------------------------------------------------------------------


def _same_shape(input: Tensor, target: Tensor, stacklevel: int = 5) -> tuple[Tensor, Tensor]:
    """Returns both, broadcast; with a warning where that was needed, since it is seldom meant."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        UserWarning,
        stacklevel=stacklevel,
    )
    shape = broadcast_shapes(tuple(input.shape), tuple(target.shape))
    left, right = (t if tuple(t.shape) == shape else t.expand(shape) for t in (input, target))
    return left, right


def _elementwise_loss(loss: Any, of: Any, input: Tensor, target: Tensor, reduction: int, weight: Tensor | None) -> Any:
    """Returns a loss that is a mean or sum of one value per element; with weights, a weighted mean or sum of those `of`
    the difference. ValueError for weights of another size."""
    left, right = _same_shape(input, target)
    if weight is None:
        return loss(left, right, reduction)
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = of(left - right) * weight
    return weighted.sum() / weight.sum() if reduction == MEAN else reduced(weighted, reduction)


@reducing
def mse_loss(input: Tensor, target: Tensor, reduction: int = MEAN, weight: Tensor | None = None) -> Any:
    """Computes (input - target)², with the weight's elements as factors if one is given."""
    return _elementwise_loss(pair_losses.mse_loss, lambda error: error.pow(2), input, target, reduction, weight)


@reducing
def l1_loss(input: Tensor, target: Tensor, reduction: int = MEAN, weight: Tensor | None = None) -> Any:
    """Computes |input - target|, with the weight's elements as factors if one is given."""
    return _elementwise_loss(pair_losses.l1_loss, lambda error: error.abs(), input, target, reduction, weight)


@overridable_function
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Any:
    """Computes (input - target)² / 2 where they are closer than delta, else delta (|input - target| - delta / 2).

    Errors: ValueError for weights of another size.
    """
    left, right = _same_shape(input, target, stacklevel=4)
    number = _reduction(None, None, reduction)
    if weight is None:
        return pair_losses.huber_loss(left, right, number, delta)
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    return reduced(pair_losses.huber_loss(left, right, NONE, delta) * weight, number)


@reducing
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0) -> Tensor:
    """Computes (input - target)² / (2 beta) where they are closer than beta, else |input - target| - beta / 2."""
    left, right = _same_shape(input, target)
    if beta == 0:
        return pair_losses.l1_loss(left, right, reduction)
    return pair_losses.smooth_l1_loss(left, right, reduction, beta)


@reducing
def soft_margin_loss(input: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """Computes log(1 + exp(-target input)), of targets 1 and -1."""
    return pair_losses.soft_margin_loss(input, target, reduction)


@overridable_function
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Computes target (log target - input), of log probabilities; "batchmean" divides the sum by the number of samples.

    log_target: whether the target holds log probabilities, too.
    """
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=3,
        )
    number = _reduction(size_average, reduce, "sum" if reduction == "batchmean" else reduction)
    total = pair_losses.kl_div(input, target, number, log_target=log_target)
    return total / input.size(0) if reduction == "batchmean" and input.dim() else total


@partial(reducing, size_average_before="eps")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: int = MEAN,
) -> Tensor:
    """Computes exp(input) - target input, the loss of counts under Poisson distributions of these logarithms of rates.

    log_input: False for input - target log(input + eps), of the rates themselves. full: adds Stirling's formula for
    log(target!).
    """
    return pair_losses.poisson_nll_loss(input, target, log_input, full, eps, reduction)


def refuse_where(bad: Tensor, error: type[Exception], message: Callable[[], str]) -> None:
    """Raises an error if a tensor says that something is bad. A graph of symbols takes it that nothing is.

    PyTorch traces no layer that asks so.
    """
    try:
        _check_with(error, not bad, message)
    except GuardOnDataDependentSymNode:
        _check_with(error, bad.item().__sym_not__(), message)


@overridable_function
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """Computes (log var + (input - target)² / var) / 2, of normal distributions; `full` adds log(2 π) / 2.

    var is a number, or has the shape of `input`, or 1 in the place of a dimension, or nothing in that of the last.
    Errors: ValueError for a negative variance or another shape.
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ones_like(input)
    else:
        refuse_where((var < 0).any(), ValueError, lambda: "var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(v for n, v in zip(input.size(), var.size(), strict=True) if n != v) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    number = _REDUCTIONS[reduction]
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    each = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        each += 0.5 * math.log(2 * math.pi)
    return reduced(each, number)


L1Loss = loss_of("L1Loss", l1_loss, without="weight")
MSELoss = loss_of("MSELoss", mse_loss, without="weight")
HuberLoss = loss_of("HuberLoss", huber_loss, without="weight")
SmoothL1Loss = loss_of("SmoothL1Loss", smooth_l1_loss)
SoftMarginLoss = loss_of("SoftMarginLoss", soft_margin_loss)
KLDivLoss = loss_of("KLDivLoss", kl_div)
PoissonNLLLoss = loss_of("PoissonNLLLoss", poisson_nll_loss, inputs="log_input target", by_keyword=True)
GaussianNLLLoss = loss_of("GaussianNLLLoss", gaussian_nll_loss, keyword_only=True)

# --- of probabilities ------------------------------------------------------------------------------------------------


@reducing
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN) -> Tensor:
    """Computes -target log(input) - (1 - target) log(1 - input), of the probability `input`, times the weight.

    Errors: ValueError for different sizes, RuntimeError for an element outside [0, 1].
    """
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(broadcast_shapes(tuple(target.size()), tuple(weight.size())))
    return pair_losses.binary_cross_entropy(input, target, weight, reduction)


@reducing
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Computes the cross entropy of the probability σ(input) against the target, without forming that probability.

    pos_weight: the weight of positive targets. Errors: ValueError for different sizes.
    """
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return pair_losses.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


BCELoss = weighted_loss_of("BCELoss", binary_cross_entropy)
BCEWithLogitsLoss = loss_of("BCEWithLogitsLoss", binary_cross_entropy_with_logits)

# --- of the numbers of classes ---------------------------------------------------------------------------------------


@partial(reducing, size_average_before="ignore_index")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: int = MEAN,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Computes -log softmax(input) at the target, a class number or probabilities of the classes.

    Shapes: input [classes] or [batch, classes, ...]; target without the dimension of classes, or probabilities of the
    input's shape. Targets equal to `ignore_index` count for nothing; the mean is weighted by the targets' weights;
    `label_smoothing` mixes that share of a uniform distribution into the targets.
    Errors: IndexError for a target that is no class, ValueError for batches of different size.
    """
    return loss.cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)


@partial(reducing, size_average_before="ignore_index")
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: int = MEAN
) -> Tensor:
    """Computes -weight[target] input[target], of log probabilities over the classes in dimension 1.

    Targets equal to `ignore_index` count for nothing. The mean is weighted: the sum, divided by the sum of the weights.
    Shapes and errors: as `cross_entropy`.
    """
    return loss.nll_loss_nd(input, target, weight, reduction, ignore_index)


@reducing
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """Computes the mean over the other classes of max(0, margin - input[target] + input)^p, times the target's weight.

    Shapes: input [batch, classes], target [batch]. Errors: ValueError for another p than 1 and 2, and other weights.
    """
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return margin_losses.multi_margin_loss(input, target, p, margin, weight, reduction)


@reducing
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    """Computes Σ max(0, 1 - input[y] + input[j]) / classes over the targets' classes y and the others j.

    Shapes: both [batch, classes]; a row of the target has the numbers of its classes, and behind them a negative one.
    """
    return margin_losses.multilabel_margin_loss(input, target, reduction)


@reducing
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    """Computes the mean over the classes of the binary cross entropy of σ(input) against the target.

    Shapes: both [batch, classes]; the result of "none" is [batch].
    """
    each = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        each = each * weight
    return reduced(each.sum(dim=input.dim() - 1) / input.size(-1), reduction)


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
    """Computes -log of the probability that sequences of distributions spell the labels, blanks between them apart.

    Shapes: log_probs [time, batch, classes] or [time, classes]; targets [batch, longest], or the labels of all in one
    row; the lengths [batch], numbers in a tuple or a tensor. "mean" is that of the losses per label.
    """
    number = _reduction(None, None, reduction)
    return loss.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


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
    """Computes `cross_entropy` of the scores `linear(input, linear_weight, linear_bias)`.

    Shapes: input [n, in_features] or [in_features], linear_weight [classes, *image, in_features].
    options: LinearCrossEntropyOptions, for scores in chunks that are never all there; with a warning, none are where
    the target has probabilities, labels are smoothed, or the weight is that of an image.
    """
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
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *image):
        raise RuntimeError(f"expected linear_bias shape {(classes, *image)}, got {tuple(linear_bias.shape)}")
    if image and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    if ignore_index is not None and tuple(target.shape) == (*input.shape[:-1], classes, *image):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        if not image and not label_smoothing and target.dtype is dtypes.int64:
            rows, targets = (input, target) if input.dim() == 2 else (input.unsqueeze(0), target.unsqueeze(0))
            each = partial(cross_entropy, weight=weight, ignore_index=ignored, reduction="none")
            losses = loss_in_chunks(each, rows, linear_weight, linear_bias, targets, options)
            if reduction == "mean":  # which is weighted
                share = ones_like(losses) if weight is None else weight[targets.masked_fill(targets == ignored, 0)]
                return losses.sum() / share.masked_fill(targets == ignored, 0).sum()
            return losses.sum() if reduction == "sum" else losses if input.dim() == 2 else losses.squeeze(0)
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            "label_smoothing == 0, target.dtype == int64, out_features == (). Got "
            f"reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"out_features={tuple(image)}.",
            stacklevel=2,
        )
    flat_weight = linear_weight.flatten(0, -2) if image else linear_weight
    flat_bias = linear_bias.flatten() if image and linear_bias is not None else linear_bias
    scores = linalg.linear(input, flat_weight, flat_bias)
    if image:
        scores = scores.reshape([-1, classes, *image])
    return cross_entropy(
        scores, target, weight=weight, reduction=reduction, ignore_index=ignored, label_smoothing=label_smoothing
    )


def _check_classes(loss: Any) -> None:
    if loss.p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    dims = 1 if loss.weight is None else loss.weight.dim()
    if dims != 1:
        raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {dims}D instead")


NLLLoss = weighted_loss_of("NLLLoss", nll_loss)
CrossEntropyLoss = weighted_loss_of("CrossEntropyLoss", cross_entropy)
MultiMarginLoss = weighted_loss_of("MultiMarginLoss", multi_margin_loss, check=_check_classes)
MultiLabelMarginLoss = loss_of("MultiLabelMarginLoss", multilabel_margin_loss)
MultiLabelSoftMarginLoss = weighted_loss_of("MultiLabelSoftMarginLoss", multilabel_soft_margin_loss)
CTCLoss = loss_of("CTCLoss", ctc_loss)


class NLLLoss2d(NLLLoss):  # type: ignore[valid-type, misc]  # a class that module_of made
    """Computes NLLLoss, by its former name for images."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


class LinearCrossEntropyLoss(_WeightedLoss):
    """Computes the cross entropy of the results of a linear layer, which may be those of an image of `out_features`.

    Shapes: as `functional.linear_cross_entropy`.
    Errors: RuntimeError for weights of another size, or a smoothing outside [0, 1].
    """

    linear: Any

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Any = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing)
        self.num_classes, self.out_features, self.options = num_classes, out_features, options
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, device=device, dtype=dtype)

    def forward(self, input: Any, target: Any) -> Any:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return functional.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


# --- of pairs and triples --------------------------------------------------------------------------------------------


@reducing
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: int = MEAN
) -> Tensor:
    """Computes max(0, margin - target (input1 - input2)): the target is 1 where input1 shall rank higher, else -1.

    Errors: RuntimeError for different numbers of dimensions.
    """
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return margin_losses.margin_ranking_loss(input1, input2, target, margin, reduction)


@reducing
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = MEAN) -> Tensor:
    """Computes input where the target is 1, max(0, margin - input) where it is -1."""
    return margin_losses.hinge_embedding_loss(input, target, margin, reduction)


@reducing
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: int = MEAN
) -> Tensor:
    """Computes 1 - cos(input1, input2) where the target is 1, max(0, cos(input1, input2) - margin) where it is -1.

    Shapes: the inputs [batch, features], the target [batch]; or all without a batch.
    """
    return margin_losses.cosine_embedding_loss(input1, input2, target, margin, reduction)


@reducing
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = MEAN,
) -> Tensor:
    """Computes max(0, margin + |anchor - positive| - |anchor - negative|), with p-norms along the last dimension.

    `swap` takes |positive - negative| where that is smaller. Errors: ValueError for a margin that is not positive.
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return margin_losses.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


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
    """Computes `triplet_margin_loss` with your own distance; by default that of pairs of vectors."""
    number = _reduction(None, None, reduction)
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
    return reduced((margin + near - far).clamp_min(0), number)


def _check_margin(name: str, loss: Any) -> None:
    if loss.margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {loss.margin} instead")


def _check_distance(loss: Any) -> None:
    if loss.distance_function is None:
        loss.distance_function = PairwiseDistance()
    _check_margin("TripletMarginWithDistanceLoss", loss)


MarginRankingLoss = loss_of("MarginRankingLoss", margin_ranking_loss, margin=0.0)
HingeEmbeddingLoss = loss_of("HingeEmbeddingLoss", hinge_embedding_loss)
CosineEmbeddingLoss = loss_of("CosineEmbeddingLoss", cosine_embedding_loss, margin=0.0)
TripletMarginLoss = loss_of(
    "TripletMarginLoss", triplet_margin_loss, check=partial(_check_margin, "TripletMarginLoss"), p=2.0
)
TripletMarginWithDistanceLoss = loss_of(
    "TripletMarginWithDistanceLoss", triplet_margin_with_distance_loss, check=_check_distance
)


# --- AdaptiveLogSoftmaxWithLoss: log probabilities of very many classes, of which few are frequent --------------------
#
# Classes are ordered by how often they occur. A *head* scores the most frequent ones, the shortlist, and each *cluster*
# of rarer ones as a whole; within a cluster, a *tail* of lower rank scores its classes. A class of a cluster has the
# probability of the cluster times that within it. Only the tails that a batch needs are computed.
#
# Source: Grave et al., "Efficient softmax approximation for GPUs" (2017).


class _ASMoutput(NamedTuple):
    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log probability of the target of each sample, and the mean of their negatives.

    cutoffs: where each cluster begins; `div_value`: by how much the rank of each tail is lower than that of the one
    before. Shapes: input [n, in_features] and target [n], or both without n.
    Errors: ValueError for cutoffs that do not increase within the classes; RuntimeError for a target that is no class.
    """

    head: Any
    tail: Any

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        starts = list(cutoffs)
        if not starts:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        whole = all(int(start) == start for start in starts)
        if not whole or any(b <= a for a, b in pairwise([0, *starts, n_classes])):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*starts, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = starts[0]
        self.n_clusters = len(starts)
        self.head_size = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(pairwise(self.cutoffs)):
            rank = int(in_features // div_value ** (number + 1))
            down, up = Linear(in_features, rank, bias=False, **made), Linear(rank, high - low, bias=False, **made)
            self.tail.append(Sequential(down, up))

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for down, up in self.tail:
            down.reset_parameters()
            up.reset_parameters()

    def forward(self, input: Any, target: Any) -> _ASMoutput:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with "
                f"sizes {input.size()}."
            )
        if target.dim() and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        alone = target.dim() == 0
        rows, labels = (input.unsqueeze(0), target.unsqueeze(0)) if alone else (input, target)
        refuse_where(
            ((labels < 0) | (labels >= self.n_classes)).any(),
            RuntimeError,
            lambda: (
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{labels.min().item()}, {labels.max().item()}] were found. "
            ),
        )
        head = functional.log_softmax(self.head(rows), dim=1)
        chosen = labels  # the column of the head that each target falls in
        within = head.new_zeros(labels.shape)
        for number, (low, high) in enumerate(pairwise(self.cutoffs)):
            inside = (labels >= low) & (labels < high)
            found = inside.nonzero().squeeze(1)
            if not found.numel():
                continue
            chosen = chosen.masked_fill(inside, self.shortlist_size + number)
            scores = functional.log_softmax(self.tail[number](rows.index_select(0, found)), dim=1)
            own = scores.gather(1, (labels.index_select(0, found) - low).unsqueeze(1))
            within = within.index_copy(0, found, own.squeeze(1))
        output = head.gather(1, chosen.unsqueeze(1)).squeeze(1) + within
        return _ASMoutput(output.squeeze(0) if alone else output, (-output).mean())

    def log_prob(self, input: Any) -> Any:
        """The log probabilities of all classes, [n, n_classes]."""
        head = functional.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for number, tail in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + number].unsqueeze(1)
            parts.append(functional.log_softmax(tail(input), dim=1) + cluster)
        return cat(parts, dim=1)

    def predict(self, input: Any) -> Any:
        """The most probable class of each sample."""
        return self.log_prob(input).argmax(dim=1)
