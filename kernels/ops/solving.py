"""Systems of linear equations and inverses: solve, inv, and solve_triangular.

The derivative of a solution is a solution for the adjoint matrix. Read next: lu.py, cholesky.py.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.autograd import is_grad_enabled
from redispatch.dispatch.tensor import Tensor, as_numpy
from redispatch.kernels.cpu import lapack

from ..declare.operator import CPU_FP32, several, structured
from ..declare.structured import Meta, check_scalar_type, common_device
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
    some_results,
)

# --- solve -----------------------------------------------------------------------------------------------------------


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is a vector for each matrix of A, rather than a matrix."""
    return len(B._shape) == 1 or (len(B._shape) == len(A._shape) - 1 and B._shape == A._shape[:-1])


@several(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
    "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
    out="result",
    refuses="whole halves",
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
def solve_backward(grad, A, B, result0, result1, result2, left):
    """With X = A⁻¹ B, the gradient of B is G = A⁻ᴴ grad, and that of A is -G Xᴴ."""
    vector = is_vector(A, B)
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
    out="out",
    refuses="whole halves",
    doc="Returns X of A X = B, or of X A = B, and where the factorization of A failed.",
)
linalg_solve = some_results(
    "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    solve_lu_op,
    (False,),
    check="torch.linalg.solve",
    out="out",
    autocast=CPU_FP32,
    refuses="whole halves",
    doc="Returns X of A X = B; with left=False, of X A = B.",
)

# --- inv -------------------------------------------------------------------------------------------------------------


@several(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    out="inverse",
    derivative=lambda grad, result0: -result0.mH.matmul(grad.matmul(result0.mH)),
    nondifferentiable=(1,),
    for_complex=True,
    autocast=CPU_FP32,
    refuses="whole halves",
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


inverted: dict[str, Any] = {"inputs": (False,), "check": "linalg.inv", "out": "out", "autocast": CPU_FP32}
linalg_inv = some_results(
    "linalg_inv(Tensor A) -> Tensor",
    linalg_inv_ex,
    **inverted,
    refuses="whole halves",
    doc="Returns the inverses of square matrices.",
)
inverse = some_results(
    "inverse(Tensor self) -> Tensor",
    linalg_inv_ex,
    **inverted,
    refuses="whole halves",
    doc="Returns the inverses of square matrices, as `linalg.inv` does.",
)

# --- triangular matrices ---------------------------------------------------------------------------------------------


@structured(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    out="out",
    refuses="whole halves",
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
    """What a gradient keeps of a matrix of which one triangle counts, the diagonal not where it is taken for 1."""
    return x.triu(int(unit)) if upper else x.tril(-int(unit))


@linalg_solve_triangular.op.gradient("self", "B", for_complex=True)
def solve_triangular_backward(grad, self, result, upper, left, unitriangular, needs):
    of_b = linalg_solve_triangular.op.functional(self.mH, grad, upper=not upper, left=left, unitriangular=unitriangular)
    if not needs[0]:
        return None, of_b
    of_a = -of_b.matmul(result.mH) if left else -result.mH.matmul(of_b)
    return triangle(of_a, upper, unitriangular), of_b


@several(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) "
    "-> (Tensor solution, Tensor cloned_coefficient)",
    out="X",
    out_names=("X", "M"),
    autocast=CPU_FP32,
    batching="leading",
    refuses="whole halves",
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
