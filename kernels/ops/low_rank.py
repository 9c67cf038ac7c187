"""The largest singular values of a large matrix, by what it does to a few random vectors.

Source: Halko, Martinsson and Tropp, Finding structure with randomness, 2011, algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor

from ..declare.overridable import overridable_function
from .orthogonal import linalg_qr
from .random import randn
from .spectra import linalg_svd


def approximate_range(A: Any, q: int, niter: int) -> Any:
    """Q with q orthonormal columns, such that Q Qᴴ A is close to A."""
    found = linalg_qr(A.matmul(randn(A.shape[-1], q, dtype=A.dtype, device=A.device)))[0]
    for _ in range(niter):
        rows = linalg_qr(A.mH.matmul(found))[0]
        found = linalg_qr(A.matmul(rows))[0]
    return found


@overridable_function
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """Returns U, S and V of a matrix of rank `q` that is close to A, or to A - M.

    Shapes: [..., m, q], [..., q], [..., n, q] for A of [..., m, n].
    """
    A = A if M is None else A - M
    if A.shape[-2] < A.shape[-1]:
        V, S, U = svd_lowrank(A.mH, q, niter)
        return U, S, V
    Q = approximate_range(A, 6 if q is None else q, 2 if niter is None else niter)
    U, S, Vh = linalg_svd(Q.mH.matmul(A), False)
    return Q.matmul(U), S, Vh.mH


@overridable_function
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the `q` principal components of rows of data: `svd_lowrank` of the matrix, less the mean of its
    columns."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean([-2], True) if center else A, q, niter)
