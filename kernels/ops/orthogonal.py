"""QR, and the products of reflections that LAPACK keeps an orthogonal matrix as: geqrf, householder_product, ormqr.

Reflection i is H = 1 - t v vᴴ, where v is 0 above row i, 1 in row i, and below it column i of the matrix; t is a number
of `tau`. Q is the product of all. Read next: spectra.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.cpu import lapack

from ..declare.declare import Operator
from ..declare.public import public
from ..declare.several import Several
from ..declare.structured import Meta, Structured
from .matrices import (
    check_floating,
    check_has_lapack,
    check_matrix,
    column_major,
    conj,
    for_each_matrix,
    row_major,
    some_results,
)
from .solving import solve_triangular_op

# --- qr --------------------------------------------------------------------------------------------------------------

linalg_qr_op = Several(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)', out="out", refuses="whole halves"
)


def check_mode(mode: str) -> None:
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )


@linalg_qr_op.metas
def qr_metas(A: Tensor, mode: str) -> tuple[Meta, ...]:
    check_matrix(A, "linalg.qr")
    check_floating(A, "linalg.qr")
    check_mode(mode)
    *batch, m, n = A._shape
    k = m if mode == "complete" else min(m, n)
    Q = row_major((0,), A) if mode == "r" else column_major((*batch, m, k), A)
    return Q, column_major((*batch, k, n), A)


@linalg_qr_op.body
def qr_body(outs: tuple[Tensor, ...], A: Tensor, mode: str) -> None:
    """Returns Q, with orthonormal columns, and the upper triangular R, with Q R = A."""
    check_has_lapack(A, "geqrf_cpu")
    Q, R = outs
    m, rows = A._shape[-2], R._shape[-2]

    def one(a: np.ndarray) -> tuple[np.ndarray, ...]:
        factors, scales = lapack.geqrf(a)
        upper = np.triu(factors[:rows])
        if mode == "r":
            return (upper,)
        vectors = np.zeros((m, rows), a.dtype)
        vectors[:, : len(scales)] = factors[:, : len(scales)]
        return lapack.orgqr(vectors, scales), upper

    for_each_matrix(one, (R,) if mode == "r" else (Q, R), A)


def hermitian_from_upper(x: Any) -> Any:
    """The hermitian matrix that has the upper triangle of `x`, with the real part of its diagonal."""
    both = x.triu()
    both = both + both.mH
    return both - (both.diagonal(0, -2, -1) * 0.5).diag_embed()


def qr_backward(grads: Any, Q: Any, R: Any, mode: str) -> Any:
    """For a square R: [grad_Q + Q S] R⁻ᴴ, S hermitian with the upper triangle of grad_R Rᴴ - Qᴴ grad_Q.

    Columns beyond those, A2 = Q R2, give R2 = Qᴴ A2 a part in the gradient of Q.
    """
    of_q, of_r = grads
    if of_q is None and of_r is None:
        return None
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if m < n:
        of_first = None if of_r is None else of_r[..., :m]
        if of_r is None:
            of_rest = Q.new_zeros([*Q.shape[:-1], n - m])
        else:
            rest = of_r[..., m:]
            through_q = Q.matmul(R[..., m:]).matmul(rest.mH)
            of_q = through_q if of_q is None else of_q + through_q
            of_rest = Q.matmul(rest)
        of_first = qr_backward_square(of_q, of_first, Q, R[..., :m])
        return ops.aten.cat.default([of_first, of_rest], -1)
    return qr_backward_square(of_q, of_r, Q, R)


def qr_backward_square(of_q: Any, of_r: Any, Q: Any, R: Any) -> Any:
    inner = None if of_r is None else of_r.matmul(R.mH)
    if of_q is not None:
        turned = Q.mH.matmul(of_q)
        inner = -turned if inner is None else inner - turned
    moved = Q.matmul(hermitian_from_upper(inner))
    moved = moved if of_q is None else of_q + moved
    return solve_triangular_op.functional(R.mH, moved, upper=False, left=False)


linalg_qr_op.derivative(
    A=lambda grads, result0, result1, mode: qr_backward(grads, result0, result1, mode), for_complex=True
)
qr_op = Operator("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", out="Q", refuses="whole halves")
some_results(qr_op, linalg_qr_op, lambda self, some: (self, "reduced" if some else "complete"), results=(0, 1))
linalg_qr_op.autocast(cpu="fp32")
linalg_qr = public(linalg_qr_op, method=False)
qr_op.autocast(cpu="fp32")
qr = public(qr_op, doc="Returns Q and R with Q R = A, as `linalg.qr` does.")

geqrf_op = Several("geqrf(Tensor self) -> (Tensor a, Tensor tau)", out="a", refuses="whole halves", batching="leading")


@geqrf_op.metas
def geqrf_metas(self: Tensor) -> tuple[Meta, ...]:
    if len(self._shape) < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    *batch, m, n = self._shape
    return column_major(self._shape, self), row_major((*batch, min(m, n)), self)


@geqrf_op.body
def geqrf_body(outs: tuple[Tensor, ...], self: Tensor) -> None:
    """Returns the QR factorization as LAPACK holds it: R above, the reflections below, and their factors."""
    check_has_lapack(self, "geqrf_cpu")
    for_each_matrix(lapack.geqrf, outs, self)


def geqrf_backward(grads: Any) -> Any:
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


geqrf_op.derivative(self=geqrf_backward)
geqrf_op.autocast(cpu="fp32")
geqrf = public(geqrf_op)

# --- products of reflections -----------------------------------------------------------------------------------------


def reflection(vectors: Any, i: int) -> Any:
    """The vector of reflection i, as a matrix of one column."""
    column = vectors[..., i : i + 1]
    return ops.aten.cat.default(
        [
            column.new_zeros([*column.shape[:-2], i, 1]),
            column.new_ones([*column.shape[:-2], 1, 1]),
            column[..., i + 1 :, :],
        ],
        -2,
    )


def reflect_backward(grad: Any, vectors: Any, tau: Any, start: Any) -> tuple[Any, Any, Any]:
    """The gradients of H0 H1 ... `start` in `vectors`, `tau` and `start`.

    The product is formed again, from the right; then each reflection Y = X - t v (vᴴ X) is gone back through.
    """
    count = tau.shape[-1]
    vs = [reflection(vectors, i) for i in range(count)]
    ts = [tau[..., i : i + 1].unsqueeze(-1) for i in range(count)]
    before = [start]
    for v, t in zip(reversed(vs), reversed(ts), strict=True):
        before.append(before[-1] - t * v.matmul(v.mH.matmul(before[-1])))
    of_vectors, of_taus = [], []
    for i, (v, t) in enumerate(zip(vs, ts, strict=True)):
        x = before[count - 1 - i]
        along, of_along = x.mH.matmul(v), grad.mH.matmul(v)  # of X, and of the gradient
        of_taus.append(-of_along.mH.matmul(along))
        of_v = -conj(t) * grad.matmul(along) - t * x.matmul(of_along)
        of_vectors.append(keeping_below(of_v, i))
        grad = grad - conj(t) * v.matmul(of_along.mH)
    of_tau = ops.aten.cat.default(of_taus, -1).squeeze(-2) if of_taus else tau.new_zeros(tau.shape)
    missing = vectors.shape[-1] - count
    if missing or not of_vectors:
        of_vectors.append(vectors.new_zeros([*vectors.shape[:-1], missing]))
    return ops.aten.cat.default(of_vectors, -1), of_tau, grad


def keeping_below(column: Any, i: int) -> Any:
    """The part of a column below row i: the rest of a reflection's vector is fixed."""
    return ops.aten.constant_pad_nd.default(column[..., i + 1 :, :], [0, 0, i + 1, 0])


householder_product_op = Structured(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor", out="out", refuses="whole halves"
)


@householder_product_op.meta
def householder_product_meta(input: Tensor, tau: Tensor) -> Meta:
    name = "torch.linalg.householder_product"
    if len(input._shape) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input._shape[-2] < input._shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau._shape and input._shape[-1] < tau._shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_tau(name, input, tau)
    if tau._dtype is not input._dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau._dtype.tensor_name} does not match input dtype {input._dtype.tensor_name}"
        )
    check_has_lapack(input, "orgqr_cpu")
    return column_major(input._shape, input)


def check_tau(name: str, input: Tensor, tau: Tensor) -> None:
    if len(input._shape) - len(tau._shape) != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
            f"{len(tau._shape)} and input.ndim is equal to {len(input._shape)}"
        )
    if tau._shape[:-1] != input._shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau._shape[:-1])}"
        )


@householder_product_op.body
def householder_product_body(out: Tensor, input: Tensor, tau: Tensor) -> None:
    """Returns the product of reflections, which come as geqrf gives them."""
    for_each_matrix(lapack.orgqr, (out,), input, tau, vectors=1)


def householder_product_backward(grad: Any, input: Any, tau: Any) -> tuple[Any, Any]:
    *batch, m, n = input.shape
    start = ops.aten.eye.m(m, n, dtype=input.dtype, device=input.device).expand([*batch, m, n])
    return reflect_backward(grad, input, tau, start)[:2]


householder_product_op.derivative((("input", "tau"), householder_product_backward), for_complex=True)
orgqr_op = Operator("orgqr(Tensor self, Tensor input2) -> Tensor", out="out", refuses="whole halves")


@orgqr_op.implicit
def orgqr_composite(self: Tensor, input2: Tensor) -> Tensor:
    return householder_product_op.functional(self, input2)


@orgqr_op.kernel_out("CompositeImplicitAutograd")
def orgqr_out(self: Tensor, input2: Tensor, out: Tensor) -> Tensor:
    return householder_product_op.out(self, input2, out=out)  # type: ignore[misc]  # it has an out= form


householder_product_op.autocast(cpu="fp32")
linalg_householder_product = public(householder_product_op, method=False)
orgqr_op.autocast(cpu="fp32")
orgqr = public(orgqr_op, doc="Returns the product of reflections, as `linalg.householder_product` does.")

ormqr_op = Structured(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    out="out",
    refuses="whole halves",
    batching="leading",
)


@ormqr_op.meta
def ormqr_meta(self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> Meta:
    tau, other, side = input2, input3, -2 if left else -1
    for name, x in (("input", self), ("other", other)):
        if len(x._shape) < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    if other._shape[side] != self._shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if tau._shape and tau._shape[-1] != min(other._shape[side], self._shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    check_tau("torch.ormqr", self, tau)
    if len(self._shape) != len(other._shape):
        raise RuntimeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{len(other._shape)} and input.ndim is equal to {len(self._shape)}"
        )
    if self._shape[:-2] != other._shape[:-2]:
        raise RuntimeError(
            "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
            f"{list(other._shape[:-2])}"
        )
    for name, x in (("tau", tau), ("other", other)):
        if x._dtype is not self._dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype"
                f"{self._dtype.tensor_name} and {name} has dtype {x._dtype.tensor_name}"
            )
    check_has_lapack(self, "ormqr_cpu")
    return column_major(other._shape, other)


@ormqr_op.body
def ormqr_body(out: Tensor, self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> None:
    def one(vectors: np.ndarray, c: np.ndarray, scales: np.ndarray) -> np.ndarray:
        return lapack.ormqr(vectors, scales, c, left, transpose)

    for_each_matrix(one, (out,), self, input3, input2, vectors=1)


def ormqr_backward(
    grad: Any, self: Any, input2: Any, input3: Any, result: Any, left: bool, transpose: bool, needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    """<G, dQ C> is what `reflect_backward` knows. <G, dQᴴ C> is <C, dQ G>, and <G, C dQ> is <Cᴴ, dQ Gᴴ>."""
    of_other = ormqr_op.functional(self, input2, grad, left, not transpose)
    if not needs[0] and not needs[1]:
        return None, None, of_other
    if left != transpose:
        product, start = (grad, input3) if left else (grad.mH, input3.mH)
    else:
        product, start = (input3, grad) if left else (input3.mH, grad.mH)
    of_vectors, of_tau, _ = reflect_backward(product, self, input2, start)
    return of_vectors, of_tau, of_other


ormqr_op.derivative((("self", "input2", "input3"), ormqr_backward), for_complex=True)
ormqr_op.autocast(cpu="fp32")
ormqr = public(ormqr_op, doc="Returns the product of reflections and a matrix.")
