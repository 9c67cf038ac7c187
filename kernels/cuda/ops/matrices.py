"""The operators on matrices at the key CUDA: which results are filled by which factorisations (factorisations.py).

As on the CPU, an operator's `metas` say what its results look like, and a body fills them. What went wrong stays on
the device as `info`, unless the operator itself has to raise; then the program waits for it. What is not here the CPU
does: cpu_kernels.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import OpOverload, ops
from redispatch.dispatch.tensor import Size, Tensor, dtypes, shown, view_over
from redispatch.kernels.declare.structured import Several
from redispatch.kernels.ops import lu, solving, spectra
from redispatch.kernels.ops.matrices import (
    check_has_lapack,
    column_major,
    integers,
    is_low_precision,
    raise_for,
    row_major,
)

from .. import solver
from ..runtime.copies import array_on, copied, copy_on_device
from ..runtime.launch_recorder import refuse
from ..runtime.operands import allocator
from ..runtime.structured import InParts, Task, apart_from_target, composite_of, define, launched
from .factorisations import (
    UPPER,
    columns_of,
    copy_matrices,
    factor_cholesky,
    factor_lu,
    factor_qr,
    matrices,
    product_of_reflections,
    solve_triangles,
    solve_with_cholesky,
    solve_with_lu,
    times_reflections,
    unpack,
)

aten = ops.aten


Body = Callable[..., None]
BY_LIBRARY: list[InParts] = []  # where NVIDIA's library is, and suits


def filled(op: Any, body: Body, named: str) -> InParts:
    """The kernels of an operator: `body(results, *arguments)` fills what its meta function says.

    named: PyTorch's name of the CPU's kernel, in the error for dtypes that factorisations do not take; "" where all are
    taken.
    """

    def function(*args: Any) -> Any:
        if named:
            check_has_lapack(next(x for x in args if isinstance(x, Tensor)), named)
        results = tuple(meta.allocate() for meta in op.metas_function(*args))
        body(results, *args)
        return results if isinstance(op, Several) else results[0]

    return InParts(op, apart_from_target(function))


def fills(op: Any, named: str = "") -> Callable[[Body], Body]:
    """Registers the body of an operator."""

    def register(body: Body) -> Body:
        define(filled(op, body, named))
        return body

    return register


def library_for(op: Any, named: str) -> Callable[[Body], Body]:
    """Registers the body of an operator that the CPU computes elsewhere (cpu_kernels.py)."""

    def register(body: Body) -> Body:
        BY_LIBRARY.append(filled(op, body, named))
        return body

    return register


Outs = Sequence[Tensor]


def info_for(A: Tensor) -> Tensor:
    return integers(A._shape[:-2], A).allocate()


# --- Cholesky ---------------------------------------------------------------------------------------------------------


@fills(solving.linalg_cholesky_ex.op, "cholesky_cpu")
def cholesky_ex(outs: Outs, self: Tensor, upper: bool, check_errors: bool) -> None:
    L, info = outs
    factor_cholesky(L, info, self, upper)
    if check_errors:
        raise_for(info, "linalg.cholesky_ex", len(self._shape) == 2)


@fills(solving.cholesky.op, "cholesky_cpu")
def older_cholesky(outs: Outs, self: Tensor, upper: bool) -> None:
    refuse()
    solving.warn_of_cholesky()
    info = info_for(self)
    factor_cholesky(outs[0], info, self, upper)
    raise_for(info, "cholesky", len(self._shape) == 2)


@fills(solving.cholesky_inverse.op, "cholesky_inverse_out_cpu")
def cholesky_inverse(outs: Outs, self: Any, upper: bool) -> None:
    zeros = shown(copied(self.diagonal(0, -2, -1))) == 0
    if zeros.size:
        info = np.where(zeros.any(-1), zeros.argmax(-1) + 1, 0)
        raise_for(info, "cholesky_inverse", len(self._shape) == 2)
    solve_with_cholesky(outs[0], self, None, upper)


@fills(solving.cholesky_solve_helper_op, "cholesky_solve_cpu")
def cholesky_solve(outs: Outs, self: Tensor, A: Tensor, upper: bool) -> None:
    solve_with_cholesky(outs[0], A, self, upper)


# --- LU ---------------------------------------------------------------------------------------------------------------


@fills(lu.linalg_lu_factor_ex.op, "lu_cpu")
def lu_factor_ex(outs: Outs, A: Tensor, pivot: bool, check_errors: bool) -> None:
    lu.check_pivots(pivot)
    LU, pivots, info = outs
    factor_lu(LU, pivots, info, A)
    if check_errors:
        raise_for(info, "torch.linalg.lu_factor_ex", len(A._shape) == 2)


def factored(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The factors, the pivots and how it went, where these are no results themselves."""
    *batch, m, n = A._shape
    found = column_major(A._shape, A).allocate(), integers((*batch, min(m, n)), A).allocate(), info_for(A)
    factor_lu(*found, A)
    return found


@fills(lu.linalg_lu.op, "lu_cpu")
def lu_of(outs: Outs, A: Tensor, pivot: bool) -> None:
    lu.check_pivots(pivot)
    (P, L, U), (factors, pivots, _) = outs, factored(A)
    unpack(P, L, U, factors, pivots, "linalg_lu")


@fills(lu.lu_unpack.op)
def lu_unpack(outs: Outs, LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> None:
    P, L, U = outs
    lower, upper = (L, U) if unpack_data else (None, None)
    unpack(P if unpack_pivots else None, lower, upper, LU_data, LU_pivots, "lu_unpack")


@fills(lu.linalg_lu_solve.op, "linalg.lu_solve_cpu")
def lu_solve(outs: Outs, LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> None:
    solve_with_lu(outs[0], LU, pivots, B, left, adjoint, "linalg_lu_solve")


def as_column(x: Tensor) -> Tensor:
    """Vectors as matrices of one column."""
    return view_over(x, Size((*x._shape, 1)), (*x._stride, 1), x._offset)


@fills(solving.solve_lu_op, "lu_cpu")
def solve_ex(outs: Outs, A: Tensor, B: Tensor, left: bool, check_errors: bool) -> None:
    result, LU, pivots, info = outs
    factor_lu(LU, pivots, info, A)
    if check_errors:
        raise_for(info, "torch.linalg.solve_ex", len(A._shape) == 2)
    if solving.is_vector(A, B):
        result, B = as_column(result), as_column(B)
    solve_with_lu(result, LU, pivots, B, left, False, "linalg_solve")


@fills(solving.linalg_inv_ex.op, "lu_cpu")
def inv_ex(outs: Outs, A: Tensor, check_errors: bool) -> None:
    factors, pivots, info = factored(A)
    copy_on_device(outs[1], info)
    if check_errors:
        raise_for(outs[1], "linalg.inv_ex", len(A._shape) == 2)
    solve_with_lu(outs[0], factors, pivots, None, True, False, "linalg_inv")


def factored_as_on_the_cpu(LU: Tensor, pivots: Tensor, A: Tensor) -> tuple[Any, Any]:
    """Fills these; the diagonal of U, and the sign of the exchanges."""
    factor_lu(LU, pivots, info_for(A), A, lu.lies_by_rows(A))
    each: Any = pivots
    moved = (each != aten.arange.start(1, pivots._shape[-1] + 1, device=A._device)).sum(-1)
    any_lu: Any = LU
    return any_lu.diagonal(0, -2, -1), 1 - 2 * moved.remainder(2)


@fills(lu.det_lu_op, "lu_cpu")
def det(outs: Outs, A: Tensor) -> None:
    diagonal, sign = factored_as_on_the_cpu(outs[1], outs[2], A)
    copy_on_device(outs[0], diagonal.prod(-1) * sign)


@fills(lu.slogdet_lu_op, "lu_cpu")
def slogdet(outs: Outs, A: Tensor) -> None:
    diagonal, sign = factored_as_on_the_cpu(outs[2], outs[3], A)
    copy_on_device(outs[0], diagonal.sgn().prod(-1) * sign)
    copy_on_device(outs[1], diagonal.abs().log().sum(-1))


# --- triangles --------------------------------------------------------------------------------------------------------


@fills(solving.linalg_solve_triangular.op, "triangular_solve_cpu")
def solve_triangular(outs: Outs, self: Tensor, B: Tensor, upper: bool, left: bool, unitriangular: bool) -> None:
    batch = outs[0]._shape[:-2]
    x, a = matrices(outs[0]), matrices(self, batch)
    copy_matrices(x, matrices(B, batch))
    if left:
        solve_triangles(x, a, lower=not upper, unit=unitriangular)
    else:
        solve_triangles(x.turned, a.turned, lower=upper, unit=unitriangular)


@fills(solving.triangular_solve.op, "triangular_solve_cpu")
def triangular_solve(outs: Outs, self: Tensor, A: Tensor, upper: bool, transpose: bool, unitriangular: bool) -> None:
    refuse()
    solving.warn_of_triangular_solve()
    batch = outs[0]._shape[:-2]
    x, a = matrices(outs[0]), matrices(A, batch)
    copy_matrices(x, matrices(self, batch))
    copy_matrices(matrices(outs[1]), a)
    solve_triangles(x, a.turned if transpose else a, lower=upper == transpose, unit=unitriangular)


# --- QR ---------------------------------------------------------------------------------------------------------------


@fills(spectra.geqrf.op, "geqrf_cpu")
def geqrf(outs: Outs, self: Tensor) -> None:
    a, tau = outs
    factor_qr(a, tau, self)


@fills(spectra.linalg_householder_product.op, "orgqr_cpu")
def householder_product(outs: Outs, input: Tensor, tau: Tensor) -> None:
    product_of_reflections(outs[0], input, tau)


@fills(spectra.ormqr.op, "ormqr_cpu")
def ormqr(outs: Outs, self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> None:
    times_reflections(outs[0], self, input2, input3, left, transpose)


@fills(spectra.linalg_qr.op, "geqrf_cpu")
def qr(outs: Outs, A: Tensor, mode: str) -> None:
    Q, R = outs
    *batch, m, n = A._shape
    factors, tau = column_major(A._shape, A).allocate(), row_major((*batch, min(m, n)), A).allocate()
    factor_qr(factors, tau, A)
    copy_matrices(matrices(R), matrices(factors).first(R._shape[-2], n), UPPER)
    if mode != "r":
        product_of_reflections(Q, factors, tau)


# --- the exponential --------------------------------------------------------------------------------------------------

DEGREE, BLOCK = 19, 4  # 1 / 20! is below the rounding of float64


@composite_of("linalg_matrix_exp")
def matrix_exp(self: Any) -> Any:
    """1 + A + A² / 2 + ... of A / 2ᵏ, with a norm of at most 1, squared k times. Waits for the largest k.

    The series is summed in groups of BLOCK terms, so that it takes a product for each group, and BLOCK - 1 for powers.
    Source: Paterson and Stockmeyer, 1973.
    """
    if not self._shape.numel():
        return self.clone()
    norms = shown(self.abs().sum(-2).amax(-1)).astype(np.float64)
    finite = np.isfinite(norms)
    squarings = np.where(finite, np.ceil(np.log2(np.where(finite, np.maximum(norms, 1), 1))), 0)
    scale = array_on(self._device, np.where(finite, 2.0**-squarings, np.nan)[..., None, None], self._dtype.to_real())
    left = array_on(self._device, squarings[..., None, None], dtypes.int32)
    x = self * scale
    powers = [aten.eye.default(self._shape[-1], dtype=self._dtype, device=self._device).expand(list(self._shape)), x]
    while len(powers) <= BLOCK:
        powers.append(powers[-1].matmul(x))
    factors = [1.0]
    for k in range(1, DEGREE + 1):
        factors.append(factors[-1] / k)

    def group(start: int) -> Any:
        terms = powers[0] * factors[start]
        for k in range(1, BLOCK):
            terms = terms + powers[k] * factors[start + k]
        return terms

    total = group(DEGREE + 1 - BLOCK)
    for start in range(DEGREE + 1 - 2 * BLOCK, -1, -BLOCK):
        total = total.matmul(powers[BLOCK]) + group(start)
    for done in range(int(squarings.max())):
        total = aten.where.self(left > done, total.matmul(total), total)
    return total


# --- eigenvalues and singular values, on a card -----------------------------------------------------------------------

LEAST = 64  # rows and columns


def suits(A: Tensor) -> bool:
    """Whether cuSOLVER is to compute those of a matrix like this."""
    there = allocator().driver.solver is not None and not is_low_precision(A._dtype)
    return there and A._shape.numel() > 0 and min(A._shape[-2:]) >= LEAST


@library_for(spectra.eigh_v_op, "linalg_eigh_cpu")
def eigh(outs: Outs, A: Tensor, UPLO: str, compute_v: bool) -> None:
    values, vectors = outs
    x = matrices(A)
    work = matrices(vectors) if compute_v else columns_of(A, x.many, x.rows, x.columns)
    info = info_for(A)
    copy_matrices(work, x)
    call = solver.eigenvalues(A._dtype.name, x.many, x.rows, UPLO[:1].upper() == "U", compute_v)
    launched([Task(call, (0, 1, 2), ())], [work.x, values, info])
    raise_for(info, "linalg.eigh", len(A._shape) == 2)


@library_for(spectra.svd_uv_op, "linalg_svd_cpu")
def svd(outs: Outs, A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None) -> None:
    """cuSOLVER takes matrices that are not wider than high; of Aᵀ = U S Vᴴ, A is conj(V) S Uᵀ."""
    if driver not in (None, "gesvd"):
        raise RuntimeError(f"torch.linalg.svd: driver={driver!r} is not among those that are there: gesvd")
    U, S, Vh = outs
    x = matrices(A)
    wide = x.rows < x.columns
    x = x.turned if wide else x
    work, info = columns_of(A, x.many, x.rows, x.columns), info_for(A)
    copy_matrices(work, x)
    wanted = solver.NONE if not compute_uv else solver.ALL if full_matrices else solver.SOME
    u, vh = U, Vh
    if wide and compute_uv:
        u = columns_of(A, x.many, x.rows, x.rows if full_matrices else x.columns).x
        vh = columns_of(A, x.many, x.columns, x.columns).x
    call = solver.singular_values(A._dtype.name, x.many, x.rows, x.columns, wanted)
    launched([Task(call, (0, 1, 2, 3, 4), ())], [work.x, S, u if compute_uv else S, vh if compute_uv else S, info])
    if wide and compute_uv:
        copy_matrices(matrices(U), matrices(vh))
        copy_matrices(matrices(Vh), matrices(u))
    raise_for(info, "linalg.svd", len(A._shape) == 2)


def or_library(op: OpOverload, host: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an overload that asks cuSOLVER, and the host where that is not for it."""
    found = dict(form for one in BY_LIBRARY for form in one.forms())
    by_library = found.get(op)
    return host if by_library is None else lambda *args: (by_library if suits(args[0]) else host)(*args)
