"""Resampling along an axis: each element of the result is a weighted sum of elements of the source.

Which elements, and with what weights, is the same for every line along the axis: a sparse matrix, here an `AxisMap`.
Padding by reflection, enlarging an image by any filter, shrinking it without aliasing: all are such maps, one for each
axis. So one loop does them all, an axis at a time; and since the gradient of a linear map is its transpose, the same
loop goes backward.

Read next: kernels/ops/resampling.py, which says what the matrices are; pooling.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides
from redispatch.dispatch.tensor.operand import DTYPES, Operand, memory

from ..engine.pool import parallel_for
from ..engine.program import integral
from ..engine.template import Template, zero
from .copy import copy

uint64 = np.uint64


@dataclass(frozen=True, eq=False)
class AxisMap:
    """A sparse matrix [count, size]: row i has the terms from starts[i] up to starts[i + 1].

    Term t is weights[t] times element places[t] of the source; without weights, it is that element itself.
    """

    size: int  # of the source along this axis
    starts: np.ndarray
    places: np.ndarray
    weights: np.ndarray | None = None

    @property
    def count(self) -> int:
        """The size of the result."""
        return len(self.starts) - 1

    @cached_property
    def is_identity(self) -> bool:
        """Whether each element is what it was."""
        numbers = np.arange(self.size + 1)
        alike = np.array_equal(self.starts, numbers) and np.array_equal(self.places, numbers[:-1])
        return self.weights is None and alike

    @cached_property
    def stretch(self) -> tuple[int, int, int]:
        """(begin, end, shift): the longest range of i in which element i is element i + shift of the source."""
        if self.weights is not None or len(self.places) != self.count or np.any(np.diff(self.starts) != 1):
            return 0, 0, 0
        shifts = self.places - np.arange(self.count)
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(shifts)) + 1, [self.count]])
        longest = int(np.argmax(np.diff(cuts)))
        return int(cuts[longest]), int(cuts[longest + 1]), int(shifts[cuts[longest]]) if self.count else 0

    @cached_property
    def transposed(self) -> AxisMap:
        """The matrix [size, count], which takes gradients back."""
        order = np.argsort(self.places, kind="stable")
        rows = np.repeat(np.arange(self.count), np.diff(self.starts))
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.places, minlength=self.size))])
        return AxisMap(self.count, starts, rows[order], None if self.weights is None else self.weights[order])

    @cached_property
    def merged(self) -> AxisMap:
        """Returns the matrix with one term for each place that a row has."""
        rows = np.repeat(np.arange(self.count), np.diff(self.starts))
        cells, term = np.unique(rows * self.size + self.places, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(np.bincount(cells // self.size, minlength=self.count))])
        return AxisMap(self.size, starts, cells % self.size, np.bincount(term, self.weights_in("float64")))

    def weights_in(self, dtype: str) -> np.ndarray:
        """The weights as numbers of this dtype."""
        if self.weights is None:
            return np.ones(len(self.places), dtype)
        return self.weights.astype(dtype)


def picking(size: int, places: np.ndarray) -> AxisMap:
    """The map whose result has these elements of the source."""
    return AxisMap(size, np.arange(len(places) + 1), places)


# --- loops -----------------------------------------------------------------------------------------------------------


@integral
def combined(i, starts, places, weights, x, at):
    """Element i of a line that begins at `at`."""
    first, last = starts[uint64(i)], starts[uint64(i + 1)]
    total = zero
    if first < last:  # begun with the first term and not with a zero, which would take the sign of -0.0
        total = weights[uint64(first)] * x[uint64(at + places[uint64(first)])]
    for t in range(first + 1, last):
        total += weights[uint64(t)] * x[uint64(at + places[uint64(t)])]
    return total


@integral
def lines_loop(lo, hi, count, size, begin, end, shift, starts, places, weights, out, out_at, x, x_at):
    """Lines lo <= n < hi, where the elements along the axis are neighbours. From `begin` to `end` they only move."""
    for n in range(lo, hi):
        to, at = out_at + n * count, x_at + n * size
        for i in range(begin):
            out[uint64(to + i)] = combined(i, starts, places, weights, x, at)
        for i in range(begin, end):
            out[uint64(to + i)] = x[uint64(at + i + shift)]
        for i in range(end, count):
            out[uint64(to + i)] = combined(i, starts, places, weights, x, at)


@integral
def rows_loop(lo, hi, count, size, inner, starts, places, weights, out, out_at, x, x_at):
    """Rows lo <= n * count + i < hi of `inner` neighbours each, which all have the same terms."""
    for row in range(lo, hi):
        n, i = row // count, row % count
        to, at = out_at + row * inner, x_at + n * size * inner
        first, last = starts[uint64(i)], starts[uint64(i + 1)]
        if first == last:
            for k in range(inner):
                out[uint64(to + k)] = zero
        for t in range(first, last):
            w, of = weights[uint64(t)], at + places[uint64(t)] * inner
            if t == first:
                for k in range(inner):
                    out[uint64(to + k)] = w * x[uint64(of + k)]
            else:
                for k in range(inner):
                    out[uint64(to + k)] += w * x[uint64(of + k)]


LINES = Template(lines_loop, "int64[] starts places", "real[] weights", "x[] out x")
ROWS = Template(rows_loop, "int64[] starts places", "real[] weights", "x[] out x")


def real_of(dtype: str) -> str:
    """The dtype of weights: that of the real part."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def _along(out: Operand, x: Operand, axis: AxisMap, outer: int, inner: int) -> None:
    """One axis: `outer` times the axis times `inner` neighbours. Both operands are contiguous."""
    arrays = axis.starts, axis.places, axis.weights_in(real_of(x.dtype)), out.array, out.offset, x.array, x.offset
    dtypes = {"x": x.dtype, "real": real_of(x.dtype)}
    terms = max(1, len(axis.places) // max(axis.count, 1))
    if inner == 1:
        lines = axis.count, axis.size, *axis.stretch
        parallel_for(LINES(name="resample_lines", **dtypes), outer, (*lines, *arrays), 2 * axis.count * terms)
    else:
        rows = axis.count, axis.size, inner
        parallel_for(ROWS(name="resample_rows", **dtypes), outer * axis.count, (*rows, *arrays), inner * terms)


def resample(out: Operand, x: Operand, axes: Sequence[AxisMap]) -> None:
    """`x` mapped along its last axes, one map for each. Both are contiguous and have one dtype, no 16-bit float.

    An axis that shrinks comes before one that grows, so that there is least to do in between. Among those that shrink
    the last comes last, since it is the slowest: its neighbours have different terms.
    """
    lead = len(x.shape) - len(axes)

    def growth(d: int) -> tuple[float, int]:
        ratio = axes[d].count / max(axes[d].size, 1)
        return ratio, -d if ratio > 1 else d

    order = sorted((d for d in range(len(axes)) if not axes[d].is_identity), key=growth)
    if not order:
        copy(out, x)
    for d in order:
        shape = (*x.shape[: lead + d], axes[d].count, *x.shape[lead + d + 1 :])
        made = out if d == order[-1] else _memory(shape, x.dtype)
        _along(made, x, axes[d], prod(shape[: lead + d]), prod(shape[lead + d + 1 :]))
        x = made


def _memory(shape: tuple[int, ...], dtype: str) -> Operand:
    return Operand(memory(prod(shape), DTYPES[dtype].storage), dtype, shape, contiguous_strides(shape))
