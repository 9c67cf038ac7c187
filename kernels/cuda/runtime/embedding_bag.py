"""Embeddings that are added up by bags, and rows that are too long, on a device: put together from other operators.

An index out of bounds is told of when the program waits (async_errors.py), and so are offsets that name no place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops import norms
from redispatch.kernels.ops.embedding import MAX, MEAN, SUM, check_bags, needs_no_bags, places

from .decompositions import counted

aten = ops.aten


def embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, sparse: bool, factors: Any,
    include_last_offset: bool, padding_idx: int,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """(bags [n, d], the bag of each index, how many rows each bag has, which row gave each maximum)"""
    check_bags(weight, indices, offsets, mode, factors)
    rows, width = weight._shape
    count, bags = indices._shape[0], offsets._shape[0] - include_last_offset
    bag = places(indices, offsets, include_last_offset)
    used = indices != (padding_idx % rows if padding_idx >= 0 else -1)
    sizes = bag.new_zeros([bags]).index_add(0, bag, used.to(dtypes.int64))
    taken = weight.index_select(0, indices).to(dtypes.float64)
    if factors is not None:
        taken = taken * factors.to(dtypes.float64).unsqueeze(1)
    largest = sizes
    if mode == MAX:
        found, largest = largest_of_bags(taken, indices, bag, used, bags)
    else:
        found = taken.new_zeros([bags, width]).index_add(0, bag, taken.masked_fill(used.logical_not().unsqueeze(1), 0))
        if mode == MEAN:
            found = found / sizes.clamp_min(1).unsqueeze(1)
    noted = bag.narrow(0, 0, 0 if needs_no_bags(weight, mode, padding_idx) else count).clone()
    sizes = aten.zeros_like.default(sizes) if mode == SUM else sizes
    return found.to(weight._dtype), noted, sizes, largest if mode == MAX else sizes.clone()


def largest_of_bags(taken: Any, indices: Any, bag: Any, used: Any, bags: int) -> tuple[Any, Any]:
    """([bags, d] the largest element of each bag, and the row that the first of the largest is from); else 0."""
    count, width = taken._shape
    unused = used.logical_not().unsqueeze(1)
    of_bag = bag.unsqueeze(1).expand([count, width])
    least = taken.new_full([bags, width], -math.inf)
    best = least.scatter_reduce(0, of_bag, taken.masked_fill(unused, -math.inf), "amax")
    own = best.gather(0, of_bag)
    is_best = ((taken == own) | ((taken != taken) & (own != own))) & used.unsqueeze(1)
    number = counted(count, bag).unsqueeze(1).expand([count, width])
    behind = bag.new_full([bags, width], count)
    first = behind.scatter_reduce(0, of_bag, number.masked_fill(is_best.logical_not(), count), "amin")
    none = first == count
    row = aten.cat.default([indices.to(dtypes.int64), bag.new_zeros([1])]).take(first)
    return best.masked_fill(none, 0), row


def embedding_renorm_inplace(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Scales the rows that are used and longer than `max_norm` down to that length."""
    if len(self._shape) != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {len(self._shape)}-dimensional tensor for 'self'")
    used = indices.reshape([-1]).to(dtypes.int64)
    rows = self.index_select(0, used)
    norm = aten.linalg_vector_norm.default(rows.to(dtypes.float64), norm_type, [1], True)
    shrunk = rows * (max_norm / (norm + norms.SMALL))
    return self.index_copy_(0, used, aten.where.self(norm > max_norm, shrunk, rows).to(self._dtype))


def renorm(self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Each part along `dim`, scaled down to `maxnorm` where its p-norm is larger."""
    norms.renorm_meta(self, p, dim, maxnorm)
    axes = list(norms.other_dims(dim, len(self._shape)))
    norm = aten.linalg_vector_norm.default(self.abs().to(dtypes.float64), float(p), axes, True)
    return aten.where.self(norm > maxnorm, self * (maxnorm / (norm + norms.SMALL)), self).to(self._dtype)


PARTS: dict[str, Callable[..., Any]] = {
    "_embedding_bag": embedding_bag,
    "_embedding_bag_forward_only": embedding_bag,
    "embedding_renorm_": embedding_renorm_inplace,
    "renorm": renorm,
}
