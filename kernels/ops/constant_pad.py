"""constant_pad_nd: a tensor in a larger one, with one number around it. Negative widths cut off instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Size, Tensor, empty

from ..declare.operator import kernel
from .copying import move, suggested_format
from .creation import strides_for
from .geometry import sliced


@kernel(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    core=True,
    batching="leading",
    derivative=lambda grad, pad: constant_pad_nd_op.functional(grad, [-width for width in pad], 0),
    method=False,
)
def constant_pad_nd(self: Any, pad: Sequence[int], value: Any) -> Tensor:
    """Returns the tensor with `value` around it: `pad` has two widths for each dimension, the last dimension first."""
    ndim = len(self._shape)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {ndim}dimensions."
        )
    widths = [(0, 0)] * (ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    shape = [before + size + behind for size, (before, behind) in zip(self._shape, widths, strict=True)]
    for d, size in enumerate(shape):
        if size < 0:
            before, behind = widths[d]
            raise RuntimeError(
                f"The input size {self._shape[d]}, plus negative padding {before} and {behind} resulted in a negative "
                "output size, which is invalid. Check dimension "
                f"{d} of your input."
            )
    made = empty(Size(shape), self._dtype, self._device, strides_for(Size(shape), suggested_format(self)))
    if made._device.type == "cpu":
        kernels.fill(made._operand, value)
    elif made._device.type != "meta":
        made.fill_(value)
    source, target = self, made
    for d, (before, behind) in enumerate(widths):
        size = self._shape[d]
        source = sliced(source, d, max(-before, 0), size - max(-behind, 0), 1).of(source)
        target = sliced(target, d, max(before, 0), shape[d] - max(behind, 0), 1).of(target)
    move(target, source)
    return made


constant_pad_nd_op = constant_pad_nd.op


constant_pad_nd_op.forward(
    lambda arguments, tangents, result: constant_pad_nd_op.functional(tangents[0], arguments[1], 0)
)
