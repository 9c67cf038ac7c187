"""Reductions, running sums and differences. `axis` may be one axis, several, or None for all."""

from __future__ import annotations

import redispatch as rd
from redispatch import Tensor, dtype

from .promotion import Axes, axes_of, one_axis, together


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether no element along these axes is zero."""
    truth = x.to(rd.bool)
    return rd.all(truth, axes_of(x, axis), keepdims) if x.ndim else truth.clone()


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether some element along these axes is not zero."""
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
