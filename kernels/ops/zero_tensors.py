"""Zeros that take no memory (dispatch/layers/lazy_bit.py), and the sums and products which keep them so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import call, shared
from redispatch.dispatch.layers.lazy_bit import ZERO_TENSOR, ZEROS_IN_MEMORY
from redispatch.dispatch.tensor import (
    CPU,
    Size,
    Tensor,
    UntypedStorage,
    get_default_dtype,
    storage_elements,
    tensor_over,
)
from redispatch.kernels import contiguous_strides

from ..declare.operator import leaf_kernel
from ..declare.pointwise import Pointwise
from .arithmetic import add_op, div_op, mul_op, sub_op
from .copying import to_copy_op
from .creation import full_op, zeros_op
from .views import expand_op


@leaf_kernel(
    "_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    doc="Returns a tensor of zeros whose storage has no data.",
    face=True,
)
def _efficientzerotensor(size: Sequence[int], dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """A tensor of zeros whose storage has no data."""
    shape, element, on = Size(size), dtype or get_default_dtype(), device or CPU
    strides = contiguous_strides(shape)
    storage = UntypedStorage.without_data(storage_elements(shape, strides, element) * element.itemsize, on)
    made = tensor_over(storage, None, shape, strides, 0, element, on)
    made._keyset = shared(made._keyset | ZERO_TENSOR)
    return made


efficientzerotensor_op = _efficientzerotensor.op


def zeros_in_memory(tensor: Tensor) -> Tensor:
    """One zero, expanded."""
    zero = zeros_op.functional([], dtype=tensor._dtype, device=tensor._device)
    return call(expand_op.functional, [zero, list(tensor._shape), False])


ZEROS_IN_MEMORY.fill(zeros_in_memory)

# --- what stays zero --------------------------------------------------------------------------------------------------


def is_zero(value: Any) -> bool:
    return isinstance(value, Tensor) and value._is_zerotensor()


def zero_result(op: Pointwise, *args: Any) -> Tensor:
    """Zeros that look as the result of the call would."""
    meta = op.meta_function(*args)
    return efficientzerotensor_op.functional(list(meta.shape), dtype=meta.dtype, device=meta.device)


@mul_op.kernel("ZeroTensor", dispatches=True)
def mul_zero(self: Any, other: Any) -> Tensor:
    return zero_result(mul_op, self, other)


@div_op.kernel("ZeroTensor", dispatches=True)
def div_zero(self: Any, other: Any) -> Tensor:
    """Zero over anything but zero; a zero below is divided by as it is."""
    if is_zero(other):
        return div_op.functional(zeros_in_memory(self) if is_zero(self) else self, zeros_in_memory(other))
    return zero_result(div_op, self, other)


@add_op.kernel("ZeroTensor", dispatches=True)
def add_zero(self: Any, other: Any, alpha: Any) -> Tensor:
    """The term that is not zero, in the shape and dtype of the sum."""
    if is_zero(self) and is_zero(other):
        return zero_result(add_op, self, other, alpha)
    meta = add_op.meta_function(self, other, alpha)
    if not is_zero(self):
        return like_sum(self, meta)
    term = like_sum(other, meta)
    return term if alpha == 1 else term * alpha


@sub_op.kernel("ZeroTensor", dispatches=True)
def sub_zero(self: Any, other: Any, alpha: Any) -> Tensor:
    if is_zero(self) and is_zero(other):
        return zero_result(sub_op, self, other, alpha)
    meta = sub_op.meta_function(self, other, alpha)
    return like_sum(self, meta) if not is_zero(self) else like_sum(other, meta) * -alpha


def like_sum(term: Any, meta: Any) -> Any:
    if not isinstance(term, Tensor):
        return full_op.functional(list(meta.shape), term, dtype=meta.dtype, device=meta.device)
    return to_copy_op.functional(expand_op.functional(term, list(meta.shape)), dtype=meta.dtype)
