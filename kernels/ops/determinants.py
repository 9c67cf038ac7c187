"""Determinants, and the logarithms of their sizes: from the LU factors, which their derivatives need, too.

Read next: solving.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.autograd import is_grad_enabled
from redispatch.dispatch.tensor import Tensor, is_elsewhere
from redispatch.kernels import is_contiguous
from redispatch.kernels.cpu import lapack

from ..declare.declare import Operator
from ..declare.public import public
from ..declare.several import Several
from ..declare.structured import Meta
from .matrices import (
    check_floating,
    check_has_lapack,
    check_square,
    column_major,
    conj,
    for_each_matrix,
    integers,
    some_results,
)


def lies_by_rows(A: Tensor) -> bool:
    """Whether the transposed matrix is factored in the place of the matrix, which lies as LAPACK wants it then."""
    return is_contiguous(A._shape, A._stride) and not A._dtype.is_complex


def factored(a: np.ndarray, by_rows: bool) -> tuple[np.ndarray, np.ndarray, int]:
    return lapack.lu(a.T if by_rows else a)


def sign_of(pivots: np.ndarray) -> int:
    """-1 for an odd number of exchanges."""
    return -1 if np.count_nonzero(pivots != np.arange(1, len(pivots) + 1)) % 2 else 1


# --- det -------------------------------------------------------------------------------------------------------------

det_lu_op = Several(
    "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", out="result", refuses="whole halves"
)


@det_lu_op.metas
def det_metas(A: Tensor) -> tuple[Meta, ...]:
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det")
    check_has_lapack(A, "lu_cpu")
    return Meta(A._shape[:-2], A._dtype, A._device), column_major(A._shape, A), integers(A._shape[:-1], A)


@det_lu_op.body
def det_body(outs: tuple[Tensor, ...], A: Tensor) -> None:
    by_rows = lies_by_rows(A)

    def one(a: np.ndarray) -> Any:
        factors, pivots, _ = factored(a, by_rows)
        return factors.diagonal().prod() * sign_of(pivots), factors, pivots

    for_each_matrix(one, outs, A)


def det_backward(grad: Any, A: Any, result: Any, LU: Any, pivots: Any) -> Any:
    """d det = det tr(A⁻¹ dA), so the gradient is grad conj(det) A⁻ᴴ: the cofactors, which every matrix has."""
    if not A.numel():
        return A.new_zeros(A.shape)
    # on the meta device, in a subclass, under vmap
    values_are_hidden = result._array is None and not is_elsewhere(result)
    if values_are_hidden or bool((result == 0).any()):
        return cofactors(A) * grad.unsqueeze(-1).unsqueeze(-1)
    diagonal = (grad * conj(result)).unsqueeze(-1).expand(pivots.shape).diag_embed()
    if not is_grad_enabled():
        return ops.aten.linalg_lu_solve.default(LU, pivots, diagonal, adjoint=not lies_by_rows(A))
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


det_lu_op.derivative(
    A=lambda grad, A, result0, result1, result2: det_backward(grad, A, result0, result1, result2),
    nondifferentiable=(1, 2),
    for_complex=True,
)

linalg_det_op = Operator("linalg_det(Tensor A) -> Tensor", out="out", refuses="whole halves")
det_op = Operator("det(Tensor self) -> Tensor", refuses="whole halves")


some_results(linalg_det_op, det_lu_op, lambda A: (A,))
some_results(det_op, det_lu_op, lambda A: (A,))
linalg_det = public(linalg_det_op, method=False, doc="Returns the determinants of square matrices.")
det = public(det_op, doc="Returns the determinants of square matrices, as `linalg.det` does.")

# --- slogdet, logdet -------------------------------------------------------------------------------------------------

slogdet_lu_op = Several(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
    out="sign",
    refuses="whole halves",
)


@slogdet_lu_op.metas
def slogdet_metas(A: Tensor) -> tuple[Meta, ...]:
    check_square(A, "linalg.slogdet")
    check_floating(A, "linalg.slogdet", low_precision=False)
    batch = A._shape[:-2]
    return (
        Meta(batch, A._dtype, A._device),
        Meta(batch, A._dtype.to_real(), A._device),
        column_major(A._shape, A),
        integers(A._shape[:-1], A),
    )


@slogdet_lu_op.body
def slogdet_body(outs: tuple[Tensor, ...], A: Tensor) -> None:
    by_rows = lies_by_rows(A)

    def one(a: np.ndarray) -> Any:
        factors, pivots, _ = factored(a, by_rows)
        diagonal = factors.diagonal()
        with np.errstate(divide="ignore"):
            return np.sign(diagonal).prod() * sign_of(pivots), np.log(abs(diagonal)).sum(), factors, pivots

    for_each_matrix(one, outs, A)


def slogdet_backward(grads: Any, A: Any, sign: Any, LU: Any, pivots: Any) -> Any:
    """With z = tr(A⁻¹ dA), the logarithm moves by Re z, and the sign, e^(i phi), turns by Im z."""
    of_sign, of_log = grads
    if not A._dtype.is_complex:
        if of_log is None:
            return None
        weight = of_log
    else:
        turned = None if of_sign is None else of_sign.conj() * sign
        turning = None if turned is None else (turned - turned.conj()) / 2
        weight = of_log if turning is None else -turning if of_log is None else of_log - turning
    diagonal = weight.unsqueeze(-1).expand(pivots.shape).to(A.dtype).diag_embed()
    if not is_grad_enabled():
        return ops.aten.linalg_lu_solve.default(LU, pivots, diagonal, adjoint=not lies_by_rows(A))
    return ops.aten.linalg_solve.default(A.mH, diagonal)


slogdet_lu_op.derivative(
    A=lambda grads, A, result0, result2, result3: slogdet_backward(grads[:2], A, result0, result2, result3),
    nondifferentiable=(2, 3),
    for_complex=True,
)

linalg_slogdet_op = Operator(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", out="out", refuses="whole halves"
)
slogdet_op = Operator("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", out="out", refuses="whole halves")
logdet_op = Operator("logdet(Tensor self) -> Tensor", refuses="whole halves")


some_results(linalg_slogdet_op, slogdet_lu_op, lambda A: (A,), results=(0, 1))
some_results(slogdet_op, slogdet_lu_op, lambda A: (A,), results=(0, 1))


@logdet_op.implicit
def logdet_composite(self: Any) -> Any:
    """Returns the logarithm of determinants; NaN where one is negative."""
    check_square(self, "logdet")
    check_floating(self, "logdet", low_precision=False)
    sign, logabsdet, _, _ = slogdet_lu_op.functional(self)
    if self._dtype.is_complex:
        return sign.log() + logabsdet
    return ops.aten.where.self(sign == -1, ops.aten.scalar_tensor.default(float("nan"), dtype=sign.dtype), logabsdet)


linalg_slogdet = public(
    linalg_slogdet_op, method=False, doc="Returns the sign of determinants, and the logarithm of their absolute values."
)
slogdet = public(slogdet_op, doc="Returns the sign of determinants and the logarithm of their absolute values.")
logdet = public(logdet_op)
