"""Draws that take several passes, on a device: categories, and gamma numbers. A seed gives what it gives on the CPU.

What is drawn is what the CPU's kernels draw (kernels/ops/distributions.py), in the same
order.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import dtypes, empty
from redispatch.kernels.ops.distributions import check_multinomial, check_precise

from ..runtime.structured import composite_of
from .compaction import places_of_true
from .searchsorted import below_or_at

aten = ops.aten


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
    result = aten.empty_like.default(self)
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
    return result.copy_(found.reshape(list(self._shape)))
