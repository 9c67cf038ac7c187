"""Factorisations and solvers of LAPACK, by way of scipy: a plain function of matrices, as numpy arrays, for each.

They take and give single matrices of float32, float64, complex64 or complex128; whoever has a batch calls them once
for each. None raises: `info` is 0 where all went well, and otherwise LAPACK's number. What has no elements never
reaches LAPACK, which refuses it. Pivots count from 1, as LAPACK's own do.

Read next: kernels/ops/matrices.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.dtypes import dtype_named

from .blas import allow_threads

Matrix = np.ndarray
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
CALLED = {"getrf": "lu", "trsm": "triangular_solve"}  # as the refusal of a dtype names them; others as the routine
# Routines with another name for complex matrices: orthogonal ones are unitary there, symmetric ones hermitian.
UNITARY = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}


class LinAlgError(RuntimeError):
    """Says what is wrong with a matrix's numbers, such as being singular."""


LinAlgError.__name__ = "_LinAlgError"  # as PyTorch's is called in tracebacks


@cache
def found(name: str, letter: str) -> Callable[..., Any]:
    from scipy.linalg import blas, lapack  # here, because it takes long to import, and few programs need it

    if letter in "cz":
        name = UNITARY.get(name, name)
    return getattr(lapack, letter + name, None) or getattr(blas, letter + name)


def routine(name: str, a: Matrix) -> Callable[..., Any]:
    """The routine of that name for matrices like `a`, with as many threads as they are worth."""
    letter = LETTERS.get(a.dtype.name)
    if letter is None:
        kind = dtype_named(a.dtype.name).tensor_name
        raise NotImplementedError(f"\"{CALLED.get(name, name)}_cpu\" not implemented for '{kind}'")
    allow_threads(a.shape[0] * a.shape[1] * min(a.shape), "scipy")
    return found(name, letter)


# --- LU --------------------------------------------------------------------------------------------------------------


def lu(a: Matrix) -> tuple[Matrix, np.ndarray, int]:
    """L below the diagonal and U above, the rows' exchanges, and the first k for which U[k, k] is 0."""
    if not a.size:
        return a, np.zeros(0, np.int32), 0
    factors, exchanged, info = routine("getrf", a)(a)
    return factors, exchanged + 1, info


def lu_solve(factors: Matrix, pivots: np.ndarray, b: Matrix, adjoint: bool = False) -> Matrix:
    """X of A X = B, or of Aᴴ X = B."""
    if not b.size:
        return b
    x, _ = routine("getrs", factors)(factors, pivots - 1, b, trans=2 if adjoint else 0)
    return x


def permutation(pivots: np.ndarray, n: int) -> np.ndarray:
    """Returns the rows in the order that these exchanges give: A[permutation] = L @ U."""
    order = np.arange(n)
    for i, j in enumerate(pivots):
        order[[i, j - 1]] = order[[j - 1, i]]
    return order


# --- Cholesky, LDL ---------------------------------------------------------------------------------------------------


def cholesky(a: Matrix, upper: bool) -> tuple[Matrix, int]:
    """L of L Lᴴ or U of Uᴴ U, its other triangle 0, and the order of the first minor that is not positive."""
    if not a.size:
        return a, 0
    factor, info = routine("potrf", a)(a, lower=not upper, clean=True)
    return factor, info


def cholesky_solve(factor: Matrix, b: Matrix, upper: bool) -> Matrix:
    if not b.size:
        return b
    x, _ = routine("potrs", factor)(factor, b, lower=not upper)
    return x


def cholesky_inverse(factor: Matrix, upper: bool) -> tuple[Matrix, int]:
    """The inverse of the matrix that has this factor, and the first k for which factor[k, k] is 0."""
    if not factor.size:
        return factor, 0
    half, info = routine("potri", factor)(factor, lower=not upper)
    half = np.triu(half) if upper else np.tril(half)
    whole = half + half.conj().T
    np.fill_diagonal(whole, half.diagonal())
    return whole, info


def ldl(a: Matrix, hermitian: bool) -> tuple[Matrix, np.ndarray, int]:
    """The factors L and D of a symmetric matrix, or of a hermitian one, of which the lower triangle is read."""
    if not a.size:
        return a, np.zeros(0, np.int32), 0
    name = "hetrf" if hermitian and np.iscomplexobj(a) else "sytrf"
    factors, pivots, info = routine(name, a)(a, lower=True)
    return np.tril(factors), pivots, info


def ldl_solve(factors: Matrix, pivots: np.ndarray, b: Matrix, hermitian: bool) -> Matrix:
    if not b.size:
        return b
    name = "hetrs" if hermitian and np.iscomplexobj(factors) else "sytrs"
    x, _ = routine(name, factors)(factors, pivots, b, lower=True)
    return x


# --- triangles -------------------------------------------------------------------------------------------------------


def solve_triangular(a: Matrix, b: Matrix, upper: bool, left: bool, unit: bool, transposed: bool = False) -> Matrix:
    """X of A X = B, or of X A = B where not `left`. A zero on the diagonal gives infinities."""
    if not b.size:
        return b
    return routine("trsm", a)(1, a, b, side=not left, lower=not upper, trans_a=int(transposed), diag=unit)


# --- QR --------------------------------------------------------------------------------------------------------------


def geqrf(a: Matrix) -> tuple[Matrix, np.ndarray]:
    """R on and above the diagonal, the vectors of the reflections below it, and their factors."""
    if not a.size:
        return a, np.zeros(min(a.shape), a.dtype)
    factors, scales, _, _ = routine("geqrf", a)(a, lwork=32 * a.shape[1])
    return factors, scales


def orgqr(vectors: Matrix, scales: np.ndarray) -> Matrix:
    """The first columns of the product of reflections."""
    if not vectors.size or not scales.size:
        return np.eye(*vectors.shape, dtype=vectors.dtype)
    product, _, _ = routine("orgqr", vectors)(vectors, scales, lwork=32 * vectors.shape[1])
    return product


def ormqr(vectors: Matrix, scales: np.ndarray, c: Matrix, left: bool, adjoint: bool) -> Matrix:
    """Q C, or C Q, or the same with Qᴴ, for the product Q of reflections."""
    if not c.size or not scales.size:
        return c
    trans = "N" if not adjoint else "C" if np.iscomplexobj(vectors) else "T"
    length = 32 * max(c.shape)
    product, _, _ = routine("ormqr", vectors)("L" if left else "R", trans, vectors[:, : len(scales)], scales, c, length)
    return product


# --- eigenvalues and singular values ---------------------------------------------------------------------------------


def svd(a: Matrix, full: bool, vectors: bool) -> tuple[Matrix, np.ndarray, Matrix, int]:
    """U, S and Vᴴ; `full` makes U and Vᴴ square."""
    m, n = a.shape
    if not a.size:
        k = 0 if not full else m
        return np.eye(m, k, dtype=a.dtype), np.zeros(0, a.real.dtype), np.eye(n if full else 0, n, dtype=a.dtype), 0
    if not np.isfinite(a).all():
        return a, a, a, -4  # as newer versions of LAPACK say; older ones may not end
    return routine("gesdd", a)(a, compute_uv=vectors, full_matrices=full)


def eigh(a: Matrix, upper: bool, vectors: bool) -> tuple[np.ndarray, Matrix, int]:
    """Eigenvalues, ascending, and eigenvectors of a hermitian matrix, of which one triangle is read."""
    if not a.size:
        return np.zeros(0, a.real.dtype), a, 0
    if not np.isfinite(a).all():
        return a.real, a, a.shape[0] - 1  # LAPACK may not end
    return routine("syevd", a)(a, compute_v=vectors, lower=not upper)


def eig(a: Matrix, vectors: bool) -> tuple[np.ndarray, Matrix, int]:
    """Eigenvalues and eigenvectors, complex in any case."""
    if not a.size:
        return np.zeros(0, a.dtype), a, 0
    if np.iscomplexobj(a):
        values, _, right, info = routine("geev", a)(a, compute_vl=False, compute_vr=vectors)
        return values, right, info
    real, imaginary, _, packed, info = routine("geev", a)(a, compute_vl=False, compute_vr=vectors)
    values = real + 1j * imaginary
    if not vectors:
        return values, packed, info
    right = packed.astype(values.dtype)
    for k in np.flatnonzero(imaginary > 0):  # a conjugate pair stands in two columns: real part, imaginary part
        right[:, k] = packed[:, k] + 1j * packed[:, k + 1]
        right[:, k + 1] = right[:, k].conj()
    return values, right, info


# --- least squares ---------------------------------------------------------------------------------------------------


def least_squares(a: Matrix, b: Matrix, rcond: float, driver: str) -> tuple[Matrix, int, np.ndarray, int]:
    """X, with the residuals below it where there are more rows than columns; the rank; the singular values.

    gels takes the rank for full and gives no rank; only gelsd and gelss give singular values.
    """
    (m, n), count = a.shape, b.shape[1]
    x = np.zeros((max(m, n), count), a.dtype)
    x[:m] = b
    values = np.zeros(min(m, n), a.real.dtype)
    if not a.size or not count:
        return np.zeros_like(x), 0, values, 0
    if driver == "gels":
        _, x, info = routine("gels", a)(a, x, lwork=64 * (m + n + count))
        return x, min(m, n), values, info
    if driver == "gelsy":
        order = np.zeros((n, 1), np.int32)
        size, _ = routine("gelsy_lwork", a)(m, n, count, rcond)
        _, x, _, rank, info = routine("gelsy", a)(a, x, order, rcond, int(size.real))
    elif driver == "gelsd":
        size, *sizes, _ = routine("gelsd_lwork", a)(m, n, count, rcond)
        x, values, rank, info = routine("gelsd", a)(a, x, int(size.real), *(int(n) for n in sizes), rcond)
    else:
        size, _ = routine("gelss_lwork", a)(m, n, count, rcond)
        _, x, values, rank, _, info = routine("gelss", a)(a, x, rcond, int(size.real))
    return x, rank, values, info
