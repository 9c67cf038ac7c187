"""Singular values and eigenvalues, with their vectors.

Vectors are known but for a factor: of sign, or of phase for complex ones. A function that depends on it has no
gradient, and says so where it can be seen. Read next: pseudo_inverse.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.autograd import is_grad_enabled, is_transformed
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes, is_elsewhere, shown
from redispatch.kernels.cpu import lapack

from ..declare.declare import Operator
from ..declare.public import public
from ..declare.several import Several
from ..declare.structured import Meta, Structured
from .matrices import (
    check_floating,
    check_has_lapack,
    check_matrix,
    check_square,
    column_major,
    column_strides,
    for_each_matrix,
    raise_for,
    row_major,
    some_results,
)


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

svd_uv_op = Several(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
    "-> (Tensor U, Tensor S, Tensor Vh)",
    out="U",
    refuses="whole halves",
    by_host="QR iterations on a bidiagonal matrix, a step after the other",
)


@svd_uv_op.metas
def svd_metas(A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None) -> tuple[Meta, ...]:
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
def svd_body(outs: tuple[Tensor, ...], A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    check_has_lapack(A, "linalg_svd_cpu")
    info = np.zeros(A._shape[:-2], np.int32)

    def one(a: np.ndarray) -> tuple[Any, ...]:
        *found, code = lapack.svd(a, full_matrices, compute_uv)
        u, s, vh = (0, 0, 0) if code else found
        return (u, s, vh, code) if compute_uv else (s, code)

    for_each_matrix(one, (*outs, info) if compute_uv else (outs[1], info), A)
    raise_for(info, "linalg.svd", len(A._shape) == 2)


def svd_backward(grads: Any, U: Any, S: Any, Vh: Any) -> Any:
    """Townsend, Differentiating the singular value decomposition, 2016; Uᴴ dA V = Uᴴ dU S + dS + S dVᴴ V."""
    of_u, of_s, of_vh = grads
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
        phases = [x for x in (turned_u, turned_v) if x is not None]
        check_phase(phases[0] if len(phases) == 1 else phases[0] + phases[1], "svd", "singular vectors")
    if turned_u is not None:
        part = over_gaps(skew(turned_u), gaps) * columns
        inner = part if inner is None else inner + part
        if U._dtype.is_complex:
            inner = inner + (skew(turned_u).diagonal(0, -2, -1) / (2 * S)).diag_embed()
    if turned_v is not None:
        part = rows * over_gaps(skew(turned_v), gaps)
        inner = part if inner is None else inner + part
    of_a = U.matmul(inner).matmul(Vh)
    if m > k and of_u is not None:
        of_a = of_a + ((of_u - U.matmul(turned_u)) / columns).matmul(Vh)
    if n > k and of_vh is not None:
        of_a = of_a + U.matmul((of_vh - of_vh.matmul(Vh.mH).matmul(Vh)) / rows)
    return of_a


svd_uv_op.derivative(
    A=lambda grads, result0, result1, result2: svd_backward(grads, result0, result1, result2), for_complex=True
)

linalg_svd_op = Operator(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    out="U",
    refuses="whole halves",
)
svdvals_op = Operator("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", out="out", refuses="whole halves")
some_results(
    linalg_svd_op, svd_uv_op, lambda A, full_matrices, driver: (A, full_matrices, True, driver), results=(0, 1, 2)
)
some_results(svdvals_op, svd_uv_op, lambda A, driver: (A, False, records(A), driver), results=(1,))
linalg_svd_op.autocast(cpu="fp32")
linalg_svd = public(linalg_svd_op, method=False, doc="Returns U, the singular values S and Vᴴ, with U diag(S) Vᴴ = A.")
svdvals_op.autocast(cpu="fp32")
linalg_svdvals = public(svdvals_op, method=False, doc="Returns the singular values of matrices, the largest first.")

svd_op = Operator(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    out="U",
    refuses="whole halves",
)


@svd_op.implicit
def svd_composite(self: Any, some: bool, compute_uv: bool) -> tuple[Any, Any, Any]:
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


@svd_op.kernel_out("CompositeImplicitAutograd")
def svd_out(self: Any, some: bool, compute_uv: bool, *outs: Any) -> tuple[Any, ...]:
    for out, result in zip(outs, svd_op.functional(self, some, compute_uv), strict=True):
        out.resize_(result.shape).copy_(result)
    return outs


svd_op.autocast(cpu="fp32")
svd = public(svd_op)

# --- eigh ------------------------------------------------------------------------------------------------------------

eigh_v_op = Several(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    out="eigenvalues",
    refuses="whole halves",
    by_host="QR iterations on a tridiagonal matrix, a step after the other",
)


@eigh_v_op.metas
def eigh_metas(A: Tensor, UPLO: str, compute_v: bool) -> tuple[Meta, ...]:
    check_square(A, "linalg.eigh")
    if UPLO[:1].upper() not in ("L", "U") or not UPLO:
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    values = Meta(A._shape[:-1], A._dtype.to_real(), A._device)
    return values, column_major(A._shape, A) if compute_v else row_major((0,), A)


@eigh_v_op.body
def eigh_body(outs: tuple[Tensor, ...], A: Tensor, UPLO: str, compute_v: bool) -> None:
    check_has_lapack(A, "linalg_eigh_cpu")
    info = np.zeros(A._shape[:-2], np.int32)

    def one(a: np.ndarray) -> tuple[Any, ...]:
        *found, code = lapack.eigh(a, UPLO[:1].upper() == "U", compute_v)
        values, vectors = (0, 0) if code else found
        return (values, vectors, code) if compute_v else (values, code)

    for_each_matrix(one, (*outs, info) if compute_v else (outs[0], info), A)
    raise_for(info, "linalg.eigh", len(A._shape) == 2)


def eigh_backward(grads: Any, L: Any, V: Any) -> Any:
    """Vᴴ dA V = dL + [Vᴴ dV, L]: off the diagonal, Vᴴ dV is that, divided by the gaps between eigenvalues."""
    of_l, of_v = grads
    if V.dim() < 2:
        raise RuntimeError(
            "linalg_eigh_backward: the derivative needs the eigenvectors, which compute_v=False leaves out"
        )
    if of_v is None:
        return None if of_l is None else (V * of_l.unsqueeze(-2)).matmul(V.mH)
    turned = V.mH.matmul(of_v)
    if V._dtype.is_complex:
        check_phase(turned, "linalg_eigh", "eigenvectors")
    inner = over_gaps(turned, gaps_between(L))
    inner = inner if of_l is None else inner + of_l.to(V.dtype).diag_embed()
    return V.matmul(inner).matmul(V.mH)


def gaps_between(L: Any) -> Any:
    """gaps[i, j] = L[j] - L[i]."""
    return L.unsqueeze(-2) - L.unsqueeze(-1)


eigh_v_op.derivative(A=lambda grads, result0, result1: eigh_backward(grads, result0, result1), for_complex=True)

eigh_op = Operator(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    out="eigvals",
    out_names=("eigvals", "eigvecs"),
    refuses="whole halves",
)
eigvalsh_op = Operator('linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor', out="out", refuses="whole halves")
some_results(eigh_op, eigh_v_op, lambda self, UPLO: (self, UPLO, True), results=(0, 1))
some_results(eigvalsh_op, eigh_v_op, lambda self, UPLO: (self, UPLO, records(self)))
eigh_op.autocast(cpu="fp32")
linalg_eigh = public(
    eigh_op, method=False, doc="Returns the ascending eigenvalues and the eigenvectors of Hermitian matrices."
)
eigvalsh_op.autocast(cpu="fp32")
linalg_eigvalsh = public(
    eigvalsh_op, method=False, doc="Returns the eigenvalues of Hermitian matrices, in ascending order."
)

# --- eig -------------------------------------------------------------------------------------------------------------

eig_op = Several(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    out="out",
    refuses="whole halves",
    by_host="QR iterations on a Hessenberg matrix",
)
eigvals_only_op = Structured(
    "_linalg_eigvals(Tensor self) -> Tensor",
    refuses="whole halves",
    late_out=False,
    by_host="QR iterations on a Hessenberg matrix",
)
eigvals_op = Operator("linalg_eigvals(Tensor self) -> Tensor", out="out", refuses="whole halves")


def check_eig(self: Tensor) -> None:
    check_square(self, "linalg.eig")
    if self._dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"Unknown Complex ScalarType for {self._dtype.tensor_name}")
    check_has_lapack(self, "linalg_eig_out_cpu")


def check_finite(self: Tensor) -> None:
    if not np.isfinite(as_numpy(self)).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


@eig_op.metas
def eig_metas(self: Tensor) -> tuple[Meta, ...]:
    check_eig(self)
    kind = self._dtype.to_complex()
    vectors = Meta(self._shape, kind, self._device, column_strides(self._shape))
    return Meta(self._shape[:-1], kind, self._device), vectors


@eig_op.body
def eig_body(outs: tuple[Tensor, ...], self: Tensor) -> None:
    """Returns the eigenvalues and the eigenvectors of square matrices, both complex."""
    check_finite(self)
    info = np.zeros(self._shape[:-2], np.int32)
    for_each_matrix(lambda a: lapack.eig(a, vectors=True), (*outs, info), self)
    raise_for(info, "torch.linalg.eig", len(self._shape) == 2)


@eigvals_only_op.meta
def eigvals_meta(self: Tensor) -> Meta:
    return eig_metas(self)[0]


@eigvals_only_op.body
def eigvals_body(out: Tensor, self: Tensor) -> None:
    check_finite(self)
    info = np.zeros(self._shape[:-2], np.int32)

    def one(a: np.ndarray) -> tuple[np.ndarray, int]:
        values, _, code = lapack.eig(a, vectors=False)
        return values, code

    for_each_matrix(one, (out, info), self)
    raise_for(info, "torch.linalg.eigvals", len(self._shape) == 2)


def eig_backward(grads: Any, L: Any, V: Any) -> Any:
    """As `eigh_backward`, for vectors that are not orthogonal, and of length 1 each: V⁻ᴴ (...) Vᴴ."""
    of_l, of_v = grads
    if of_v is None:
        return None if of_l is None else ops.aten.linalg_solve.default(V.mH, of_l.unsqueeze(-1) * V.mH)
    turned = V.mH.matmul(of_v)
    check_phase(turned, "linalg_eig", "eigenvectors")
    lengths = (turned.diagonal(0, -2, -1) + turned.diagonal(0, -2, -1).conj()) / 2
    inner = turned - V.mH.matmul(V * lengths.unsqueeze(-2))
    inner = over_gaps(inner, gaps_between(L.conj()))
    inner = inner if of_l is None else inner + of_l.diag_embed()
    return ops.aten.linalg_solve.default(V.mH, inner.matmul(V.mH))


eig_op.derivative(self=lambda grads, result0, result1: eig_backward(grads, result0, result1), for_complex=True)
some_results(eigvals_op, eig_op, lambda self: (self,))
eig_op.autocast(cpu="fp32")
linalg_eig = public(eig_op, method=False)
eigvals_op.autocast(cpu="fp32")
linalg_eigvals = public(eigvals_op, method=False, doc="Returns the eigenvalues of square matrices, which are complex.")
