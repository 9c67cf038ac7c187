"""Every pointwise operator on a device: kernels/declare/pointwise.py with launches for loops.

What a call comes down to (dtypes, shape, strides, which scalar function) is the operator's own plan; here it is carried
out. There is nothing about any one operator.

Note [A launch for arguments that look alike]
How often a kernel runs, with which grid, and what it is told beside addresses follows from the plan, too. So there is a
`Ready` for each plan, and a call is one look-up, one fresh tensor, one launch; the specialiser writes them out where
the operator is called. Addresses are left to be asked for whether they are as much aligned as the kernel wants. What
is not as usual (a number on the CPU beside tensors on the device, `out=`) goes the longer way, `fill`.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.specialiser.marks import frozen, inline, leaf
from redispatch.dispatch.tensor import Tensor, dtypes, fresh, looks_of, no_memory
from redispatch.kernels.cuda.elementwise import LAUNCHES, VECTOR, Ready
from redispatch.kernels.declare.pointwise import Pointwise, Variant, as_it_is, shares_memory
from redispatch.kernels.declare.structured import check_no_internal_overlap, check_writable, is_among, resize_out
from redispatch.kernels.ops.fused_updates import number_of

from .copies import apart, on_cuda, sent, uploaded
from .operands import address_of, block_of, operand, stream_for


@frozen
class PointwiseOnCUDA:
    """The kernels of one operator."""

    def __init__(self, op: Pointwise) -> None:
        self.op = op
        self.launches: dict[Any, Any] = {}  # by plan (kernels/declare/pointwise.py), looks of the target, and alignment
        self.into_fresh: dict[Any, Ready] = {}  # by plan
        self.in_place: dict[Any, Ready] = {}

    @leaf
    @inline
    def functional(self, *args: Any) -> Tensor:
        op = self.op
        for variant in op.variants:
            if variant.suits(args):
                plan = op.plan(variant, args)
                result = fresh(plan.outputs[0])
                ready = self.into_fresh.get(plan)
                if ready is None:
                    self.first(variant, plan, result, args)
                    return result
                values, low = given(op, ready, variant.positions, args)
                if low & ready.mask:
                    self.fill(variant, plan, result, args)
                    return result
                store: Any = result._store
                block = store.block
                ready.start((ready.numel, block.address, *values), block.shelf.stream)
                return result
        raise op.no_variant(args)

    @leaf
    @inline
    def inplace(self, *args: Any) -> Tensor:
        op, target = self.op, args[0]
        for i in op.tensors:
            if i != 0 and op.is_tensor(args[i], i) and shares_memory(args[i], target):
                return self.inplace_otherwise(*args)
        for variant in op.variants:
            if variant.suits(args):
                ready = self.in_place.get(op.plan(variant, args))
                if ready is None:
                    return self.inplace_otherwise(*args)
                values, low = given(op, ready, variant.positions, args)
                store: Any = target._store
                out = store.block.address + target._offset * target._dtype.itemsize
                if (low | out) & ready.mask:
                    return self.inplace_otherwise(*args)
                ready.start((ready.numel, out, *values), stream_for(target))
                return target
        raise op.no_variant(args)

    def inplace_otherwise(self, *args: Any) -> Tensor:
        """The in-place kernel for any arguments."""
        op, target = self.op, args[0]
        meta = op.meta_function(*args)
        if op.promotion == "real" and target._dtype.is_complex:
            raise RuntimeError(f"In-place {op.schema.base_name} is not supported for complex tensors.")
        check_writable(target, meta)
        return self.write(target, args, self.in_place)

    @leaf
    def out(self, *args: Any) -> Tensor:
        *inputs, out = args
        self.op.check_exact_out(args)
        meta = self.op.meta_function(*inputs)
        if is_among(out, inputs):
            check_writable(out, meta)  # resizing it would change the input
        resize_out(out, meta)
        return self.write(out, tuple(inputs))

    def write(self, target: Tensor, args: tuple[Any, ...], remembered: dict[Any, Ready] | None = None) -> Tensor:
        """Fills a tensor that may be one of the arguments."""
        check_no_internal_overlap(target)
        variant = self.op.variant(args)
        plan = self.op.plan(variant, args)
        self.fill(variant, plan, target, tuple(apart(value, target) for value in args), remembered)
        return target

    def first(self, variant: Variant, plan: Any, result: Tensor, args: tuple[Any, ...]) -> None:
        """Fills the first result of a plan."""
        self.fill(variant, plan, result, args, self.into_fresh)

    def fill(
        self,
        variant: Variant,
        plan: Any,
        target: Tensor,
        args: tuple[Any, ...],
        remembered: dict[Any, Ready] | None = None,
    ) -> None:
        """Computes into a tensor. What is as usual about it is remembered for the next call of this plan."""
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
        key = plan, target._looks or looks_of(target), aligned
        launch = self.launches.get(key)
        if launch is None:
            if len(self.launches) >= LAUNCHES:
                self.forget()
            operands = [operand(x) if isinstance(x, Tensor) else x for x in inputs]
            launch = self.launches[key] = on_cuda(variant.loops).prepared([operand(target)], operands, plan.compute)
        pairs = zip(inputs, (args[i] for i in variant.positions), strict=True)
        as_given = all(x is arg for x, arg in pairs if isinstance(x, Tensor) or isinstance(arg, Tensor))
        if remembered is not None and as_given and not any(aligned):
            remembered[plan] = launch.ready(memory.driver, fit)
        # `inputs` holds what was uploaded until here: a block that is given back may be another's at once.
        launch.start(memory, values)

    def forget(self) -> None:
        """Drops what was prepared: it is prepared anew when it is asked for."""
        for table in (self.launches, self.into_fresh, self.in_place):
            table.clear()


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
