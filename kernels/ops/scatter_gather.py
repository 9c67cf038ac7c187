"""Reading and writing at indices along one dimension: gather, scatter, index_select, index_add, embedding, masks.

The loops are those of `kernels/cpu/indexing.py`, which scan every index before they touch memory; here shapes and
dtypes are checked, and a bad index becomes the error that PyTorch raises for that operator.

Read next: indexing.py, for `x[...]` with several indices at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import asks, ops
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
    wrap_dim,
)
from redispatch.kernels import BadIndex, Elementwise, Operand, broadcast_shapes
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator, no_formula
from ..declare.numbers import storable
from ..declare.overridable import builtin_function, overridable_function
from ..declare.plan import Plan, Run
from ..declare.planned import Planned
from ..declare.public import public
from ..declare.structured import Meta, Structured, apart, check_no_internal_overlap, common_device
from .copying import check_broadcasts_to, item_op, local_scalar_dense_op, move
from .creation import arange_op, zeros_op
from .geometry import selected

# --- checks -----------------------------------------------------------------------------------------------------------


def is_index(x: Tensor) -> bool:
    return x._dtype.name in ("int32", "int64")


def raise_bad(bad: BadIndex | None, kind: type[Exception] = RuntimeError) -> None:
    """Raises PyTorch's error for an index outside its dimension."""
    if bad is not None:
        raise kind(f"index {bad.value} is out of bounds for dimension {bad.dim} with size {bad.size}")


def no_larger(a: Sequence[int], b: Sequence[int], but: int = -1) -> bool:
    return all(x <= y for d, (x, y) in enumerate(zip(a, b, strict=True)) if d != but)


def at_least_1d(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape) or (1,)


class WrittenInPlace(Structured):
    """A structured operator whose body changes its first argument, or a copy of it, at some places only."""

    def fill(self, target: Tensor, args: Any) -> None:
        check_no_internal_overlap(target)
        for value in args[1:]:
            if isinstance(value, Tensor):
                refuse_overlap(value, target)
        first = target if args[0] is target else apart(args[0], target, elementwise=True)
        self.body_function(target, first, *args[1:])


class ReadAtPlaces(Structured):
    """A structured operator that reads its first argument at places which indices decide: never what it writes."""

    def fill(self, target: Tensor, args: Any) -> None:
        check_no_internal_overlap(target)
        for value in args:
            if isinstance(value, Tensor) and value._storage is target._storage:
                if kernels.overlap(value._operand, target._operand) == "full":
                    refuse_overlap(value, target)
        super().fill(target, args)


def refuse_overlap(value: Tensor, target: Tensor) -> None:
    """Raises RuntimeError where what is read shares memory with what is written, at places that indices decide."""
    if value._storage is target._storage and kernels.overlap(value._operand, target._operand) != "no":
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def start_from(out: Tensor, self: Tensor) -> None:
    """Fills `out` with what it is to be where nothing is written."""
    if out is not self:
        move(out, self)


def same_as_first(self: Tensor, *others: Tensor) -> Meta:
    return Meta(self._shape, self._dtype, common_device(self, *others))


# --- gather and scatter -----------------------------------------------------------------------------------------------

gather_op = ReadAtPlaces(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", out="out", core=True
)


@gather_op.meta
def gather_meta(self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    if index._shape.numel() == 0:
        return Meta(index._shape, self._dtype, common_device(self, index))
    if not is_index(index):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    ours, theirs = at_least_1d(self._shape), at_least_1d(index._shape)
    if len(ours) != len(theirs):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (size, wanted) in enumerate(zip(ours, theirs, strict=True)):
        if d != axis and wanted > size:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index._shape)} to be no larger than self "
                f"{list(self._shape)} apart from dimension {axis}"
            )
    return Meta(index._shape, self._dtype, common_device(self, index))


@gather_op.body
def gather_body(out: Tensor, self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> None:
    if index._shape.numel():
        raise_bad(kernels.gather(out._operand, self._operand, wrap_dim(dim, len(self._shape)), index._operand))


gather_op.derivative(self=lambda grad, self_shape, dim, index: grad.new_zeros(self_shape).scatter_add(dim, index, grad))
gather_op.forward("linear")
gather = public(gather_op, doc="Returns for each place the element of `self` that `index` names along `dim`.")


def check_scatter(self: Tensor, dim: int, index: Tensor, src: Tensor | None) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    others = [index] if src is None else [index, src]
    if index._shape.numel() == 0:
        return same_as_first(self, *others)
    if not is_index(index):
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if src is not None and src._dtype is not self._dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    ours, theirs = at_least_1d(self._shape), at_least_1d(index._shape)
    if len(ours) != len(theirs):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    fits = no_larger(theirs, ours, but=axis)
    if src is None:
        if not fits:
            raise RuntimeError(
                f"Expected index {list(index._shape)} to be no larger than self {list(self._shape)} apart from "
                f"dimension {axis}"
            )
        return same_as_first(self, index)
    if len(at_least_1d(src._shape)) != len(theirs):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if not fits or not no_larger(theirs, at_least_1d(src._shape)):
        raise RuntimeError(
            f"Expected index {list(index._shape)} to be no larger than self {list(self._shape)} apart from dimension "
            f"{axis} and to be no larger size than src {list(src._shape)}"
        )
    return same_as_first(self, *others)


def scatter_into(out: Tensor, self: Tensor, dim: int, index: Tensor, src: Operand, how: str) -> None:
    start_from(out, self)
    if index._shape.numel():
        axis = wrap_dim(dim, len(self._shape))
        if not src.shape:
            src = src._replace(shape=(1,), strides=(1,))
        raise_bad(kernels.scatter(out._operand, axis, index._operand, src, how))


scatter_src_op = WrittenInPlace(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", inplace=True, out="src_out", core=True
)
scatter_value_op = WrittenInPlace(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    inplace=True,
    out="value_out",
    core=True,
)
scatter_reduce_op = WrittenInPlace(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    inplace=True,
    out="reduce_out",
)
scatter_value_reduce_op = WrittenInPlace(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    inplace=True,
    out="value_reduce_out",
)
scatter_add_op = WrittenInPlace(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", inplace=True, out="out", core=True
)
_HOW = {"add": "sum", "multiply": "prod"}


@scatter_add_op.meta
@scatter_src_op.meta
def scatter_src_meta(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Meta:
    return check_scatter(self, dim, index, src)


@scatter_src_op.body
def scatter_src_body(out: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor) -> None:
    """Returns `self` with the elements of `src` written where `index` says along `dim`."""
    scatter_into(out, self, dim, index, src._operand, "replace")


@scatter_add_op.body
def scatter_add_body(out: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor) -> None:
    """Returns `self` with the elements of `src` added where `index` says along `dim`."""
    scatter_into(out, self, dim, index, src._operand, "sum")


@scatter_value_op.meta
def scatter_value_meta(self: Tensor, dim: int, index: Tensor, value: Any) -> Meta:
    storable(value, self._dtype)
    return check_scatter(self, dim, index, None)


@scatter_value_op.body
def scatter_value_body(out: Tensor, self: Tensor, dim: int, index: Tensor, value: Any) -> None:
    scatter_into(out, self, dim, index, repeated(value, self, index), "replace")


def repeated(value: Any, self: Tensor, index: Tensor) -> Operand:
    """A number as a source of the index's shape."""
    one = empty((), self._dtype, self._device)
    kernels.fill(one._operand, storable(value, self._dtype))
    shape = at_least_1d(index._shape)
    return one._operand._replace(shape=shape, strides=(0,) * len(shape))


def check_reduce(reduce: str) -> None:
    if reduce not in _HOW:
        raise RuntimeError("reduce argument must be either add or multiply.")


@scatter_reduce_op.meta
def scatter_reduce_meta(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str) -> Meta:
    check_reduce(reduce)
    return check_scatter(self, dim, index, src)


@scatter_reduce_op.body
def scatter_reduce_body(out: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str) -> None:
    scatter_into(out, self, dim, index, src._operand, _HOW[reduce])


@scatter_value_reduce_op.meta
def scatter_value_reduce_meta(self: Tensor, dim: int, index: Tensor, value: Any, reduce: str) -> Meta:
    check_reduce(reduce)
    return scatter_value_meta(self, dim, index, value)


@scatter_value_reduce_op.body
def scatter_value_reduce_body(out: Tensor, self: Tensor, dim: int, index: Tensor, value: Any, reduce: str) -> None:
    scatter_into(out, self, dim, index, repeated(value, self, index), _HOW[reduce])


scatter_src_op.derivative(
    self=lambda grad, dim, index: scatter_value_op.functional(grad, dim, index, 0),
    src=lambda grad, dim, index, src_shape: part_of_source(gather_op.functional(grad, dim, index), src_shape),
    node="ScatterBackward0",
)
scatter_src_op.forward("linear")
scatter_value_op.derivative(
    self=lambda grad, dim, index: scatter_value_op.functional(grad, dim, index, 0), node="ScatterBackward1"
)
scatter_value_op.forward(
    lambda arguments, tangents, result: scatter_value_op.functional(tangents[0], *arguments[1:3], 0)
)
scatter_add_op.derivative(
    self=lambda grad: grad,
    src=lambda grad, dim, index, src_shape: part_of_source(gather_op.functional(grad, dim, index), src_shape),
)
scatter_add_op.forward("linear")


def part_of_source(gradient: Any, src_shape: Sequence[int]) -> Tensor:
    """The gradient of the part of a source that the index covers, with zeros for the rest of it."""
    if tuple(gradient.shape) == tuple(src_shape):
        return gradient
    result = gradient
    for d, size in enumerate(src_shape):
        shape = list(result.shape)
        shape[d] = size
        result = ops.aten.slice_scatter.default(result.new_zeros(shape), result, d, 0, result.shape[d])
    return result


scatter = public(scatter_src_op, scatter_value_op, scatter_reduce_op, scatter_value_reduce_op)
scatter_add_op.autocast(cuda="promote")
scatter_add = public(scatter_add_op)

# --- whole entries along a dimension ----------------------------------------------------------------------------------

index_select_op = ReadAtPlaces("index_select(Tensor self, int dim, Tensor index) -> Tensor", out="out", core=True)


@index_select_op.meta
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


@index_select_op.body
def index_select_body(out: Tensor, self: Tensor, dim: int, index: Tensor) -> None:
    axis = wrap_dim(dim, len(self._shape))
    if kernels.index_select(out._operand, self._operand, axis, index._operand) is not None:
        raise IndexError("index out of range in self")


index_select_op.derivative(
    self=lambda grad, self_shape, dim, index: grad.new_zeros(self_shape).index_add(dim, index, grad)
)
index_select_op.forward("linear")
index_select = public(index_select_op, doc="Returns the entries along `dim` that `index` names.")

index_add_op = WrittenInPlace(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    inplace=True,
    out="out",
)


@index_add_op.meta
def index_add_meta(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any) -> Meta:
    axis = wrap_dim(dim, len(self._shape))
    if len(index._shape) > 1:
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {len(index._shape)} with type: "
            f"{index._dtype.tensor_name} and size: {list(index._shape)}"
        )
    if not is_index(index):
        raise RuntimeError(f"index_add_(): Expected dtype int32/int64 for index but got: {index._dtype.tensor_name}")
    if self._dtype is not source._dtype:
        raise RuntimeError(
            f"index_add_(): self ({self._dtype.tensor_name}) and source ({source._dtype.tensor_name}) must have the "
            "same scalar type"
        )
    length = source._shape[axis] if axis < len(source._shape) else 1
    if index._shape.numel() != length:
        raise RuntimeError(
            f"index_add_(): Number of indices ({index._shape.numel()}) should be equal to source.size(dim): "
            f"({length}), for dim: {axis}"
        )
    ours, theirs = list(self._shape), list(source._shape)
    if len(ours) != len(theirs) or ours[:axis] != theirs[:axis] or ours[axis + 1 :] != theirs[axis + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{ours} source.shape = {theirs}"
        )
    return same_as_first(self, index, source)


@index_add_op.body(dispatches=True)
def index_add_body(out: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any) -> None:
    """Returns `self` with the entries of `source`, times `alpha`, added where `index` says along `dim`."""
    start_from(out, self)
    if alpha != 1:
        source = ops.aten.mul.Tensor(source, alpha).to(self._dtype)
    if source._shape.numel():
        axis = wrap_dim(dim, len(self._shape))
        bad = kernels.index_add(out._operand, axis, index._operand, source._operand)
        if bad is not None and len(self._shape) < 2:
            raise IndexError("index out of range in self")
        raise_bad(bad)


index_add_op.derivative(
    self=lambda grad: grad,
    source=lambda grad, dim, index, source_shape, alpha: scaled(
        grad.index_select(dim, index).reshape(source_shape), alpha
    ),
)
index_add_op.forward("linear")


def scaled(grad: Any, alpha: Any) -> Tensor:
    return grad if alpha == 1 else grad * alpha


index_add = public(index_add_op)

# --- masks ------------------------------------------------------------------------------------------------------------


def replaced(old, mask, new):
    return new if mask else old


MASKED_LOOPS = Elementwise("masked_fill", replaced, keep=[1])

masked_fill_scalar_op = Operator(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", inplace=True, tags=("pointwise",)
)
masked_fill_tensor_op = Operator("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", inplace=True)


def check_mask(mask: Tensor) -> None:
    if mask._dtype is not dtypes.bool:
        name = {"uint8": "unsigned char", "int64": "long int", "int32": "int", "float32": "float"}.get(
            mask._dtype.name, mask._dtype.name
        )
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {name}")


@masked_fill_scalar_op.kernel_inplace("CPU", "Meta")
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


def warn_if_expanded(target: Tensor, name: str) -> None:
    if kernels.has_internal_overlap(target._shape, target._stride):
        warnings.warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
            "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar",
            UserWarning,
            stacklevel=3,
        )


@masked_fill_tensor_op.kernel_inplace("CPU", "Meta", dispatches=True)
def masked_fill_tensor_inplace(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    check_value(value)
    return masked_fill_inplace(self, mask, number_of(value) if self._device.type != "meta" else 0)


def check_value(value: Tensor) -> None:
    if value._shape:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{len(value._shape)} dimension(s)."
        )


def number_of(value: Tensor) -> Any:
    return local_scalar_dense_op.functional(value)


def broadcast_copy(self: Tensor, mask: Tensor) -> Tensor:
    """A copy of `self` in the shape to which it and the mask broadcast."""
    made = empty(Size(broadcast_shapes(mask._shape, self._shape)), self._dtype, self._device)
    if made._device.type != "meta":
        kernels.copy(made._operand, self._operand)
    return made


MASKED: dict[Any, Plan] = {}  # by metadata, of the tensor and of the mask: how a filled copy is made
REMEMBERED = 4096  # then they start afresh


@masked_fill_scalar_op.kernel("CPU", "Meta")
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
    """The same the long way; how it was made is remembered."""
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


@masked_fill_tensor_op.kernel("CPU", "Meta", dispatches=True)
def masked_fill_tensor_kernel(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """Returns `self` with `value` where `mask` is true."""
    return masked_fill_tensor_inplace(broadcast_copy(self, mask), mask, value)


masked_fill_scalar_op.derivative(
    self=lambda grad, mask: masked_fill_scalar_op.functional(grad, mask, 0), node="MaskedFillBackward0"
)
masked_fill_scalar_op.forward(
    lambda arguments, tangents, result: masked_fill_scalar_op.functional(tangents[0], arguments[1], 0)
)
masked_fill_tensor_op.derivative(
    self=lambda grad, mask: masked_fill_scalar_op.functional(grad, mask, 0),
    value=lambda grad, mask: masked_fill_scalar_op.functional(grad, mask.logical_not(), 0).sum(),
    node="MaskedFillBackward1",
)
masked_fill_tensor_op.forward("linear")
masked_fill = public(masked_fill_tensor_op, masked_fill_scalar_op)

masked_select_op = Operator(
    "masked_select(Tensor self, Tensor mask) -> Tensor", out="out", tags=("dynamic_output_shape",)
)


@masked_select_op.kernel("CPU")
def masked_select_kernel(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, as one dimension. Both broadcast."""
    if mask._dtype is not dtypes.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(mask._shape, self._shape)
    chosen = np.broadcast_to(kernels.as_ndarray(mask._operand), shape)
    values = np.broadcast_to(kernels.as_ndarray(self._operand), shape)[chosen]
    result = empty((len(values),), self._dtype, self._device)
    kernels.as_ndarray(result._operand)[...] = values
    return result


def masked_select_backward(grad: Any, self_shape: Sequence[int], mask: Any) -> Tensor:
    shape = broadcast_shapes(tuple(self_shape), tuple(mask.shape))
    return grad.new_zeros(shape).masked_scatter(mask, grad)


masked_select_op.derivative(self=masked_select_backward)
masked_select_op.forward("linear")
copy_into_out(masked_select_op)
masked_select = public(
    masked_select_op, doc="Returns the elements where `mask` is true, as one dimension. Both broadcast."
)

nonzero_op = Operator("nonzero(Tensor self) -> Tensor", out="out", tags=("dynamic_output_shape",), core=True)


@nonzero_op.kernel("CPU")
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


copy_into_out(nonzero_op)
nonzero_op.not_differentiable()


@builtin_function
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """Returns the indices of the elements that are not zero: a row for each, or a tuple with a tensor for each
    dimension."""
    if not as_tuple:
        return nonzero_op.functional(input) if out is None else ops.aten.nonzero.out(input, out=out)
    return tuple(nonzero_numpy_op.functional(input))


nonzero_numpy_op = Operator("nonzero_numpy(Tensor self) -> Tensor[]")


@nonzero_numpy_op.implicit
def nonzero_by_dimension(self: Any) -> list[Tensor]:
    x = self if self._shape else self.unsqueeze(0)
    return list(nonzero_op.functional(x).unbind(1))


Tensor.nonzero = another(nonzero, "nonzero")  # type: ignore[attr-defined]  # attached here

argwhere_op = Operator("argwhere(Tensor self) -> Tensor", tags=("dynamic_output_shape",))
argwhere_op.implicit(lambda self: nonzero_op.functional(self))
argwhere = public(argwhere_op, doc="Returns the indices of all nonzero elements, a row for each.")

# --- embedding --------------------------------------------------------------------------------------------------------

embedding_op = Planned(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) "
    "-> Tensor",
    core=True,
)
embedding_dense_backward_op = Operator(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    core=True,
)


def check_index(indices: Tensor, asking: str) -> None:
    """RuntimeError for indices that are no integers."""
    if not is_index(indices):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{indices.type()} instead (while checking arguments for {asking})"
        )


@embedding_op.meta
def embedding_meta(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Meta:
    """The rows of `weight` [n, d] that `indices` name: [*indices.shape, d]."""
    if len(weight._shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_index(indices, "embedding")
    return Meta((*indices._shape, weight._shape[1]), weight._dtype, common_device(weight, indices))


@embedding_op.loop
def embedding_loop(out: Tensor, weight: Tensor, indices: Tensor, *how: Any) -> Run:
    find = kernels.ready_embedding(out._operand, weight._operand, indices._operand)

    def run(*arrays: Any) -> None:
        if find(*arrays) is not None:
            raise IndexError("index out of range in self")

    return run


def embedding_backward(
    grad: Tensor, indices: Tensor, weight_shape: Sequence[int], padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Tensor:
    if sparse:
        raise NotImplementedError("embedding: sparse gradients are not supported; use sparse=False")
    return embedding_dense_backward_op.functional(grad, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


embedding_op.derivative(weight=embedding_backward)
embedding_op.forward("linear")


@embedding_dense_backward_op.kernel("CPU", "Meta", dispatches=True)
def embedding_dense_backward_kernel(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The sum of the gradients of each row's uses; their mean with `scale_grad_by_freq`. Zero for `padding_idx`."""
    check_index(indices, "embedding_dense_backward")
    if grad_output._shape[:-1] != indices._shape or not grad_output._shape:
        raise RuntimeError(
            f"embedding_dense_backward: expected a gradient for each index, of shape {[*indices._shape, 'width']}, but "
            f"got shape {list(grad_output._shape)}"
        )
    width = grad_output._shape[-1]
    result = empty((num_weights, width), grad_output._dtype, grad_output._device)
    if result._device.type == "meta":
        return result
    bad = kernels.embedding_dense_backward(result._operand, grad_output._operand, indices._operand, padding_idx)
    raise_bad(bad, IndexError)
    if scale_grad_by_freq:
        uses = zeros_op.functional([num_weights], dtype=dtypes.float64, device=result._device)
        once = uses.new_ones([indices._shape.numel()])
        ops.aten.index_add_.default(uses, 0, indices.reshape([-1]), once)
        result.mul_(uses.clamp_min(1).reciprocal().unsqueeze(1).to(result._dtype))
    return result


def embedding_double_backward(grad: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """The rows of the second gradient, as in the forward pass, but for the padding."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding: the second derivative with scale_grad_by_freq=True is not supported")
    rows = grad.index_select(0, indices.reshape(-1)).reshape([*indices.shape, grad.shape[1]])
    return rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0) if padding_idx >= 0 else rows


embedding_dense_backward_op.derivative(grad_output=embedding_double_backward)
embedding_dense_backward_op.forward("linear")
embedding = public(embedding_op, doc="Returns the rows of `weight` that `indices` name.")


@overridable_function
def functional_embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` [n, d] that `input` names; the row `padding_idx` gets no gradient.

    With `max_norm`, the rows that are looked up are first scaled down, in `weight` itself, to at most that norm.
    """
    rows = weight.shape[0]
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        embedding_renorm_op.functional(weight.detach(), input.contiguous(), max_norm, norm_type)
    return embedding_op.functional(weight, input, padding_idx, scale_grad_by_freq, sparse)


functional_embedding.__name__ = functional_embedding.__qualname__ = "embedding"
asks(functional_embedding, "torch.nn.functional.embedding")


embedding_renorm_op = Operator(
    "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
    tags=("inplace",),
    refuses="whole",
)


@embedding_renorm_op.kernel("CPU", "Meta", dispatches=True)
def embedding_renorm_kernel(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scales the rows that are used and longer than `max_norm` down to that length, in place."""
    if self._device.type == "meta":
        return self
    if len(self._shape) != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {len(self._shape)}-dimensional tensor for 'self'")
    check_index(indices, "embedding_renorm_")
    raise_bad(kernels.first_bad(indices._operand, self._shape[0], wrap=False), IndexError)
    for row in np.unique(as_numpy(indices)):
        entry: Any = selected(self, 0, int(row)).of(self)
        norm = float((entry.abs().to(dtypes.float64) ** norm_type).sum().item()) ** (1 / norm_type)
        if norm > max_norm:
            entry.mul_(max_norm / (norm + 1e-7))
    return self


embedding_renorm_op.derivative(self=no_formula("embedding_renorm"))
embedding_renorm_ = public(
    embedding_renorm_op, method=False, doc="Scales rows that are used down to a length of `max_norm`, in place."
)


# --- built of the others ----------------------------------------------------------------------------------------------

take_along_dim_op = Operator("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", out="out")


@take_along_dim_op.implicit
def taken_along_dim(self: Any, indices: Any, dim: int | None) -> Tensor:
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
    axis = wrap_dim(dim, len(self._shape))
    if not self._shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    ours, theirs = list(self._shape), list(indices._shape)
    size = ours[axis]
    ours[axis], theirs[axis] = 1, 1
    common = list(broadcast_shapes(ours, theirs))
    wide = indices.expand([*common[:axis], indices._shape[axis], *common[axis + 1 :]])
    source = self.expand([*common[:axis], size, *common[axis + 1 :]])
    return source.gather(
        axis, wide.remainder(size) if wide._shape.numel() else wide
    )  # nothing is divided by a size of 0


copy_into_out(take_along_dim_op)
take_along_dim = public(take_along_dim_op)

one_hot_op = Operator(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    tags=("dynamic_output_shape",),
    refuses="bool uint8 int8 int16 int32 floating complex",
)


@one_hot_op.implicit
def one_hot_composite(self: Any, num_classes: int) -> Tensor:
    """Returns zeros with a one at each class: [*shape, num_classes], int64."""
    if self._dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if self.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return self.new_empty([*self._shape, num_classes])
    if num_classes == -1 or self._device.type != "cuda":  # there scatter finds them, and nothing is waited for
        low, high = ops.aten.aminmax.default(self)
        if item_op.functional(low) < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = item_op.functional(high) + 1
        elif item_op.functional(high) >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    if num_classes < 1:
        raise RuntimeError("Class values must be smaller than num_classes.")
    if not self._storage.has_data:  # a wrapper: what is filled in place below would be a plain tensor
        classes = arange_op.functional(num_classes, dtype=dtypes.int64, device=self.device)
        return self.unsqueeze(-1).eq(classes).to(dtypes.int64)
    result = zeros_op.functional(
        [*self._shape, num_classes], dtype=dtypes.int64, layout=self.layout, device=self.device
    )
    assert scatter_value_op.inplace is not None
    return scatter_value_op.inplace(result, -1, self.unsqueeze(-1), 1)


one_hot = public(one_hot_op, module="nn")
