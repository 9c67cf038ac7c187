"""The LU factorisation: P L U of any matrix, and systems of equations whose matrix comes as its factors.

Pivots are LAPACK's: row i was exchanged with row pivots[i], counted from 1. Read next: cholesky.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, overridable_in_python
from redispatch.kernels.cpu import lapack

from ..declare.declare import Operator
from ..declare.overridable import overridable_function
from ..declare.public import public
from ..declare.several import Several
from ..declare.structured import Meta, Structured, common_device
from .matrices import (
    check_floating,
    check_has_lapack,
    check_same_dtype,
    check_solvable,
    check_square,
    column_major,
    column_strides,
    common_batch,
    for_each_matrix,
    integers,
    raise_for,
    row_major,
    some_results,
)
from .solving import solve_triangular_op, solve_with_lu


def check_factors(A: Tensor, name: str) -> None:
    if len(A._shape) < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A._shape)} instead")


def check_pivots(pivot: bool) -> None:
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


# --- the derivative of P L U -----------------------------------------------------------------------------------------


def plu_backward(of_l: Any, of_u: Any, P: Any, L: Any, U: Any) -> Any:
    """The gradient of A = P L U. With one factor square, A = P L [U1 U2] or A = P [L1; L2] U.

    d(PᵀA) = dL U + L dU: L⁻¹ d(PᵀA) U⁻¹ is a strict lower triangle, L⁻¹ dL, and an upper one, dU U⁻¹. What stands
    beside the square part follows from the rest.
    """
    if of_l is None and of_u is None:
        return None
    m, n = L.shape[-2], U.shape[-1]
    k = min(m, n)
    l1, u1 = L[..., :k, :], U[..., :k]
    lower = None if of_l is None else l1.mH.matmul(of_l[..., :k, :]).tril(-1)
    upper = None if of_u is None else of_u[..., :k].matmul(u1.mH).triu()
    if m < n and of_u is not None:  # U2 = L⁻¹ Pᵀ A2 depends on L
        beside = of_u[..., k:].matmul(U[..., k:].mH).tril(-1)
        lower = -beside if lower is None else lower - beside
    if m > n and of_l is not None:  # L2 = Pᵀ A2 U⁻¹ depends on U
        below = L[..., k:, :].mH.matmul(of_l[..., k:, :]).triu()
        upper = -below if upper is None else upper - below
    inner = lower if upper is None else upper if lower is None else lower + upper
    inner = solve_triangular_op.functional(u1.mH, inner, upper=False, left=False)
    of_a = solve_triangular_op.functional(l1.mH, inner, upper=True, unitriangular=True)
    if m < n:
        rest = of_a.new_zeros([*of_a.shape[:-1], n - k]) if of_u is None else of_u[..., k:]
        rest = solve_triangular_op.functional(l1.mH, rest, upper=True, unitriangular=True)
        of_a = ops.aten.cat.default([of_a, rest], -1)
    if m > n:
        rest = of_a.new_zeros([*of_a.shape[:-2], m - k, n]) if of_l is None else of_l[..., k:, :]
        rest = solve_triangular_op.functional(u1.mH, rest, upper=False, left=False)
        of_a = ops.aten.cat.default([of_a, rest], -2)
    return P.matmul(of_a)


def packed_backward(of_l: Any, of_u: Any, m: int, n: int) -> Any:
    """The gradient of L and U in one matrix, from those of each."""
    parts = []
    if of_l is not None:
        lower = of_l.tril(-1)
        short = n - lower.shape[-1]
        parts.append(ops.aten.constant_pad_nd.default(lower, [0, short]) if short else lower)
    if of_u is not None:
        upper = of_u.triu()
        short = m - upper.shape[-2]
        parts.append(ops.aten.constant_pad_nd.default(upper, [0, 0, 0, short]) if short else upper)
    return None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]


# --- lu_factor -------------------------------------------------------------------------------------------------------

lu_factor_ex_op = Several(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
    "-> (Tensor LU, Tensor pivots, Tensor info)",
    out="out",
    refuses="whole halves",
)


@lu_factor_ex_op.metas
def lu_factor_metas(A: Tensor, pivot: bool, check_errors: bool) -> tuple[Meta, ...]:
    check_factors(A, "torch.lu_factor")
    *batch, m, n = A._shape
    return column_major(A._shape, A), integers((*batch, min(m, n)), A), integers(batch, A)


@lu_factor_ex_op.body
def lu_factor_body(outs: tuple[Tensor, ...], A: Tensor, pivot: bool, check_errors: bool) -> None:
    """Returns the LU factors of matrices in one, their pivots, and where the factorization failed."""
    check_has_lapack(A, "lu_cpu")
    check_pivots(pivot)
    for_each_matrix(lapack.lu, outs, A)
    if check_errors:
        raise_for(outs[2], "torch.linalg.lu_factor_ex", len(A._shape) == 2)


def lu_factor_backward(grad: Any, LU: Any, pivots: Any) -> Any:
    P, L, U = lu_unpack_op.functional(LU, pivots)
    k = L.shape[-1]
    return plu_backward(grad[..., :k], grad[..., :k, :], P, L, U)


lu_factor_ex_op.derivative(
    A=lambda grad, result0, result1: lu_factor_backward(grad, result0, result1),
    nondifferentiable=(1, 2),
    for_complex=True,
)

lu_factor_op = Operator(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    out="out",
    refuses="whole halves",
)


some_results(
    lu_factor_op, lu_factor_ex_op, lambda A, pivot: (A, pivot, False), results=(0, 1), check="torch.linalg.lu_factor"
)
linalg_lu_factor_ex = public(lu_factor_ex_op, method=False)
linalg_lu_factor = public(
    lu_factor_op, method=False, doc="Returns the LU factors of matrices in one, and their pivots."
)

lu_with_info_op = Operator(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
    refuses="whole halves",
)


some_results(lu_with_info_op, lu_factor_ex_op, lambda *args: args, results=(0, 1, 2))
lu_with_info_op.autocast(cpu="fp32")


@overridable_function
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> tuple[Tensor, ...]:
    """Returns the older name of linalg.lu_factor: the factors in one matrix, the pivots and, if wanted, how it went."""
    found = lu_with_info_op.functional(A, pivot, False)[: 3 if get_infos else 2]
    if out is None:
        return tuple(found)
    if len(out) != len(found):
        raise TypeError(f"expected tuple of {len(found)} elements but got {len(out)}")
    for target, result in zip(out, found, strict=True):
        target.resize_(result.shape).copy_(result)
    return tuple(out)


def lu_method(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Returns what the function `lu` does."""
    return lu(self, pivot, get_infos)


lu_method.__name__ = "lu"
Tensor.lu = overridable_in_python(lu_method)  # type: ignore[attr-defined]  # attached here

# --- lu, lu_unpack ---------------------------------------------------------------------------------------------------


def plu_metas(A: Tensor) -> tuple[Meta, ...]:
    *batch, m, n = A._shape
    k = min(m, n)
    return row_major((*batch, m, m), A), row_major((*batch, m, k), A), row_major((*batch, k, n), A)


def unpacked(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k = min(factors.shape)
    lower = np.tril(factors[:, :k], -1)
    np.fill_diagonal(lower, 1)
    return lower, np.triu(factors[:k])


def permuting(pivots: np.ndarray, n: int, dtype: Any) -> np.ndarray:
    """P of A = P L U."""
    return np.eye(n, dtype=dtype)[:, lapack.permutation(pivots, n)]


lu_op = Several(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", out="out", refuses="whole halves"
)


@lu_op.metas
def lu_metas(A: Tensor, pivot: bool) -> tuple[Meta, ...]:
    check_factors(A, "linalg.lu")
    return plu_metas(A)


@lu_op.body
def lu_body(outs: tuple[Tensor, ...], A: Tensor, pivot: bool) -> None:
    check_has_lapack(A, "lu_cpu")
    check_pivots(pivot)

    def one(a: np.ndarray) -> tuple[np.ndarray, ...]:
        factors, pivots, _ = lapack.lu(a)
        return permuting(pivots, a.shape[0], a.dtype), *unpacked(factors)

    for_each_matrix(one, outs, A)


lu_op.derivative(
    A=lambda grads, result0, result1, result2: plu_backward(grads[1], grads[2], result0, result1, result2),
    nondifferentiable=(0,),
    for_complex=True,
)
linalg_lu = public(lu_op, method=False, doc="Returns P, L and U, with P L U = A.")

lu_unpack_op = Several(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    out="out",
    batching="leading",
)


@lu_unpack_op.metas
def lu_unpack_metas(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> tuple[Meta, ...]:
    check_factors(LU_data, "torch.lu_unpack")
    if unpack_pivots and LU_pivots._dtype is not dtypes.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    P, L, U = plu_metas(LU_data)
    nothing = row_major((0,), LU_data)
    return P if unpack_pivots else nothing, L if unpack_data else nothing, U if unpack_data else nothing


@lu_unpack_op.body
def lu_unpack_body(
    outs: tuple[Tensor, ...], LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool
) -> None:
    P, L, U = outs
    if unpack_data:
        for_each_matrix(unpacked, (L, U), LU_data)
    if unpack_pivots:
        n, pivots = LU_data._shape[-2], as_numpy(LU_pivots)
        if pivots.size and not (1 <= pivots.min() and pivots.max() <= n and pivots.shape[-1] <= n):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the "
                "result of lu_factor?"
            )
        kind = LU_data._dtype.numpy
        for_each_matrix(lambda exchanges: permuting(exchanges, n, kind), (P,), LU_pivots, vectors=1)


lu_unpack_op.derivative(
    LU_data=lambda grads, LU_data_shape, unpack_data: (
        packed_backward(*grads[1:], *LU_data_shape[-2:]) if unpack_data else None
    ),
    nondifferentiable=(0,),
    for_complex=True,
)
lu_unpack = public(lu_unpack_op, doc="Returns P, L and U of LU factors in one and their pivots.")

# --- lu_solve --------------------------------------------------------------------------------------------------------

linalg_lu_solve_op = Structured(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    out="out",
    refuses="whole halves",
)


@linalg_lu_solve_op.meta
def lu_solve_meta(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Meta:
    check_floating(LU, "torch.linalg.lu_solve")
    if pivots._dtype is not dtypes.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, "torch.linalg.lu_solve")
    check_same_dtype("linalg.lu_solve", LU=LU, B=B)
    if pivots._shape[-1] != LU._shape[-2]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if LU._shape[:-1] != pivots._shape:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots._shape)} instead"
        )
    check_solvable(LU, tuple(B._shape), left, "linalg.lu_solve")
    check_has_lapack(LU, "linalg.lu_solve_cpu")
    shape = (*common_batch(B._shape, LU._shape), *B._shape[-2:])
    return Meta(shape, B._dtype, common_device(LU, B), column_strides(shape) if left else None)


@linalg_lu_solve_op.body
def lu_solve_body(out: Tensor, LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> None:
    numbers = as_numpy(pivots)
    if numbers.size and (numbers.max() > LU._shape[-2] or numbers.min() < 1):
        raise RuntimeError(
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result "
            "of lu_factor?"
        )
    solve_with_lu(out, LU, pivots, B, left, adjoint)


def lu_solve_backward(
    grad: Any, LU: Any, pivots: Any, result: Any, left: bool, adjoint: bool, needs: tuple[bool, bool]
) -> tuple[Any, Any]:
    """The gradient of A as in solving.py, and from it those of the factors."""
    of_b = linalg_lu_solve_op.functional(LU, pivots, grad, left=left, adjoint=not adjoint)
    if not needs[0]:
        return None, of_b
    of_a = -of_b.matmul(result.mH) if left else -result.mH.matmul(of_b)
    P, L, U = lu_unpack_op.functional(LU, pivots)
    permuted = P.mT.matmul(of_a.mH if adjoint else of_a)
    return permuted.matmul(U.mH).tril(-1) + L.mH.matmul(permuted).triu(), of_b


linalg_lu_solve_op.derivative(
    (
        ("LU", "B"),
        lambda grad, LU, pivots, result, left, adjoint, needs: lu_solve_backward(
            grad, LU, pivots, result, left, adjoint, needs
        ),
    ),
    for_complex=True,
)

lu_solve_op = Operator(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", out="out", refuses="whole halves"
)


@lu_solve_op.implicit
def lu_solve_composite(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    return linalg_lu_solve_op.functional(LU_data, LU_pivots, self)


@lu_solve_op.kernel_out("CompositeImplicitAutograd")
def lu_solve_out(self: Tensor, LU_data: Tensor, LU_pivots: Tensor, out: Tensor) -> Tensor:
    return linalg_lu_solve_op.out(LU_data, LU_pivots, self, out=out)  # type: ignore[misc]  # it has an out= form


linalg_lu_solve = public(linalg_lu_solve_op, method=False, doc="Returns X of A X = B, where A comes as its LU factors.")
lu_solve_op.autocast(cpu="fp32")
lu_solve = public(lu_solve_op, doc="Returns X of A X = B, where A comes as its LU factors, as `linalg.lu_solve` does.")
