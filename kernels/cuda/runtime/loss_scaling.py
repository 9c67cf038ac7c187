"""Loss scaling on a device, from other operators, so that nothing waits (kernels/ops/loss_scaling.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.declare.structured import not_implemented
from redispatch.kernels.ops.loss_scaling import LARGEST, check_number

aten = ops.aten


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


PARTS: dict[str, Callable[..., Any]] = {
    "_amp_foreach_non_finite_check_and_unscale_": unscale,
    "_amp_update_scale_": update_scale,
}
