"""Samples of kernels/ops/loss_scaling.py, whose results are what they wrote: tests/amp/ compares those with numbers."""

from __future__ import annotations

from collections.abc import Iterator

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, Maker, OpInfo, SampleInput, sample
from .fused_updates import WRITES


def gradients(make: Maker) -> Iterator[SampleInput]:
    found, factor = (make.values(number).detach().to(dtypes.float32) for number in (0.0, 0.5))
    yield sample([make(2, 3).detach(), make(4).detach()], found, factor)


def scales(make: Maker) -> Iterator[SampleInput]:
    scale, found = (make.values(number).detach().to(dtypes.float32) for number in (4.0, 0.0))
    yield sample(scale, make.values(0.0).detach().to(dtypes.int32), found, 2.0, 0.5, 1)


LOSS_SCALING = [
    OpInfo("_amp_foreach_non_finite_check_and_unscale_", gradients, None, FLOATS, skips=WRITES),
    OpInfo("_amp_update_scale_", scales, None, (dtypes.float32,), skips=WRITES),
]
