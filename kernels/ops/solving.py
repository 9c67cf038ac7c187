"""Systems of linear equations and inverses: solve, inv, solve_triangular; factors of hermitian matrices: Cholesky, LDL.

The derivative of a solution is a solution for the adjoint matrix. Of a hermitian matrix only one triangle is read. Read
next: lu.py.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.autograd import is_grad_enabled
from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes
from redispatch.kernels.cpu import lapack

from ..declare.operator import CPU_FP32, kernel
from ..declare.relies import check_scalar_type
from ..declare.structured import Meta, castable, common_device
from .matrices import (
    check_floating,
    check_has_lapack,
    check_pair,
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
    several_by_lapack,
    some_results,
    structured_by_lapack,
)

# --- solve -----------------------------------------------------------------------------------------------------------


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is a vector for each matrix of A, rather than a matrix."""
    return len(B._shape) == 1 or (len(B._shape) == len(A._shape) - 1 and B._shape == A._shape[:-1])


@several_by_lapack(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
    "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    out="result",
)
def solve_lu_op(A, B, left, check_errors):
    check_floating(A, "linalg.solve")
    check_same_dtype("linalg.solve", A=A, B=B)
    vector = is_vector(A, B)
    b_shape = (*B._shape, 1) if vector else tuple(B._shape)
    check_solvable(A, b_shape, left, "linalg.solve")
    check_has_lapack(A, "lu_cpu")
    shape = (*common_batch(b_shape, A._shape), *b_shape[-2:])
    shape = shape[:-1] if vector else shape
    result = Meta(shape, A._dtype, common_device(A, B), column_strides(shape) if left else None)
    return result, column_major(A._shape, A), integers(A._shape[:-1], A), integers(A._shape[:-2], A)


@solve_lu_op.body
def solve_body(outs, A, B, left, check_errors):
    result, LU, pivots, info = outs
    for_each_matrix(lapack.lu, (LU, pivots, info), A)
    if check_errors:
        raise_for(info, "torch.linalg.solve_ex", len(A._shape) == 2)
    if is_vector(A, B):
        solve_with_lu(as_numpy(result)[..., None], LU, pivots, as_numpy(B)[..., None], left)
    else:
        solve_with_lu(result, LU, pivots, B, left)


def solve_with_lu(out: Any, LU: Tensor, pivots: Tensor, B: Any, left: bool, adjoint: bool = False) -> None:
    """The solutions for matrices given by their factors. X A = B is solved as Aᴴ Xᴴ = Bᴴ."""

    def one(b: np.ndarray, factors: np.ndarray, exchanges: np.ndarray) -> np.ndarray:
        if left:
            return lapack.lu_solve(factors, exchanges, b, adjoint)
        return lapack.lu_solve(factors, exchanges, b.conj().T, not adjoint).conj().T

    for_each_matrix(one, (out,), B, LU, pivots, vectors=1)


@solve_lu_op.gradient("A", "B", nondifferentiable=(1, 2, 3), for_complex=True)
def solve_backward(grad, A, result0, result1, result2, left):
    """With X = A⁻¹ B, the gradient of B is G = A⁻ᴴ grad, and that of A is -G Xᴴ."""
    vector = len(grad._shape) < len(A._shape)
    if vector:
        grad, result0 = grad.unsqueeze(-1), result0.unsqueeze(-1)
    if is_grad_enabled():
        of_b = ops.aten.linalg_solve.default(A.mH, grad, left=left)
    else:
        of_b = ops.aten.linalg_lu_solve.default(result1, result2, grad, left=left, adjoint=True)
    of_a = -of_b.matmul(result0.mH) if left else -result0.mH.matmul(of_b)
    return of_a, of_b.squeeze(-1) if vector else of_b


linalg_solve_ex = some_results(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    solve_lu_op,
    results=(0, 3),
    doc="Returns X of A X = B, or of X A = B, and where the factorization of A failed.",
)
linalg_solve = some_results(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    solve_lu_op,
    (False,),
    check="torch.linalg.solve",
    autocast=CPU_FP32,
    doc="Returns X of A X = B; with left=False, of X A = B.",
)

# --- inv -------------------------------------------------------------------------------------------------------------


@several_by_lapack(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    out="inverse",
    derivative=lambda grad, result0: -result0.mH.matmul(grad.matmul(result0.mH)),
    nondifferentiable=(1,),
    for_complex=True,
    autocast=CPU_FP32,
)
def linalg_inv_ex(A, check_errors):
    """Returns the inverses of square matrices, and where the factorization failed."""
    check_square(A, "linalg.inv", floating=True, low_precision=False)
    return column_major(A._shape, A), integers(A._shape[:-2], A)


@linalg_inv_ex.op.body
def inv_body(outs, A, check_errors):
    def one(a: np.ndarray) -> tuple[np.ndarray, int]:
        factors, pivots, info = lapack.lu(a)
        return lapack.lu_solve(factors, pivots, np.eye(*a.shape, dtype=a.dtype)), info

    for_each_matrix(one, outs, A)
    if check_errors:
        raise_for(outs[1], "linalg.inv_ex", len(A._shape) == 2)


inverted: dict[str, Any] = {"inputs": (False,), "check": "linalg.inv", "autocast": CPU_FP32}
linalg_inv = some_results(
    "linalg_inv(Tensor A) -> Tensor",
    linalg_inv_ex,
    **inverted,
    doc="Returns the inverses of square matrices.",
)
inverse = some_results(
    "inverse(Tensor self) -> Tensor",
    linalg_inv_ex,
    **inverted,
    doc="Returns the inverses of square matrices, as `linalg.inv` does.",
)

# --- triangular matrices ---------------------------------------------------------------------------------------------


@structured_by_lapack(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    out="out",
)
def linalg_solve_triangular(self, B, upper, left, unitriangular):
    """Returns X of A X = B, or of X A = B, for triangular matrices A."""
    name = "linalg.solve_triangular"
    check_solvable(self, tuple(B._shape), left, name)
    check_has_lapack(self, "triangular_solve_cpu")
    shape = (*common_batch(B._shape, self._shape), *B._shape[-2:])
    return Meta(shape, self._dtype, common_device(self, B), column_strides(shape))


@linalg_solve_triangular.op.body
def solve_triangular_body(out, self, B, upper, left, unitriangular):
    check_scalar_type(self, out)
    b = as_numpy(B).astype(as_numpy(self).dtype, copy=False)
    for_each_matrix(lambda a, b: lapack.solve_triangular(a, b, upper, left, unitriangular), (out,), self, b)


def triangle(x: Any, upper: bool, unit: bool) -> Any:
    """Returns a gradient's part for a matrix of which one triangle counts, the diagonal not where it is taken for 1."""
    return x.triu(int(unit)) if upper else x.tril(-int(unit))


@linalg_solve_triangular.op.gradient("self", "B", for_complex=True)
def solve_triangular_backward(grad, self, result, upper, left, unitriangular, needs):
    of_b = linalg_solve_triangular.op.functional(self.mH, grad, upper=not upper, left=left, unitriangular=unitriangular)
    if not needs[0]:
        return None, of_b
    of_a = -of_b.matmul(result.mH) if left else -result.mH.matmul(of_b)
    return triangle(of_a, upper, unitriangular), of_b


@several_by_lapack(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) "
    "-> (Tensor solution, Tensor cloned_coefficient)",
    out="X",
    out_names=("X", "M"),
    autocast=CPU_FP32,
    batching="leading",
)
def triangular_solve(self, A, upper, transpose, unitriangular):
    """Returns X of A X = B for triangular matrices A, and A."""
    for name, x in (("b", self), ("A", A)):
        if len(x._shape) < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {len(x._shape)} "
                "dimensions instead"
            )
    check_pair(self, A, "triangular_solve")
    check_has_lapack(self, "triangular_solve_cpu")
    batch = common_batch(self._shape, A._shape)
    return column_major((*batch, *self._shape[-2:]), self), column_major((*batch, *A._shape[-2:]), A)


def warn_of_triangular_solve() -> None:
    warnings.warn(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular and will be removed in a "
        "future PyTorch release. Its arguments are reversed there, and no copy of one of them is returned.",
        UserWarning,
        stacklevel=3,
    )


@triangular_solve.op.body
def triangular_solve_body(outs, self, A, upper, transpose, unitriangular):
    warn_of_triangular_solve()
    for_each_matrix(
        lambda b, a: (lapack.solve_triangular(a, b, upper, True, unitriangular, transpose), a), outs, self, A
    )


@triangular_solve.op.gradient("self", "A", for_complex=True)
def triangular_solve_backward(grads, A, result0, upper, transpose, unitriangular):
    of_solution, of_clone = grads
    if of_solution is None:
        return None, of_clone
    of_b = triangular_solve.op.functional(of_solution, conj(A), upper, not transpose, unitriangular)[0]
    of_a = -conj(result0).matmul(of_b.mT) if transpose else -of_b.matmul(result0.mH)
    of_a = triangle(of_a, upper, unitriangular)
    return of_b, of_a if of_clone is None else of_a + of_clone


def triangular_solve_tangent(arguments: list[Any], tangents: list[Any], results: Any) -> Any:
    """A dX = dB - dA X. As PyTorch's, it counts all of dA, also where A is not read."""
    (_, A, upper, transpose, unitriangular), (of_b, of_a, *_) = arguments, tangents
    right = of_b if of_a is None else -(of_a.mT if transpose else of_a).matmul(results[0])
    right = right + of_b if of_a is not None and of_b is not None else right
    return triangular_solve.op.functional(right, A, upper, transpose, unitriangular)[0], of_a


triangular_solve.op.forward(triangular_solve_tangent)


# --- Cholesky factors of positive definite matrices, L D Lᵀ of other hermitian ones -----------------------------------

# --- the factorisation -----------------------------------------------------------------------------------------------


@several_by_lapack(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    out="L",
    derivative=lambda grad, result0, upper: cholesky_backward(grad, result0, upper),
    nondifferentiable=(1,),
    for_complex=True,
    autocast=CPU_FP32,
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
    autocast=CPU_FP32,
    doc="Returns the triangular L with L Lᴴ = A of positive definite matrices A.",
)


@structured_by_lapack(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    out="out",
    out_dtype=castable("cholesky"),
    derivative=lambda grad, result, upper: cholesky_backward(grad, result, upper),
    for_complex=True,
    autocast=CPU_FP32,
    batching="leading",
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


@structured_by_lapack(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    out="out",
    out_dtype=castable("cholesky_inverse"),
    autocast=CPU_FP32,
    batching="leading",
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
    """dA⁻¹ = -A⁻¹ dA A⁻¹ for A = L Lᴴ, or Uᴴ U. As PyTorch's, it counts the triangle that is not read."""
    inner = result.matmul(grad + grad.mH).matmul(result)
    return -self.matmul(inner) if upper else -inner.matmul(self)


@structured_by_lapack(
    "_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
    out="out",
    batching="leading",
    relies="self: *batch n m; A: *batch n n | self A",
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
    out_dtype=castable("cholesky_solve"),
    autocast=CPU_FP32,
    batching="leading",
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
    return of_b, -input2.matmul(moved) if upper else -moved.matmul(input2)  # as that of cholesky_inverse


# --- L D Lᵀ ----------------------------------------------------------------------------------------------------------


@several_by_lapack(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    out="out",
    by_host="pivots of Bunch and Kaufman are chosen between two searches of every column",
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
    doc="Returns the LDL factors of symmetric or Hermitian matrices, and their pivots.",
)


@structured_by_lapack(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    out="out",
    by_host="its pivots are LAPACK's, and are looked at before they are used",
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
