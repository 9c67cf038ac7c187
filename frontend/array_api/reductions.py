"""Reductions, running sums and differences; searching, sorting, and arrays as sets.

`axis` may be one axis, several, or None for all.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import redispatch as rd
from redispatch import Tensor, dtype

from .promotion import Axes, axes_of, one_axis, together


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Returns whether no element along these axes is zero."""
    truth = x.to(rd.bool)
    return rd.all(truth, axes_of(x, axis), keepdims) if x.ndim else truth.clone()


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Returns whether some element along these axes is not zero."""
    truth = x.to(rd.bool)
    return rd.any(truth, axes_of(x, axis), keepdims) if x.ndim else truth.clone()


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element along these axes; NaN where there is one."""
    return rd.amax(x, axes_of(x, axis), keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The smallest element along these axes; NaN where there is one."""
    return rd.amin(x, axes_of(x, axis), keepdims)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean of the elements along these axes."""
    return rd.mean(x, axes_of(x, axis), keepdims)


def prod(x: Tensor, /, *, axis: Axes = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The product of the elements along these axes, of integers as int64."""
    axes = axes_of(x, axis)
    if not axes:
        return x.prod(dtype=dtype) if not x.ndim else x.to(dtype or summed_as(x))
    for one in sorted(axes, reverse=True):
        x = rd.prod(x, one, True, dtype=dtype)
    return x if keepdims else x.squeeze(axes)


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation, of which the divisor is the number of elements less the correction."""
    return rd.std(x, axes_of(x, axis), correction=correction, keepdim=keepdims)


def sum(x: Tensor, /, *, axis: Axes = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements along these axes, of integers as int64."""
    axes = axes_of(x, axis)
    return rd.sum(x, axes, keepdims, dtype=dtype) if axes or not x.ndim else x.to(dtype or summed_as(x))


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance, of which the divisor is the number of elements less the correction."""
    return rd.var(x, axes_of(x, axis), correction=correction, keepdim=keepdims)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The products of the elements up to each along an axis; with the empty product in front, if asked for."""
    axis = one_axis(x, axis, "cumulative_prod")
    running = rd.cumprod(x, axis, dtype=dtype)
    return rd.cat([rd.ones_like(start(running, axis)), running], axis) if include_initial else running


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
) -> Tensor:
    """The sums of the elements up to each along an axis; with the empty sum in front, if asked for."""
    axis = one_axis(x, axis, "cumulative_sum")
    running = rd.cumsum(x, axis, dtype=dtype)
    return rd.cat([rd.zeros_like(start(running, axis)), running], axis) if include_initial else running


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The n-th differences of neighbours along an axis, with more elements in front and behind."""
    given = [part for part in (prepend, x, append) if part is not None]
    return rd.diff(rd.cat(together(*given), axis) if len(given) > 1 else x, n, axis)


def start(x: Tensor, axis: int) -> Tensor:
    """The shape of an array with one element along the axis."""
    shape = list(x.shape)
    shape[axis] = 1
    return x.new_empty(shape)


def summed_as(x: Tensor) -> dtype:
    return x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else rd.int64


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns where the greatest element stands, the first of equal ones; without an axis, in all elements in a row."""
    return rd.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Returns where the smallest element stands, the first of equal ones; without an axis, in all elements in a row."""
    return rd.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Returns how many elements are not zero, along these axes."""
    return (x != 0).sum(axes_of(x, axis), keepdims) if x.ndim else (x != 0).to(rd.int64)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of elements that are not zero, by axis. Errors: ValueError for an array without dimensions."""
    if not x.ndim:
        raise ValueError("nonzero() needs an array with at least one dimension")
    return tuple(rd.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Returns where each element of `x2` belongs in the sorted `x1`: before equal ones ("left"), or behind them."""
    x1, x2 = together(x1, x2)
    return rd.searchsorted(x1, x2, side=side, sorter=None if sorter is None else sorter.to(rd.int64))


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """The elements of `x1` where the condition holds, else those of `x2`."""
    return rd.where(condition, *together(x1, x2))


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The order of the elements along an axis, as indices."""
    return rd.sort(x, dim=axis, descending=descending, stable=stable)[1]


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis. PyTorch's `sort` returns the indices, too."""
    return rd.sort(x, dim=axis, descending=descending, stable=stable)[0]


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, where each stands first, which one each element is, and how often each is there.

    NaNs are distinct from one another.
    """
    values, inverse, counts = distinct(x)
    grouped = rd.sort(inverse.reshape(-1), stable=True)[1]
    first = grouped[rd.cumsum(counts, 0) - counts]
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements, and how often each is there."""
    values, _, counts = distinct(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements, and which of them each element is."""
    values, inverse, _ = distinct(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return distinct(x)[0]


def distinct(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct elements, their inverse and counts. Complex ones, which PyTorch refuses, as pairs of numbers."""
    if not x.dtype.is_complex:
        return rd.unique(x, return_inverse=True, return_counts=True)
    pairs = rd.view_as_real(x.resolve_conj().reshape(-1)) + 0.0  # -0.0 becomes 0.0, which it equals
    values, inverse, counts = rd.unique(pairs, dim=0, return_inverse=True, return_counts=True)
    return rd.view_as_complex(values), inverse.reshape(x.shape), counts
