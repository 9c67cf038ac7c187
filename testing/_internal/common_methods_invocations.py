"""PyTorch's module of that name: `op_db`, the table of operators with samples, as its users iterate over it.

Here an `OpInfo` is of one overload. There it is of one public function, which is called like it: `info(x, *args)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redispatch.testing.op_db import op_db as overloads
from redispatch.testing.op_info import Maker, OpInfo, SampleInput

__all__ = ["FunctionInfo", "op_db"]


class FunctionInfo:
    """A public function, and the samples of the overload that it is tested by."""

    def __init__(self, info: OpInfo) -> None:
        self.info = info
        self.name = info.function or info.op._opname
        self.dtypes = info.dtypes
        self.op = info.op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def sample_inputs(self, device: Any, dtype: Any, requires_grad: bool = False) -> Iterator[SampleInput]:
        """The calls that must work, with tensors of this dtype. Only "cpu" has samples."""
        if str(device) != "cpu":
            raise ValueError(f"{self.name}: samples are made on the cpu, not on {device}")
        return iter(self.info.samples(Maker(dtype, requires_grad)))

    def __repr__(self) -> str:
        return f"<FunctionInfo {self.name} ({self.info.name})>"


op_db: list[FunctionInfo] = [FunctionInfo(info) for info in overloads]
