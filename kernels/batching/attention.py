"""Attention with a bias: a batch of batches of heads is one long batch.

The bias may be the same for all examples, or broadcast; it then gets the dimensions that it lacks. Dropout's choices
follow from a place in that long batch, so backward finds those of forward where it is batched in the same way.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels.ops.fused_attention import efficient_backward_op, efficient_op

from ...dispatch.transforms.batched import position_of, rank, whole

HEADS = "grad_out_ query key value out logsumexp".split()


def attention_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """All heads of all examples; the results in batches again, but for seed and offset, which are one for all."""
    arguments = list(values)
    for name in HEADS:
        at = position_of(op.schema, name)
        if at is not None:
            arguments[at] = whole(values[at], dims[at], size).flatten(0, 1)
    query, bias = position_of(op.schema, "query"), position_of(op.schema, "attn_bias")
    assert query is not None and bias is not None
    if values[bias] is not None:
        batch = arguments[query].shape[0] // max(size, 1)
        arguments[bias] = biases(values[bias], dims[bias], size, batch)
    found = call(op, arguments)
    parts = tuple(x.unflatten(0, (size, -1)) if x is not None and x.dim() else x for x in found)
    return parts, [0 if x is not None and x.dim() else None for x in found]


def biases(bias: Any, dim: int | None, size: int, batch: int) -> Any:
    """The bias of each example of the long batch; one that is the same for all its examples stays as it is."""
    own = rank(bias, dim)
    if dim is None and (own < 4 or bias.shape[0] == 1):
        return bias
    if own == 1 and not bias.numel():  # of shape [0] for each example, which stands for none
        return bias.new_empty([0])
    x = whole(bias, dim, size)
    x = x.reshape([size, *[1] * (4 - own), *x.shape[1:]])
    return x.expand(size, batch, *x.shape[2:]).flatten(0, 1)


for declared in (efficient_op, efficient_backward_op):
    BATCHING.add(declared.functional, attention_rule, "kernels/batching/attention.py")
