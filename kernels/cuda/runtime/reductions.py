"""The reductions that have CUDA kernels: sums, products, means, extremes, truth, counts.

Each stands in `REDUCTIONS` with the recipe of its CPU kernel and the rule of its dtype; shapes, dtypes and errors are
said by the operator's own meta function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.cpu.reduce import Reduction
from redispatch.kernels.cuda import CUDAReduction
from redispatch.kernels.declare.planned import Planned
from redispatch.kernels.ops import extremes, reductions
from redispatch.kernels.ops.reductions import averaging_dtype, reduced_dims, summing_dtype

from .copies import copied
from .operands import Scratch, operand
from .structured import OnDevice


class Rule(NamedTuple):
    """computing: the dtype to compute in, by (input, `dtype=`), or None for that of the input. all_dims: whether an
    empty list of dimensions means all of them."""

    reduction: Reduction
    computing: Callable[[Tensor, Any], Any] | None = None
    all_dims: bool = True


REDUCTIONS: dict[Planned, Rule] = {
    reductions.sum_op: Rule(kernels.SUM, summing_dtype),
    reductions.sum_dim_op: Rule(kernels.SUM, summing_dtype),
    reductions.mean_op: Rule(kernels.MEAN, averaging_dtype),
    reductions.mean_dim_op: Rule(kernels.MEAN, averaging_dtype),
    reductions.prod_op: Rule(kernels.PROD, summing_dtype),
    reductions.prod_dim_op: Rule(kernels.PROD, summing_dtype),
    reductions.all_op: Rule(kernels.ALL),
    reductions.all_dim_op: Rule(kernels.ALL, all_dims=False),
    reductions.all_dims_op: Rule(kernels.ALL, all_dims=False),
    reductions.any_op: Rule(kernels.ANY),
    reductions.any_dim_op: Rule(kernels.ANY, all_dims=False),
    reductions.any_dims_op: Rule(kernels.ANY, all_dims=False),
    reductions.count_nonzero_op: Rule(reductions.COUNT),
    reductions.count_nonzero_dims_op: Rule(reductions.COUNT),
    extremes.amax.op: Rule(kernels.AMAX),
    extremes.amin.op: Rule(kernels.AMIN),
    extremes.max_op: Rule(kernels.AMAX),
    extremes.min_op: Rule(kernels.AMIN),
}
_KERNELS: dict[Reduction, CUDAReduction] = {}


class ReductionOnCUDA(OnDevice):
    """The kernels of one operator."""

    def __init__(self, op: Planned, rule: Rule) -> None:
        super().__init__(op)
        self.rule = rule

    def run_out(self, *args: Any) -> Tensor:
        out = args[-1]
        if self.rule.reduction in (kernels.ALL, kernels.ANY) and out._dtype not in (dtypes.bool, dtypes.uint8):
            self.op.meta_function(*args[:-1])
            name = self.rule.reduction.name
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {out._dtype.tensor_name}")
        return super().run_out(*args)

    def body_function(self, out: Tensor, *args: Any) -> None:
        """Reduces into any tensor."""
        x, dims, convert_to = self.decided(args)
        if convert_to is not None:
            x = copied(x, convert_to)
        self.kernels.launch(operand(out), operand(x), dims, Scratch(x))

    @property
    def kernels(self) -> CUDAReduction:
        found = _KERNELS.get(self.rule.reduction)
        if found is None:
            found = _KERNELS[self.rule.reduction] = CUDAReduction(self.rule.reduction)
        return found

    def decided(self, args: tuple[Any, ...]) -> tuple[Tensor, tuple[int, ...], Any]:
        """The tensor, the dimensions, and the dtype to which it is converted before; None where it is not."""
        given = dict(zip(self.op.names, args, strict=True))
        x = args[0]
        dims = tuple(reduced_dims(given.get("dim"), len(x._shape), self.rule.all_dims))
        dtype = x._dtype if self.rule.computing is None else self.rule.computing(x, given.get("dtype"))
        exact = x._dtype.category <= dtypes.INTEGER and dtype is dtypes.int64  # integers are added up in int64 anyway
        return x, dims, None if x._dtype is dtype or exact else dtype
