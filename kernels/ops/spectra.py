"""Orthogonal matrices and spectra: singular values, eigenvalues, QR, products of reflections; each with its vectors.

Singular vectors and eigenvectors are known but for a factor: of sign, or of phase for complex ones. A function that
depends on it has no gradient, and says so where it can be seen. Read next: pseudo_inverse.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.autograd import is_grad_enabled, is_transformed
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, is_elsewhere, shown
from redispatch.kernels.cpu import lapack

from ..declare.declare import added, no_formula
from ..declare.operator import CPU_FP32, composite, same_as
from ..declare.overridable import overridable_function
from ..declare.structured import Meta, castable, same_dtype
from .matrices import (
    check_floating,
    check_has_lapack,
    check_matrix,
    check_square,
    column_major,
    column_strides,
    conj,
    for_each_matrix,
    row_major,
    several_by_lapack,
    some_results,
    structured_by_lapack,
)
from .random import randn
from .solving import linalg_solve_triangular

FACTS: dict[str, Any] = {"autocast": CPU_FP32, "method": False}


def records(A: Tensor) -> bool:
    """Whether a gradient may be wanted, for which vectors are computed, too."""
    return (A.requires_grad and is_grad_enabled()) or is_transformed()


def skew(x: Any) -> Any:
    return x - x.mH


def over_gaps(x: Any, gaps: Any) -> Any:
    """x / gaps, and 0 on the diagonal, where the gaps are 0."""
    ones = gaps.new_ones(gaps.shape[-1:]).diag_embed()
    return x / (gaps + ones) * (1 - ones)


def check_phase(x: Any, kind: str, vectors: str) -> None:
    """Raises RuntimeError where a gradient turns complex vectors by a phase: the diagonal of x is not real."""
    if x._array is None and not is_elsewhere(x):
        return  # on the meta device
    values = shown(x)
    turned = abs(values.diagonal(0, -2, -1).imag)
    if turned.size and turned.max() > 1e-2 * max(1.0, abs(values).max()):
        consequence = "phase term, making it" if kind == "svd" else "quantity, so it is"
        raise RuntimeError(
            f"{kind}_backward: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. "
            f"The specified loss function depends on this {consequence} ill-defined."
        )


# --- svd -------------------------------------------------------------------------------------------------------------


@several_by_lapack(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
    "-> (Tensor U, Tensor S, Tensor Vh)",
    out="U",
    by_host="QR iterations on a bidiagonal matrix, a step after the other",
)
def svd_uv_op(A, full_matrices, compute_uv, driver):
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd")
    *batch, m, n = A._shape
    k = min(m, n)
    S = Meta((*batch, k), A._dtype.to_real(), A._device)
    if not compute_uv:
        return row_major((0,), A), S, row_major((0,), A)
    U = column_major((*batch, m, m if full_matrices else k), A)
    return U, S, column_major((*batch, n if full_matrices else k, n), A)


@svd_uv_op.body
def svd_body(outs, A, full_matrices, compute_uv, driver):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    check_has_lapack(A, "linalg_svd_cpu")

    def one(a: np.ndarray) -> tuple[Any, ...]:
        *found, code = lapack.svd(a, full_matrices, compute_uv)
        u, s, vh = (0, 0, 0) if code else found
        return (u, s, vh, code) if compute_uv else (s, code)

    for_each_matrix(one, outs if compute_uv else outs[1:2], A, fails="linalg.svd")


@svd_uv_op.gradient("A", for_complex=True)
def svd_backward(grads, result0, result1, result2):
    """Townsend, Differentiating the singular value decomposition, 2016; Uᴴ dA V = Uᴴ dU S + dS + S dVᴴ V."""
    (of_u, of_s, of_vh), U, S, Vh = grads, result0, result1, result2
    if of_u is None and of_s is None and of_vh is None:
        return None
    if U.dim() < 2:
        raise RuntimeError("svd_backward: the derivative needs the singular vectors, which compute_uv=False leaves out")
    m, k, n = U.shape[-2], S.shape[-1], Vh.shape[-1]
    U, Vh = U[..., :k], Vh[..., :k, :]  # what full_matrices adds is not unique
    of_u = None if of_u is None else of_u[..., :k]
    of_vh = None if of_vh is None else of_vh[..., :k, :]
    if of_u is None and of_vh is None:
        return (U * of_s.unsqueeze(-2)).matmul(Vh)
    squares = (S * S).to(U.dtype)
    gaps = squares.unsqueeze(-2) - squares.unsqueeze(-1)
    rows, columns = S.unsqueeze(-1), S.unsqueeze(-2)
    inner = None if of_s is None else of_s.to(U.dtype).diag_embed()
    turned_u = None if of_u is None else U.mH.matmul(of_u)
    turned_v = None if of_vh is None else Vh.matmul(of_vh.mH)
    if U._dtype.is_complex:
        check_phase(added(turned_u, turned_v), "svd", "singular vectors")
    if turned_u is not None:
        inner = added(inner, over_gaps(skew(turned_u), gaps) * columns)
        if U._dtype.is_complex:
            inner = inner + (skew(turned_u).diagonal(0, -2, -1) / (2 * S)).diag_embed()
    if turned_v is not None:
        inner = added(inner, rows * over_gaps(skew(turned_v), gaps))
    of_a = U.matmul(inner).matmul(Vh)
    if m > k and of_u is not None:
        of_a = of_a + ((of_u - U.matmul(turned_u)) / columns).matmul(Vh)
    if n > k and of_vh is not None:
        of_a = of_a + U.matmul((of_vh - of_vh.matmul(Vh.mH).matmul(Vh)) / rows)
    return of_a


linalg_svd = some_results(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    svd_uv_op,
    lambda A, full_matrices, driver: (A, full_matrices, True, driver),
    results=(0, 1, 2),
    out="U",
    **FACTS,
    doc="Returns U, the singular values S and Vᴴ, with U diag(S) Vᴴ = A.",
)
linalg_svdvals = some_results(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    svd_uv_op,
    lambda A, driver: (A, False, records(A), driver),
    results=(1,),
    **FACTS,
    doc="Returns the singular values of matrices, the largest first.",
)


@composite(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    out="U",
    out_by=None,
    autocast=CPU_FP32,
    refuses="whole halves",
)
def svd(self, some, compute_uv):
    """Returns U, the singular values and V, with zeros for vectors that are not wanted."""
    if len(self._shape) < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {len(self._shape)} dimensions instead"
        )
    U, S, Vh = svd_uv_op.functional(self, not some, compute_uv or records(self))
    if not compute_uv:
        *batch, m, n = self.shape
        U, Vh = (ops.aten.zeros.default([*batch, size, size], dtype=self.dtype, device=self.device) for size in (m, n))
    return U, S, Vh.mH


@svd.op.kernel_out("CompositeImplicitAutograd")
def svd_out(self, some, compute_uv, *outs):
    for out, result in zip(outs, svd.op.functional(self, some, compute_uv), strict=True):
        out.resize_(result.shape).copy_(result)
    return outs


# --- eigh ------------------------------------------------------------------------------------------------------------


@several_by_lapack(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    out="eigenvalues",
    by_host="QR iterations on a tridiagonal matrix, a step after the other",
)
def eigh_v_op(A, UPLO, compute_v):
    check_square(A, "linalg.eigh")
    if UPLO[:1].upper() not in ("L", "U") or not UPLO:
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    values = Meta(A._shape[:-1], A._dtype.to_real(), A._device)
    return values, column_major(A._shape, A) if compute_v else row_major((0,), A)


@eigh_v_op.body
def eigh_body(outs, A, UPLO, compute_v):
    check_has_lapack(A, "linalg_eigh_cpu")

    def one(a: np.ndarray) -> tuple[Any, ...]:
        *found, code = lapack.eigh(a, UPLO[:1].upper() == "U", compute_v)
        values, vectors = (0, 0) if code else found
        return (values, vectors, code) if compute_v else (values, code)

    for_each_matrix(one, outs if compute_v else outs[:1], A, fails="linalg.eigh")


@eigh_v_op.gradient("A", for_complex=True)
def eigh_backward(grads, result0, result1):
    """Vᴴ dA V = dL + [Vᴴ dV, L]: off the diagonal, Vᴴ dV is that, divided by the gaps between eigenvalues."""
    (of_l, of_v), L, V = grads, result0, result1
    if V.dim() < 2:
        raise RuntimeError(
            "linalg_eigh_backward: the derivative needs the eigenvectors, which compute_v=False leaves out"
        )
    if of_v is None:
        return None if of_l is None else (V * of_l.unsqueeze(-2)).matmul(V.mH)
    turned = V.mH.matmul(of_v)
    if V._dtype.is_complex:
        check_phase(turned, "linalg_eigh", "eigenvectors")
    turned = (turned - turned.mH) / 2  # vectors that stay orthogonal have no other gradient
    inner = over_gaps(turned, gaps_between(L))
    inner = inner if of_l is None else inner + of_l.to(V.dtype).diag_embed()
    return V.matmul(inner).matmul(V.mH)


def eigh_tangent(arguments: list[Any], tangents: list[Any], results: Any) -> Any:
    """dL = diag(Vᴴ dA V), and Vᴴ dV the rest of it, divided by the gaps. Both triangles of dA count, as in PyTorch."""
    L, V = results
    if V.dim() < 2:
        raise RuntimeError("linalg_eigh_jvp: the tangent needs the eigenvectors, which compute_v=False leaves out")
    inner = V.mH.matmul(tangents[0]).matmul(V)
    of_l = inner.diagonal(0, -2, -1)
    return of_l.real if of_l._dtype.is_complex else of_l, V.matmul(over_gaps(inner, gaps_between(L)))


eigh_v_op.forward(eigh_tangent)


def gaps_between(L: Any) -> Any:
    """gaps[i, j] = L[j] - L[i]."""
    return L.unsqueeze(-2) - L.unsqueeze(-1)


linalg_eigh = some_results(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    eigh_v_op,
    (True,),
    results=(0, 1),
    out="eigvals",
    out_names=("eigvals", "eigvecs"),
    **FACTS,
    doc="Returns the ascending eigenvalues and the eigenvectors of Hermitian matrices.",
)
linalg_eigvalsh = some_results(
    'linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor',
    eigh_v_op,
    lambda self, UPLO: (self, UPLO, records(self)),
    **FACTS,
    doc="Returns the eigenvalues of Hermitian matrices, in ascending order.",
)

# --- eig -------------------------------------------------------------------------------------------------------------


def check_finite(self: Tensor) -> None:
    if not np.isfinite(as_numpy(self)).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


@several_by_lapack(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    out="out",
    out_dtype=castable("torch.linalg.eig"),
    **FACTS,
    by_host="QR iterations on a Hessenberg matrix",
)
def linalg_eig(self):
    """Returns the eigenvalues and the eigenvectors of square matrices, both complex."""
    check_square(self, "linalg.eig")
    if self._dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"Unknown Complex ScalarType for {self._dtype.tensor_name}")
    check_has_lapack(self, "linalg_eig_out_cpu")
    kind = self._dtype.to_complex()
    vectors = Meta(self._shape, kind, self._device, column_strides(self._shape))
    return Meta(self._shape[:-1], kind, self._device), vectors


@linalg_eig.op.body
def eig_body(outs, self):
    check_finite(self)
    for_each_matrix(lambda a: lapack.eig(a, vectors=True), outs, self, fails="torch.linalg.eig")


@structured_by_lapack(
    "_linalg_eigvals(Tensor self) -> Tensor",
    by_host="QR iterations on a Hessenberg matrix",
    late_out=False,
)
def eigvals_only_op(self):
    return linalg_eig.op.meta_function(self)[0]


@eigvals_only_op.body
def eigvals_body(out, self):
    check_finite(self)
    for_each_matrix(lambda a: lapack.eig(a, vectors=False)[::2], (out,), self, fails="torch.linalg.eigvals")


@linalg_eig.op.gradient("self", for_complex=True)
def eig_backward(grads, result0, result1):
    """Does as `eigh_backward`, for vectors that are not orthogonal, and of length 1 each: V⁻ᴴ (...) Vᴴ."""
    (of_l, of_v), L, V = grads, result0, result1
    if of_v is None:
        return None if of_l is None else ops.aten.linalg_solve.default(V.mH, of_l.unsqueeze(-1) * V.mH)
    turned = V.mH.matmul(of_v)
    check_phase(turned, "linalg_eig", "eigenvectors")
    lengths = (turned.diagonal(0, -2, -1) + turned.diagonal(0, -2, -1).conj()) / 2
    inner = turned - V.mH.matmul(V * lengths.unsqueeze(-2))
    inner = over_gaps(inner, gaps_between(L.conj()))
    inner = inner if of_l is None else inner + of_l.diag_embed()
    return ops.aten.linalg_solve.default(V.mH, inner.matmul(V.mH))


linalg_eigvals = some_results(
    "linalg_eigvals(Tensor self) -> Tensor",
    linalg_eig,
    out_dtype=castable("torch.linalg.eigvals", "eigenvalues"),
    **FACTS,
    doc="Returns the eigenvalues of square matrices, which are complex.",
)

# --- qr --------------------------------------------------------------------------------------------------------------


@several_by_lapack(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)', out="out", **FACTS, refuses="whole halves"
)
def linalg_qr(A, mode):
    """Returns Q, with orthonormal columns, and the upper triangular R, with Q R = A."""
    check_matrix(A, "linalg.qr")
    check_floating(A, "linalg.qr")
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    *batch, m, n = A._shape
    k = m if mode == "complete" else min(m, n)
    Q = row_major((0,), A) if mode == "r" else column_major((*batch, m, k), A)
    return Q, column_major((*batch, k, n), A)


@linalg_qr.op.body
def qr_body(outs, A, mode):
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


@linalg_qr.op.gradient("A", for_complex=True)
def qr_backward(grads, result0, result1, mode):
    """For a square R: [grad_Q + Q S] R⁻ᴴ, S hermitian with the upper triangle of grad_R Rᴴ - Qᴴ grad_Q.

    Columns beyond those, A2 = Q R2, give R2 = Qᴴ A2 a part in the gradient of Q.
    """
    (of_q, of_r), Q, R = grads, result0, result1
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
            of_q = added(of_q, through_q)
            of_rest = Q.matmul(rest)
        of_first = qr_backward_square(of_q, of_first, Q, R[..., :m])
        return ops.aten.cat.default([of_first, of_rest], -1)
    return qr_backward_square(of_q, of_r, Q, R)


def qr_backward_square(of_q: Any, of_r: Any, Q: Any, R: Any) -> Any:
    inner = added(of_r if of_r is None else of_r.matmul(R.mH), of_q if of_q is None else -Q.mH.matmul(of_q))
    moved = added(of_q, Q.matmul(hermitian_from_upper(inner)))
    return linalg_solve_triangular.op.functional(R.mH, moved, upper=False, left=False)


qr = some_results(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    linalg_qr,
    lambda self, some: (self, "reduced" if some else "complete"),
    results=(0, 1),
    out="Q",
    autocast=CPU_FP32,
    doc="Returns Q and R with Q R = A, as `linalg.qr` does.",
)


@several_by_lapack(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    out="a",
    out_dtype=castable("torch.geqrf"),
    autocast=CPU_FP32,
    derivative=no_formula("geqrf"),
    batching="leading",
)
def geqrf(self):
    """Returns the QR factorization as LAPACK holds it: R above, the reflections below, and their factors."""
    if len(self._shape) < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    *batch, m, n = self._shape
    return column_major(self._shape, self), row_major((*batch, min(m, n)), self)


@geqrf.op.body
def geqrf_body(outs, self):
    check_has_lapack(self, "geqrf_cpu")
    for_each_matrix(lapack.geqrf, outs, self)


# --- products of reflections -----------------------------------------------------------------------------------------
#
# LAPACK keeps an orthogonal matrix as a product of reflections H = 1 - t v vᴴ: geqrf gives it, householder_product
# forms it, ormqr multiplies by it. Of reflection i, v is 0 above row i, 1 in row i, below it column i of the matrix; t
# is a number of `tau`.


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


@structured_by_lapack(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    out="out",
    out_dtype=castable("torch.linalg.householder_product"),
    autocast=CPU_FP32,
)
def linalg_householder_product(input, tau):
    """Returns the product of reflections, which come as geqrf gives them."""
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


@linalg_householder_product.op.body
def householder_product_body(out, input, tau):
    for_each_matrix(lapack.orgqr, (out,), input, tau, vectors=1)


@linalg_householder_product.op.gradient("input", "tau", for_complex=True)
def householder_product_backward(grad, input, tau):
    *batch, m, n = input.shape
    if not tau.numel():
        return None, None
    start = ops.aten.eye.m(m, n, dtype=input.dtype, device=input.device).expand([*batch, m, n])
    return reflect_backward(grad, input, tau, start)[:2]


orgqr = same_as(
    "orgqr(Tensor self, Tensor input2) -> Tensor",
    linalg_householder_product,
    out="out",
    out_dtype=castable("torch.linalg.householder_product"),
    autocast=CPU_FP32,
    refuses="whole halves",
    doc="Returns the product of reflections, as `linalg.householder_product` does.",
)


@structured_by_lapack(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    out="out",
    out_dtype=same_dtype(
        "torch.ormqr: Expected input and result to have the same dtype, "
        "but input has dtype{wanted} and result has dtype {found}"
    ),
    autocast=CPU_FP32,
    batching="leading",
)
def ormqr(self, input2, input3, left, transpose):
    """Returns the product of reflections and a matrix."""
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


@ormqr.op.body
def ormqr_body(out, self, input2, input3, left, transpose):
    for_each_matrix(lambda v, c, t: lapack.ormqr(v, t, c, left, transpose), (out,), self, input3, input2, vectors=1)


@ormqr.op.gradient("self", "input2", "input3", for_complex=True)
def ormqr_backward(grad, self, input2, input3, result, left, transpose, needs):
    """<G, dQ C> is what `reflect_backward` knows. <G, dQᴴ C> is <C, dQ G>, and <G, C dQ> is <Cᴴ, dQ Gᴴ>."""
    of_other = ormqr.op.functional(self, input2, grad, left, not transpose)
    if not (needs[0] or needs[1]) or not input2.numel():
        return None, None, of_other
    if left != transpose:
        product, start = (grad, input3) if left else (grad.mH, input3.mH)
    else:
        product, start = (input3, grad) if left else (input3.mH, grad.mH)
    of_vectors, of_tau, _ = reflect_backward(product, self, input2, start)
    return of_vectors, of_tau, of_other


# --- the largest singular values of a large matrix, by what it does to a few random vectors --------------------------
#
# Halko, Martinsson and Tropp, Finding structure with randomness, 2011, algorithms 4.4 and 5.1.


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
    """Returns the `q` principal components of rows of data: `svd_lowrank` of the matrix, less its columns' mean."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean([-2], True) if center else A, q, niter)
