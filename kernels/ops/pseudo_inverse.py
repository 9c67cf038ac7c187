"""Operators on matrices without an inverse: pinv, matrix_rank, cond, lstsq. Singular values below a tolerance count as
0.

The tolerance is the larger one of `atol` and `rtol` times the largest singular value; by default `rtol` is the number
of rows or columns, whichever is more, times the distance from 1 to the next number, and `atol` is 0.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtype, dtypes, empty, lay_out
from redispatch.kernels.cpu import lapack

from ..declare.operator import CPU_FP32, composite, kernel
from ..declare.public import public
from ..declare.structured import castable
from .matrices import (
    check_matrix,
    check_square,
    column_strides,
    common_batch,
    epsilon,
    for_each_matrix,
    is_low_precision,
)
from .norms import linalg_matrix_norm, matrix_norm_str_op
from .solving import is_vector, linalg_inv_ex
from .spectra import eigh_v_op, linalg_eigvalsh, linalg_svdvals, records, svd_uv_op

COND, PINV, RANK = (castable(name) for name in ("linalg.cond", "linalg.pinv", "torch.linalg.matrix_rank"))

# --- tolerances ------------------------------------------------------------------------------------------------------


def default_rtol(x: Tensor) -> float:
    if x._dtype.category < dtypes.FLOATING or is_low_precision(x._dtype):
        raise RuntimeError("This function doesn't handle types other than float and double")
    return epsilon(x._dtype) * max(x._shape[-2], x._shape[-1])


def full(x: Tensor, number: float) -> Tensor:
    """A tolerance as a tensor."""
    return ops.aten.full.default([], number, dtype=dtypes.float64, device=x.device)


def zeros(x: Tensor, kind: dtype = dtypes.float64) -> Tensor:
    return ops.aten.zeros.default([], dtype=kind, device=x.device)


def number_tolerances(x: Tensor, atol: float | None, rtol: float | None) -> tuple[Tensor, Tensor]:
    """Both as tensors; they are given as numbers, or None."""
    if rtol is None:
        rtol = 0.0 if atol is not None and atol > 0 else default_rtol(x)
    return full(x, 0.0 if atol is None else atol), full(x, rtol)


def tensor_tolerances(x: Tensor, atol: Any, rtol: Any, name: str) -> tuple[Any, Any]:
    """Both, with the defaults in the place of None."""
    for what, tolerance in (("atol", atol), ("rtol", rtol)):
        if tolerance is not None and tolerance._dtype.is_complex:
            raise RuntimeError(
                f"{name}: {what} tensor of complex type is not supported. Got {tolerance._dtype.tensor_name}"
            )
    if atol is None:
        return zeros(x), full(x, default_rtol(x)) if rtol is None else rtol
    if rtol is None:
        rtol, zero = full(x, default_rtol(x)), zeros(x)
        rtol = ops.aten.where.self(atol > 0, zero, rtol)
    return atol, rtol


def above(values: Any, largest: Any, atol: Any, rtol: Any) -> Any:
    """Finds the singular values that count."""
    relative = rtol.unsqueeze(-1) * largest
    return values > atol.unsqueeze(-1).maximum(relative)


# --- pinv -------------------------------------------------------------------------------------------------------------

HERMITIAN = "bool hermitian=False) -> Tensor"


@kernel(
    f"linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, {HERMITIAN}",
    out="atol_rtol_tensor_out",
    out_dtype=PINV,
    batching="leading",
    refuses="whole halves",
)
def pinv_tensor_op(self, atol, rtol, hermitian):
    """Returns the pseudo-inverses V S⁺ Uᴴ, with the inverses of the singular values that count, and 0 for the
    others."""
    if len(self._shape) < 2 or self._dtype.category < dtypes.FLOATING or is_low_precision(self._dtype):
        raise RuntimeError(
            f"linalg.pinv({self._dtype.tensor_name}{{{list(self._shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    atol, rtol = tensor_tolerances(self, atol, rtol, "torch.linalg.pinv")
    if not self.numel():
        *batch, m, n = self.shape
        return ops.aten.empty.memory_format([*batch, n, m], dtype=self.dtype, device=self.device)
    if hermitian:
        values, U = eigh_v_op.functional(self)
        sizes = values.abs()
        V, largest = U, sizes.amax(-1, True)
    else:
        U, values, Vh = svd_uv_op.functional(self)
        sizes, V, largest = values, Vh.mH, values.narrow(-1, 0, 1)
    inverses = ops.aten.where.self(above(sizes, largest, atol, rtol), values.reciprocal(), values.new_zeros([]))
    return (V * inverses.to(self.dtype).unsqueeze(-2)).matmul(U.mH)


@pinv_tensor_op.gradient("self", for_complex=True)
def pinv_backward(grad, self, result):
    """Golub and Pereyra, The differentiation of pseudo-inverses, 1973: for a rank that stays the same,
    dA⁺ = -A⁺ dA A⁺ + A⁺ A⁺ᴴ dAᴴ (1 - A A⁺) + (1 - A⁺ A) dAᴴ A⁺ᴴ A⁺."""
    A, P, g = self, result, grad.mH
    if A.shape[-2] <= A.shape[-1]:
        inner = g.matmul(P)
        outer = inner.matmul(P.mH)
        return -P.matmul(inner).mH + outer - A.matmul(P).matmul(outer) + P.mH.matmul(P).matmul(g - inner.matmul(A))
    inner = P.matmul(g)
    outer = P.mH.matmul(inner)
    return -inner.matmul(P).mH + (g - A.matmul(inner)).matmul(P).matmul(P.mH) + outer - outer.matmul(P).matmul(A)


@composite(
    f"linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, {HERMITIAN}",
    out="atol_rtol_float_out",
    out_dtype=PINV,
)
def pinv_float_op(self, atol, rtol, hermitian):
    atol, rtol = number_tolerances(self, atol, rtol)
    return pinv_tensor_op.functional(self, atol=atol, rtol=rtol, hermitian=hermitian)


@composite(f"linalg_pinv(Tensor self, float rcond, {HERMITIAN}", out="out", out_dtype=PINV, face=False)
def pinv_rcond_op(self, rcond, hermitian):
    return pinv_float_op.functional(self, atol=0.0, rtol=rcond, hermitian=hermitian)


@composite(f"linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, {HERMITIAN}", out="out_rcond_tensor", out_dtype=PINV)
def pinv_rcond_tensor_op(self, rcond, hermitian):
    return pinv_tensor_op.functional(self, atol=zeros(self), rtol=rcond, hermitian=hermitian)


linalg_pinv = public(pinv_tensor_op, pinv_float_op, pinv_rcond_tensor_op, pinv_rcond_op)


@composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor", autocast=CPU_FP32, refuses="whole halves")
def pinverse(self, rcond):
    """Returns the pseudo-inverses of matrices, as `linalg.pinv` does."""
    return pinv_rcond_op.functional(self, rcond)


# --- matrix_rank ------------------------------------------------------------------------------------------------------


def rank(x: Any, tolerances: Any, hermitian: bool) -> Any:
    """Counts the singular values that count."""
    check_matrix(x, "torch.linalg.matrix_rank", "input")
    atol, rtol = tolerances()
    if not x.numel():
        return ops.aten.zeros.default(x.shape[:-2], dtype=dtypes.int64, device=x.device)
    if hermitian:
        values = linalg_eigvalsh.op.functional(x).abs()
        largest = values.amax(-1, True)
    else:
        values = linalg_svdvals.op.functional(x)
        largest = values.narrow(-1, 0, 1)
    return above(values, largest, atol, rtol).sum(-1)


ranked = partial(composite, autocast=CPU_FP32, face=False)


@ranked(
    f"linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, {HERMITIAN}",
    out="atol_rtol_tensor_out",
    out_dtype=RANK,
    refuses="whole halves",
)
def rank_tensor_op(input, atol, rtol, hermitian):
    """Returns the number of singular values of matrices that are larger than a tolerance."""
    return rank(input, lambda: tensor_tolerances(input, atol, rtol, "torch.linalg.matrix_rank"), hermitian)


@ranked(
    f"linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, {HERMITIAN}",
    out="atol_rtol_float_out",
    out_dtype=RANK,
)
def rank_float_op(self, atol, rtol, hermitian):
    return rank(self, lambda: number_tolerances(self, atol, rtol), hermitian)


@ranked(f"linalg_matrix_rank(Tensor self, float tol, {HERMITIAN}", out="out", out_dtype=RANK)
def rank_tol_op(self, tol, hermitian):
    return rank_float_op.functional(self, atol=tol, rtol=0.0, hermitian=hermitian)


@ranked(f"linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, {HERMITIAN}", out="out_tol_tensor", out_dtype=RANK)
def rank_tol_tensor_op(input, tol, hermitian):
    return rank_tensor_op.functional(input, atol=tol, rtol=zeros(input, tol._dtype), hermitian=hermitian)


linalg_matrix_rank = public(rank_tensor_op, rank_float_op, rank_tol_tensor_op, rank_tol_op)

# --- cond -------------------------------------------------------------------------------------------------------------


def condition(self: Any, p: Any) -> Any:
    """The norm of A times that of its inverse: for p = 2, the largest singular value divided by the least."""
    if len(self._shape) < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in ("fro", "nuc") and (isinstance(p, str) or abs(p) not in (1, 2, math.inf)):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p not in (2, -2):
        check_square(self, f"linalg.cond(ord={p})")
    if not self.numel():
        return ops.aten.zeros.default(self.shape[:-2], dtype=self.dtype.to_real(), device=self.device)
    if p in (2, -2, "nuc"):
        values = linalg_svdvals.op.functional(self)
        if p == "nuc":
            of_inverse = values.reciprocal().sum(-1)
            return values.sum(-1) * of_inverse
        largest, least = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
        return (largest / least if p == 2 else least / largest).squeeze(-1)
    inverse, info = linalg_inv_ex.op.functional(self)
    info.unsqueeze_(-1).unsqueeze_(-1)
    singular = info > 0
    if records(self):  # the inverse is what its derivative is made of
        inverse = inverse.masked_fill(singular, math.inf)
    else:
        inverse.masked_fill_(singular, math.inf)
    norm = matrix_norm_str_op if isinstance(p, str) else linalg_matrix_norm.op
    size = norm.functional(self, p)
    found = size * norm.functional(inverse, p)
    return found.nan_to_num_(math.inf, math.inf, -math.inf)


@ranked("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", out="out", out_dtype=COND, refuses="whole halves")
def cond_op(self, p):
    """Returns the condition number of matrices: the norm times that of the inverse."""
    return condition(self, 2 if p is None else p)


cond_str_op = ranked("linalg_cond.p_str(Tensor self, str p) -> Tensor", out="p_str_out", out_dtype=COND)(condition)
linalg_cond = public(cond_op, cond_str_op)

# --- lstsq ------------------------------------------------------------------------------------------------------------

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def check_lstsq(self: Tensor, b: Tensor, driver: str) -> None:
    name = "torch.linalg.lstsq"
    if len(self._shape) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if not b._shape:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if self._dtype is not b._dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{self._dtype.tensor_name} and other's dtype {b._dtype.tensor_name}"
        )
    if not 0 <= len(self._shape) - len(b._shape) <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    vector = is_vector(self, b)
    rows = b._shape[-1] if vector else b._shape[-2]
    if rows != self._shape[-2]:
        side = -1 if vector else -2
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({side})")
    if driver not in DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")


@kernel(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) "
    "-> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    "CPU",
    out="out",
    out_dtype=castable("torch.linalg.lstsq"),
    out_names=("solution", "residuals", "rank", "singular_values"),
    autocast=CPU_FP32,
    by_host="four algorithms, of which three find a rank on the way",
    refuses="whole halves",
)
def linalg_lstsq(self, b, rcond, driver):
    """Returns the X for which A X is next to B, residuals, rank and singular values of A."""
    way = driver or "gelsy"
    check_lstsq(self, b, way)
    limit = default_rtol(self) if rcond is None else rcond
    vector = is_vector(self, b)
    right = as_numpy(b)[..., None] if vector else as_numpy(b)
    m, n = self._shape[-2:]
    batch, count = common_batch(self._shape, right.shape), right.shape[-1]
    shape = (*batch, max(m, n), count)
    solution = empty(shape, self._dtype, strides=column_strides(shape))
    ranks, values = np.zeros(batch, np.int64), np.zeros((*batch, min(m, n)), as_numpy(self).real.dtype)
    found = (solution, ranks, values)
    for_each_matrix(lambda a, c: lapack.least_squares(a, c, limit, way), found, self, right, fails="torch.linalg.lstsq")
    residuals: Any = np.zeros(0, values.dtype)
    if m > n and way != "gelsy" and (way == "gels" or (ranks == n).all()):
        rest = as_numpy(solution)[..., n:, :]
        residuals = (abs(rest) ** 2).sum(axis=-2)
    strides = solution._stride[:-1] if vector else solution._stride
    lay_out(solution, Size((*batch, n) if vector else (*batch, n, count)), strides, 0)
    nothing = np.zeros(0)
    return (
        solution,
        holding(residuals, self._dtype.to_real()),
        holding(nothing if way == "gels" else ranks, dtypes.int64),
        holding(values if way in ("gelsd", "gelss") else nothing, self._dtype.to_real()),
    )


def holding(values: np.ndarray, kind: dtype) -> Tensor:
    """A new tensor with these values."""
    made = empty(values.shape, kind)
    as_numpy(made)[...] = values
    return made


@linalg_lstsq.op.gradient("self", "b", nondifferentiable=(2, 3), for_complex=True)
def lstsq_backward(grads, self, b, result0):
    """The solution is A⁺ B. The residuals are the squares of R = A X - B; that X moves does not change them."""
    of_x, of_residuals = grads[:2]
    if is_vector(self, b):
        b, result0 = b.unsqueeze(-1), result0.unsqueeze(-1)
        of_x = None if of_x is None else of_x.unsqueeze(-1)
        of_a, of_b = lstsq_backward((of_x, of_residuals), self, b, result0)
        return of_a, None if of_b is None else of_b.squeeze(-1)
    of_a = of_b = None
    if of_x is not None:
        inverse = pinv_tensor_op.functional(self)
        of_a = pinv_backward(of_x.matmul(b.mH), self, inverse)
        of_b = inverse.mH.matmul(of_x)
    if of_residuals is not None and of_residuals.numel():
        doubled = (self.matmul(result0) - b) * (2 * of_residuals.unsqueeze(-2))
        through_a = doubled.matmul(result0.mH)
        of_a = through_a if of_a is None else of_a + through_a
        of_b = -doubled if of_b is None else of_b - doubled
    return of_a, of_b
