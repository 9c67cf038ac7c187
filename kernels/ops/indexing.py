"""`x[...]` and `x[...] = value`: Python's indexing, taken apart into operators.

An index is a tuple of ints, slices, None, `...`, bools, and index tensors (or what becomes one: lists, ranges, numpy
arrays). Ints, slices and None are views, taken one after the other from left to right; what is left are the index
tensors, one for each dimension or None, for a single `index.Tensor` or `index_put_`:

    x[0, :, None, i]     select.int, unsqueeze, index.Tensor(..., [None, None, i])

Modes see exactly these. Bool tensors index as many dimensions as they have; below the dispatcher they become the
indices of their true elements. A bool scalar adds a dimension of size 1 or 0.

Source of the order of steps: PyTorch's `python_variable_indexing.cpp`, found out by watching it with a mode.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import STATE, asks, call_overridden, ops, overridden
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.symbolic import Symbolic, SymInt
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    as_numpy,
    dtypes,
    empty,
    empty_from,
    metadata_of,
    output_spec,
    overridable,
    overridable_in_python,
    strided,
)
from redispatch.dispatch.tensor.wrapped import is_batched
from redispatch.kernels import Operand, broadcast_shapes, has_internal_overlap, index_shape, output_strides

from ..declare.declare import Operator
from ..declare.numbers import storable
from ..declare.plan import Plan, Run
from ..declare.pointwise import shares_memory
from ..declare.public import public
from ..declare.structured import apart, common_device, copy_of, overlapping, same_place
from .copying import alias_op, copy_inplace_op, copy_strides, fill_inplace_scalar_op, fill_inplace_tensor_op, move
from .creation import empty_op, new
from .from_data import tensor
from .geometry import selected
from .masking import masked_fill_inplace, nonzero_kernel, nonzero_op, warn_if_expanded
from .views import expand_op, select_op, slice_op, unsqueeze_op, view_op

# --- several index tensors at once ------------------------------------------------------------------------------------

index_op = Operator("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", tags=("dynamic_output_shape",), core=True)
index_put_op = Operator(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", inplace=True, core=True
)

Indices = Sequence[Tensor | None]


def integer_indices(self: Tensor, indices: Indices) -> list[Tensor | None]:
    """The indices with masks turned into the indices of their true elements, one tensor for each dimension."""
    result: list[Tensor | None] = []
    for index in indices:
        if index is None:
            result.append(None)
            continue
        if index._dtype.name not in ("int64", "int32", "uint8", "bool"):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if index._dtype.name not in ("uint8", "bool"):
            result.append(index)
            continue
        if index._dtype is dtypes.uint8:
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=2,
            )
        check_mask(self, index, len(result))
        if index._device.type == "meta":
            raise NotImplementedError(
                "a mask on the meta device has no values, so that nobody knows the result's shape"
            )
        found = nonzero_kernel(index) if index._device.type == "cpu" else nonzero_op.functional(index)
        result += [selected(found, 1, d).of(found) for d in range(len(index._shape))]
    if len(result) > len(self._shape):
        raise too_many(self, len(result))
    return result


def too_many(self: Tensor, given: int) -> IndexError:
    return IndexError(f"too many indices for tensor of dimension {len(self._shape)} (got {given})")


def checked_shape(self: Tensor, indices: Indices) -> tuple[tuple[int, ...], int]:
    """The result's shape, and where in it the indices' dimensions begin. IndexError where they do not broadcast."""
    shapes = [None if index is None else tuple(index._shape) for index in indices]
    given = [shape for shape in shapes if shape is not None]
    try:
        common = broadcast_shapes(*given)
    except RuntimeError:
        listed = ", ".join(str(list(shape)) for shape in given)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}"
        ) from None
    for d, shape in enumerate(shapes):
        if shape is not None and self._shape[d] == 0 and 0 not in common:
            raise IndexError("index is out of bounds for dimension with size 0")
    return index_shape(tuple(self._shape), shapes)


def index_strides(self: Tensor, indices: Indices, shape: tuple[int, ...], start: int) -> tuple[int, ...]:
    """The strides of an indexed copy: as of an elementwise result of the source, repeated, and the indices."""
    common = broadcast_shapes(*(index._shape for index in indices if index is not None))
    used = [d for d, index in enumerate(indices) if index is not None]
    plain = [self._stride[d] for d in range(len(self._shape)) if d not in used]
    source = (*plain[:start], *(0 for _ in common), *plain[start:])
    after = len(shape) - start - len(common)
    inputs = [(shape, source)]
    for index in indices:
        if index is not None:
            lead = len(common) - len(index._shape)
            steps = (*(0 for _ in range(lead)), *index._stride)
            inputs.append(((*(1,) * lead, *index._shape, *(1,) * after), (*steps, *(0,) * after)))
    return output_strides(shape, tuple(inputs))


def operands(indices: Indices) -> list[Operand | None]:
    return [None if index is None else index._operand for index in indices]


def first_bad_index(self: Tensor, indices: Indices) -> IndexError:
    """Returns what names an index out of bounds: of the first element, row by row, that has one, the first."""
    given = [(d, as_numpy(index).astype(np.int64)) for d, index in enumerate(indices) if index is not None]
    values = np.stack(np.broadcast_arrays(*(index for _, index in given)), axis=-1).reshape(-1, len(given))
    sizes = np.array([self._shape[d] for d, _ in given])
    place = int(np.argmax((values < -sizes) | (values >= sizes)))
    which = place % len(given)
    return out_of_bounds(int(values.flat[place]), given[which][0], int(sizes[which]))


def check_devices(self: Tensor, indices: Indices) -> None:
    """Raises RuntimeError for an index on another device than the tensor; the CPU's go with any."""
    for index in indices:
        if index is not None and index._device.type != "cpu" and index._device != self._device:
            raise RuntimeError(
                f"indices should be either on cpu or on the same device as the indexed tensor ({self._device})"
            )


INDEXED: dict[Any, Plan] = {}  # by metadata, of the tensor and of its integer indices: how it is indexed
REMEMBERED = 4096  # then they start afresh


@index_op.kernel("CPU", "Meta")
@inline
def index_kernel(self: Tensor, indices: Indices) -> Tensor:
    """x[i, :, j]: a copy of the elements at integer indices that broadcast together; None is a whole dimension."""
    metadata = [None if index is None else index._interned or metadata_of(index) for index in indices]
    plan = INDEXED.get((self._interned or metadata_of(self), *metadata))
    if plan is None or self._array is None:
        return index_first(self, indices)
    result = empty_from(plan.outputs[0])
    arrays: list[Any] = []
    for index in indices:
        if index is not None:
            arrays += (index._array, index._offset)
    bad = plan.run(result._array, 0, self._array, self._offset, *arrays)
    if bad is not None:
        raise first_bad_index(self, indices)
    return result


def index_first(self: Tensor, indices: Indices) -> Tensor:
    """The slow path: for metadata seen for the first time, for masks, and off the CPU."""
    if not indices:
        raise IndexError("at least one index must be provided")
    if len(indices) == 1 and is_mask_of_dense(self, indices[0]):
        return where_true(self, indices[0])
    given, indices = indices, integer_indices(self, indices)
    if all(index is None for index in indices):
        return copy_of(self)
    shape, start = checked_shape(self, indices)
    check_devices(self, indices)
    on = self._device
    made = output_spec(Size(shape), self._dtype, on, index_strides(self, indices, shape, start))
    result = empty_from(made)
    if on.type != "meta" and result._shape.numel():  # where nothing is read, no index is looked at
        x, to = self._operand, result._operand
        if kernels.index(to, x, operands(indices)) is not None:
            raise first_bad_index(self, indices)
        unmasked = len(given) == len(indices) and all(a is b for a, b in zip(given, indices, strict=True))
        if unmasked and on.type == "cpu":
            if len(INDEXED) >= REMEMBERED:
                INDEXED.clear()
            metadata = [None if index is None else metadata_of(index) for index in given]
            INDEXED[metadata_of(self), *metadata] = Plan((made,), kernels.ready_index(to, x, operands(indices)))
    return result


def is_mask_of_dense(self: Tensor, mask: Any) -> bool:
    """Whether a mask lies over the first dimensions of a dense tensor in the CPU's memory."""
    return (
        mask is not None
        and mask._dtype is dtypes.bool
        and self._array is not None
        and mask._array is not None
        and 0 < len(mask._shape) <= len(self._shape)
        and tuple(mask._shape) == tuple(self._shape[: len(mask._shape)])
        and kernels.is_contiguous(self._shape, self._stride)
    )


def where_true(self: Tensor, mask: Any) -> Tensor:
    """`self[mask]` of such: the dimensions under the mask are seen as one, and a single index picks from it."""
    places, rest = np.flatnonzero(as_numpy(mask)), tuple(self._shape[len(mask._shape) :])
    result = empty(Size((len(places), *rest)), self._dtype, self._device)
    shape = (mask._shape.numel(), *rest)
    entries = self._operand._replace(shape=shape, strides=kernels.contiguous_strides(shape))
    kernels.index_select(result._operand, entries, 0, Operand(places, "int64", places.shape, (1,)))
    return result


index_op.derivative(
    self=lambda grad, self_shape, indices: index_put_op.functional(grad.new_zeros(self_shape), indices, grad, True)
)
index_op.forward("linear")


PUTS: dict[Any, Run] = {}  # by metadata, of the tensor, the values and the integer indices: what writes


@index_put_op.kernel_inplace("CPU", "Meta", dispatches=True)
def index_put_kernel(self: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    """Writes `values`, which broadcast, at the indices; with `accumulate` adds, and equal indices add up.

    Without `accumulate`, the last of the values for one place wins.
    """
    put = PUTS.get(put_key(self, indices, values, accumulate))
    given = [index for index in indices if index is not None]
    if put is None or self._array is None or any(shares_memory(x, self) for x in (values, *given)):
        return index_put_first(self, indices, values, accumulate)
    arrays = [part for x in (self, values, *given) for part in (x._array, x._offset)]
    if put(*arrays) is not None:
        raise first_bad_index(self, indices)
    return self


def put_key(self: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Any:
    metadata = [None if index is None else index._interned or metadata_of(index) for index in indices]
    return (self._interned or metadata_of(self), values._interned or metadata_of(values), accumulate, *metadata)


def index_put_first(self: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    """The slow path: for metadata seen for the first time, for masks, for shared memory, and off the CPU."""
    if is_mask_fill(self, indices, values) and not accumulate:
        (mask,) = [index for index in indices if index is not None]
        check_mask(self, mask, len(indices) - 1)
        rest = len(self._shape) - (len(indices) - 1) - len(mask._shape)
        mask = mask.reshape([*mask._shape, *(1,) * rest])
        return masked_fill_inplace(self, mask, values.item() if values._device.type != "meta" else 0)
    warn_if_expanded(self, "index_put_")
    if self._device.type == "meta" and any(one is not None and one._dtype is dtypes.bool for one in indices):
        return self  # how many values there must be, a mask without elements does not say
    given, indices = indices, integer_indices(self, indices)
    if all(index is None for index in indices):
        target_shape: tuple[int, ...] = tuple(self._shape)
    else:
        target_shape, _ = checked_shape(self, indices)
    check_values(target_shape, values)
    if self._dtype is not values._dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{self._dtype.tensor_name} for the destination and {values._dtype.tensor_name} for the source."
        )
    check_devices(self, indices)
    common_device(self, values)
    if self._device.type == "meta":
        return self
    values = distinct(values, self)
    if all(index is None for index in indices):
        total = self.add(values) if accumulate else values
        kernels.copy(self._operand, total._operand)
        return self
    if 0 in target_shape:
        return self
    unmasked = len(given) == len(indices) and all(a is b for a, b in zip(given, indices, strict=True))
    indices = [index if index is None else distinct(index, self) for index in indices]
    if kernels.index_put(self._operand, operands(indices), values._operand, accumulate=accumulate) is not None:
        raise first_bad_index(self, indices)
    if unmasked and self._array is not None and not has_internal_overlap(self._shape, self._stride):
        if len(PUTS) >= REMEMBERED:
            PUTS.clear()
        put = kernels.ready_index_put(self._operand, operands(indices), values._operand, accumulate=accumulate)
        PUTS[put_key(self, indices, values, accumulate)] = put
    return self


def distinct(value: Tensor, target: Tensor) -> Tensor:
    """`value`, or a copy of it where it shares memory with `target`. RuntimeError where it is the target itself."""
    if value._storage is target._storage and same_place(value._operand, target._operand):
        raise overlapping()
    return apart(value, target, elementwise=False)


def is_mask_fill(self: Tensor, indices: Indices, values: Tensor) -> bool:
    """Whether one value goes wherever one mask, after whole dimensions, is true: the value's dtype is then free."""
    given = [index for index in indices if index is not None]
    return (
        values._shape.numel() == 1
        and len(given) == 1
        and indices[-1] is given[0]
        and given[0]._dtype is dtypes.bool
        and len(indices) - 1 + len(given[0]._shape) <= len(self._shape)
    )


def check_mask(self: Tensor, mask: Tensor, dim: int) -> None:
    """Raises IndexError unless a mask has the sizes of the dimensions, from `dim` on, that it lies over."""
    if dim + len(mask._shape) > len(self._shape):
        raise too_many(self, dim + len(mask._shape))
    for d, wanted in enumerate(mask._shape):
        if wanted != self._shape[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(mask._shape)} at index {d} does not match the shape of the indexed "
                f"tensor {list(self._shape)} at index {dim + d}"
            )


def check_values(shape: tuple[int, ...], values: Tensor) -> None:
    """Raises RuntimeError unless the values broadcast to the shape."""
    lead = len(shape) - len(values._shape)
    fits = lead >= 0 and all(have in (1, want) for have, want in zip(values._shape, shape[lead:], strict=True))
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values._shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        )


@index_put_op.explicit
def index_put_copy(self: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    made = move(new(self._shape, self._dtype, self._device, None, copy_strides(self, None)), self)
    assert index_put_op.inplace is not None
    return index_put_op.inplace(made, indices, values, accumulate)


index_put_op.derivative(
    self=lambda grad, indices, values_shape, accumulate: (
        grad if accumulate else index_put_op.functional(grad, indices, grad.new_zeros(values_shape), False)
    ),
    values=lambda grad, indices: index_op.functional(grad, indices),
)
index_put_op.forward("linear")
index_put_op.autocast(cuda="promote")
index_put = public(index_put_op, doc="Returns `self` with `values` written, or added, where `indices` say.")

# Note [The short way to a view]
# Nearly all indices are ints, slices, None and `...`. They come to view operators, whose code is looked up right here
# (dispatch/specialiser/specialise.py), for arguments of which these facts are known: the functions that users call
# would ask once more what has been asked.
SELECT = select_op.functional.site(("T", "x", "x"))
SLICE = slice_op.functional.site(("T", "x", "x", "x", "D"))  # with a step of 1, the default
SLICE_FIRST = slice_op.functional.site(("T", "D", "x", "x", "D"))  # of dimension 0, the default, too
UNSQUEEZE = unsqueeze_op.functional.site(("T", "x"))
ALIAS = alias_op.functional.site(("T",))
INDEX = index_op.functional.site(("T", ("T",)))  # with one index tensor, of a dtype in PICKING
PICKING = (dtypes.int64, dtypes.bool)

size_at = tuple.__getitem__  # a Size's own one, which makes a Size of a slice, takes twice as long

# --- taking an index apart --------------------------------------------------------------------------------------------

MAX = 2**63 - 1
WRONG_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})"
)


def is_int(item: Any) -> bool:
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def as_tuple(index: Any) -> tuple[Any, ...]:
    """The items of an index. A list that holds slices, None, `...` or sequences stands for a tuple, as in old numpy."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, Tensor | np.ndarray | str | bytes) or not hasattr(type(index), "__getitem__"):
        return (index,)
    if not hasattr(index, "__len__") or len(index) >= 32 or isinstance(index, dict):
        return (index,)
    items = list(index)
    if any(item is None or item is Ellipsis or _is_part(item) for item in items):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of "
            "x[seq]",
            UserWarning,
            stacklevel=4,
        )
        return tuple(items)
    return (index,)


def _is_part(item: Any) -> bool:
    return isinstance(item, Tensor | slice) or (hasattr(type(item), "__getitem__") and hasattr(type(item), "__len__"))


def covered_dims(items: Sequence[Any]) -> int:
    """Returns the number of dimensions that the items take up: an n-d mask takes n, None, `...` and bools none."""
    count = 0
    for item in items:
        if isinstance(item, Tensor):
            count += len(item._shape) if item._dtype.name in ("bool", "uint8") else 1
        elif item is not None and item is not Ellipsis and not isinstance(item, bool):
            count += 1
    return count


class Taking:
    """An index being taken apart: the view so far, the dimension it has got to, and the index tensors found."""

    def __init__(self, x: Tensor, items: tuple[Any, ...]) -> None:
        self.x = x
        self.dim = 0
        self.found: dict[int, Tensor] = {}
        specified = covered_dims(items)
        if specified > len(x._shape):
            raise IndexError(f"too many indices for tensor of dimension {len(x._shape)}")
        self.ellipsis = len(x._shape) - specified
        for position, item in enumerate(items):
            self.take(item, position)

    @property
    def indices(self) -> list[Tensor | None]:
        """The index tensors by dimension of the view, None between them."""
        return [self.found.get(d) for d in range(max(self.found, default=-1) + 1)]

    def take(self, item: Any, position: int) -> None:
        if is_int(item):
            self.x = selected_entry(self.x, self.dim, int(item), position)
        elif isinstance(item, slice):
            self.x = sliced_entries(self.x, self.dim, item, skip_whole=True)
            self.dim += 1
        elif item is Ellipsis:
            self.dim += self.ellipsis
            self.ellipsis = 0  # a second one stands for nothing
        elif item is None:
            self.x = unsqueeze_op.functional(self.x, self.dim)
            self.dim += 1
        elif isinstance(item, bool):
            self.take_flag(bool(item))
        elif isinstance(item, Tensor):
            self.take_tensor(item, position)
        elif hasattr(type(item), "__getitem__") and hasattr(type(item), "__len__") and not isinstance(item, dict | set):
            self.take_tensor(index_tensor(item), position)
        elif hasattr(type(item), "__index__") and not isinstance(item, np.bool_):
            self.x = selected_entry(self.x, self.dim, operator.index(item), position)
        else:
            raise IndexError(WRONG_INDEX.format(type(item).__name__))

    def take_tensor(self, item: Tensor, position: int) -> None:
        if not item._shape and item._dtype.category <= 1 and item._device.type != "meta" and not is_batched(item):
            if item._dtype is dtypes.bool or item._dtype is dtypes.uint8:
                self.x = unsqueeze_op.functional(self.x, self.dim)
                self.take_flag(bool(item.item()), unsqueezed=True)
            else:
                self.x = selected_entry(self.x, self.dim, item.item(), position)
            return
        self.found[self.dim] = item
        self.dim += len(item._shape) if item._dtype.name in ("bool", "uint8") else 1

    def take_flag(self, flag: bool, unsqueezed: bool = False) -> None:
        """True and False: a new dimension, indexed by [0] or by nothing."""
        if not unsqueezed:
            self.x = unsqueeze_op.functional(self.x, self.dim)
        index = empty_op.functional([1 if flag else 0], dtype=dtypes.int64, layout=strided, device=self.x._device)
        self.found[self.dim] = fill_inplace_scalar_op.functional(index, 0.0) if flag else index
        self.dim += 1


def selected_entry(x: Tensor, dim: int, index: int, position: int) -> Tensor:
    if not x._shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    size = size_at(x._shape, dim)
    if not -size <= index < size:
        raise out_of_bounds(index, position, size)
    state = STATE.get()
    return SELECT.find(state.keys, x._keyset)(x, dim, index)


def out_of_bounds(index: int, position: int, size: int) -> IndexError:
    return IndexError(f"index {index} is out of bounds for dimension {position} with size {size}")


def sliced_entries(x: Tensor, dim: int, item: slice, skip_whole: bool) -> Tensor:
    start, stop, step = item.start, item.stop, item.step
    if step is None:
        step = 1
    else:
        step = slice_number(step)
        if step == 0:
            raise ValueError("slice step cannot be zero")
        if step < 0:
            raise ValueError("step must be greater than zero")
    start = 0 if start is None else slice_number(start)
    stop = MAX if stop is None else slice_number(stop)
    if not x._shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if skip_whole and start == 0 and step == 1 and stop >= size_at(x._shape, dim):
        return x
    if step != 1:
        return slice_op.functional(x, dim, start, stop, step)
    state = STATE.get()
    if dim:
        return SLICE.find(state.keys, x._keyset)(x, dim, start, stop)
    return SLICE_FIRST.find(state.keys, x._keyset)(x, start, stop)


def slice_number(value: Any) -> Any:
    if type(value) is int and -MAX <= value <= MAX:
        return value
    if type(value) is SymInt:
        return value
    if not hasattr(type(value), "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return max(-MAX - 1, min(MAX, operator.index(value)))


def index_tensor(item: Any) -> Tensor:
    """A list, range or numpy array as an index tensor: an empty list has no elements of any type, so it is integer."""
    if isinstance(item, str | bytes):
        raise TypeError("new(): invalid data type 'str'")
    if not isinstance(item, np.ndarray) and len(item) == 0:
        return tensor([], dtype=dtypes.int64)
    has_floats = not isinstance(item, np.ndarray) and np.asarray(item).dtype.kind == "f"
    return tensor(item, dtype=dtypes.int64) if has_floats else tensor(item)  # a list's floats are truncated


# --- x[index] and x[index] = value ------------------------------------------------------------------------------------


def getitem(self: Tensor, index: Any) -> Tensor:
    """`x[index]`: a view, or a copy where index tensors choose the elements.

    Errors: IndexError for what is out of bounds, too much or no index; ValueError for a step that is not positive.
    """
    state = STATE.get()
    plain = type(self) is Tensor
    if (not plain or state.function_modes) and overridden((self, index), {}):
        return call_overridden(getitem, (self, index), {})
    kind = type(index)
    if kind is int and plain and not state.modes:
        last = SELECT.last
        known = last.state is state.keys and last.tensors is self._keyset
        try:
            return (last.code if known else SELECT.find(state.keys, self._keyset))(self, 0, index)
        except IndexError:
            pass  # what is wrong is said below, in the words of indexing
    elif kind is slice and index.step is None and self._shape:
        start = 0 if index.start is None else index.start
        stop = MAX if index.stop is None else index.stop
        if type(start) is type(stop) is int and -MAX <= start <= MAX and -MAX <= stop <= MAX:
            last = SLICE_FIRST.last
            if last.state is state.keys and last.tensors is self._keyset:
                return last.code(self, start, stop)
            return SLICE_FIRST.find(state.keys, self._keyset)(self, start, stop)
    elif index is None:
        return UNSQUEEZE.find(state.keys, self._keyset)(self, 0)
    elif index is Ellipsis:
        return ALIAS.find(state.keys, self._keyset)(self)
    elif kind is tuple:
        return item_by_item(self, index)
    elif kind is Tensor and plain and index._dtype in PICKING and 0 < len(index._shape) <= len(self._shape):
        return INDEX.find(state.keys, self._keyset, index._keyset)(self, [index])
    return indexed(self, index)


KNOWN = {Tensor, int, bool, float, slice, type(None), type(Ellipsis), list, tuple, np.ndarray}  # have no handler


def indexed(self: Tensor, index: Any) -> Tensor:
    """`self[index]` for any index."""
    if isinstance(index, slice):
        return sliced_entries(self, 0, index, skip_whole=False)
    if is_int(index):
        return selected_entry(self, 0, int(index), 0)
    if not KNOWN.issuperset(map(type, index if type(index) in (tuple, list) else (index,))):
        if overridden((index,), {}):  # what is no tensor may have a handler, too
            return call_overridden(getitem, (self, index), {})
    taken = Taking(self, as_tuple(index))
    if taken.found:
        return index_op.functional(taken.x, taken.indices)
    return alias_op.functional(self) if taken.x is self else taken.x


def item_by_item(self: Tensor, items: tuple[Any, ...]) -> Tensor:
    """`self[items]`: for ints, slices, None and `...` what `Taking` does, without the means to find index tensors."""
    covered = 0
    for item in items:
        kind = type(item)
        if kind is int or kind is slice:
            covered += 1
        elif item is not None and item is not Ellipsis:
            return indexed(self, items)
    ellipsis = len(self._shape) - covered
    if ellipsis < 0:
        raise IndexError(f"too many indices for tensor of dimension {len(self._shape)}")
    state = STATE.get()
    x, dim = self, 0
    for position, item in enumerate(items):
        kind = type(item)
        if kind is int:
            size = size_at(x._shape, dim)
            if not -size <= item < size:
                raise out_of_bounds(item, position, size)
            x = SELECT.find(state.keys, x._keyset)(x, dim, item)
        elif kind is slice:
            if item.start is not None or item.stop is not None or item.step is not None:
                x = sliced_entries(x, dim, item, skip_whole=True)
            dim += 1
        elif item is None:
            x = UNSQUEEZE.find(state.keys, x._keyset)(x, dim)
            dim += 1
        else:
            dim += ellipsis
            ellipsis = 0  # a second one stands for nothing
    return ALIAS.find(state.keys, x._keyset)(x) if x is self else x


@overridable
def setitem(self: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`: writes a number or a tensor, which broadcasts.

    Errors: as `getitem`; TypeError for a value that is neither; RuntimeError where it does not broadcast.
    """
    source = value_tensor(self, value)
    if index is False:
        return
    if index is Ellipsis:
        copy_to(self, source)
    elif index is None or index is True:
        copy_to(unsqueeze_op.functional(self, 0), source)
    elif is_int(index):
        copy_to(selected_entry(self, 0, int(index), 0), source)
    elif isinstance(index, slice):
        copy_to(sliced_entries(self, 0, index, skip_whole=True), source)
    else:
        taken = Taking(self, as_tuple(index))
        if not taken.found:
            copy_to(taken.x, source)
            return
        shape = without_leading_ones(source._shape)
        if shape != tuple(source._shape):
            source = view_op.functional(source, shape)
        assert index_put_op.inplace is not None
        index_put_op.inplace(taken.x, taken.indices, source)


def value_tensor(self: Tensor, value: Any) -> Tensor:
    """Returns what is to be written, as a tensor: a number gets the dtype of the tensor that it goes into."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Symbolic):
        return ops.aten.full.default([], value, dtype=self._dtype, device=self._device)
    if isinstance(value, bool | int | float | complex | np.number | np.bool_):
        number = value.item() if isinstance(value, np.generic) else value
        if self.is_quantized:  # numbers get their codes where they are written
            return tensor(number, dtype=dtypes.float32)
        if not (self._dtype.is_floating_point and self._dtype.itemsize == 2):  # too large for these is infinite
            number = storable(number, self._dtype)
        return tensor(number, dtype=self._dtype, device=self._device)
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise TypeError(f"can't assign a {name} to a {self.type()}")


def without_leading_ones(shape: Sequence[int]) -> tuple[int, ...]:
    first = next((d for d, size in enumerate(shape) if size != 1), len(shape))
    return tuple(shape[first:])


def copy_to(target: Tensor, source: Tensor) -> None:
    """Writes `source` into a view: as it is, as one number, or broadcast."""
    if target._shape == source._shape:
        copy_inplace_op.functional(target, source)
        return
    if not source._shape and source._device.type == "cpu":
        fill_inplace_tensor_op.functional(target, source)
        return
    source = view_op.functional(source, without_leading_ones(source._shape))
    if source._shape != target._shape:
        source = expand_op.functional(source, target._shape)
    copy_inplace_op.functional(target, source)


def delitem(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


@overridable_in_python
def contains(self: Any, element: Any) -> bool:
    """`element in x`: whether some element equals it."""
    if isinstance(element, Tensor):
        return bool((element == self).any().item())
    if isinstance(element, bool | int | float | complex | np.number):
        return bool((self == element).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


for name, method in (
    ("__getitem__", getitem),
    ("__setitem__", setitem),
    ("__delitem__", delitem),
    ("__contains__", contains),
):
    method.__name__, method.__module__ = name, "torch"
    setattr(Tensor, name, asks(method, f"torch.Tensor.{name}"))
