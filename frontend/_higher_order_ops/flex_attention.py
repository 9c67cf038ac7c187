"""flex_attention: attention whose scores a function changes, one by one.

    out, lse, largest = flex_attention(q, k, v, score_mod, (..., mask_mod), scale, {})

`score_mod(score, batch, head, query, key)` gives the score that counts, and `mask_mod(batch, head, query, key)` whether
the query sees the key. Both are written for single numbers; `vmap` makes them functions of all. This is the formula,
with all scores in memory, and autograd differentiates it.

Source: PyTorch's torch._higher_order_ops.flex_attention. Read next: attention.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.dispatch.transforms import vmap
from redispatch.kernels.ops.comparison import where
from redispatch.kernels.ops.ranges import arange

from .control_flow import BodyOperator


def of_all_scores(function: Callable[..., Any], first: tuple[int, ...], others: int) -> Callable[..., Any]:
    """A function of (first, batches, heads, queries, keys, others) of one that takes single numbers.

    first: (0,) where there is a score before the four places, of which there is one for each; else nothing.
    """
    for place in range(3, -1, -1):
        in_dims = (*first, *(0 if one == place else None for one in range(4)), *(None,) * others)
        function = vmap(function, in_dims=in_dims)
    return function


def attention_of_modified_scores(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any],
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: dict[str, Any],
    score_mod_other_buffers: tuple[Any, ...] = (),
    mask_mod_other_buffers: tuple[Any, ...] = (),
) -> tuple[Tensor, Tensor, Tensor]:
    """(the attention, the logarithms of the rows' sums of exponentials and the rows' maxima, both to base 2)."""
    several = query.size(1) // key.size(1)  # heads of queries that share one of keys
    key, value = (one.repeat_interleave(several, 1) if several > 1 else one for one in (key, value))
    batches = query.size(0)
    if batches != key.size(0) and key.size(0) != 1:
        raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={batches} and Bkv={key.size(0)}")
    key, value = (one.expand(batches, *one.shape[1:]) for one in (key, value))
    working = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    scores = ((query @ key.transpose(-2, -1)) * scale).to(working)
    places = [arange(size, device=query.device) for size in scores.shape]
    seen = of_all_scores(block_mask[-1], (), len(mask_mod_other_buffers))(*places, *mask_mod_other_buffers)
    changed = of_all_scores(score_mod, (0,), len(score_mod_other_buffers))(scores, *places, *score_mod_other_buffers)
    scores = where(seen, changed, -math.inf).to(working)
    unseen = (scores == -math.inf).all(-1)  # a row without keys: its sum is 0, and its attention as well
    sums = where(unseen, -math.inf, scores.logsumexp(-1))
    weights = ops.aten._safe_softmax(scores, -1)
    return weights.to(query.dtype) @ value.to(query.dtype), sums / math.log(2), scores.amax(-1) / math.log(2)


flex_attention = BodyOperator("flex_attention", attention_of_modified_scores)
