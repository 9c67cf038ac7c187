"""Factors of symmetric and hermitian matrices: Cholesky's for positive definite ones, L D Lᵀ for the others.

Only one triangle of the matrix is read. Read next: orthogonal.py.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes
from redispatch.kernels.cpu import lapack
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.public import public
from ..declare.several import Several
from ..declare.structured import Meta, Structured, common_device
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
from .solving import solve_triangular_op

# --- the factorisation -----------------------------------------------------------------------------------------------

cholesky_ex_op = Several(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    out="L",
    refuses="whole halves",
)


@cholesky_ex_op.metas
def cholesky_metas(self: Tensor, upper: bool, check_errors: bool) -> tuple[Meta, ...]:
    check_square(self, "linalg.cholesky")
    check_floating(self, "linalg.cholesky")
    return column_major(self._shape, self), integers(self._shape[:-2], self)


@cholesky_ex_op.body
def cholesky_ex_body(outs: tuple[Tensor, ...], self: Tensor, upper: bool, check_errors: bool) -> None:
    """Returns the Cholesky factors of positive definite matrices, and where the factorization failed."""
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
    inner = solve_triangular_op.functional(L.mH, inner, upper=True)
    return solve_triangular_op.functional(L, inner, upper=False, left=False)


cholesky_ex_op.derivative(
    self=lambda grad, result0, upper: cholesky_backward(grad, result0, upper), nondifferentiable=(1,), for_complex=True
)

linalg_cholesky_op = Operator(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", out="out", refuses="whole halves"
)


some_results(linalg_cholesky_op, cholesky_ex_op, lambda self, upper: (self, upper, False), check="linalg.cholesky")
cholesky_ex_op.autocast(cpu="fp32")
linalg_cholesky_ex = public(cholesky_ex_op, method=False)
linalg_cholesky_op.autocast(cpu="fp32")
linalg_cholesky = public(
    linalg_cholesky_op, method=False, doc="Returns the triangular L with L Lᴴ = A of positive definite matrices A."
)

cholesky_op = Structured(
    "cholesky(Tensor self, bool upper=False) -> Tensor", out="out", refuses="whole halves", batching="leading"
)


@cholesky_op.meta
def cholesky_meta(self: Tensor, upper: bool) -> Meta:
    check_square(self, "cholesky")
    return column_major(self._shape, self)


def warn_of_cholesky() -> None:
    warnings.warn(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.",
        UserWarning,
        stacklevel=3,
    )


@cholesky_op.body
def cholesky_body(out: Tensor, self: Tensor, upper: bool) -> None:
    """Returns the Cholesky factors of positive definite matrices, as `linalg.cholesky` does."""
    warn_of_cholesky()
    check_has_lapack(self, "cholesky_cpu")
    info = np.zeros(self._shape[:-2], np.int32)
    for_each_matrix(lambda a: lapack.cholesky(a, upper), (out, info), self)
    raise_for(info, "cholesky", len(self._shape) == 2)


cholesky_op.derivative(self=lambda grad, result, upper: cholesky_backward(grad, result, upper), for_complex=True)
cholesky_op.autocast(cpu="fp32")
cholesky = public(cholesky_op)

# --- with the factor -------------------------------------------------------------------------------------------------

cholesky_inverse_op = Structured(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", out="out", refuses="whole halves", batching="leading"
)


@cholesky_inverse_op.meta
def cholesky_inverse_meta(self: Tensor, upper: bool) -> Meta:
    check_square(self, "cholesky_inverse")
    return column_major(self._shape, self)


@cholesky_inverse_op.body
def cholesky_inverse_body(out: Tensor, self: Tensor, upper: bool) -> None:
    """Returns the inverses of the matrices that have these Cholesky factors."""
    check_has_lapack(self, "cholesky_inverse_out_cpu")
    info = np.zeros(self._shape[:-2], np.int32)
    for_each_matrix(lambda a: lapack.cholesky_inverse(a, upper), (out, info), self)
    raise_for(info, "cholesky_inverse", len(self._shape) == 2)


def cholesky_inverse_backward(grad: Any, self: Any, result: Any, upper: bool) -> Any:
    """dA⁻¹ = -A⁻¹ dA A⁻¹ for A = L Lᴴ, or Uᴴ U."""
    inner = result.matmul(grad + grad.mH).matmul(result)
    return -self.triu().matmul(inner).triu() if upper else -inner.matmul(self.tril()).tril()


cholesky_inverse_op.derivative(self=cholesky_inverse_backward, for_complex=True)
cholesky_inverse_op.autocast(cpu="fp32")
cholesky_inverse = public(cholesky_inverse_op)

cholesky_solve_op = Operator(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", out="out", refuses="whole halves"
)
cholesky_solve_helper_op = Structured(
    "_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
    out="out",
    refuses="whole halves",
    batching="leading",
)


@cholesky_solve_helper_op.meta
def cholesky_solve_meta(self: Tensor, A: Tensor, upper: bool) -> Meta:
    return column_major(self._shape, self)


@cholesky_solve_helper_op.body
def cholesky_solve_body(out: Tensor, self: Tensor, A: Tensor, upper: bool) -> None:
    check_has_lapack(self, "cholesky_solve_cpu")
    for_each_matrix(lambda b, a: lapack.cholesky_solve(a, b, upper), (out,), self, A)


@cholesky_solve_op.explicit
def cholesky_solve_kernel(self: Any, input2: Any, upper: bool) -> Tensor:
    """Returns X of A X = B, where A comes as its Cholesky factor."""
    for name, x in (("b", self), ("u", input2)):
        if len(x._shape) < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {len(x._shape)} dimensions instead")
    check_pair(self, input2, "cholesky_solve")
    batch = common_batch(self._shape, input2._shape)
    b, a = (x.expand((*batch, *x._shape[-2:])) for x in (self, input2))
    return cholesky_solve_helper_op.functional(b, a, upper)


def cholesky_solve_backward(grad: Any, input2: Any, result: Any, upper: bool) -> tuple[Any, Any]:
    of_b = cholesky_solve_op.functional(grad, input2, upper)
    moved = of_b.matmul(result.mH)
    moved = moved + moved.mH
    return of_b, -input2.triu().matmul(moved).triu() if upper else -moved.matmul(input2.tril()).tril()


cholesky_solve_op.derivative((("self", "input2"), cholesky_solve_backward), for_complex=True)
copy_into_out(cholesky_solve_op)
cholesky_solve_op.autocast(cpu="fp32")
cholesky_solve = public(cholesky_solve_op)

# --- L D Lᵀ ----------------------------------------------------------------------------------------------------------

ldl_factor_ex_op = Several(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    out="out",
    refuses="whole halves",
    by_host="pivots of Bunch and Kaufman are chosen between two searches of every column",
)


@ldl_factor_ex_op.metas
def ldl_factor_metas(self: Tensor, hermitian: bool, check_errors: bool) -> tuple[Meta, ...]:
    check_square(self, "torch.linalg.ldl_factor_ex")
    check_floating(self, "torch.linalg.ldl_factor_ex")
    check_has_lapack(self, "ldl_factor_kernel_cpu")
    return column_major(self._shape, self), integers(self._shape[:-1], self), integers(self._shape[:-2], self)


@ldl_factor_ex_op.body
def ldl_factor_body(outs: tuple[Tensor, ...], self: Tensor, hermitian: bool, check_errors: bool) -> None:
    """Returns the LDL factors of symmetric or Hermitian matrices, their pivots, and where the factorization failed."""
    for_each_matrix(lambda a: lapack.ldl(a, hermitian), outs, self)
    if check_errors:
        raise_for(outs[2], "torch.linalg.ldl_factor_ex", len(self._shape) == 2)


ldl_factor_op = Operator(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    out="out",
    refuses="whole halves",
)


some_results(
    ldl_factor_op,
    ldl_factor_ex_op,
    lambda self, hermitian: (self, hermitian, False),
    results=(0, 1),
    check="torch.linalg.ldl_factor",
)

ldl_solve_op = Structured(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    out="out",
    refuses="whole halves",
    by_host="its pivots are LAPACK's, and are looked at before they are used",
)


@ldl_solve_op.meta
def ldl_solve_meta(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Meta:
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


@ldl_solve_op.body
def ldl_solve_body(out: Tensor, LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> None:
    numbers = as_numpy(pivots)
    if not all(blocks_fit(numbers[at]) for at in np.ndindex(numbers.shape[:-1])):
        raise RuntimeError("torch.linalg.ldl_solve: these are no pivots as ldl_factor gives them")

    def one(factors: np.ndarray, b: np.ndarray, exchanges: np.ndarray) -> np.ndarray:
        return lapack.ldl_solve(factors, exchanges, b, hermitian)

    for_each_matrix(one, (out,), LD, B, pivots, vectors=1)


linalg_ldl_factor_ex = public(ldl_factor_ex_op, method=False)
linalg_ldl_factor = public(
    ldl_factor_op, method=False, doc="Returns the LDL factors of symmetric or Hermitian matrices, and their pivots."
)
linalg_ldl_solve = public(ldl_solve_op, method=False, doc="Returns X of A X = B, where A comes as its LDL factors.")
