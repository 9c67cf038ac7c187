"""Reading and writing whole entries along a dimension, or single elements of the flattened tensor, by an index.

    index_select, index_add, index_reduce, index_copy, index_fill     entries
    take, put, take_along_dim                                         elements

Where indices name the elements of the flattened tensor, one that does not lie row by row is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty, wrap_dim
from redispatch.kernels import Operand, broadcast_shapes
from redispatch.kernels.settings import check_determinism

from ..declare.numbers import storable
from ..declare.operator import composite, over_a_copy, structured
from ..declare.out_forms import copy_into_out
from ..declare.structured import Meta, check_no_internal_overlap, common_device, not_implemented
from .copying import move, number_in
from .creation import preserved_strides
from .masking import warn_if_expanded
from .scatter_gather import (
    REDUCE,
    WrittenInPlace,
    at_least_1d,
    gradients,
    is_index,
    lined_up,
    raise_bad,
    reading,
    reduce_into,
    refuse_overlap,
    same_as_first,
    start_from,
)

# --- entries along a dimension ----------------------------------------------------------------------------------------


def index_select_meta(self: Tensor, dim: int, index: Tensor) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not is_index(index):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    count = index._shape.numel()
    if not self._shape:
        if count != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {count} value(s)")
        return Meta((), self._dtype, common_device(self, index))
    shape = (*self._shape[:axis], count, *self._shape[axis + 1 :])
    return Meta(shape, self._dtype, common_device(self, index))


index_select = reading(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    derivative=lambda grad, self_shape, dim, index: grad.new_zeros(self_shape).index_add(dim, index, grad),
    core=True,
    doc="Returns the entries along `dim` that `index` names.",
)(index_select_meta)


@index_select.op.body
def index_select_body(out: Tensor, self: Tensor, dim: int, index: Tensor) -> None:
    axis = wrap_dim(dim, len(self._shape))
    bad = kernels.index_select(out._operand, self._operand, axis, index._operand)
    if bad is not None and self._shape.numel():
        raise IndexError("index out of range in self")
    if bad is not None:
        size = self._shape[axis]
        outside = f"INDICES element is out of DATA bounds, id={bad.value} axis_dim={size}"
        raise RuntimeError(outside if size else "index_select(): self indexing axis dim should be positive")


def check_entries(name: str, self: Tensor, axis: int, index: Tensor, source: Tensor) -> Meta:
    """The result of writing entries of `source` at an index. Raises where these do not belong together."""
    if len(index._shape) > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {len(index._shape)} with type: "
            f"{index._dtype.tensor_name} and size: {list(index._shape)}"
        )
    if not is_index(index):
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {index._dtype.tensor_name}")
    if self._dtype is not source._dtype:
        raise RuntimeError(
            f"{name}_(): self ({self._dtype.tensor_name}) and source ({source._dtype.tensor_name}) must have the "
            "same scalar type"
        )
    length = source._shape[axis] if axis < len(source._shape) else 1
    if index._shape.numel() != length:
        raise RuntimeError(
            f"{name}_(): Number of indices ({index._shape.numel()}) should be equal to source.size(dim): "
            f"({length}), for dim: {axis}"
        )
    ours, theirs = list(self._shape), list(source._shape)
    differ = name == "index_add" and len(ours) != len(theirs)
    if differ or ours[:axis] != theirs[:axis] or ours[axis + 1 :] != theirs[axis + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{ours} source.shape = {theirs}"
        )
    return same_as_first(self, index, source)


def index_add_meta(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any) -> Meta:
    return check_entries("index_add", self, wrap_dim(dim, len(self._shape)), index, source)


def entries_of(grad: Any, dim: int, index: Any, source_shape: Sequence[int]) -> Tensor:
    """The gradient of a source whose entries went to an index."""
    return grad.index_select(dim, index).reshape(source_shape)


def index_add_source(grad: Any, dim: int, index: Any, source_shape: Sequence[int], alpha: Any) -> Tensor:
    found = entries_of(grad, dim, index, source_shape)
    return found if alpha == 1 else found * alpha


index_add = structured(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    kind=WrittenInPlace,
    inplace=True,
    out="out",
    derivative={"self": lambda grad: grad, "source": index_add_source},
    forward="linear",
    doc="Returns `self` with the entries of `source`, times `alpha`, added where `index` says along `dim`.",
)(index_add_meta)


@index_add.op.body(dispatches=True)
def index_add_body(out: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any) -> None:
    start_from(out, self)
    if alpha != 1:
        source = ops.aten.mul.Tensor(source, alpha).to(self._dtype)
    if source._shape.numel():
        axis = wrap_dim(dim, len(self._shape))
        bad = kernels.index_add(out._operand, axis, index._operand, source._operand)
        if bad is not None and len(self._shape) < 2:
            raise IndexError("index out of range in self")
        raise_bad(bad)


def index_reduce_meta(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    if reduce not in REDUCE or reduce == "sum":
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if self._dtype.is_complex and reduce in ("amax", "amin"):
        raise not_implemented("index_func_", self._dtype)
    return check_entries("index_reduce", self, axis, index, source)


def index_reduce_backward(
    grad: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    shape = [1] * source.dim()
    if shape:
        shape[dim] = -1
    spread = index.reshape(shape).expand(source.shape)
    name = "index_reduce(): Double backward is unsupported for source when >1 zeros in source"
    return gradients(grad, self, dim, spread, source, reduce, include_self, result, name)


index_reduce = structured(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    kind=WrittenInPlace,
    inplace=True,
    out="out",
    derivative={("self", "source"): index_reduce_backward},
    doc="Returns `self` with entries of `source` reduced into those that `index` names.",
)(index_reduce_meta)


@index_reduce.op.body
def index_reduce_body(
    out: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool
) -> None:
    """The index is repeated over the other dimensions; then it is one of scatter_reduce."""
    axis = wrap_dim(dim, len(self._shape))
    shape = at_least_1d(source._shape)
    step = index._stride[0] if index._shape else 0
    steps = tuple(step if d == axis else 0 for d in range(len(shape)))
    spread = index._operand._replace(shape=shape, strides=steps)
    if reduce_into(out, self, axis, spread, lined_up(source._operand), reduce, include_self) is not None:
        raise IndexError("index out of range in self")


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


index_copy = structured(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    kind=WrittenInPlace,
    inplace=True,
    out="out",
    derivative={"self": lambda grad, dim, index: grad.index_fill(dim, index, 0), "source": entries_of},
    forward="linear",
    autocast={"cpu": "promote"},
    doc="Returns `self` with the entries of `source` written where `index` says along `dim`.",
)(index_copy_meta)


@index_copy.op.body
def index_copy_body(out: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """The entries of `source` along `dim` take the places that the index names."""
    start_from(out, self)
    axis = wrap_dim(dim, len(self._shape))
    target, where = lined_up(out._operand), lined_up(index._operand)
    bad = kernels.first_bad(where, target.shape[axis], wrap=False, dim=axis)
    if bad is not None:
        raise IndexError(f"index_copy_(): index {bad.value} is out of bounds for dimension {axis} with size {bad.size}")
    if source._shape.numel():
        kernels.index_put(target, [*[None] * axis, where], lined_up(source._operand))


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
    warn_if_expanded(self, "index_fill_")
    refuse_overlap(index, self)
    one = empty((), self._dtype, self._device)
    kernels.fill(one._operand, storable(value, self._dtype))
    target, where = lined_up(self._operand), lined_up(index._operand)
    bad = kernels.first_bad(where, target.shape[axis], wrap=True, dim=axis)
    raise_bad(bad, IndexError)
    if self._shape.numel() and index._shape.numel():
        kernels.index_put(target, [*[None] * axis, where], one._operand)
    return self


def without_filled(grad: Any, dim: int, index: Any) -> Any:
    return grad.index_fill(dim, index, 0)


def value_of_filled(grad: Any, dim: int, index: Any) -> Any:
    """The sum of what the value was written to; a place that is named twice has one value."""
    kept = grad.new_ones(grad.shape, dtype=dtypes.bool).index_fill(dim, index, False)
    return grad.masked_fill(kept, 0).sum()


def duplicate(self: Tensor, *args: Any) -> Tensor:
    return move(empty(self._shape, self._dtype, self._device, preserved_strides(self)), self)


index_fill_scalar_op = over_a_copy(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    duplicate,
    derivative=without_filled,
    forward=lambda arguments, tangents, result: without_filled(tangents[0], *arguments[1:3]),
)(index_fill_inplace)


@over_a_copy(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    duplicate,
    dispatches=True,
    derivative={"self": without_filled, "value": value_of_filled},
    node="IndexFillBackward1",
    forward="linear",
    also=(index_fill_scalar_op,),
)
def index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    """Returns `self` with `value` in the entries that `index` names along `dim`."""
    return index_fill_inplace(self, dim, index, number_in("index_fill_", value, value))


# --- single elements --------------------------------------------------------------------------------------------------


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


def take_meta(self: Tensor, index: Tensor) -> Meta:
    check_long("take", index)
    if not self._shape.numel() and index._shape.numel():
        raise IndexError("take(): tried to take from an empty tensor")
    return Meta(index._shape, self._dtype, common_device(self, index))


take = reading(
    "take(Tensor self, Tensor index) -> Tensor",
    derivative=lambda grad, self_shape, index: put.op.functional(grad.new_zeros(self_shape), index, grad, True),
    doc="Returns the elements that `index` names, as if `self` had one dimension.",
)(take_meta)


@take.op.body
def take_body(out: Tensor, self: Tensor, index: Tensor) -> None:
    """The elements at these positions of the flattened tensor."""
    out_of_range(index, self._shape.numel())
    if index._shape.numel():
        kernels.index(lined_up(out._operand), in_a_row(self), [lined_up(index._operand)])


def put_self(grad: Any, index: Any, source_shape: Sequence[int], accumulate: bool) -> Any:
    return grad if accumulate else put.op.functional(grad, index, grad.new_zeros(source_shape), False)


@over_a_copy(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    duplicate,
    derivative={
        "self": put_self,
        "source": lambda grad, index, source_shape: grad.take(index).reshape(source_shape),
    },
    forward="linear",
)
def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    """Returns `self` with the elements of `source` written, or added, where `index` says, as if it had one
    dimension."""
    if not accumulate and self._device.type != "meta":
        check_determinism("put_")
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
    for read in (index, source):
        refuse_overlap(read, self)
    values, where = in_a_row(source), in_a_row(index)
    target = in_a_row(self)
    kernels.index_put(target, [where], values, accumulate=accumulate)
    if target.array is not self._operand.array:
        kernels.copy(
            self._operand, target._replace(shape=tuple(self._shape), strides=kernels.contiguous_strides(self._shape))
        )
    return self


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", out="out", out_by=copy_into_out)
def take_along_dim(self: Any, indices: Any, dim: int | None) -> Tensor:
    """Returns the elements that `indices` name along `dim`; they broadcast, and may be negative."""
    if indices._dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices._dtype.tensor_name}"
        )
    if dim is None:
        return self.view(-1).gather(0, indices.view(-1))
    if len(self._shape) != len(indices._shape):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(self._shape)} dimensions for input, and {len(indices._shape)} dimensions for indices"
        )
    axis = wrap_dim(dim, len(self._shape), wrap_scalar=False)
    ours, theirs = list(self._shape), list(indices._shape)
    size = ours[axis]
    ours[axis], theirs[axis] = 1, 1
    common = list(broadcast_shapes(ours, theirs))
    wide = indices.expand([*common[:axis], indices._shape[axis], *common[axis + 1 :]])
    source = self.expand([*common[:axis], size, *common[axis + 1 :]])
    return source.gather(
        axis, wide.remainder(size) if wide._shape.numel() else wide
    )  # nothing is divided by a size of 0


index_select_op, take_op, put_op = index_select.op, take.op, put.op
