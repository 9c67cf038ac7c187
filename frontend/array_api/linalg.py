"""The standard's extension `linalg`.

Results of several arrays are PyTorch's named tuples, whose names differ here and there, and so they get the standard's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import redispatch as rd
from redispatch import Tensor, dtype

from .promotion import Axes, axes_of, together


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


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular L with L Lᴴ = x, or the upper U with Uᴴ U = x."""
    return rd.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three elements. Errors: ValueError for others."""
    x1, x2 = together(x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross(): vectors of three elements, not {x1.shape[axis]} and {x2.shape[axis]}")
    a, b = rd.broadcast_tensors(x1, x2)
    return rd.roll(a, -1, axis) * rd.roll(b, -2, axis) - rd.roll(a, -2, axis) * rd.roll(b, -1, axis)


def det(x: Tensor, /) -> Tensor:
    return rd.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of the matrices in the last two axes. PyTorch's `diagonal` takes the first two."""
    return rd.diagonal(x, offset, -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """The eigenvalues, in ascending order, and eigenvectors of Hermitian matrices."""
    return EighResult(*rd.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    return rd.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    return rd.linalg.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro") -> Tensor:
    """A norm of each matrix: of its elements ("fro"), its singular values ("nuc", 2, -2) or its sums."""
    return rd.linalg.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The n-th power of each square matrix; of the inverse for negative n."""
    return rd.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Returns how many singular values of each matrix exceed `rtol` times the greatest.

    Errors: ValueError for what is no matrix.
    """
    if x.ndim < 2:
        raise ValueError(f"a matrix has at least two dimensions, not {x.ndim}")
    values = svdvals(x)
    return (values > cutoff(x, values, rtol)).sum(-1)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of one vector with each of another. Errors: ValueError for other arrays."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer(): two vectors, not arrays of {x1.ndim} and {x2.ndim} dimensions")
    x1, x2 = together(x1, x2)
    return x1[:, None] * x2


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverse: singular values up to `rtol` times the greatest count as zero."""
    u, values, vh = svd(x, full_matrices=False)
    kept = values > cutoff(x, values, rtol)
    inverse = rd.where(kept, 1 / rd.where(kept, values, rd.ones_like(values)), rd.zeros_like(values))
    return matmul(vh.mH * inverse[..., None, :].to(x.dtype), u.mH)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    return QRResult(*rd.linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of each determinant, and the logarithm of its absolute value."""
    return SlogdetResult(*rd.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The y with x1 y = x2. Only an `x2` of one dimension is a vector; PyTorch guesses for others, too."""
    x1, x2 = together(x1, x2)
    if x2.ndim == 1:
        return solve(x1, x2[:, None])[..., 0]
    batch = rd.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return rd.linalg.solve(x1.expand(*batch, *x1.shape[-2:]), x2.expand(*batch, *x2.shape[-2:]))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """U, the singular values in descending order, and Vᴴ."""
    return SVDResult(*rd.linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    return rd.linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Tensor:
    """The sum of each diagonal of the matrices in the last two axes."""
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """A norm of the elements along these axes."""
    axes: Sequence[int] = axes_of(x, axis)
    if not axes and x.ndim:  # each element by itself
        absolute = rd.abs(x)
        return (absolute != 0).to(absolute.dtype) if ord == 0 else absolute
    return rd.linalg.vector_norm(x, ord, axes, keepdims)


def cutoff(x: Tensor, values: Tensor, rtol: float | Tensor | None) -> Tensor:
    """Up to where singular values count as zero; by default to the larger size of the matrix, times eps."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * rd.finfo(values.dtype).eps
    greatest = values[..., :1]
    return greatest * (rtol[..., None] if isinstance(rtol, Tensor) and rtol.ndim else rtol)


__all__ = """
    cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer
    pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm
""".split()
