"""The arithmetic of loss scaling: gradients divided by the scale and looked at, and the scale of the next step.

Read next: frontend/amp/grad_scaler.py, which calls them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes

from ..declare.operator import kernel
from ..declare.structured import not_implemented

LARGEST = float(np.finfo(np.float32).max)


def check_number(tensor: Tensor, name: str, element: Any = dtypes.float32) -> None:
    """RuntimeError for a tensor of several elements, or of another dtype."""
    if tensor._shape.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if tensor._dtype is not element:
        raise RuntimeError(f"{name} must be a{'n int' if element is dtypes.int32 else ' float'} tensor.")


@kernel(
    "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
    "CPU",
    refuses="whole complex",
    derivative=False,
    method=False,
    doc="Multiplies each of `self` by `inv_scale`, and says whether all are finite.",
    face=True,
)
def _amp_foreach_non_finite_check_and_unscale_(self: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiplies each of `self` by `inv_scale`; sets `found_inf` to 1 where one of them holds an infinity or NaN."""
    check_number(found_inf, "found_inf")
    check_number(inv_scale, "inv_scale")
    factor, found = as_numpy(inv_scale).item(), as_numpy(found_inf)
    for tensor in self:
        if not tensor._dtype.is_floating_point:
            raise not_implemented("_amp_foreach_non_finite_check_and_unscale_cpu", tensor._dtype)
        values = as_numpy(tensor)
        if not np.isfinite(values).all():
            found[...] = 1
        if factor != 1:
            values[...] = values * (factor if tensor._dtype is dtypes.float64 else np.float32(factor))


unscale_op = _amp_foreach_non_finite_check_and_unscale_.op


@kernel(
    "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, "
    "float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
    "CPU",
    derivative=False,
    method=False,
    doc="Updates the scale in place: smaller after infinities, larger after enough steps.",
    face=True,
)
def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """The scale, in place: smaller where `found_inf` is not 0; larger, unless that would be infinite, after
    `growth_interval` calls where it was 0, which `growth_tracker` counts."""
    check_number(growth_tracker, "growth_tracker", dtypes.int32)
    check_number(self, "current_scale")
    check_number(found_inf, "found_inf")
    scale, counted = as_numpy(self), as_numpy(growth_tracker)
    if as_numpy(found_inf).item() != 0:
        scale[...] = scale * np.float32(scale_backoff_factor)
        counted[...] = 0
    elif counted.item() + 1 < growth_interval:
        counted[...] = counted + 1
    else:
        grown = scale.item() * scale_growth_factor
        if grown <= LARGEST:
            scale[...] = grown
        counted[...] = 0
    return self


update_scale_op = _amp_update_scale_.op


@unscale_op.kernel("Meta")
def unscale_meta(self: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Nothing is there to be multiplied."""


@update_scale_op.kernel("Meta")
def update_scale_meta(self: Tensor, *rest: Any) -> Tensor:
    return self
