"""Every pointwise operator on a device: kernels/declare/pointwise.py with launches for loops; and every reduction.

What a call comes down to (dtypes, shape, strides, which scalar function) is the operator's own plan; here it is carried
out. There is nothing about any one operator. A reduction has the recipe of its CPU kernel (`Reduced`).

Note [A launch for arguments that look alike]
How often a kernel runs, with which grid, and what it is told beside addresses follows from the plan, too. So there is a
`Ready` for each plan, and a call is one look-up, one fresh tensor, one launch; the specialiser writes them out where
the operator is called. Addresses are left to be asked for whether they are as much aligned as the kernel wants. What
is not as usual (a number on the CPU beside tensors on the device, `out=`) goes the longer way, `fill`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import Tensor, dtypes, empty_from, metadata_of, no_memory
from redispatch.kernels.cpu.reduce import Reduction
from redispatch.kernels.cuda import CUDAReduction
from redispatch.kernels.cuda.elementwise import VECTOR, Ready
from redispatch.kernels.declare.pointwise import Pointwise, Variant, as_it_is, shares_memory
from redispatch.kernels.declare.structured import check_no_internal_overlap
from redispatch.kernels.ops.fused_updates import number_of
from redispatch.kernels.ops.reductions import Reduced

from .copies import copied, on_cuda, sent, uploaded
from .operands import Scratch, address_of, block_of, operand, stream_for
from .structured import OnDevice


@frozen
class PointwiseOnCUDA(OnDevice):
    """The kernels of one operator. Launches stand in its plans, by form: `run`, `in_place`, `into`."""

    elementwise = True

    @leaf
    @inline
    def run_functional(self, *args: Any) -> Tensor:
        op = self.op
        for variant in op.variants:
            if variant.suits(args):
                plan = op.plan(variant, args)
                result = empty_from(plan.outputs[0])
                ready = plan.run
                if ready is None:
                    self.compute(variant, plan, result, args, "run")
                    return result
                values, low = given(op, ready, variant.positions, args)
                if low & ready.mask:
                    self.compute(variant, plan, result, args)
                    return result
                store: Any = result._store
                block = store.block
                ready.start((ready.numel, block.address, *values), block.shelf.stream)
                return result
        raise op.no_variant(args)

    @leaf
    @inline
    def run_inplace(self, *args: Any) -> Tensor:
        op, target = self.op, args[0]
        for i in op.tensors:
            if i != 0 and op.is_tensor(args[i], i) and shares_memory(args[i], target):
                return self.run_inplace_slow(*args)
        for variant in op.variants:
            if variant.suits(args):
                ready = op.plan(variant, args).in_place
                if ready is None:
                    return self.run_inplace_slow(*args)
                values, low = given(op, ready, variant.positions, args)
                store: Any = target._store
                out = store.block.address + target._offset * target._dtype.itemsize
                if (low | out) & ready.mask:
                    return self.run_inplace_slow(*args)
                ready.start((ready.numel, out, *values), stream_for(target))
                return target
        raise op.no_variant(args)

    def run_inplace_slow(self, *args: Any) -> Tensor:
        """The in-place kernel for any arguments."""
        self.op.meta_function(*args)
        if self.op.promotion == "real" and args[0]._dtype.is_complex:
            raise RuntimeError(f"In-place {self.op.schema.base_name} is not supported for complex tensors.")
        return super().run_inplace(*args)

    @leaf
    def run_out(self, *args: Any) -> Tensor:
        self.op.check_exact_out(args)
        return super().run_out(*args)

    def fill(self, target: Tensor, args: Sequence[Any]) -> None:
        check_no_internal_overlap(target)
        variant = self.op.variant(args)
        plan = self.op.plan(variant, args)
        slot = "in_place" if target is args[0] else ""
        self.compute(variant, plan, target, [self.unaliased(value, target) for value in args], slot)

    def compute(self, variant: Variant, plan: Any, target: Tensor, args: Sequence[Any], slot: str = "") -> None:
        """Computes into a tensor. Where all is as usual, the launch is put in a slot of the plan for the next call."""
        if not target._shape.numel():
            return
        if plan.meta.device.type != target._device.type:
            raise RuntimeError(
                f"{self.op.functional} computes on {plan.meta.device}, and cannot write to {target._device}"
            )
        fit = plan.fit or as_it_is
        inputs = [as_input(args[i], plan.compute, fit, target) for i in variant.positions]
        memory = block_of(target)
        values = [address_of(x) if isinstance(x, Tensor) else x for x in (target, *inputs)]
        aligned = tuple(v % VECTOR for v, x in zip(values, (target, *inputs), strict=True) if isinstance(x, Tensor))
        key = target._interned or metadata_of(target), aligned
        launch = plan.into.get(key)
        if launch is None:
            operands = [operand(x) if isinstance(x, Tensor) else x for x in inputs]
            launch = plan.into[key] = on_cuda(variant.loops).prepared([operand(target)], operands, plan.compute)
        pairs = zip(inputs, (args[i] for i in variant.positions), strict=True)
        as_given = all(x is arg for x, arg in pairs if isinstance(x, Tensor) or isinstance(arg, Tensor))
        if slot and as_given and not any(aligned):
            setattr(plan, slot, launch.ready(memory.driver, fit))
        # `inputs` holds what was uploaded until here: a block that is given back may be another's at once.
        launch.start(memory, values)


@inline
def given(op: Pointwise, ready: Ready, positions: tuple[int, ...], args: tuple[Any, ...]) -> tuple[list[Any], int]:
    """The arguments at these positions as a launch takes them, and the addresses' bits together."""
    values: list[Any] = []
    low = 0
    for k, i in enumerate(positions):
        value = args[i]
        if op.is_tensor(value, i):
            store: Any = value._store
            if store is None or store.block is None:
                raise no_memory(value)
            address = store.block.address + value._offset * value._dtype.itemsize
            low = low | address
            values.append(address)
        else:
            values.append(ready.packs[k](value))
    return values, low


def as_input(value: Any, compute: str, fit: Any, target: Tensor) -> Any:
    """An argument as a tensor on the target's device, or as a number that a launch takes."""
    if isinstance(value, Tensor):
        if value._device.type != "cpu":
            return value
        if "complex" in compute or value._dtype.is_complex:
            return sent(value, target._device)
        return number_of(value)  # without dimensions it may be on the CPU, and travels with the launch
    if "complex" in compute:  # such a number does not fit into one argument of a launch
        return uploaded(value, target._device, getattr(dtypes, compute))
    return fit(value)


# --- reductions -------------------------------------------------------------------------------------------------------


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
