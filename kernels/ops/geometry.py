"""Metadata of views: shape, strides and offset, computed from those of the base. No operator, no data.

Each function takes a tensor, of which it reads nothing but how it lies in memory, and a view operator's arguments; it
checks these and gives a `Geometry`. Views, their in-place forms and the operators that put a gradient back where a
view took its elements from (scattering.py) all use the same functions.

Note [Windows are remembered]
A program takes the same views again and again, and working one out takes longer than making it. So the kernel of a
view operator caches, by the metadata of the base and the arguments, the metadata of the view and its offset from the
base.

Read next: views.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch import Memo, impl, place_of
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.symbolic import SymInt, holds
from redispatch.dispatch.tensor import Tensor, Window, lay_out, metadata_of, view_over, view_through, wrap_dim
from redispatch.kernels import check_view, infer_view_strides

from ..declare.declare import Operator


class Geometry(NamedTuple):
    """The layout of a tensor in its storage; strides and offset count elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    def of(self, base: Tensor) -> Tensor:
        """Returns the view of `base` that has this metadata."""
        return view_over(base, self.shape, self.stride, self.offset)

    def put_into(self, tensor: Tensor) -> Tensor:
        """The tensor itself, made to look so."""
        shown = view_over(tensor, self.shape, self.stride, self.offset)
        lay_out(tensor, shown._shape, shown._stride, shown._offset)
        return tensor


WINDOWS = 4096  # remembered per operator; then it starts afresh


@frozen
class Views:
    """The kernels that give the views which a geometry describes. Note [Windows are remembered]."""

    __slots__ = ("geometry", "windows")

    def __init__(self, geometry: Callable[..., Geometry]) -> None:
        self.geometry = geometry
        self.windows = Memo(WINDOWS)  # by the metadata of the base and the arguments that decide

    @leaf
    @inline
    def by_numbers(self, base: Tensor, *numbers: int | None) -> Tensor:
        """Makes the view of an operator whose arguments are all numbers."""
        key = (base._interned or metadata_of(base), *numbers)
        window = self.windows.get(key)
        if window is None:
            window = self.remember(key, base, self.geometry(base, *numbers))
        return view_through(window, base)

    @leaf
    @inline
    def by_list(self, base: Tensor, numbers: Sequence[int], *others: Any) -> Tensor:
        """Makes the view of an operator whose first argument, a list of sizes or dimensions, decides alone."""
        key = (base._interned or metadata_of(base), tuple(numbers))
        window = self.windows.get(key)
        if window is None:
            window = self.remember(key, base, self.geometry(base, numbers, *others))
        return view_through(window, base)

    def remember(self, key: tuple[Any, ...], base: Tensor, geometry: Geometry) -> Window:
        """Enters what was worked out."""
        self.windows[key] = window = window_of(base, geometry)
        return window


@frozen
class Parts:
    """The kernels of operators with several views of one tensor: the function gives the geometry of each."""

    __slots__ = ("geometries", "windows")

    def __init__(self, geometries: Callable[..., Sequence[Geometry]]) -> None:
        self.geometries = geometries
        self.windows = Memo(WINDOWS)

    @leaf
    def by_number(self, base: Tensor, number: int, *others: int) -> list[Tensor]:
        """Makes the views of an operator whose first argument is a number."""
        return self.views((base._interned or metadata_of(base), number, *others), base, number, *others)

    @leaf
    def by_list(self, base: Tensor, numbers: Sequence[int], *others: int) -> list[Tensor]:
        """Makes the views of an operator whose first argument is a list."""
        return self.views((base._interned or metadata_of(base), tuple(numbers), *others), base, numbers, *others)

    def views(self, key: tuple[Any, ...], base: Tensor, *args: Any) -> list[Tensor]:
        windows = self.windows.get(key)
        if windows is None:
            windows = self.windows[key] = [window_of(base, one) for one in self.geometries(base, *args)]
        return [view_through(window, base) for window in windows]


def window_of(base: Tensor, geometry: Geometry) -> Window:
    """Returns what views of such tensors have in common that look as this one of `base` does."""
    return Window(metadata_of(geometry.of(base)), geometry.offset - base._offset)


def give_view(op: Operator, geometry: Callable[..., Geometry], name: str = "") -> None:
    """Has `op` return the view of its first argument that `geometry` describes."""
    views = Views(geometry)
    give_kernel(op, views.by_list if takes_list(op) else views.by_numbers, geometry, name)


def give_parts(op: Operator, geometries: Callable[..., Sequence[Geometry]]) -> None:
    """Has `op` return the views of its first argument that `geometries` describes."""
    parts = Parts(geometries)
    give_kernel(op, parts.by_list if takes_list(op) else parts.by_number, geometries)


def takes_list(op: Operator) -> bool:
    return len(op.text.arguments) > 1 and "[" in op.text.arguments[1].partition(" ")[0]


def give_kernel(op: Operator, kernel: Callable[..., Any], described_by: Callable[..., Any], name: str = "") -> None:
    place, name = place_of(described_by), name or described_by.__name__
    impl(op.functional, "CompositeExplicitAutograd", kernel, convention="positional", place=place, name=name)


def inferred_shape(shape: Sequence[int], elements: int) -> tuple[int, ...]:
    """The shape with its -1, if it has one, replaced by what is left of the elements."""
    known, unknown = 1, None
    for index, size in enumerate(shape):
        if size == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = index
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size} at index {index} of shape {list(shape)}")
        else:
            known *= size
    if unknown is None and known == elements:
        return tuple(shape)
    if unknown is not None and known and holds(elements % known == 0):
        return (*shape[:unknown], elements // known, *shape[unknown + 1 :])
    if unknown is not None and known == elements:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {elements}")


def unchanged(self: Tensor) -> Geometry:
    return Geometry(self._shape, self._stride, self._offset)


def viewed(self: Tensor, size: Sequence[int]) -> Geometry:
    shape = inferred_shape(size, self._shape.numel())
    stride = infer_view_strides(tuple(self._shape), self._stride, shape)
    if stride is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return Geometry(shape, stride, self._offset)


def permuted(self: Tensor, dims: Sequence[int]) -> Geometry:
    if len(dims) != len(self._shape):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {len(self._shape)} is not equal to len(dims) = {len(dims)}"
        )
    order = [wrap_dim(dim, len(self._shape)) for dim in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return Geometry(tuple(self._shape[dim] for dim in order), tuple(self._stride[dim] for dim in order), self._offset)


def transposed(self: Tensor, dim0: int, dim1: int) -> Geometry:
    shape, stride = list(self._shape), list(self._stride)
    a, b = wrap_dim(dim0, len(shape)), wrap_dim(dim1, len(shape))
    if shape:
        shape[a], shape[b] = shape[b], shape[a]
        stride[a], stride[b] = stride[b], stride[a]
    return Geometry(tuple(shape), tuple(stride), self._offset)


def matrix_transposed(self: Tensor) -> Geometry:
    if len(self._shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(self._shape)}D")
    return transposed(self, 0, -1)


def t_inplace_geometry(self: Tensor) -> Geometry:
    if len(self._shape) > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {len(self._shape)}D")
    return transposed(self, 0, -1)


def unsqueezed(self: Tensor, dim: int) -> Geometry:
    dim = wrap_dim(dim, len(self._shape) + 1)
    shape, stride = tuple(self._shape), self._stride
    step = shape[dim] * stride[dim] if dim < len(shape) else 1
    return Geometry((*shape[:dim], 1, *shape[dim:]), (*stride[:dim], step, *stride[dim:]), self._offset)


def squeezed(self: Tensor) -> Geometry:
    return squeezed_dims(self, range(len(self._shape)))


def squeezed_dim(self: Tensor, dim: int) -> Geometry:
    return squeezed_dims(self, [dim])


def squeezed_dims(self: Tensor, dims: Sequence[int]) -> Geometry:
    """Without those of `dims` that have size 1."""
    wrapped = [wrap_dim(dim, len(self._shape)) for dim in dims]
    for dim in wrapped:
        if wrapped.count(dim) > 1:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    kept = [dim for dim, size in enumerate(self._shape) if size != 1 or dim not in wrapped]
    return Geometry(tuple(self._shape[d] for d in kept), tuple(self._stride[d] for d in kept), self._offset)


def expanded(self: Tensor, size: Sequence[int], implicit: bool = False) -> Geometry:
    old, lead = tuple(self._shape), len(size) - len(self._shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({self.type()}{{{list(old)}}}, size={list(size)}): the number of sizes provided ({len(size)}) must "
            f"be greater or equal to the number of dimensions in the tensor ({len(old)})"
        )
    shape: list[int] = []
    stride: list[int] = []
    for dim in range(len(size) - 1, -1, -1):
        wanted = size[dim]
        if dim < lead:
            if wanted < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension "
                    f"{dim}"
                )
            shape.append(wanted)
            stride.append(0 if wanted != 1 or not shape[:-1] else stride[-1] * shape[-2])
            continue
        have = old[dim - lead]
        wanted = have if wanted == -1 else wanted
        if wanted != have and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at non-singleton "
                f"dimension {dim}.  Target sizes: {list(size)}.  Tensor sizes: {list(old)}"
            )
        if wanted < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {wanted}: {list(size)}")
        shape.append(wanted)
        stride.append(self._stride[dim - lead] if wanted == have else 0)
    if math.prod(shape) >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    return Geometry(tuple(reversed(shape)), tuple(reversed(stride)), self._offset)


def selected(self: Tensor, dim: int, index: int) -> Geometry:
    shape, stride = tuple(self._shape), self._stride
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")
    start = index % shape[dim] * stride[dim]
    return Geometry((*shape[:dim], *shape[dim + 1 :]), (*stride[:dim], *stride[dim + 1 :]), self._offset + start)


def sliced(self: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Geometry:
    shape, stride = tuple(self._shape), self._stride
    if not shape:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, size = span_of(shape[dim], start, end, step)
    # an empty slice starts where it was asked to, as far as there is memory
    return Geometry(
        (*shape[:dim], size, *shape[dim + 1 :]),
        (*stride[:dim], stride[dim] * step, *stride[dim + 1 :]),
        self._offset + first * stride[dim],
    )


def span_of(length: Any, start: Any, end: Any, step: Any) -> tuple[Any, Any]:
    """(the first position of a slice, how many it has), as Python's slices have it; of symbolic numbers, too."""
    if not any(isinstance(one, SymInt) for one in (length, start, end, step)):
        first, past, _ = slice(start, end, step).indices(length)
        return first, len(range(first, past, step))

    def within(place: Any) -> Any:
        place = place + length if place < 0 else place
        return 0 if place < 0 else length if place > length else place

    first, past = 0 if start is None else within(start), length if end is None else within(end)
    return first, (past - first + step - 1) // step if past > first else 0


def diagonal_of(self: Tensor, offset: int, dim1: int, dim2: int) -> Geometry:
    ndim = len(self._shape)
    a, b = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = self._shape[a], self._shape[b]
    size = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = self._offset
    if size:
        start += offset * self._stride[b] if offset >= 0 else -offset * self._stride[a]
    rest = [dim for dim in range(ndim) if dim not in (a, b)]
    return Geometry(
        (*(self._shape[dim] for dim in rest), size),
        (*(self._stride[dim] for dim in rest), self._stride[a] + self._stride[b]),
        start,
    )


def windows(self: Tensor, dimension: int, size: int, step: int) -> Geometry:
    """Windows of `size` elements, `step` apart, along one dimension; a window's elements are the last dimension."""
    shape, stride = (tuple(self._shape), self._stride) if self._shape else ((1,), (1,))
    dim = wrap_dim(dimension, len(self._shape))
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > shape[dim]:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {shape[dim]} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not self._shape:
        return Geometry((size,), (1,), self._offset)
    count = (shape[dim] - size) // step + 1
    return Geometry(
        (*shape[:dim], count, *shape[dim + 1 :], size),
        (*stride[:dim], stride[dim] * step, *stride[dim + 1 :], stride[dim]),
        self._offset,
    )


def strided_window(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Geometry:
    offset = self._offset if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    itemsize = self._dtype.itemsize
    available = self._storage.nbytes() // itemsize
    try:
        check_view(size, stride, offset, available)
    except RuntimeError as problem:
        if "setStorage" not in str(problem):
            raise
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {(last + 1) * itemsize} are out of bounds for storage of size "
            f"{self._storage.nbytes()}"
        ) from None
    return Geometry(tuple(size), tuple(stride), offset)


def split_lengths(size: int, split_size: int) -> list[int]:
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0:
        if size:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
        return [0]
    if size == 0:
        return [0]
    count = int((size + split_size - 1) // split_size)  # of a symbolic size, too, how many there are is a number
    return [split_size] * (count - 1) + [size - split_size * (count - 1)]
