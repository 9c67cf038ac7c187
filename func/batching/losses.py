"""Losses on batches: element by element first, then the mean or the sum of each example's elements."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call

from .by_dims import leading_rule
from .common import Decomposition
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


LOSS = Decomposition(reduced_by_example, otherwise=pointwise_rule)
LOSS_BACKWARD = Decomposition(reduced_by_example, otherwise=leading_rule)
