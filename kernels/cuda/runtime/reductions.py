"""The reductions that have CUDA kernels: sums, products, means, extremes, truth, counts.

Each stands in `REDUCTIONS` with the recipe of its CPU kernel and the rule of its dtype; shapes, dtypes and errors are
said by the operator's own meta function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from redispatch import kernels
from redispatch.dispatch import Memo
from redispatch.dispatch.specialiser.marks import frozen, inline, leaf
from redispatch.dispatch.tensor import Mould, Size, Tensor, dtypes, fresh, mould
from redispatch.kernels.cpu.reduce import Reduction
from redispatch.kernels.cuda import CUDAReduction
from redispatch.kernels.cuda.elementwise import VECTOR
from redispatch.kernels.cuda.reduce import Prepared
from redispatch.kernels.declare.plan import PLANS
from redispatch.kernels.declare.planned import Planned
from redispatch.kernels.declare.structured import check_no_internal_overlap, check_writable, is_among, resize_out
from redispatch.kernels.ops import extremes, reductions
from redispatch.kernels.ops.reductions import averaging_dtype, reduced_dims, summing_dtype

from .copies import apart, copied
from .operands import Scratch, address_of, allocator, operand


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


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A decided call: what the result is made from, and what fills it from an address that has none of these bits."""

    mould: Mould
    run: Callable[[int, int, int], None]  # (address of the result, of the input, stream)
    mask: int


@frozen
class ReductionOnCUDA:
    """The kernels of one operator. Decided calls are cached, as on the CPU (kernels/declare/planned.py)."""

    def __init__(self, op: Planned, rule: Rule) -> None:
        self.op, self.rule = op, rule
        self.plans = Memo(PLANS, alike=op.tensors)

    @leaf
    @inline
    def functional(self, *args: Any) -> Tensor:
        facts = tuple(self.op.fact(i, value) for i, value in enumerate(args))
        plan = self.plans.get(facts)
        x = args[0]
        if plan is None:
            return self.first(facts, args)
        store: Any = x._store
        at = store.block.address + x._offset * x._dtype.itemsize
        if at & plan.mask:
            return self.first(facts, args)
        result = fresh(plan.mould)
        store = result._store
        block = store.block
        plan.run(block.address, at, block.shelf.stream)
        return result

    def first(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Tensor:
        """The result for arguments that look so for the first time, or lie less aligned than those before.

        What it came down to is remembered, unless there was more to it than launches, or nothing.
        """
        meta = self.op.meta_function(*args)
        made = mould(Size(meta.shape), meta.dtype, meta.device, meta.strides)
        result = fresh(made)
        x, dims, convert_to = self.decided(args)
        prepared = None
        if convert_to is None and self.plans.get(facts) is None:
            prepared = self.kernels.prepared(operand(result), operand(x), dims)
        if prepared is None or address_of(x) % VECTOR:
            self.fill(result, args)
            return result
        plan = Plan(made, running(prepared, x._device), prepared.mask)
        plan.run(address_of(result), address_of(x), result._storage.block.stream)
        self.plans[facts] = plan
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


def running(prepared: Prepared, on: Any) -> Callable[[int, int, int], None]:
    """The launches, with memory between them where there are two."""
    source, scratch = allocator(), prepared.scratch
    runs = prepared.ready(source.driver)
    if not scratch:
        return runs[0]

    def run(out: int, at: int, stream: int) -> None:
        parts = source.allocate(scratch, on)
        for one in runs:
            one(out, at, stream, parts.address)

    return run
