"""Factors of symmetric and hermitian matrices: Cholesky's for positive definite ones, L D Lᵀ for the others.

Only one triangle of the matrix is read. Read next: orthogonal.py.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import as_numpy, dtypes
from redispatch.kernels.cpu import lapack

from ..declare.operator import CPU_FP32, kernel, several, structured
from ..declare.structured import Meta, common_device
from .matrices import (
    check_floating,
    check_has_lapack,
    check_pair,
    check_square,
    column_major,
    column_strides,
    common_batch,
    for_each_matrix,
    integers,
    raise_for,
    some_results,
)
from .solving import linalg_solve_triangular

# --- the factorisation -----------------------------------------------------------------------------------------------


@several(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    out="L",
    derivative=lambda grad, result0, upper: cholesky_backward(grad, result0, upper),
    nondifferentiable=(1,),
    for_complex=True,
    autocast=CPU_FP32,
    refuses="whole halves",
)
def linalg_cholesky_ex(self, upper, check_errors):
    """Returns the Cholesky factors of positive definite matrices, and where the factorization failed."""
    check_square(self, "linalg.cholesky", floating=True)
    return column_major(self._shape, self), integers(self._shape[:-2], self)


@linalg_cholesky_ex.op.body
def cholesky_ex_body(outs, self, upper, check_errors):
    check_has_lapack(self, "cholesky_cpu")
    for_each_matrix(lambda a: lapack.cholesky(a, upper), outs, self)
    if check_errors:
        raise_for(outs[1], "linalg.cholesky_ex", len(self._shape) == 2)


def cholesky_backward(grad: Any, factor: Any, upper: bool) -> Any:
    """d(L Lᴴ) gives L⁻¹ dA L⁻ᴴ = X + Xᴴ with X = L⁻¹ dL, a lower triangle whose diagonal counts twice.

    The gradient comes out hermitian: that of a matrix both of whose triangles move.
    """
    L, of_l = (factor.mH, grad.mH) if upper else (factor, grad)
    inner = L.mH.matmul(of_l).tril()
    inner = (inner + inner.tril(-1).mH) * 0.5
    inner = linalg_solve_triangular.op.functional(L.mH, inner, upper=True)
    return linalg_solve_triangular.op.functional(L, inner, upper=False, left=False)


linalg_cholesky = some_results(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
    linalg_cholesky_ex,
    (False,),
    check="linalg.cholesky",
    out="out",
    autocast=CPU_FP32,
    refuses="whole halves",
    doc="Returns the triangular L with L Lᴴ = A of positive definite matrices A.",
)


@structured(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    out="out",
    derivative=lambda grad, result, upper: cholesky_backward(grad, result, upper),
    for_complex=True,
    autocast=CPU_FP32,
    batching="leading",
    refuses="whole halves",
)
def cholesky(self, upper):
    """Returns the Cholesky factors of positive definite matrices, as `linalg.cholesky` does."""
    check_square(self, "cholesky")
    return column_major(self._shape, self)


def warn_of_cholesky() -> None:
    warnings.warn(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.",
        UserWarning,
        stacklevel=3,
    )


@cholesky.op.body
def cholesky_body(out, self, upper):
    warn_of_cholesky()
    check_has_lapack(self, "cholesky_cpu")
    for_each_matrix(lambda a: lapack.cholesky(a, upper), (out,), self, fails="cholesky")


# --- with the factor -------------------------------------------------------------------------------------------------


@structured(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    out="out",
    autocast=CPU_FP32,
    batching="leading",
    refuses="whole halves",
)
def cholesky_inverse(self, upper):
    """Returns the inverses of the matrices that have these Cholesky factors."""
    check_square(self, "cholesky_inverse")
    return column_major(self._shape, self)


@cholesky_inverse.op.body
def cholesky_inverse_body(out, self, upper):
    check_has_lapack(self, "cholesky_inverse_out_cpu")
    for_each_matrix(lambda a: lapack.cholesky_inverse(a, upper), (out,), self, fails="cholesky_inverse")


@cholesky_inverse.op.gradient("self", for_complex=True)
def cholesky_inverse_backward(grad, self, result, upper):
    """dA⁻¹ = -A⁻¹ dA A⁻¹ for A = L Lᴴ, or Uᴴ U."""
    inner = result.matmul(grad + grad.mH).matmul(result)
    return -self.triu().matmul(inner).triu() if upper else -inner.matmul(self.tril()).tril()


@structured(
    "_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
    out="out",
    batching="leading",
    refuses="whole halves",
)
def cholesky_solve_helper_op(self, A, upper):
    return column_major(self._shape, self)


@cholesky_solve_helper_op.body
def cholesky_solve_body(out, self, A, upper):
    check_has_lapack(self, "cholesky_solve_cpu")
    for_each_matrix(lambda b, a: lapack.cholesky_solve(a, b, upper), (out,), self, A)


@kernel(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    out="out",
    autocast=CPU_FP32,
    refuses="whole halves",
)
def cholesky_solve(self, input2, upper):
    """Returns X of A X = B, where A comes as its Cholesky factor."""
    for name, x in (("b", self), ("u", input2)):
        if len(x._shape) < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {len(x._shape)} dimensions instead")
    check_pair(self, input2, "cholesky_solve")
    batch = common_batch(self._shape, input2._shape)
    b, a = (x.expand((*batch, *x._shape[-2:])) for x in (self, input2))
    return cholesky_solve_helper_op.functional(b, a, upper)


@cholesky_solve.op.gradient("self", "input2", for_complex=True)
def cholesky_solve_backward(grad, input2, result, upper):
    of_b = cholesky_solve.op.functional(grad, input2, upper)
    moved = of_b.matmul(result.mH)
    moved = moved + moved.mH
    return of_b, -input2.triu().matmul(moved).triu() if upper else -moved.matmul(input2.tril()).tril()


# --- L D Lᵀ ----------------------------------------------------------------------------------------------------------


@several(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    out="out",
    by_host="pivots of Bunch and Kaufman are chosen between two searches of every column",
    refuses="whole halves",
)
def linalg_ldl_factor_ex(self, hermitian, check_errors):
    """Returns the LDL factors of symmetric or Hermitian matrices, their pivots, and where the factorization failed."""
    check_square(self, "torch.linalg.ldl_factor_ex", floating=True)
    check_has_lapack(self, "ldl_factor_kernel_cpu")
    return column_major(self._shape, self), integers(self._shape[:-1], self), integers(self._shape[:-2], self)


@linalg_ldl_factor_ex.op.body
def ldl_factor_body(outs, self, hermitian, check_errors):
    for_each_matrix(lambda a: lapack.ldl(a, hermitian), outs, self)
    if check_errors:
        raise_for(outs[2], "torch.linalg.ldl_factor_ex", len(self._shape) == 2)


linalg_ldl_factor = some_results(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    linalg_ldl_factor_ex,
    (False,),
    results=(0, 1),
    check="torch.linalg.ldl_factor",
    out="out",
    refuses="whole halves",
    doc="Returns the LDL factors of symmetric or Hermitian matrices, and their pivots.",
)


@structured(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    out="out",
    by_host="its pivots are LAPACK's, and are looked at before they are used",
    refuses="whole halves",
)
def linalg_ldl_solve(LD, pivots, B, hermitian):
    """Returns X of A X = B, where A comes as its LDL factors."""
    name = "torch.linalg.ldl_solve"
    check_square(LD, name)
    if len(B._shape) < 2:
        raise RuntimeError(f"{name}: Expected B to have at least 2 dimensions, but it has {len(B._shape)} dimensions")
    if LD._shape[:-1] != pivots._shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots._shape)} instead"
        )
    if pivots._dtype.category != dtypes.INTEGER:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots._dtype.tensor_name}")
    check_pair(B, LD, name)
    check_floating(LD, name)
    check_has_lapack(LD, "ldl_solve_kernel_cpu")
    shape = (*common_batch(LD._shape, B._shape), *B._shape[-2:])
    return Meta(shape, B._dtype, common_device(LD, B), column_strides(shape))


def blocks_fit(pivots: np.ndarray) -> bool:
    """Whether LAPACK stays in the matrix: rows count from 1, and two that form a block have the same negative one."""
    n, i = len(pivots), 0
    while i < n:
        pair = pivots[i] < 0
        if not 1 <= abs(pivots[i]) <= n or (pair and (i + 1 == n or pivots[i + 1] != pivots[i])):
            return False
        i += 2 if pair else 1
    return True


@linalg_ldl_solve.op.body
def ldl_solve_body(out, LD, pivots, B, hermitian):
    numbers = as_numpy(pivots)
    if not all(blocks_fit(numbers[at]) for at in np.ndindex(numbers.shape[:-1])):
        raise RuntimeError("torch.linalg.ldl_solve: these are no pivots as ldl_factor gives them")
    for_each_matrix(
        lambda factors, b, exchanges: lapack.ldl_solve(factors, exchanges, b, hermitian),
        (out,),
        LD,
        B,
        pivots,
        vectors=1,
    )
