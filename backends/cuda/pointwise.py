"""Every pointwise operator on a device: the forms of `ops/pointwise.py`, with launches in the place of loops.

What a call comes down to (dtypes, shape, strides, which scalar function) is the operator's own plan; here it is carried
out. There is nothing about any one operator.
"""

from __future__ import annotations

from typing import Any

from redispatch.kernels.cuda.elementwise import LAUNCHES, VECTOR
from redispatch.ops.pointwise import Pointwise, Variant, as_it_is
from redispatch.ops.structured import (
    check_no_internal_overlap,
    check_writable,
    is_among,
    resize_out,
)
from redispatch.tensor import Tensor, dtypes, fresh, looks_of

from .copies import apart, on_cuda
from .operands import block_of, operand, uploaded


class PointwiseOnCUDA:
    """The kernels of one operator."""

    def __init__(self, op: Pointwise) -> None:
        self.op = op
        self.launches: dict[Any, Any] = {}  # by plan (ops/pointwise.py), looks of the target, and alignment

    def functional(self, *args: Any) -> Tensor:
        variant = self.op.variant(args)
        plan = self.op.plan(variant, args)
        result = fresh(plan.mould)
        self.fill(variant, plan, result, args)
        return result

    def inplace(self, *args: Any) -> Tensor:
        op, target = self.op, args[0]
        meta = op.meta_function(*args)
        if op.promotion == "real" and target._dtype.is_complex:
            raise RuntimeError(f"In-place {op.schema.base_name} is not supported for complex tensors.")
        check_writable(target, meta)
        self.write(target, args)
        return target

    def out(self, *args: Any) -> Tensor:
        *inputs, out = args
        self.op.check_exact_out(args)
        meta = self.op.meta_function(*inputs)
        if is_among(out, inputs):
            check_writable(out, meta)  # resizing it would change the input
        resize_out(out, meta)
        self.write(out, tuple(inputs))
        return out

    def write(self, target: Tensor, args: tuple[Any, ...]) -> None:
        """Fills a tensor that may be one of the arguments."""
        check_no_internal_overlap(target)
        variant = self.op.variant(args)
        plan = self.op.plan(variant, args)
        self.fill(variant, plan, target, tuple(apart(value, target) for value in args))

    def fill(self, variant: Variant, plan: Any, target: Tensor, args: tuple[Any, ...]) -> None:
        if not target._shape.numel():
            return
        if plan.meta.device.type != target._device.type:
            raise RuntimeError(
                f"{self.op.functional} computes on {plan.meta.device}, and cannot write to {target._device}"
            )
        fit = plan.fit or as_it_is
        inputs = [as_input(args[i], plan.compute, fit, target) for i in variant.positions]
        memory = block_of(target)
        values: list[Any] = [memory.address + target._offset * target._dtype.itemsize]
        for x in inputs:
            values.append(block_of(x).address + x._offset * x._dtype.itemsize if isinstance(x, Tensor) else x)
        aligned = tuple(v % VECTOR for v, x in zip(values, (target, *inputs), strict=True) if isinstance(x, Tensor))
        key = plan, target._looks or looks_of(target), aligned
        launch = self.launches.get(key)
        if launch is None:
            if len(self.launches) >= LAUNCHES:
                self.launches.clear()
            given = [operand(x) if isinstance(x, Tensor) else x for x in inputs]
            launch = self.launches[key] = on_cuda(variant.loops).prepared([operand(target)], given, plan.compute)
        # `inputs` holds what was uploaded until here: a block that is given back may be another's at once.
        launch.start(memory, values)


def as_input(value: Any, compute: str, fit: Any, target: Tensor) -> Any:
    """An argument as a tensor on the target's device, or as a number that a launch takes."""
    if isinstance(value, Tensor):
        return value.to(target._device) if value._device.type == "cpu" else value  # one without dimensions may be there
    if "complex" in compute:  # such a number does not fit into one argument of a launch
        return uploaded(value, target._device, getattr(dtypes, compute))
    return fit(value)
