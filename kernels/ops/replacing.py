"""Elements put in the place of others: masked_scatter, index_copy, index_fill, put, and take, which reads them.

Where indices name the elements of the flattened tensor (`take`, `put`), one that does not lie row by row is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtypes, empty, wrap_dim
from redispatch.kernels import Operand

from ..declare.declare import Operator
from ..declare.numbers import storable
from ..declare.public import public
from ..declare.structured import Meta, apart, check_no_internal_overlap, common_device
from .copying import local_scalar_dense_op, move
from .creation import preserved_strides
from .scatter_gather import (
    ReadAtPlaces,
    WrittenInPlace,
    broadcast_copy,
    raise_bad,
    same_as_first,
    start_from,
)

# --- masked_scatter --------------------------------------------------------------------------------------------------

masked_scatter_op = Operator(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", inplace=True, core=True
)
masked_scatter_backward_op = Operator(
    "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor", late_out=False
)


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


def check_enough(source: Tensor, count: int) -> None:
    if source._shape.numel() < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")


@masked_scatter_op.kernel_inplace("CPU", "Meta")
def masked_scatter_inplace(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Puts the first elements of `source`, in order, where the mask is true. The mask broadcasts."""
    check_masked_scatter(self, mask, source)
    check_no_internal_overlap(self)
    if self._device.type == "meta":
        return self
    chosen = np.broadcast_to(kernels.as_ndarray(mask._operand), tuple(self._shape))
    count = int(np.count_nonzero(chosen))
    check_enough(source, count)
    values = kernels.as_ndarray(apart(source, self, elementwise=False)._operand)
    kernels.as_ndarray(self._operand)[chosen] = values.ravel()[:count]
    return self


@masked_scatter_op.kernel("CPU", "Meta")
def masked_scatter_kernel(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Returns `self` with the elements of `source`, in their order, where `mask` is true."""
    return masked_scatter_inplace(broadcast_copy(self, mask), mask, source)


@masked_scatter_backward_op.explicit
def masked_scatter_backward_kernel(grad_output: Any, mask: Any, sizes: Sequence[int]) -> Any:
    """The gradients where the mask is true, in order, and zeros for the elements that were not used."""
    chosen = grad_output.masked_select(mask)
    result = grad_output.new_zeros(sizes)
    result.view(-1).narrow(0, 0, chosen.numel()).copy_(chosen)
    return result


masked_scatter_backward_op.derivative(
    grad_output=lambda grad, grad_output_shape, mask: masked_scatter_op.functional(
        grad.new_zeros(grad_output_shape), mask, grad
    ),
    node="MaskedScatterBackwardBackward0",
)
masked_scatter_backward_op.forward("linear")
masked_scatter_op.derivative(
    self=lambda grad, mask: grad.masked_fill(mask, 0),
    source=lambda grad, mask, source_shape: masked_scatter_backward_op.functional(grad, mask, source_shape),
)
masked_scatter_op.forward("linear")
masked_scatter = public(masked_scatter_op)

# --- index_copy, index_fill ------------------------------------------------------------------------------------------

index_copy_op = WrittenInPlace(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    inplace=True,
    out="out",
    autocast={"cpu": "promote"},
)


@index_copy_op.meta
def index_copy_meta(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {len(index._shape)})")
    count = index._shape.numel()
    if not source._shape and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if len(source._shape) != len(self._shape) and source._shape and self._shape:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(source._shape)}), destination dimensionality ({len(self._shape)})"
        )
    if index._dtype is not dtypes.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index._dtype.tensor_name}")
    if self._dtype is not source._dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{self._dtype.tensor_name} and (source) {source._dtype.tensor_name}"
        )
    ours, theirs = [size for d, size in enumerate(self._shape) if d != axis], list(source._shape)
    del theirs[axis : axis + 1]
    if ours != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, ours))} at dimension {axis} and source slice shape: {' '.join(map(str, theirs))} at "
            "dimension 0."
        )
    length = source._shape[axis] if source._shape else 1
    if count != length:
        raise IndexError(f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({length})")
    return same_as_first(self, index, source)


def as_lines(x: Operand) -> Operand:
    return x if x.shape else x._replace(shape=(1,), strides=(1,))


@index_copy_op.body
def index_copy_body(out: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """The entries of `source` along `dim` take the places that the index names."""
    start_from(out, self)
    axis = wrap_dim(dim, len(self._shape))
    target, where = as_lines(out._operand), as_lines(index._operand)
    bad = kernels.first_bad(where, target.shape[axis], wrap=False, dim=axis)
    if bad is not None:
        raise IndexError(f"index_copy_(): index {bad.value} is out of bounds for dimension {axis} with size {bad.size}")
    if source._shape.numel():
        kernels.index_put(target, [*[None] * axis, where], as_lines(source._operand))


index_copy_op.derivative(
    self=lambda grad, dim, index: grad.index_fill(dim, index, 0),
    source=lambda grad, dim, index, source_shape: grad.index_select(dim, index).reshape(source_shape),
)
index_copy_op.forward("linear")
index_copy = public(
    index_copy_op, doc="Returns `self` with the entries of `source` written where `index` says along `dim`."
)

index_fill_scalar_op = Operator(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", inplace=True
)
index_fill_tensor_op = Operator(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", inplace=True
)


@index_fill_scalar_op.kernel_inplace("CPU", "Meta")
def index_fill_inplace(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Writes one number to the entries along `dim` that the index names; negative indices count from the end."""
    if index._dtype is not dtypes.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if isinstance(value, complex) and not self._dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if len(index._shape) > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    axis = wrap_dim(dim, len(self._shape))
    common_device(self, index)
    if self._device.type == "meta":
        return self
    one = empty((), self._dtype, self._device)
    kernels.fill(one._operand, storable(value, self._dtype))
    target, where = as_lines(self._operand), as_lines(index._operand)
    bad = kernels.first_bad(where, target.shape[axis], wrap=True, dim=axis)
    raise_bad(bad, IndexError)
    if self._shape.numel() and index._shape.numel():
        kernels.index_put(target, [*[None] * axis, where], one._operand)
    return self


@index_fill_tensor_op.kernel_inplace("CPU", "Meta", dispatches=True)
def index_fill_tensor_inplace(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    check_value(value)
    return index_fill_inplace(self, dim, index, number_in(value))


def check_value(value: Tensor) -> None:
    if value._shape:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value._shape)} dimension(s)."
        )


def number_in(value: Tensor) -> Any:
    return 0 if value._device.type == "meta" else local_scalar_dense_op.functional(value)


def duplicate(self: Tensor) -> Tensor:
    made = empty(self._shape, self._dtype, self._device, preserved_strides(self))
    return move(made, self)


@index_fill_scalar_op.kernel("CPU", "Meta")
def index_fill_kernel(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    return index_fill_inplace(duplicate(self), dim, index, value)


@index_fill_tensor_op.kernel("CPU", "Meta", dispatches=True)
def index_fill_tensor_kernel(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    """Returns `self` with `value` in the entries that `index` names along `dim`."""
    check_value(value)
    return index_fill_inplace(duplicate(self), dim, index, number_in(value))


def without_filled(grad: Any, dim: int, index: Any) -> Any:
    return grad.index_fill(dim, index, 0)


index_fill_scalar_op.derivative(self=without_filled)
index_fill_scalar_op.forward(lambda arguments, tangents, result: without_filled(tangents[0], *arguments[1:3]))
index_fill_tensor_op.derivative(
    self=without_filled,
    value=lambda grad, dim, index: grad.index_select(
        dim, index.remainder(grad.shape[dim]) if grad.dim() else index
    ).sum(),
    node="IndexFillBackward1",
)
index_fill_tensor_op.forward("linear")
index_fill = public(index_fill_tensor_op, index_fill_scalar_op)

# --- take, put -------------------------------------------------------------------------------------------------------

take_op = ReadAtPlaces("take(Tensor self, Tensor index) -> Tensor", out="out")
put_op = Operator("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", inplace=True)


def in_a_row(x: Tensor) -> Operand:
    """All elements in one dimension, row by row; of a copy, where they do not lie so."""
    operand, count = x._operand, x._shape.numel()
    if not kernels.is_contiguous(operand.shape, operand.strides):
        operand = move(empty(x._shape, x._dtype, x._device), x)._operand
    return operand._replace(shape=(count,), strides=(1,))


def check_long(name: str, index: Tensor) -> None:
    if index._dtype is not dtypes.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index._dtype.tensor_name}")


def out_of_range(index: Tensor, count: int) -> None:
    bad = kernels.first_bad(index._operand, count, wrap=True)
    if bad is not None:
        raise IndexError(f"out of range: tried to access index {bad.value} on a tensor of {count} elements.")


@take_op.meta
def take_meta(self: Tensor, index: Tensor) -> Meta:
    check_long("take", index)
    if not self._shape.numel() and index._shape.numel():
        raise IndexError("take(): tried to take from an empty tensor")
    return Meta(index._shape, self._dtype, common_device(self, index))


@take_op.body
def take_body(out: Tensor, self: Tensor, index: Tensor) -> None:
    """The elements at these positions of the flattened tensor."""
    out_of_range(index, self._shape.numel())
    if index._shape.numel():
        kernels.index(as_lines(out._operand), in_a_row(self), [as_lines(index._operand)])


take_op.derivative(
    self=lambda grad, self_shape, index: put_op.functional(grad.new_zeros(self_shape), index, grad, True)
)
take_op.forward("linear")
take = public(take_op, doc="Returns the elements that `index` names, as if `self` had one dimension.")


@put_op.kernel_inplace("CPU", "Meta")
def put_inplace(self: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    """Writes `source` to these positions of the flattened tensor, or adds it there."""
    check_long("put_", index)
    if self._dtype is not source._dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {self._dtype.tensor_name} "
            f"and source.dtype = {source._dtype.tensor_name}"
        )
    if source._shape.numel() != index._shape.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._shape.numel()}, index.numel() = {index._shape.numel()}"
        )
    check_no_internal_overlap(self)
    if self._device.type == "meta":
        return self
    out_of_range(index, self._shape.numel())
    if not index._shape.numel():
        return self
    values, where = in_a_row(apart(source, self, elementwise=False)), in_a_row(index)
    target = in_a_row(self)
    kernels.index_put(target, [where], values, accumulate=accumulate)
    if target.array is not self._operand.array:
        kernels.copy(self._operand, target._replace(shape=tuple(self._shape), strides=row_by_row(self)))
    return self


def row_by_row(x: Tensor) -> tuple[int, ...]:
    return kernels.contiguous_strides(x._shape)


@put_op.kernel("CPU", "Meta")
def put_kernel(self: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    """Returns `self` with the elements of `source` written, or added, where `index` says, as if it had one
    dimension."""
    return put_inplace(duplicate(self), index, source, accumulate)


put_op.derivative(
    self=lambda grad, index, source_shape, accumulate: (
        grad if accumulate else put_op.functional(grad, index, grad.new_zeros(source_shape), False)
    ),
    source=lambda grad, index, source_shape: grad.take(index).reshape(source_shape),
)
put_op.forward("linear")
put = public(put_op)
