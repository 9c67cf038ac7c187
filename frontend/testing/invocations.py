"""The operator table in the words of PyTorch's own tests: names of functions, samples by device and dtype.

    from torch.testing._internal.common_methods_invocations import op_db

gives these under `install()`. Ours has an entry for each operator; here an entry is a public function, called by its
dotted name, `nn.functional.conv2d`, with the samples of the operator in which most of its calls end.

Read next: op_info.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from redispatch.dispatch.tensor import as_device, dtype

from .op_db import op_db as table
from .op_info import OpInfo, SampleInput


class FunctionInfo:
    """A public function with its samples. Calling it calls the function."""

    def __init__(self, info: OpInfo) -> None:
        self.info = info
        self.name = info.function or info.op.schema.base_name
        self.dtypes = frozenset(info.dtypes)
        self.supports_autograd = info.gradients

    @cached_property
    def op(self) -> Callable[..., Any]:
        return self.info.face or self.info.method or self.info.op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def sample_inputs(
        self, device: Any = "cpu", dtype: dtype | None = None, requires_grad: bool = False, **options: Any
    ) -> list[SampleInput]:
        """Calls that must work. Samples are made on the CPU, the only device with data so far."""
        if as_device(device).type != "cpu":
            raise NotImplementedError(f"samples are made on the CPU; asked for {device!r}")
        return self.info.sample_inputs(dtype or self.info.main_dtype, requires_grad)

    def __repr__(self) -> str:
        return f"FunctionInfo({self.name!r})"


def by_name() -> list[FunctionInfo]:
    """One entry for each name: of several overloads, that which the function tries first."""
    found: dict[str, FunctionInfo] = {}
    for info in table:
        made = FunctionInfo(info)
        found.setdefault(made.name, made)
    return list(found.values())


op_db = by_name()
