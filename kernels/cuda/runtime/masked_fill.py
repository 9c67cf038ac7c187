"""`masked_fill` on a device, of which the gradients of `where` are made."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Size, Tensor, empty
from redispatch.kernels import broadcast_shapes
from redispatch.kernels.declare.structured import common_device
from redispatch.kernels.ops.copying import check_broadcasts_to, check_value, storable
from redispatch.kernels.ops.masking import MASKED_LOOPS, check_mask, warn_if_expanded

from .copies import apart, item_kernel, on_cuda, uploaded
from .operands import operand


def masked_fill_kernel(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of `self` in the shape that it and the mask broadcast to, with `value` where the mask is true."""
    value = storable(value, self._dtype)
    check_mask(mask)
    shape = Size(broadcast_shapes(mask._shape, self._shape))
    result = empty(shape, self._dtype, common_device(self, mask))
    fill_where(result, self, mask, value)
    return result


def masked_fill_inplace_kernel(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Writes `value` where the mask is true."""
    value = storable(value, self._dtype)
    check_mask(mask)
    check_broadcasts_to(self, mask)
    common_device(self, mask)
    warn_if_expanded(self, "masked_fill_")
    fill_where(self, self, apart(mask, self, elementwise=False), value)
    return self


def fill_where(target: Tensor, source: Tensor, mask: Tensor, value: Any) -> None:
    if not target._shape.numel():
        return
    held = [x.to(target._device) if x._device.type == "cpu" else x for x in (source, mask)]
    if target._dtype.is_complex:  # such a number does not fit into one argument of a launch
        held.append(uploaded(value, target._device, target._dtype))
    given = [*map(operand, held), *([] if target._dtype.is_complex else [value])]
    on_cuda(MASKED_LOOPS).launch([operand(target)], given, target._dtype.name)


def masked_fill_tensor_kernel(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    check_value("masked_fill_", value)
    return masked_fill_kernel(self, mask, number_of(value))


def masked_fill_tensor_inplace_kernel(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    check_value("masked_fill_", value)
    return masked_fill_inplace_kernel(self, mask, number_of(value))


def number_of(value: Tensor) -> Any:
    return item_kernel(value) if value._device.type == "cuda" else value.item()
