"""Losses on batches: element by element first, then the mean or the sum of each example's elements."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

from redispatch.dispatch import OpOverload, call
from redispatch.kernels.ops.loss import (
    ctc_backward_list_op,
    ctc_backward_tensor_op,
    ctc_list_op,
    ctc_tensor_op,
    nll2d_backward_op,
    nll2d_forward_op,
    nll_backward_op,
    nll_forward_op,
)
from redispatch.kernels.ops.margin_losses import (
    multi_margin_backward_op,
    multi_margin_loss,
    multilabel_backward_op,
    multilabel_forward_op,
)

from ...dispatch.transforms.batched import Decomposition, is_tensor, rank, whole
from .by_dims import leading_rule
from .fallback import batches, one_by_one
from .images import in_batches, one_long_batch
from .pointwise import pointwise_rule

NONE, MEAN = 0, 1


def by_example(own: int, op: OpOverload, stack: list[Any]) -> Any:
    """A loss, or the backward of one, in terms of the same without reduction.

    own: how many of the last dimensions belong to one term of the loss.
    """
    names = [argument.name for argument in op.schema.arguments]
    place = names.index("reduction")
    reduction = stack[place]
    if reduction == NONE:
        return NotImplemented
    stack = list(stack)
    stack[place] = NONE
    if names[0] == "grad_output":
        grad, terms = stack[0], stack[1].shape[: stack[1].dim() - own]
        stack[0] = (grad / max(prod(terms), 1) if reduction == MEAN else grad).expand(terms)
        return call(op, stack)
    result = call(op, stack)
    loss, *rest = result if isinstance(result, tuple) else (result,)
    loss = loss.mean() if reduction == MEAN else loss.sum()
    return (loss, *rest) if rest else loss


LOSS = Decomposition(partial(by_example, 0), otherwise=pointwise_rule)
LOSS_BACKWARD = Decomposition(partial(by_example, 0), otherwise=leading_rule)

# Classes, and their weights -------------------------------------------------------------------------------------------


def weights_of(self: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any, Any]:
    """(targets, those that are ignored as 0; the weight of each; the dimension of the classes)"""
    ignored = target == ignore_index
    chosen = target.masked_fill(ignored, 0)
    factors = self.new_ones(target.shape) if weight is None else weight.index_select(0, chosen.reshape(-1))
    return chosen, factors.reshape(target.shape).masked_fill(ignored, 0), 1 if self.dim() > 1 else 0


@batches("losses", nll_forward_op, nll2d_forward_op, otherwise=one_by_one)
def nll_forward(op: OpOverload, stack: list[Any]) -> Any:
    """-score of the target, weighted; the mean is over the weights. What is seen of one example, in other operators."""
    self, target, weight, reduction, ignore_index = stack
    chosen, factors, classes = weights_of(self, target, weight, ignore_index)
    terms = -self.gather(classes, chosen.unsqueeze(classes)).squeeze(classes) * factors
    if reduction == NONE and self.dim() > 1:
        return terms, self.new_zeros(())
    total = factors.sum()
    return (terms.sum() / total if reduction == MEAN else terms.sum()), total


@batches("losses", nll_backward_op, nll2d_backward_op, otherwise=one_by_one)
def nll_backward(op: OpOverload, stack: list[Any]) -> Any:
    grad, self, target, weight, reduction, ignore_index, total = stack
    chosen, factors, classes = weights_of(self, target, weight, ignore_index)
    shares = (grad / total if reduction == MEAN else grad) * -factors
    return self.new_zeros(self.shape).scatter(classes, chosen.unsqueeze(classes), shares.unsqueeze(classes))


# Losses of rows: a sample has a row of scores, and what is right stands beside it -------------------------------------


def rows_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Samples of all examples one after the other; weights of classes are those of all."""
    names = [argument.name for argument in op.schema.arguments]
    if "weight" in names and dims[names.index("weight")] is not None:
        return one_by_one(op, values, dims, size)
    several = rank(values[names.index("self")], dims[names.index("self")]) > 1
    placed = one_long_batch if several else whole
    arguments = [
        placed(value, dim, size) if name != "weight" and is_tensor(value) else value
        for name, value, dim in zip(names, values, dims, strict=True)
    ]
    return in_batches(call(op, arguments), size, several)


MARGINS = multi_margin_loss.op, multi_margin_backward_op, multilabel_forward_op, multilabel_backward_op
batches("losses", *MARGINS, otherwise=rows_rule)(partial(by_example, 1))

# Sequences that are not aligned ---------------------------------------------------------------------------------------


def longer(value: Any, dim: int | None, size: int) -> Any:
    """A batch's [N, ...] as [size * N, ...]; a list of N numbers as often."""
    return one_long_batch(value, dim, size) if is_tensor(value) else list(value) * size


def over_times(value: Any, dim: int | None, size: int) -> Any:
    """A batch's [T, N, C] as [T, size * N, C]."""
    return whole(value, dim, size).movedim(0, 1).flatten(1, 2)


@batches("leading", ctc_list_op, ctc_tensor_op)
def ctc_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The sequences of all examples one after the other; they do not know of each other."""
    if rank(values[0], dims[0]) != 3:
        return one_by_one(op, values, dims, size)
    sequences = [longer(value, dim, size) for value, dim in zip(values[1:4], dims[1:4], strict=True)]
    return in_batches(call(op, [over_times(values[0], dims[0], size), *sequences, *values[4:]]), size)


@batches("leading", ctc_backward_list_op, ctc_backward_tensor_op)
def ctc_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    if rank(values[1], dims[1]) != 3:
        return one_by_one(op, values, dims, size)
    arguments = [
        (over_times if place == 1 else longer)(value, dim, size)
        for place, (value, dim) in enumerate(zip(values[:7], dims[:7], strict=True))
    ]
    return call(op, [*arguments, *values[7:]]).unflatten(1, (size, -1)), 1
