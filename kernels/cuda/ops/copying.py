"""`cat` and `stack` on a device, whose parts are copied to where they belong in the result; `masked_fill`, of which the
gradients of `where` are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Size, Tensor, empty, view_over, wrap_dim
from redispatch.kernels import broadcast_shapes
from redispatch.kernels.declare.structured import (
    check_no_internal_overlap,
    common_device,
    is_among,
    overlapping,
    resize_out,
)
from redispatch.kernels.ops.copying import check_broadcasts_to, check_value, storable
from redispatch.kernels.ops.masking import MASKED_LOOPS, check_mask, warn_if_expanded
from redispatch.kernels.ops.shape import cat_op, is_skipped, stack_op

from ..runtime.copies import apart, copy_on_device, item_kernel, on_cuda, uploaded
from ..runtime.definitions import DEFINED, Definition, kernel_of
from ..runtime.operands import operand


class Joining:
    """The kernels of `cat`, or of `stack`, which gives each part a dimension of size 1."""

    def __init__(self, op: Any, is_stack: bool) -> None:
        self.op, self.is_stack = op, is_stack

    def functional(self, tensors: Sequence[Tensor], dim: int) -> Tensor:
        result = self.op.meta_function(tensors, dim).allocate()
        self.fill(result, tensors, dim)
        return result

    def out(self, tensors: Sequence[Tensor], dim: int, out: Tensor) -> Tensor:
        if is_among(out, tensors):
            raise overlapping()
        resize_out(out, self.op.meta_function(tensors, dim))
        check_no_internal_overlap(out)
        self.fill(out, [apart(x, out, elementwise=False) for x in tensors], dim)
        return out

    def fill(self, out: Tensor, tensors: Sequence[Tensor], dim: int) -> None:
        axis, start = wrap_dim(dim, len(out._shape)), 0
        for x in tensors:
            if not self.is_stack and is_skipped(x):
                continue
            size = 1 if self.is_stack else x._shape[axis]
            shape = (*out._shape[:axis], size, *out._shape[axis + 1 :])
            if 0 not in shape:
                part = view_over(out, shape, out._stride, out._offset + start * out._stride[axis])
                if self.is_stack:
                    shape, stride = x._shape, (*out._stride[:axis], *out._stride[axis + 1 :])
                    part = view_over(out, shape, stride, part._offset)
                copy_on_device(part, x)
            start += size


for _op in (cat_op, stack_op):
    _joining = Joining(_op, _op is stack_op)
    _forms = [(_op.functional, _joining.functional), (_op.out, _joining.out)]
    DEFINED.append(Definition(_op.base_name, lambda forms=_forms: forms))  # type: ignore[misc]  # mypy gives up on a default argument


@kernel_of("masked_fill.Scalar")
def masked_fill_kernel(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of `self` in the shape that it and the mask broadcast to, with `value` where the mask is true."""
    value = storable(value, self._dtype)
    check_mask(mask)
    shape = Size(broadcast_shapes(mask._shape, self._shape))
    result = empty(shape, self._dtype, common_device(self, mask))
    fill_where(result, self, mask, value)
    return result


@kernel_of("masked_fill_.Scalar")
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


@kernel_of("masked_fill.Tensor")
def masked_fill_tensor_kernel(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    check_value("masked_fill_", value)
    return masked_fill_kernel(self, mask, number_of(value))


@kernel_of("masked_fill_.Tensor")
def masked_fill_tensor_inplace_kernel(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    check_value("masked_fill_", value)
    return masked_fill_inplace_kernel(self, mask, number_of(value))


def number_of(value: Tensor) -> Any:
    return item_kernel(value) if value._device.type == "cuda" else value.item()
