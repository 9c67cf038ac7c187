"""The LU factorisation: P L U of any matrix; systems of equations whose matrix comes as its factors; determinants.

Pivots are LAPACK's: row i was exchanged with row pivots[i], counted from 1. Read next: solving.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.autograd import is_grad_enabled
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, is_elsewhere, overridable_in_python, wrap_dim
from redispatch.kernels import is_contiguous
from redispatch.kernels.cpu import lapack

from ..declare.operator import CPU_FP32, composite, same_as, several
from ..declare.overridable import overridable_function
from ..declare.structured import Meta, check_out_dtype, common_device
from .matrices import (
    check_floating,
    check_has_lapack,
    check_same_dtype,
    check_solvable,
    check_square,
    column_major,
    column_strides,
    common_batch,
    conj,
    for_each_matrix,
    integers,
    raise_for,
    row_major,
    several_by_lapack,
    some_results,
    structured_by_lapack,
)
from .solving import linalg_solve_triangular, solve_with_lu


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
    inner = linalg_solve_triangular.op.functional(u1.mH, inner, upper=False, left=False)
    of_a = linalg_solve_triangular.op.functional(l1.mH, inner, upper=True, unitriangular=True)
    if m < n:
        rest = of_a.new_zeros([*of_a.shape[:-1], n - k]) if of_u is None else of_u[..., k:]
        rest = linalg_solve_triangular.op.functional(l1.mH, rest, upper=True, unitriangular=True)
        of_a = ops.aten.cat.default([of_a, rest], -1)
    if m > n:
        rest = of_a.new_zeros([*of_a.shape[:-2], m - k, n]) if of_l is None else of_l[..., k:, :]
        rest = linalg_solve_triangular.op.functional(u1.mH, rest, upper=False, left=False)
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


@several_by_lapack(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
    "-> (Tensor LU, Tensor pivots, Tensor info)",
    out="out",
)
def linalg_lu_factor_ex(A, pivot, check_errors):
    """Returns the LU factors of matrices in one, their pivots, and where the factorization failed."""
    check_factors(A, "torch.lu_factor")
    *batch, m, n = A._shape
    return column_major(A._shape, A), integers((*batch, min(m, n)), A), integers(batch, A)


@linalg_lu_factor_ex.op.body
def lu_factor_body(outs, A, pivot, check_errors):
    check_has_lapack(A, "lu_cpu")
    check_pivots(pivot)
    for_each_matrix(lapack.lu, outs, A)
    if check_errors:
        raise_for(outs[2], "torch.linalg.lu_factor_ex", len(A._shape) == 2)


@linalg_lu_factor_ex.op.gradient("A", nondifferentiable=(1, 2), for_complex=True)
def lu_factor_backward(grad, result0, result1):
    P, L, U = lu_unpack.op.functional(result0, result1)
    k = L.shape[-1]
    return plu_backward(grad[..., :k], grad[..., :k, :], P, L, U)


linalg_lu_factor = some_results(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    linalg_lu_factor_ex,
    (False,),
    results=(0, 1),
    check="torch.linalg.lu_factor",
    doc="Returns the LU factors of matrices in one, and their pivots.",
)
lu_with_info_op = some_results(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
    linalg_lu_factor_ex,
    results=(0, 1, 2),
    out=None,
    autocast=CPU_FP32,
)


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


@several_by_lapack(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    out="out",
    derivative=lambda grads, result0, result1, result2: plu_backward(grads[1], grads[2], result0, result1, result2),
    nondifferentiable=(0,),
    for_complex=True,
)
def linalg_lu(A, pivot):
    """Returns P, L and U, with P L U = A."""
    check_factors(A, "linalg.lu")
    return plu_metas(A)


@linalg_lu.op.body
def lu_body(outs, A, pivot):
    check_has_lapack(A, "lu_cpu")
    check_pivots(pivot)

    def one(a: np.ndarray) -> tuple[np.ndarray, ...]:
        factors, pivots, _ = lapack.lu(a)
        return permuting(pivots, a.shape[0], a.dtype), *unpacked(factors)

    for_each_matrix(one, outs, A)


@several(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    out="out",
    derivative=lambda grads, LU_data_shape, unpack_data: (
        packed_backward(*grads[1:], *LU_data_shape[-2:]) if unpack_data else None
    ),
    nondifferentiable=(0,),
    for_complex=True,
    batching="leading",
    relies="LU_data: *batch m n; LU_pivots: *batch k",
)
def lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots):
    """Returns P, L and U of LU factors in one and their pivots."""
    check_factors(LU_data, "torch.lu_unpack")
    if unpack_pivots and LU_pivots._dtype is not dtypes.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    P, L, U = plu_metas(LU_data)
    nothing = row_major((0,), LU_data)
    return P if unpack_pivots else nothing, L if unpack_data else nothing, U if unpack_data else nothing


@lu_unpack.op.body
def lu_unpack_body(outs, LU_data, LU_pivots, unpack_data, unpack_pivots):
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


# --- lu_solve --------------------------------------------------------------------------------------------------------


@structured_by_lapack(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    out="out",
    out_dtype=check_out_dtype,
)
def linalg_lu_solve(LU, pivots, B, left, adjoint):
    """Returns X of A X = B, where A comes as its LU factors."""
    check_floating(LU, "torch.linalg.lu_solve")
    if pivots._dtype is not dtypes.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, "torch.linalg.lu_solve")
    check_same_dtype("linalg.lu_solve", LU=LU, B=B)
    if pivots._shape[wrap_dim(-1, len(pivots._shape), wrap_scalar=False)] != LU._shape[-2]:
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


@linalg_lu_solve.op.body
def lu_solve_body(out, LU, pivots, B, left, adjoint):
    numbers = as_numpy(pivots)
    if numbers.size and (numbers.max() > LU._shape[-2] or numbers.min() < 1):
        raise RuntimeError(
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result "
            "of lu_factor?"
        )
    solve_with_lu(out, LU, pivots, B, left, adjoint)


@linalg_lu_solve.op.gradient("LU", "B", for_complex=True)
def lu_solve_backward(grad, LU, pivots, result, left, adjoint, needs):
    """The gradient of A as in solving.py, and from it those of the factors."""
    of_b = linalg_lu_solve.op.functional(LU, pivots, grad, left=left, adjoint=not adjoint)
    if not needs[0]:
        return None, of_b
    of_a = -of_b.matmul(result.mH) if left else -result.mH.matmul(of_b)
    P, L, U = lu_unpack.op.functional(LU, pivots)
    permuted = P.mT.matmul(of_a.mH if adjoint else of_a)
    return permuted.matmul(U.mH).tril(-1) + L.mH.matmul(permuted).triu(), of_b


lu_solve = same_as(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    linalg_lu_solve,
    (1, 2, 0),
    out="out",
    out_dtype=check_out_dtype,
    autocast=CPU_FP32,
    refuses="whole halves",
    doc="Returns X of A X = B, where A comes as its LU factors, as `linalg.lu_solve` does.",
)

# --- determinants, and the logarithms of their sizes -----------------------------------------------------------------


def lies_by_rows(A: Tensor) -> bool:
    """Whether the transposed matrix is factored in the place of the matrix, which lies as LAPACK wants it then."""
    return is_contiguous(A._shape, A._stride) and not A._dtype.is_complex


def sign_of(pivots: np.ndarray) -> int:
    """-1 for an odd number of exchanges."""
    return -1 if np.count_nonzero(pivots != np.arange(1, len(pivots) + 1)) % 2 else 1


@several_by_lapack(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    out="result",
)
def det_lu_op(A):
    check_square(A, "linalg.det", floating=True)
    check_has_lapack(A, "lu_cpu")
    return Meta(A._shape[:-2], A._dtype, A._device), column_major(A._shape, A), integers(A._shape[:-1], A)


@det_lu_op.body
def det_body(outs, A):
    by_rows = lies_by_rows(A)

    def one(a: np.ndarray) -> Any:
        factors, pivots, _ = lapack.lu(a.T if by_rows else a)
        return factors.diagonal().prod() * sign_of(pivots), factors, pivots

    for_each_matrix(one, outs, A)


@det_lu_op.gradient("A", nondifferentiable=(1, 2), for_complex=True)
def det_backward(grad, A, result0, result1, result2):
    """d det = det tr(A⁻¹ dA), so the gradient is grad conj(det) A⁻ᴴ: the cofactors, which every matrix has."""
    if not A.numel():
        return A.new_zeros(A.shape)
    # on the meta device, in a subclass, under vmap
    values_are_hidden = result0._array is None and not is_elsewhere(result0)
    if values_are_hidden or bool((result0 == 0).any()):
        return cofactors(A) * grad.unsqueeze(-1).unsqueeze(-1)
    return diagonal_over(A, grad * conj(result0), result1, result2)


def diagonal_over(A: Any, numbers: Any, LU: Any, pivots: Any) -> Any:
    """A⁻ᴴ times the numbers: by the factors, or by an operator that has a derivative itself."""
    diagonal = numbers.unsqueeze(-1).expand(pivots.shape).to(A.dtype).diag_embed()
    if not is_grad_enabled():
        return linalg_lu_solve.op.functional(LU, pivots, diagonal, adjoint=not lies_by_rows(A))
    return ops.aten.linalg_solve.default(A.mH, diagonal)


def cofactors(A: Any) -> Any:
    """The gradient of det(A) = det(U) det(Vᴴ) Π s, whether A is singular or not."""
    U, S, Vh = ops.aten.linalg_svd.default(A, False)
    orientation = conj(U.det() * Vh.det())
    ones = S.new_ones([*S.shape[:-1], 1])
    from_left = ops.aten.cat.default([ones, S[..., :-1].cumprod(-1)], -1)
    from_right = ops.aten.cat.default([S[..., 1:].flip(-1).cumprod(-1).flip(-1), ones], -1)
    others = orientation.unsqueeze(-1) * (from_left * from_right)
    return (U * others.unsqueeze(-2)).matmul(Vh)


linalg_det = some_results(
    "linalg_det(Tensor A) -> Tensor",
    det_lu_op,
    doc="Returns the determinants of square matrices.",
)
det = some_results(
    "det(Tensor self) -> Tensor",
    det_lu_op,
    out=None,
    doc="Returns the determinants of square matrices, as `linalg.det` does.",
)

# --- slogdet, logdet -------------------------------------------------------------------------------------------------


@several_by_lapack(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    out="sign",
)
def slogdet_lu_op(A):
    check_square(A, "linalg.slogdet", floating=True, low_precision=False)
    batch = A._shape[:-2]
    return (
        Meta(batch, A._dtype, A._device),
        Meta(batch, A._dtype.to_real(), A._device),
        column_major(A._shape, A),
        integers(A._shape[:-1], A),
    )


@slogdet_lu_op.body
def slogdet_body(outs, A):
    by_rows = lies_by_rows(A)

    def one(a: np.ndarray) -> Any:
        factors, pivots, _ = lapack.lu(a.T if by_rows else a)
        diagonal = factors.diagonal()
        with np.errstate(divide="ignore"):
            return np.sign(diagonal).prod() * sign_of(pivots), np.log(abs(diagonal)).sum(), factors, pivots

    for_each_matrix(one, outs, A)


@slogdet_lu_op.gradient("A", nondifferentiable=(2, 3), for_complex=True)
def slogdet_backward(grads, A, result0, result2, result3):
    """With z = tr(A⁻¹ dA), the logarithm moves by Re z, and the sign, e^(i phi), turns by Im z."""
    of_sign, of_log = grads[:2]
    if not A._dtype.is_complex:
        if of_log is None:
            return None
        weight = of_log
    else:
        turned = None if of_sign is None else of_sign.conj() * result0
        turning = None if turned is None else (turned - turned.conj()) / 2
        weight = of_log if turning is None else -turning if of_log is None else of_log - turning
    return diagonal_over(A, weight, result2, result3)


SIGN_AND_LOGARITHM = "(Tensor sign, Tensor logabsdet)"
linalg_slogdet = some_results(
    f"linalg_slogdet(Tensor A) -> {SIGN_AND_LOGARITHM}",
    slogdet_lu_op,
    results=(0, 1),
    doc="Returns the sign of determinants, and the logarithm of their absolute values.",
)
slogdet = some_results(
    f"slogdet(Tensor self) -> {SIGN_AND_LOGARITHM}",
    slogdet_lu_op,
    results=(0, 1),
    doc="Returns the sign of determinants and the logarithm of their absolute values.",
)


@composite("logdet(Tensor self) -> Tensor", refuses="whole halves")
def logdet(self):
    """Returns the logarithm of determinants; NaN where one is negative."""
    check_square(self, "logdet", floating=True, low_precision=False)
    sign, logabsdet, _, _ = slogdet_lu_op.functional(self)
    if self._dtype.is_complex:
        return sign.log() + logabsdet
    return ops.aten.where.self(sign == -1, ops.aten.scalar_tensor.default(float("nan"), dtype=sign.dtype), logabsdet)
