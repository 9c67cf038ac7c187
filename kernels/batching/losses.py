"""Losses on batches: element by element first, then the mean or the sum of each example's elements."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels.ops.loss import nll2d_backward_op, nll2d_forward_op, nll_backward_op, nll_forward_op
from redispatch.kernels.ops.margin_losses import (
    multi_margin_backward_op,
    multi_margin_loss,
    multilabel_backward_op,
    multilabel_forward_op,
)

from ...dispatch.transforms.batched import Decomposition, is_tensor, rank, whole
from .by_dims import leading_rule
from .fallback import one_by_one
from .pointwise import pointwise_rule

NONE, MEAN = 0, 1


def reduced_by_example(op: OpOverload, stack: list[Any]) -> Any:
    """A loss, or the backward of one, in terms of the same without reduction; that one is pointwise."""
    names = [argument.name for argument in op.schema.arguments]
    place = names.index("reduction")
    reduction = stack[place]
    if reduction == NONE:
        return NotImplemented
    stack = list(stack)
    stack[place] = NONE
    if names[0] == "grad_output":
        grad, like = stack[0], stack[1]
        stack[0] = (grad / max(like.numel(), 1) if reduction == MEAN else grad).expand(like.shape)
        return call(op, stack)
    result = call(op, stack)
    return result.mean() if reduction == MEAN else result.sum()


def weights_of(self: Any, target: Any, weight: Any, ignore_index: int) -> tuple[Any, Any, Any]:
    """(targets, those that are ignored as 0; the weight of each; the dimension of the classes)"""
    ignored = target == ignore_index
    chosen = target.masked_fill(ignored, 0)
    factors = self.new_ones(target.shape) if weight is None else weight.index_select(0, chosen.reshape(-1))
    return chosen, factors.reshape(target.shape).masked_fill(ignored, 0), 1 if self.dim() > 1 else 0


def nll_forward(op: OpOverload, stack: list[Any]) -> Any:
    """-score of the target, weighted; the mean is over the weights. What is seen of one example, in other operators."""
    self, target, weight, reduction, ignore_index = stack
    chosen, factors, classes = weights_of(self, target, weight, ignore_index)
    terms = -self.gather(classes, chosen.unsqueeze(classes)).squeeze(classes) * factors
    if reduction == NONE and self.dim() > 1:
        return terms, self.new_zeros(())
    total = factors.sum()
    return (terms.sum() / total if reduction == MEAN else terms.sum()), total


def nll_backward(op: OpOverload, stack: list[Any]) -> Any:
    grad, self, target, weight, reduction, ignore_index, total = stack
    chosen, factors, classes = weights_of(self, target, weight, ignore_index)
    shares = (grad / total if reduction == MEAN else grad) * -factors
    return self.new_zeros(self.shape).scatter(classes, chosen.unsqueeze(classes), shares.unsqueeze(classes))


for declared, function in [
    (nll_forward_op, nll_forward),
    (nll2d_forward_op, nll_forward),
    (nll_backward_op, nll_backward),
    (nll2d_backward_op, nll_backward),
]:
    BATCHING.add(declared.functional, Decomposition(function, otherwise=one_by_one), "kernels/batching/losses.py")

# Losses of rows: a sample has a row of scores, and what is right stands beside it -------------------------------------


def margins_by_example(op: OpOverload, stack: list[Any]) -> Any:
    """A margin loss, or the backward of one, in terms of the same without reduction."""
    names = [argument.name for argument in op.schema.arguments]
    place = names.index("reduction")
    reduction = stack[place]
    if reduction == NONE:
        return NotImplemented
    stack = list(stack)
    stack[place] = NONE
    backward = names[0] == "grad_output"
    samples = list(stack[int(backward)].shape[:-1])
    if backward:
        count = samples[0] if samples else 1
        stack[0] = (stack[0] / max(count, 1) if reduction == MEAN else stack[0]).expand(samples)
        return call(op, stack)
    result = call(op, stack)
    loss, *rest = result if isinstance(result, tuple) else (result,)
    loss = loss.mean() if reduction == MEAN else loss.sum()
    return (loss, *rest) if rest else loss


def rows_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Samples of all examples one after the other; weights of classes are those of all."""
    names = [argument.name for argument in op.schema.arguments]
    if "weight" in names and dims[names.index("weight")] is not None:
        return one_by_one(op, values, dims, size)
    several = rank(values[names.index("self")], dims[names.index("self")]) > 1
    arguments = list(values)
    for place, name in enumerate(names):
        if name != "weight" and is_tensor(values[place]):
            given = whole(values[place], dims[place], size)
            arguments[place] = given.flatten(0, 1) if several else given
    result = call(op, arguments)
    if isinstance(result, tuple):
        return tuple(one.unflatten(0, (size, -1)) if several else one for one in result), [0] * len(result)
    return (result.unflatten(0, (size, -1)) if several else result), 0


for margin_op in (multi_margin_loss.op, multi_margin_backward_op, multilabel_forward_op, multilabel_backward_op):
    BATCHING.add(
        margin_op.functional, Decomposition(margins_by_example, otherwise=rows_rule), "kernels/batching/losses.py"
    )

LOSS = Decomposition(reduced_by_example, otherwise=pointwise_rule)
LOSS_BACKWARD = Decomposition(reduced_by_example, otherwise=leading_rule)
