"""Operators that are put together from others on a device: other orders, masks, losses, bags of embeddings,
draws of several passes.

On the CPU each is a function of numpy's or a loop of its own. Here it is a few launches: what its operator's meta
function says of the result, and then indices, scans and comparisons. Nothing waits, unless a shape depends on numbers;
an index out of bounds is told of when the program does (async_errors.py). What is drawn is what the CPU's kernels draw,
in the same order. Read next: compaction.py, searching.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty, view_over, wrap_dim
from redispatch.kernels.declare.structured import not_implemented
from redispatch.kernels.ops import norms, rearrange
from redispatch.kernels.ops.distributions import check_multinomial, check_precise
from redispatch.kernels.ops.embedding import MAX, MEAN, SUM, check_bags, needs_no_bags, places
from redispatch.kernels.ops.fused_updates import LARGEST, check_number
from redispatch.kernels.ops.masking import check_enough, check_masked_scatter
from redispatch.kernels.ops.matrix_functions import linalg_cross
from redispatch.kernels.ops.pair_losses import (
    NONE,
    OfPairs,
    PairLoss,
    bce_op,
    huber_loss,
    mse_loss,
    probability_op,
    reduced,
    smooth_l1_loss,
)
from redispatch.kernels.ops.shape import check_repeats, check_total

from ..runtime.copies import copy_on_device
from ..runtime.cpu_kernels import on_device
from ..runtime.structured import composite_of
from .compaction import places_of_true
from .searching import below_or_at, counted

aten = ops.aten

# --- other orders -----------------------------------------------------------------------------------------------------


@composite_of("flip")
def flip(self: Tensor, dims: Sequence[int]) -> Tensor:
    """Each of the dimensions backwards."""
    result = rearrange.flip.op.meta_function(self, dims).allocate()
    if result._shape.numel():
        turned, steps, offset = {wrap_dim(dim, len(self._shape)) for dim in dims}, list(self._stride), self._offset
        for dim in turned if self._shape else ():
            offset += (self._shape[dim] - 1) * steps[dim]
            steps[dim] = -steps[dim]
        copy_on_device(result, view_over(self, self._shape, tuple(steps), offset))
    return result


@composite_of("roll")
def roll(self: Any, shifts: Sequence[int], dims: Sequence[int]) -> Tensor:
    """Shifts elements along dimensions, from the end to the start; without dims, of the flattened tensor."""
    if not self._shape.numel():
        return self.clone()
    if not dims:
        return rolled(self.reshape([-1]), shifts[0], 0).reshape(list(self._shape))
    for shift, dim in zip(shifts, dims, strict=True):
        self = rolled(self, shift, dim) if self._shape else self
    return self.clone().contiguous()


def rolled(x: Any, shift: int, dim: int) -> Any:
    size = x._shape[dim]
    cut = -shift % size
    return aten.cat.default([x.narrow(dim, cut, size - cut), x.narrow(dim, 0, cut)], dim)


@composite_of("linalg_cross")
def cross(self: Any, other: Any, dim: int) -> Any:
    """(a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0)"""
    shape = linalg_cross.op.meta_function(self, other, dim).shape
    axis = wrap_dim(dim, len(shape))
    a, b = self.expand(list(shape)), other.expand(list(shape))
    a1, a2, b1, b2 = a.roll([-1], [axis]), a.roll([-2], [axis]), b.roll([-1], [axis]), b.roll([-2], [axis])
    return a1 * b2 - a2 * b1


@composite_of("tril")
def tril(self: Any, diagonal: int) -> Any:
    return self.contiguous().masked_fill(from_diagonal(self) > diagonal, 0)


@composite_of("triu")
def triu(self: Any, diagonal: int) -> Any:
    return self.contiguous().masked_fill(from_diagonal(self) < diagonal, 0)


def from_diagonal(x: Any) -> Any:
    """The distance of each element of a matrix to the right of the diagonal."""
    return counted(x._shape[-1], x) - counted(x._shape[-2], x).unsqueeze(1)


# --- masks ------------------------------------------------------------------------------------------------------------


@composite_of("masked_scatter_")
def masked_scatter_inplace(self: Any, mask: Any, source: Any) -> Any:
    """Puts the first elements of `source`, in order, where the mask is true."""
    check_masked_scatter(self, mask, source)
    flat = mask.expand(list(self._shape)).reshape([-1])
    upto = flat.cumsum(0)
    if flat._shape[0]:
        check_enough(source, int(upto[-1].item()))
    if source._shape.numel() and flat._shape[0]:
        chosen = source.reshape([-1]).index_select(0, (upto - 1).clamp(0, source._shape.numel() - 1))
        self.copy_(aten.where.self(flat, chosen, self.reshape([-1])).reshape(list(self._shape)))
    return self


@composite_of("masked_scatter")
def masked_scatter(self: Any, mask: Any, source: Any) -> Any:
    x, _ = aten.broadcast_tensors.default([self, mask])
    return masked_scatter_inplace(x.clone().contiguous(), mask, source)


@composite_of("repeat_interleave.Tensor")
def repeat_interleave(repeats: Any, output_size: int | None) -> Any:
    """0 repeats[0] times, 1 repeats[1] times, ...: the indices that repeat by."""
    check_repeats(repeats)
    ends, some = repeats.cumsum(0), repeats._shape[0] > 0
    total = int(ends[-1].item()) if some else 0
    check_total(int(repeats.min().item()) if some else 0, total, output_size)
    return below_or_at(ends, counted(total, repeats), True).to(repeats._dtype)


# --- losses -----------------------------------------------------------------------------------------------------------


def pair_loss(op: PairLoss) -> Callable[..., Any]:
    """The operator's scalar function in one launch, and then a mean or a sum. Nobody looks whether the numbers of
    `binary_cross_entropy` are probabilities: the program would have to wait for the answer."""

    def each(*args: Any) -> Tensor:
        out = op.meta_function(*args).allocate()
        OfPairs.pair_loop(op, out, *args)(out._operand.array, out._offset, *op.operands(args))
        return out

    launched = on_device(each, op.base_name)

    def kernel(*args: Any) -> Any:
        each_loss = launched(*[NONE if i == op.reduction else value for i, value in enumerate(args)])
        return reduced(each_loss, args[op.reduction])

    return kernel


for _op in (mse_loss.op, smooth_l1_loss.op, huber_loss.op, probability_op, bce_op):
    composite_of(_op.base_name)(pair_loss(_op))

# --- the scale of losses ----------------------------------------------------------------------------------------------


@composite_of("_amp_foreach_non_finite_check_and_unscale_")
def unscale(self: Sequence[Any], found_inf: Any, inv_scale: Any) -> None:
    """Multiplies each of `self` by `inv_scale`; sets `found_inf` to 1 where one of them holds an infinity or NaN."""
    check_number(found_inf, "found_inf")
    check_number(inv_scale, "inv_scale")
    factor = inv_scale.reshape([])
    for x in self:
        if not x._dtype.is_floating_point:
            raise not_implemented("_amp_foreach_non_finite_check_and_unscale_cpu", x._dtype)
        found_inf.masked_fill_(x.isfinite().all().logical_not(), 1)
        wide = dtypes.float64 if x._dtype is dtypes.float64 else dtypes.float32
        x.copy_(x.to(wide) * factor.to(wide))


@composite_of("_amp_update_scale_")
def update_scale(
    self: Any, growth_tracker: Any, found_inf: Any, growth_factor: float, backoff_factor: float, growth_interval: int
) -> Any:
    """The scale, in place, as on the CPU; nothing is waited for."""
    check_number(growth_tracker, "growth_tracker", dtypes.int32)
    check_number(self, "current_scale")
    check_number(found_inf, "found_inf")
    bad = found_inf.reshape([]) != 0
    due = growth_tracker.reshape([]) + 1 >= growth_interval
    scale = self.reshape([])
    grown = scale.to(dtypes.float64) * growth_factor
    larger = aten.where.self(due & (grown <= LARGEST), grown.to(dtypes.float32), scale)
    new = aten.where.self(bad, scale * backoff_factor, larger)
    growth_tracker.copy_(
        (growth_tracker.reshape([]) + 1).masked_fill(bad | due, 0).reshape(list(growth_tracker._shape))
    )
    return self.copy_(new.reshape(list(self._shape)))


# --- embeddings that are added up by bags, and rows that are too long -------------------------------------------------


@composite_of("_embedding_bag", "_embedding_bag_forward_only")
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


@composite_of("embedding_renorm_")
def embedding_renorm_inplace(self: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Scales the rows that are used and longer than `max_norm` down to that length."""
    if len(self._shape) != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {len(self._shape)}-dimensional tensor for 'self'")
    used = indices.reshape([-1]).to(dtypes.int64)
    rows = self.index_select(0, used)
    norm = aten.linalg_vector_norm.default(rows.to(dtypes.float64), norm_type, [1], True)
    shrunk = rows * (max_norm / (norm + norms.SMALL))
    return self.index_copy_(0, used, aten.where.self(norm > max_norm, shrunk, rows).to(self._dtype))


@composite_of("renorm")
def renorm(self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    """Each part along `dim`, scaled down to `maxnorm` where its p-norm is larger."""
    axes = list(norms.other_dims(dim, len(self._shape)))
    norm = aten.linalg_vector_norm.default(self.abs().to(dtypes.float64), float(p), axes, True)
    return aten.where.self(norm > maxnorm, self * (maxnorm / (norm + norms.SMALL)), self).to(self._dtype)


# --- draws of several passes: a seed gives what it gives on the CPU ---------------------------------------------------


def uniform(shape: Any, like: Any, generator: Any) -> Any:
    """Numbers from [0, 1), in float64."""
    return empty(tuple(shape), dtypes.float64, like._device).uniform_(generator=generator)


@composite_of("multinomial")
def multinomial(self: Any, num_samples: int, replacement: bool, generator: Any) -> Any:
    """Places of the last dimension, each with a probability in proportion to its weight. Waits for two answers."""
    check_multinomial(self, num_samples, replacement)
    shape = [*self._shape[:-1], num_samples]
    if not math.prod(shape):
        return self.new_empty(shape, dtype=dtypes.int64)
    weights = self.to(dtypes.float64)
    if not (weights.isfinite() & (weights >= 0)).all().item():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    totals = weights.cumsum(-1)
    last = totals.narrow(-1, totals._shape[-1] - 1, 1)
    if not (last > 0).all().item():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if replacement:
        return below_or_at(totals, uniform(shape, self, generator) * last, True)
    keys = weights / -(-uniform(self._shape, self, generator)).log1p()
    _, order = aten.where.ScalarOther(weights > 0, keys, 0).neg().sort(stable=True, dim=-1)
    return order.narrow(-1, 0, num_samples).contiguous()


@composite_of("_standard_gamma")
def standard_gamma(self: Any, generator: Any) -> Any:
    """A gamma number for each shape parameter. Those that are refused are drawn again, once their number is known.

    Source: Marsaglia, Tsang, A simple method for generating gamma variables, 2000.
    """
    check_precise("gamma_cpu", self._dtype)
    return aten.empty_like.default(self).copy_(gamma_numbers(self, generator))


@composite_of("_sample_dirichlet")
def sample_dirichlet(self: Any, generator: Any) -> Any:
    """Random shares, which add up to 1 along the last dimension: of gamma numbers."""
    check_precise("dirichlet_cpu", self._dtype)
    numbers = gamma_numbers(self, generator)
    total = numbers.sum(-1, keepdim=True) if self._shape else numbers
    return aten.empty_like.default(self).copy_(numbers / total)


def gamma_numbers(self: Any, generator: Any) -> Any:
    """Returns these numbers as float64."""
    a = self.to(dtypes.float64).reshape([-1])
    center = aten.where.self(a < 1, a + 1, a) - 1 / 3
    found = aten.where.ScalarOther(a == 0, a * 0, math.nan).masked_fill(a > 0, math.inf)
    left = places_of_true((a > 0) & (a < math.inf))
    while left._shape[0]:
        d = center.index_select(0, left)
        x = empty((left._shape[0],), dtypes.float64, self._device).normal_(generator=generator)
        u = uniform(left._shape, self, generator)
        v = (1 + x / (9 * d).sqrt()) ** 3
        taken = (v > 0) & ((-u).log1p() < 0.5 * x * x + d * (1 - v + v.log()))
        good = places_of_true(taken)
        found.index_copy_(0, left.index_select(0, good), (d * v).index_select(0, good))
        left = left.index_select(0, places_of_true(taken.logical_not()))
    small = places_of_true((a > 0) & (a < 1))
    if small._shape[0]:
        power = (1 - uniform(small._shape, self, generator)) ** (1 / a.index_select(0, small))
        found.index_copy_(0, small, found.index_select(0, small) * power)
    return found.reshape(list(self._shape))
