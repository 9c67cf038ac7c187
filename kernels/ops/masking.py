"""Elements that masks choose: masked_fill, masked_scatter, masked_select, nonzero and their kin."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    another,
    as_numpy,
    dtypes,
    empty,
    empty_from,
    metadata_of,
    output_spec,
)
from redispatch.kernels import Elementwise, broadcast_shapes

from ..declare.numbers import storable
from ..declare.operator import composite, kernel, leaf_kernel, over_a_copy
from ..declare.out_forms import by, filled
from ..declare.overridable import builtin_function
from ..declare.plan import Plan
from ..declare.structured import apart, c_name, check_no_internal_overlap, overlapping
from .copying import check_broadcasts_to, number_in

# --- masked_fill ------------------------------------------------------------------------------------------------------


def replaced(old, mask, new):
    return new if mask else old


MASKED_LOOPS = Elementwise("masked_fill", replaced, keep=[1])


def check_mask(mask: Tensor) -> None:
    if mask._dtype is not dtypes.bool:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {c_name(mask._dtype)}")


def masked_fill_inplace(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Writes `value` where the mask is true. The mask broadcasts."""
    value = storable(value, self._dtype)
    check_mask(mask)
    check_broadcasts_to(self, mask)
    if self._device.type == "meta":
        return self
    warn_if_expanded(self, "masked_fill_")
    target, mask = self._operand, apart(mask, self, elementwise=False)
    MASKED_LOOPS.run(target, target, mask._operand, value, dtype=self._dtype.name)
    return self


def is_expanded(tensor: Tensor) -> bool:
    """Whether one element stands for many along a dimension."""
    return any(step == 0 and size > 1 for step, size in zip(tensor._stride, tensor._shape, strict=True))


def warn_if_expanded(target: Tensor, name: str) -> None:
    if is_expanded(target):
        warnings.warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
            "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar",
            UserWarning,
            stacklevel=3,
        )


def broadcast_copy(self: Tensor, mask: Tensor, *rest: Any) -> Tensor:
    """A copy of `self` in the shape to which it and the mask broadcast."""
    made = empty(Size(broadcast_shapes(mask._shape, self._shape)), self._dtype, self._device)
    if made._device.type != "meta":
        kernels.copy(made._operand, self._operand)
    return made


MASKED: dict[Any, Plan] = {}  # by metadata, of the tensor and of the mask: how a filled copy is made
REMEMBERED = 4096  # then they start afresh


@inline
def masked_fill_kernel(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    key = (self._interned or metadata_of(self), mask._interned or metadata_of(mask))
    plan = MASKED.get(key)
    if plan is None or self._array is None or mask._array is None:
        return masked_fill_first(key, self, mask, value)
    number = storable(value, self._dtype)
    result = empty_from(plan.outputs[0])
    plan.run(result._array, 0, self._array, self._offset, mask._array, mask._offset, number)
    return result


def masked_fill_first(key: Any, self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Fills the long way; how it was made is remembered."""
    result = empty(Size(broadcast_shapes(mask._shape, self._shape)), self._dtype, self._device)
    number = storable(value, self._dtype)
    check_mask(mask)
    if result._device.type == "meta":
        return result
    inputs = (self._operand, mask._operand, number)
    MASKED_LOOPS.run(result._operand, *inputs, dtype=self._dtype.name)
    if result._array is not None and result._device == self._device == mask._device:
        if len(MASKED) >= REMEMBERED:
            MASKED.clear()
        made = output_spec(result._shape, result._dtype, result._device, result._stride)
        MASKED[key] = Plan((made,), MASKED_LOOPS.loop((result._operand,), inputs, self._dtype.name).run)
    return result


def unmasked(grad: Any, mask: Any) -> Any:
    return masked_fill_scalar_op.functional(grad, mask, 0)


masked_fill_scalar_op = leaf_kernel(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    inplace=True,
    tags=("pointwise",),
    derivative=unmasked,
    node="MaskedFillBackward0",
    forward=lambda arguments, tangents, result: unmasked(tangents[0], arguments[1]),
)(masked_fill_kernel)
masked_fill_scalar_op.kernel_inplace("CPU", "Meta")(masked_fill_inplace)


@over_a_copy(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    broadcast_copy,
    dispatches=True,
    derivative={"self": unmasked, "value": lambda grad, mask: unmasked(grad, mask.logical_not()).sum()},
    node="MaskedFillBackward1",
    forward="linear",
    also=(masked_fill_scalar_op,),
)
def masked_fill(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """Returns `self` with `value` where `mask` is true."""
    return masked_fill_inplace(self, mask, number_in("masked_fill_", value, self))


# --- masked_scatter, masked_select ------------------------------------------------------------------------------------


@kernel(
    "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
    derivative=lambda grad, grad_output_shape, mask: grad.new_zeros(grad_output_shape).masked_scatter(mask, grad),
    node="MaskedScatterBackwardBackward0",
    forward="linear",
    face=False,
    late_out=False,
)
def masked_scatter_backward_op(grad_output: Any, mask: Any, sizes: Sequence[int]) -> Any:
    """The gradients where the mask is true, in order, and zeros for the elements that were not used."""
    chosen = grad_output.masked_select(mask)
    result = grad_output.new_zeros(sizes)
    result.view(-1).narrow(0, 0, chosen.numel()).copy_(chosen)
    return result


@over_a_copy(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    broadcast_copy,
    derivative={
        "self": lambda grad, mask: grad.masked_fill(mask, 0),
        "source": lambda grad, mask, source_shape: masked_scatter_backward_op.functional(grad, mask, source_shape),
    },
    forward="linear",
    core=True,
)
def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Returns `self` with the elements of `source`, in their order, where `mask` is true; the mask broadcasts."""
    check_masked_scatter(self, mask, source)
    check_broadcasts_to(self, mask)
    if self._device.type == "meta":
        return self
    chosen = np.broadcast_to(kernels.as_ndarray(mask._operand), tuple(self._shape))
    count = int(np.count_nonzero(chosen))
    check_enough(source, count)
    values = kernels.as_ndarray(apart(source, self, elementwise=False)._operand)
    kernels.as_ndarray(self._operand)[chosen] = values.ravel()[:count]
    return self


def check_masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> None:
    if self._dtype is not source._dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{self._dtype.tensor_name} and "
            f"{source._dtype.tensor_name}"
        )
    if mask._dtype is not dtypes.bool:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask._dtype.tensor_name}"
        )
    check_no_internal_overlap(self)


def check_enough(source: Tensor, count: int) -> None:
    if source._shape.numel() < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")


def masked_select_backward(grad: Any, self_shape: Sequence[int], mask: Any) -> Tensor:
    shape = broadcast_shapes(tuple(self_shape), tuple(mask.shape))
    return grad.new_zeros(shape).masked_scatter(mask, grad)


def masked_select_into(self: Tensor, mask: Tensor, out: Tensor) -> Tensor:
    """Raises RuntimeError where `out=` shares memory with what is read, or with itself."""
    check_no_internal_overlap(out)
    for x in (self, mask):
        if x._storage is out._storage and kernels.overlap(x._operand, out._operand) != "no":
            raise overlapping()
    return filled(out, masked_select.op.functional(self, mask))


@kernel(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    "CPU",
    tags=("dynamic_output_shape",),
    out="out",
    out_by=by(masked_select_into),
    derivative=masked_select_backward,
    forward="linear",
)
def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """Returns the elements where `mask` is true, as one dimension. Both broadcast."""
    if mask._dtype is not dtypes.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(mask._shape, self._shape)
    chosen = np.broadcast_to(kernels.as_ndarray(mask._operand), shape)
    values = np.broadcast_to(kernels.as_ndarray(self._operand), shape)[chosen]
    result = empty((len(values),), self._dtype, self._device)
    kernels.as_ndarray(result._operand)[...] = values
    return result


# --- nonzero ----------------------------------------------------------------------------------------------------------


def nonzero_kernel(self: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row for each, in row-major order; they lie column by column."""
    if self._shape:
        found = np.array(as_numpy(self).nonzero(), np.int64)
    else:
        found = np.empty((0, 1 if as_numpy(self)[()] else 0), np.int64)
    count, ndim = found.shape[1], len(self._shape)
    result = empty((count, ndim), dtypes.int64, self._device, (1, count))
    kernels.as_ndarray(result._operand)[...] = found.T
    return result


nonzero_op = kernel(
    "nonzero(Tensor self) -> Tensor",
    "CPU",
    tags=("dynamic_output_shape",),
    out="out",
    derivative=False,
    face=False,
    core=True,
)(nonzero_kernel)


@builtin_function
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """Returns the indices of the elements that are not zero: a row for each, or a tuple of a tensor a dimension."""
    if as_tuple and out is not None:
        if not isinstance(out, Tensor):
            raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    if not as_tuple:
        return nonzero_op.functional(input) if out is None else ops.aten.nonzero.out(input, out=out)
    return tuple(nonzero_numpy_op.functional(input))


@composite("nonzero_numpy(Tensor self) -> Tensor[]", face=False)
def nonzero_numpy_op(self: Any) -> list[Tensor]:
    x = self if self._shape else self.unsqueeze(0)
    return list(nonzero_op.functional(x).unbind(1))


Tensor.nonzero = another(nonzero, "nonzero")  # type: ignore[attr-defined]  # attached here


@composite("argwhere(Tensor self) -> Tensor", tags=("dynamic_output_shape",))
def argwhere(self: Tensor) -> Tensor:
    """Returns the indices of all nonzero elements, a row for each."""
    return nonzero_op.functional(self)


def nonzero_static_shape(self: Tensor, size: int) -> Size:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return Size((size, len(self._shape)))


@kernel(
    "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
    "CPU",
    out="out",
    derivative=False,
    batching="other",
)
def nonzero_static(self: Tensor, size: int, fill_value: int) -> Tensor:
    """Returns the indices of `size` nonzero elements, filled up with `fill_value`."""
    made = empty(nonzero_static_shape(self, size), dtypes.int64, self._device)
    found = np.argwhere(kernels.as_ndarray(self._operand))[:size]
    rows = as_numpy(made)
    rows[: len(found)] = found
    rows[len(found) :] = fill_value
    return made


@nonzero_static.op.kernel("Meta")
def nonzero_static_meta(self: Tensor, size: int, fill_value: int) -> Tensor:
    return empty(nonzero_static_shape(self, size), dtypes.int64, self._device)


masked_fill_tensor_op, masked_scatter_op = masked_fill.op, masked_scatter.op
