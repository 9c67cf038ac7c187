"""Reductions on CUDA: sums, products, means, extremes, truth, counts, and those that users make.

Each has the recipe of its CPU kernel (`Reduced`); shapes, dtypes and errors are said by the operator's meta function.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.cpu.reduce import Reduction
from redispatch.kernels.cuda import CUDAReduction
from redispatch.kernels.ops.reductions import Reduced

from .copies import copied
from .operands import Scratch, operand
from .structured import OnDevice

_KERNELS: dict[Reduction, CUDAReduction] = {}


class ReductionOnCUDA(OnDevice):
    """The kernels of one operator."""

    op: Reduced

    def run_out(self, *args: Any) -> Tensor:
        if self.op.check_out is not None:
            self.op.meta_function(*args[:-1])
            self.op.check_out(args[-1], args[0])
        return super().run_out(*args)

    def body_function(self, out: Tensor, *args: Any) -> None:
        """Reduces into any tensor."""
        x, dims, convert_to = self.decided(args)
        if convert_to is not None:
            x = copied(x, convert_to)
        self.kernels.launch(operand(out), operand(x), dims, Scratch(x))

    @property
    def kernels(self) -> CUDAReduction:
        found = _KERNELS.get(self.op.reduction)
        if found is None:
            found = _KERNELS[self.op.reduction] = CUDAReduction(self.op.reduction)
        return found

    def decided(self, args: tuple[Any, ...]) -> tuple[Tensor, tuple[int, ...], Any]:
        """The tensor, the dimensions, and the dtype to which it is converted before; None where it is not."""
        x, dims, dtype, _ = self.op.decided(args)
        exact = x._dtype.category <= dtypes.INTEGER and dtype is dtypes.int64  # integers are added up in int64 anyway
        return x, dims, None if x._dtype is dtype or exact else dtype
