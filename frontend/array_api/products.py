"""Products of arrays: `matmul`, `tensordot`, `vecdot`; and the transposed matrix."""

from __future__ import annotations

from collections.abc import Sequence

import redispatch as rd
from redispatch import Tensor

from .promotion import together


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, or of a matrix and a vector; axes in front are batches."""
    return rd.matmul(*together(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes swapped. Errors: ValueError with fewer than two."""
    if x.ndim < 2:
        raise ValueError(f"a matrix has at least two dimensions, not {x.ndim}")
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over the last `axes` of `x1` and the first of `x2`, or over these axes of the one and those
    of the other."""
    x1, x2 = together(x1, x2)
    return rd.tensordot(x1, x2, axes if isinstance(axes, int) else tuple(map(list, axes)))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of products of two arrays of vectors, of which the first are conjugated. They broadcast.

    Errors: ValueError where the axis does not count from the end, or the vectors are not equally long.
    """
    x1, x2 = together(x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"vecdot(): axis {axis} does not count from the end of both arrays")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot(): vectors of {x1.shape[axis]} and {x2.shape[axis]} elements")
    first, second = x1.movedim(axis, -1), x2.movedim(axis, -1)
    return rd.matmul(rd.conj_physical(first).unsqueeze(-2), second.unsqueeze(-1)).squeeze((-2, -1))
