"""Steps of Adam on a device: one launch for each parameter (kernels/cpu/adam.py has the element)."""

from __future__ import annotations

import functools
import operator
from typing import Any

from redispatch.dispatch.tensor import Tensor, metadata_of
from redispatch.kernels import DTYPES
from redispatch.kernels.cpu.adam import ADAM, AMSGRAD
from redispatch.kernels.declare.pointwise import as_it_is
from redispatch.kernels.ops.fused_updates import ELSEWHERE, Updates, adam_op, adamw_op

from ..elementwise import VECTOR, as_argument
from ..runtime.copies import READY, on_cuda
from ..runtime.operands import address_of, allocator, operand, stream_for
from ..runtime.structured import as_on_cpu


@functools.lru_cache(maxsize=16)  # most parameters have had the same number of steps
def told_of(numbers: tuple[Any, ...], compute: str) -> tuple[int, ...]:
    """An element's numbers as a launch takes them."""
    return tuple(as_argument(one, compute) for one in numbers)


def update(tensors: tuple[Tensor, ...], amsgrad: bool, numbers: tuple[Any, ...]) -> None:
    """One launch, remembered by how the tensors look where they are as aligned as can be."""
    parameter, grad, *averages = tensors
    if not parameter._shape.numel():
        return
    loops, outs = AMSGRAD if amsgrad else ADAM, (parameter, *averages)
    told = told_of(numbers, DTYPES[parameter._dtype.name].compute)
    key = loops, grad._interned or metadata_of(grad), *[x._interned or metadata_of(x) for x in outs]
    at = [address_of(x) for x in outs]
    gradient = address_of(grad)
    aligned = not (gradient | functools.reduce(operator.or_, at)) & VECTOR - 1
    ready = READY.get(key) if aligned else None
    if ready is None:
        written: list[Any] = [operand(x) for x in outs]
        inputs = [written[0], operand(grad), *written[1:], *told]
        prepared = on_cuda(loops).prepared(written, inputs, parameter._dtype.name)
        ready = prepared.ready(allocator().driver, as_it_is)
        if aligned:
            READY[key] = ready
    ready.start((ready.numel, *at, at[0], gradient, *at[1:], *told), stream_for(parameter))


ELSEWHERE["cuda"] = Updates(lambda x: x.item(), lambda x, divisor: x.div_(divisor), update)
as_on_cpu("steps of Adam", adam_op.functional, adamw_op.functional)
