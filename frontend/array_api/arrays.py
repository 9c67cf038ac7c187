"""Arrays made, put together, taken apart and looked at in other shapes; elements taken by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import redispatch as rd
from redispatch import Tensor, dtype

from .promotion import Axes, axes_of, one_axis, result_type

Shape = int | tuple[int, ...]


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """The numbers from `start` (0 if it is given alone) up to, not including, `stop`; none where there are none."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step < 0:
        stop = start
    return rd.arange(start, stop, step, dtype=dtype, device=device)


def asarray(obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """`obj` as an array, over the same memory where it can be, unless `copy` is True.

    Errors: ValueError where `copy` is False and one is needed.
    """
    return rd.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """Ones on the diagonal `k`, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    made = rd.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        made.diagonal(k).fill_(1)
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of any object with `__dlpack__`; a copy if `copy` is True or the device is another."""
    made = rd.from_dlpack(x)
    moved = made if device is None else made.to(device)
    if copy is False and moved is not made:
        raise ValueError("from_dlpack(): another device needs a copy, which copy=False forbids")
    return moved.clone() if copy and moved is made else moved


def full(shape: Shape, fill_value: complex, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal distances from `start` to `stop`, the last one included if it is the `endpoint`."""
    if endpoint or num == 0:
        return rd.linspace(start, stop, num, dtype=dtype, device=device)
    return rd.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Each array as coordinates over the grid of all. In PyTorch the default is "ij"."""
    return tuple(rd.meshgrid(*arrays, indexing=indexing))


def ones(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and below the diagonal `k` of each matrix, zeros above."""
    return rd.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and above the diagonal `k` of each matrix, zeros below."""
    return rd.triu(x, k)


def zeros(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.zeros_like(x, dtype=dtype, device=device)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays, expanded to the shape that all have in common."""
    return tuple(rd.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    return rd.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """The arrays behind each other along an axis; with None, all their elements in a row."""
    alike = promoted(arrays)
    return rd.cat([x.reshape(-1) for x in alike]) if axis is None else rd.cat(alike, axes_of(alike[0], axis)[0])


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A view with an axis of size 1 at the place `axis` of the result."""
    return x.unsqueeze(axis)


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    return rd.flip(x, axes_of(x, axis))


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    return rd.moveaxis(x, axes_in_order(source), axes_in_order(destination))


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    return rd.permute(x, axes)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element `repeats` times in a row, or each its own number of times; without an axis, of all in a row.

    PyTorch's `repeat_interleave`; its `repeat` is `tile` here.
    """
    return rd.repeat_interleave(x, repeats.to(rd.int64) if isinstance(repeats, Tensor) else repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape: a view where there can be one, a copy always if `copy` is True.

    Errors: ValueError where `copy` is False and there can be no view.
    """
    if copy:
        return x.clone(memory_format=rd.contiguous_format).view(shape)
    if copy is None:
        return x.reshape(shape)
    try:
        return x.view(shape)
    except RuntimeError as problem:
        raise ValueError(f"reshape(copy=False): {problem}") from None


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Tensor:
    """The elements moved on along an axis, or in a row; those that leave at the end come in in front."""
    if axis is None:
        return rd.roll(x, shift)
    axes = axes_in_order(axis)
    return rd.roll(x, (shift,) * len(axes) if isinstance(shift, int) else shift, axes)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """A view without these axes. Errors: ValueError where the size of one is not 1."""
    axes = axes_of(x, axis)
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"squeeze(): axis {one} has size {x.shape[one]}, not 1")
    return x.squeeze(axes)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """The arrays beside each other along a new axis."""
    return rd.stack(promoted(arrays), axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The parts of `x` at these places of an axis. PyTorch's `index_select`; its `take` knows no axes."""
    axis = one_axis(x, axis, "take")
    return rd.index_select(x, axis, counted_from_front(indices, x.shape[axis]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """For each place, the element of `x` at the index given there, along an axis; the other axes broadcast."""
    return rd.take_along_dim(x, counted_from_front(indices, x.shape[axis]), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Copies of `x` beside each other, so many along each axis."""
    return rd.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, as views without it."""
    return tuple(rd.unbind(x, axis))


def promoted(arrays: Sequence[Tensor]) -> list[Tensor]:
    kind = result_type(*arrays)
    return [x.to(kind) for x in arrays]


def axes_in_order(axis: int | tuple[int, ...]) -> tuple[int, ...]:
    """Returns the axes as given, for an axis may be named twice."""
    return (axis,) if isinstance(axis, int) else tuple(axis)


def counted_from_front(indices: Tensor, size: int) -> Tensor:
    """Indices of which negative ones count from the end, as PyTorch's indexing functions want them."""
    whole = indices.to(rd.int64)
    return rd.where(whole < 0, whole + size, whole)
