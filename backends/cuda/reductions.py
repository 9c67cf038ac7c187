"""The reductions that have CUDA kernels: sums, products, means, extremes, truth, counts.

Each stands in `REDUCTIONS` with the recipe of its CPU kernel and the rule of its dtype; shapes, dtypes and errors are
said by the operator's own meta function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from redispatch import kernels
from redispatch.kernels.cuda import CUDAReduction
from redispatch.kernels.reduce import Reduction
from redispatch.ops import extremes, reductions
from redispatch.ops.planned import Planned
from redispatch.ops.reductions import averaging_dtype, reduced_dims, summing_dtype
from redispatch.ops.structured import check_no_internal_overlap, check_writable, is_among, resize_out
from redispatch.tensor import Tensor, dtypes

from .copies import apart, copied
from .operands import Scratch, operand


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
    extremes.amax_op: Rule(kernels.AMAX),
    extremes.amin_op: Rule(kernels.AMIN),
    extremes.max_op: Rule(kernels.AMAX),
    extremes.min_op: Rule(kernels.AMIN),
}
_KERNELS: dict[Reduction, CUDAReduction] = {}


class ReductionOnCUDA:
    """The kernels of one operator."""

    def __init__(self, op: Planned, rule: Rule) -> None:
        self.op, self.rule = op, rule

    def functional(self, *args: Any) -> Tensor:
        result = self.op.meta_function(*args).allocate()
        self.fill(result, args)
        return result

    def out(self, *args: Any) -> Tensor:
        args = self.op.with_dtype(args, args[-1])
        *inputs, out = args
        meta = self.op.meta_function(*inputs)
        if self.rule.reduction in (kernels.ALL, kernels.ANY) and out._dtype not in (dtypes.bool, dtypes.uint8):
            name = self.rule.reduction.name
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {out._dtype.tensor_name}")
        if is_among(out, inputs):
            check_writable(out, meta)
        resize_out(out, meta)
        check_no_internal_overlap(out)
        self.fill(out, tuple(apart(value, out, elementwise=False) for value in inputs))
        return out

    def fill(self, out: Tensor, args: tuple[Any, ...]) -> None:
        given = dict(zip(self.op.names, args, strict=True))
        x = given["self"]
        dims = reduced_dims(given.get("dim"), len(x._shape), self.rule.all_dims)
        if self.rule.computing is not None:
            x = self.in_dtype(x, self.rule.computing(x, given.get("dtype")))
        reduction = self.rule.reduction
        if reduction not in _KERNELS:
            _KERNELS[reduction] = CUDAReduction(reduction)
        _KERNELS[reduction].launch(operand(out), operand(x), dims, Scratch(x))

    def in_dtype(self, x: Tensor, dtype: Any) -> Tensor:
        """`x`, converted where the reduction would not compute in that dtype by itself."""
        own = x._dtype
        exact = own.category <= dtypes.INTEGER and dtype is dtypes.int64
        return x if own is dtype or exact else copied(x, dtype)
