"""Samples of kernels/ops/fused_updates.py, whose results are written: tests/optim/ compares them with formulas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..op_info import FLOATS, Maker, OpInfo, SampleInput, sample


def steps(**changes: Any) -> Any:
    """Two parameters at their third step."""
    numbers = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-3}
    options = {**numbers, "amsgrad": False, "maximize": False, **changes}

    def samples(make: Maker) -> Iterator[SampleInput]:
        lists = [[make(2, 3).detach(), make(4).detach()] for _ in range(3)]
        squares = [[make(2, 3, low=0, high=2).detach(), make(4, low=0, high=2).detach()] for _ in range(2)]
        counts = [make.values(3.0).detach(), make.values(3.0).detach()]
        largest = squares[1] if options["amsgrad"] else []
        yield sample(*lists, squares[0], largest, counts, **options)

    return samples


def sums(make: Maker) -> Iterator[SampleInput]:
    yield sample([make(2, 3).detach(), make().detach()], 2)


NO_RESULT = {name: "it returns nothing" for name in ("reference", "bfloat16", "layouts")}
WRITES = {
    **NO_RESULT,
    **dict.fromkeys(["gradients", "second_gradients"], "it writes, and has no derivative"),
}

FUSED_UPDATES = [
    OpInfo("_fused_adam_", steps(), None, FLOATS, skips=WRITES),
    OpInfo("_fused_adamw_", steps(amsgrad=True, maximize=True), None, FLOATS, skips=WRITES),
    OpInfo("_foreach_add_.Scalar", sums, None, FLOATS, skips=WRITES),
]
