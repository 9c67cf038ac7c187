"""Samples of kernels/ops/solving.py, lu.py and cholesky.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, as_numpy, dtypes
from redispatch.kernels.ops.creation import eye
from redispatch.kernels.ops.from_data import from_numpy, tensor
from redispatch.kernels.ops.lu import linalg_lu_factor

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample

EQUAL_ROWS = {"expanded": "a matrix with equal rows has no inverse, and one that is not symmetric no such factor"}

NOT_DECLARED = {**EQUAL_ROWS, "recording": "it has a gradient, which is not declared, as PyTorch's is not"}
OWN_FACTORS = {"layouts": "the factors are those of the transposed matrix, where that one lies column by column"}

# --- matrices of a kind ----------------------------------------------------------------------------------------------


def is_computed(make: Maker) -> bool:
    """Whether LAPACK knows the dtype."""
    return make.dtype.category >= dtypes.FLOATING and make.dtype.itemsize >= 4


def recorded(make: Maker, x: Any) -> Tensor:
    """The tensor as a leaf, which requires grad where tests want it."""
    return x.detach().requires_grad_(make.requires_grad)


def regular(make: Maker, *shape: int) -> Tensor:
    """Matrices with an inverse: their diagonals are heavy."""
    x: Any = make(*shape).detach()
    return recorded(make, (x + eye(*shape[-2:], dtype=x.dtype) * 8).to(make.dtype))


def positive(make: Maker, *shape: int) -> Tensor:
    """Symmetric matrices, positive definite."""
    x: Any = regular(make, *shape)
    if not is_computed(make) or not x.numel():
        return x
    array = as_numpy(x.detach())
    return recorded(make, from_numpy(array @ array.conj().swapaxes(-1, -2) / 8))


def triangular(make: Maker, *shape: int, upper: bool = True) -> Tensor:
    x: Any = regular(make, *shape).detach()
    return recorded(make, x.triu() if upper else x.tril())


def factors(make: Maker, *shape: int) -> tuple[Tensor, Tensor]:
    """The LU factors in one matrix, and the pivots."""
    x: Any = regular(make, *shape).detach()
    if is_computed(make):
        lu, pivots = linalg_lu_factor(x.mT.contiguous())
    else:
        lu, pivots = x, tensor([[1, 2, 3]] * 2 if len(shape) > 2 else [1, 2, 3], dtype=dtypes.int32)
    return recorded(make, lu.contiguous()), pivots


# --- samples ---------------------------------------------------------------------------------------------------------


def batches(kind: Callable[..., Tensor], *shapes: tuple[int, ...], **kwargs: Any) -> Any:
    """One argument: a matrix, a batch, one without matrices, matrices without elements."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in shapes or ((3, 3), (2, 3, 3), (0, 3, 3), (2, 0, 0)):
            yield sample(kind(make, *shape), **kwargs)

    return samples


def any_matrices(make: Maker) -> Iterator[SampleInput]:
    for shape in ((3, 3), (2, 3, 4), (2, 4, 3), (3, 0), (0, 3, 3)):
        yield sample(regular(make, *shape))


def either_triangle(kind: Callable[..., Tensor]) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        yield sample(kind(make, 3, 3))
        yield sample(kind(make, 2, 3, 3), upper=True)
        yield sample(kind(make, 2, 0, 0))

    return samples


def equations(make: Maker) -> Iterator[SampleInput]:
    yield sample(regular(make, 3, 3), make(3, 2))
    yield sample(regular(make, 2, 3, 3), make(3, 2))
    yield sample(regular(make, 3, 3), make(2, 3, 2))
    yield sample(regular(make, 3, 3), make(3))
    yield sample(regular(make, 2, 3, 3), make(2, 3))
    yield sample(regular(make, 2, 3, 3), make(2, 2, 3), left=False)
    yield sample(regular(make, 0, 3, 3), make(0, 3, 2))
    yield sample(regular(make, 0, 0), make(0, 2))


def solution(A: Any, B: Any, left: bool = True, **kwargs: Any) -> Any:
    if not left:
        return np.swapaxes(solution(np.swapaxes(A, -1, -2), np.swapaxes(B, -1, -2)), -1, -2)
    if B.ndim == 1 or B.shape == A.shape[:-1]:
        return np.linalg.solve(A, B[..., None])[..., 0]
    return np.linalg.solve(A, B)


def triangles(make: Maker) -> Iterator[SampleInput]:
    yield sample(triangular(make, 3, 3), make(3, 2), upper=True)
    yield sample(regular(make, 2, 3, 3), make(3, 2), upper=False)
    yield sample(regular(make, 3, 3), make(2, 2, 3), upper=True, left=False)
    yield sample(regular(make, 3, 3), make(3, 2), upper=False, unitriangular=True)
    yield sample(regular(make, 0, 0), make(0, 2), upper=False)


def triangle_of(A: Any, upper: bool, unitriangular: bool = False) -> Any:
    part = np.triu(A, int(unitriangular)) if upper else np.tril(A, -int(unitriangular))
    return part + np.eye(A.shape[-1], dtype=A.dtype) if unitriangular else part


def old_triangles(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2), regular(make, 3, 3))
    yield sample(make(2, 3, 2), regular(make, 3, 3), False)
    yield sample(make(3, 2), regular(make, 2, 3, 3), transpose=True)
    yield sample(make(3, 2), regular(make, 3, 3), True, False, True)


def old_solution(b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    part = triangle_of(A, upper, unitriangular)
    x = np.linalg.solve(np.swapaxes(part, -1, -2) if transpose else part, b)
    return x, np.broadcast_to(A, (*x.shape[:-2], *A.shape[-2:]))


def with_lu(make: Maker) -> Iterator[SampleInput]:
    yield sample(*factors(make, 3, 3), make(3, 2))
    yield sample(*factors(make, 2, 3, 3), make(2, 3), left=False)
    yield sample(*factors(make, 2, 3, 3), make(2, 3, 2), adjoint=True)
    yield sample(*factors(make, 3, 3), make(2, 3), left=False, adjoint=True)


def packed(make: Maker) -> Iterator[SampleInput]:
    pivots = tensor([2, 3, 3], dtype=dtypes.int32)
    yield sample(make(3, 3), pivots)
    yield sample(make(3, 4), pivots, True, False)
    yield sample(make(4, 3), pivots)
    yield sample(make(2, 3, 3), tensor([[1, 2, 3], [3, 3, 3]], dtype=dtypes.int32))
    yield sample(make(3, 3), pivots, False)


def with_cholesky(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2), triangular(make, 3, 3, upper=False))
    yield sample(make(2, 3, 2), triangular(make, 3, 3), True)
    yield sample(make(3, 0), regular(make, 3, 3))


def expanded_cholesky(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2), triangular(make, 3, 3, upper=False), False)
    yield sample(make(2, 3, 2), triangular(make, 2, 3, 3), True)


def from_cholesky(self: Any, factor: Any, upper: bool = False) -> Any:
    part = triangle_of(factor, upper)
    adjoint = np.swapaxes(part.conj(), -1, -2)
    return np.linalg.solve(adjoint @ part if upper else part @ adjoint, self)


def inverse_of_cholesky(self: Any, upper: bool = False) -> Any:
    eye = np.broadcast_to(np.eye(self.shape[-1], dtype=self.dtype), self.shape)
    return from_cholesky(eye, self, upper)


def with_ldl(make: Maker) -> Iterator[SampleInput]:
    pivots = tensor([1, 2, 3], dtype=dtypes.int32)
    yield sample(recorded(make, regular(make, 3, 3)).detach(), pivots, make(3, 2).detach())
    yield sample(regular(make, 2, 3, 3).detach(), tensor([[1, 2, 3]] * 2, dtype=dtypes.int32), make(3, 2).detach())


def from_ldl(LD: Any, pivots: Any, B: Any) -> Any:
    lower = np.tril(LD, -1) + np.eye(3, dtype=LD.dtype)
    middle = LD * np.eye(3, dtype=LD.dtype)
    return np.linalg.solve(lower @ middle @ np.swapaxes(lower, -1, -2), B)


def infos(make: Maker) -> Iterator[SampleInput]:
    yield sample(tensor([0, 0], dtype=dtypes.int32), "linalg.inv", is_matrix=False)


# --- errors ----------------------------------------------------------------------------------------------------------


def not_square(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        text = f"{name}: A must be batches of square matrices, but they are 3 by 4 matrices"
        yield ErrorInput(sample(make(2, 3, 4)), RuntimeError, text)
        yield ErrorInput(sample(make(3)), RuntimeError, f"{name}: The input tensor A must have at least 2 dimensions.")

    return errors


def singular(make: Maker) -> Iterator[ErrorInput]:
    yield from not_square("linalg.inv")(make)
    zeros = tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]], dtype=make.dtype)
    reason = (
        "The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular."
    )
    yield ErrorInput(sample(zeros), RuntimeError, f"linalg.inv: (Batch element 1): {reason}")
    yield ErrorInput(sample(zeros[1]), RuntimeError, f"linalg.inv: {reason}")


def unsolvable(make: Maker) -> Iterator[ErrorInput]:
    text = "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)"
    yield ErrorInput(sample(make(2, 3, 3), make(2, 4, 2)), RuntimeError, text)
    text = (
        "linalg.solve: Expected A and B to have the same dtype, but found A of type Double and B of type Float instead"
    )
    yield ErrorInput(sample(make(3, 3), make(3, 3, dtype=dtypes.float32)), RuntimeError, text)


def singular_equations(make: Maker) -> Iterator[ErrorInput]:
    yield from unsolvable(make)
    text = "torch.linalg.solve: The solver failed because the input matrix is singular."
    yield ErrorInput(sample(make(2, 2) * 0, make(2)), RuntimeError, text)


def not_positive(name: str) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        yield from not_square(name)(make)
        text = (
            f"{name}: The factorization could not be completed because the input is not positive-definite (the leading "
            "minor of order 1 is not positive-definite)."
        )
        yield ErrorInput(sample(-positive(make, 3, 3).detach()), RuntimeError, text)

    return errors


def no_factors(make: Maker) -> Iterator[ErrorInput]:
    text = (
        "torch.linalg.lu_factor: U[1,1] is zero and using it on lu_solve would result in a division by zero. If you "
        "still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)"
    )
    yield ErrorInput(sample(make(3, 3) * 0), RuntimeError, text)
    text = "linalg.lu_factor: LU without pivoting is not implemented on the CPU"
    yield ErrorInput(SampleInput(make(3, 3), (), {"pivot": False}), RuntimeError, text)


def wrong_pivots(make: Maker) -> Iterator[ErrorInput]:
    text = "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix"
    yield ErrorInput(sample(make(3, 3), tensor([1, 2], dtype=dtypes.int32), make(3, 3)), RuntimeError, text)


def failed(make: Maker) -> Iterator[ErrorInput]:
    text = "linalg.svd: (Batch element 0): The algorithm failed to converge because the input matrix contained"
    info = tensor([-4, 0], dtype=dtypes.int32)
    yield ErrorInput(SampleInput(info, ("linalg.svd",), {"is_matrix": False}), RuntimeError, text)


def with_info(function: Callable[..., Any]) -> Callable[..., Any]:
    """The reference, and numbers that say that all went well."""

    def reference(x: Any, *args: Any, **kwargs: Any) -> Any:
        return function(x, *args, **kwargs), np.zeros(x.shape[:-2])

    return reference


def cholesky(self: Any, upper: bool = False) -> Any:
    lower = np.linalg.cholesky(self)
    return np.swapaxes(lower.conj(), -1, -2) if upper else lower


def nothing_known(count: int) -> Callable[..., Any]:
    """Results of which numpy has none; other tests compute with them."""
    return lambda *args, **kwargs: (None,) * count


def logdet(self: Any) -> Any:
    sign, size = np.linalg.slogdet(self)
    return np.where(sign < 0, np.nan, size)


DETERMINANTS = [
    OpInfo("_linalg_det", batches(regular), lambda A: (np.linalg.det(A), None, None), FLOATS, skips=OWN_FACTORS),
    OpInfo(
        "linalg_det", batches(regular), np.linalg.det, FLOATS, function="linalg.det", errors=not_square("linalg.det")
    ),
    OpInfo("det", batches(regular), np.linalg.det, FLOATS),
    OpInfo(
        "_linalg_slogdet", batches(regular), lambda A: (*np.linalg.slogdet(A), None, None), FLOATS, skips=OWN_FACTORS
    ),
    OpInfo(
        "linalg_slogdet",
        batches(regular),
        np.linalg.slogdet,
        FLOATS,
        function="linalg.slogdet",
        errors=not_square("linalg.slogdet"),
    ),
    OpInfo("slogdet", batches(regular), np.linalg.slogdet, FLOATS),
    OpInfo("logdet", batches(regular), logdet, FLOATS, errors=not_square("logdet")),
]
SOLVING = [
    OpInfo("_linalg_check_errors", infos, None, FLOATS[1:], gradients=False, errors=failed),
    OpInfo(
        "_linalg_solve_ex",
        equations,
        lambda *args, **kwargs: (solution(*args, **kwargs), None, None, None),
        FLOATS,
        skips=EQUAL_ROWS,
        errors=unsolvable,
    ),
    OpInfo(
        "linalg_solve_ex",
        equations,
        lambda A, B, **kwargs: (solution(A, B, **kwargs), np.zeros(A.shape[:-2])),
        FLOATS,
        function="linalg.solve_ex",
        skips=EQUAL_ROWS,
    ),
    OpInfo(
        "linalg_solve",
        equations,
        solution,
        FLOATS,
        function="linalg.solve",
        skips=EQUAL_ROWS,
        errors=singular_equations,
    ),
    OpInfo(
        "linalg_inv_ex", batches(regular), with_info(np.linalg.inv), FLOATS, function="linalg.inv_ex", skips=EQUAL_ROWS
    ),
    OpInfo(
        "linalg_inv",
        batches(regular),
        np.linalg.inv,
        FLOATS,
        function="linalg.inv",
        skips=EQUAL_ROWS,
        errors=singular,
    ),
    OpInfo("inverse", batches(regular), np.linalg.inv, FLOATS, skips=EQUAL_ROWS),
    OpInfo(
        "linalg_solve_triangular",
        triangles,
        lambda A, B, upper, left=True, unitriangular=False: solution(triangle_of(A, upper, unitriangular), B, left),
        FLOATS,
        function="linalg.solve_triangular",
        skips=EQUAL_ROWS,
    ),
    OpInfo("triangular_solve", old_triangles, old_solution, FLOATS, skips=EQUAL_ROWS),
]
LU = [
    OpInfo(
        "linalg_lu_factor_ex",
        any_matrices,
        nothing_known(3),
        FLOATS,
        function="linalg.lu_factor_ex",
        skips=EQUAL_ROWS,
    ),
    OpInfo(
        "linalg_lu_factor",
        any_matrices,
        nothing_known(2),
        FLOATS,
        function="linalg.lu_factor",
        skips=EQUAL_ROWS,
        errors=no_factors,
    ),
    OpInfo("_lu_with_info", any_matrices, nothing_known(3), FLOATS, skips=EQUAL_ROWS),
    OpInfo("linalg_lu", any_matrices, nothing_known(3), FLOATS, function="linalg.lu", skips=EQUAL_ROWS),
    OpInfo("lu_unpack", packed, nothing_known(3), FLOATS),
    OpInfo("linalg_lu_solve", with_lu, None, FLOATS, function="linalg.lu_solve", errors=wrong_pivots, skips=EQUAL_ROWS),
    OpInfo(
        "lu_solve",
        lambda make: [sample(s.args[1], s.input, s.args[0]) for s in with_lu(make) if not s.kwargs],
        None,
        FLOATS,
        skips=EQUAL_ROWS,
    ),
]
CHOLESKY = [
    OpInfo(
        "linalg_cholesky_ex",
        either_triangle(positive),
        with_info(cholesky),
        FLOATS,
        hermitian=True,
        function="linalg.cholesky_ex",
        skips=EQUAL_ROWS,
    ),
    OpInfo(
        "linalg_cholesky",
        either_triangle(positive),
        cholesky,
        FLOATS,
        hermitian=True,
        function="linalg.cholesky",
        skips=EQUAL_ROWS,
        errors=not_positive("linalg.cholesky"),
    ),
    OpInfo(
        "cholesky",
        either_triangle(positive),
        cholesky,
        FLOATS,
        hermitian=True,
        skips=EQUAL_ROWS,
        errors=not_positive("cholesky"),
    ),
    OpInfo(
        "cholesky_inverse",
        either_triangle(regular),
        inverse_of_cholesky,
        FLOATS,
        skips={**EQUAL_ROWS, "complex_gradients": "LAPACK takes the diagonal of a factor for real"},
    ),
    OpInfo("cholesky_solve", with_cholesky, from_cholesky, FLOATS, skips=EQUAL_ROWS),
    OpInfo("_cholesky_solve_helper", expanded_cholesky, from_cholesky, FLOATS, gradients=False, skips=NOT_DECLARED),
    OpInfo(
        "linalg_ldl_factor_ex",
        batches(lambda make, *shape: positive(make, *shape).detach()),
        nothing_known(3),
        FLOATS,
        gradients=False,
        function="linalg.ldl_factor_ex",
        skips=NOT_DECLARED,
        errors=not_square("torch.linalg.ldl_factor_ex"),
    ),
    OpInfo(
        "linalg_ldl_factor",
        batches(lambda make, *shape: positive(make, *shape).detach()),
        nothing_known(2),
        FLOATS,
        gradients=False,
        function="linalg.ldl_factor",
        skips=EQUAL_ROWS,
    ),
    OpInfo(
        "linalg_ldl_solve",
        with_ldl,
        from_ldl,
        FLOATS,
        gradients=False,
        function="linalg.ldl_solve",
        skips=EQUAL_ROWS,
    ),
]
MATRICES = [*DETERMINANTS, *SOLVING, *LU, *CHOLESKY]
