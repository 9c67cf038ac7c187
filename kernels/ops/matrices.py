"""Shared parts of the operators on matrices: their checks, the layout of their results, the loop over a batch, their
errors.

A batch is all dimensions but the last two. LAPACK's matrices lie column by column, and so do most results.
Read next: solving.py, lu.py, and kernels/cpu/lapack.py, which does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from redispatch.dispatch import call
from redispatch.dispatch.tensor import Tensor, as_numpy, dtype, dtypes, shown
from redispatch.kernels import broadcast_shapes, contiguous_strides
from redispatch.kernels.cpu.lapack import LinAlgError

from ..declare.declare import Operator
from ..declare.operator import composite, several, structured
from ..declare.pointwise import HALVES, WHOLE
from ..declare.structured import Meta, check_has_kernel
from .creation import empty_op

Shape = tuple[int, ...]
LAPACK_REFUSES = "whole halves"  # it computes with floats and doubles, real and complex
structured_by_lapack, several_by_lapack = (partial(kind, refuses=LAPACK_REFUSES) for kind in (structured, several))


# --- checks ----------------------------------------------------------------------------------------------------------


def check_matrix(x: Tensor, name: str, argument: str = "A") -> None:
    if len(x._shape) < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_square(x: Tensor, name: str, argument: str = "A", floating: bool = False, low_precision: bool = True) -> None:
    """Raises RuntimeError for other matrices than square ones; and for other dtypes than `floating` ones."""
    check_matrix(x, name, argument)
    *_, n, m = x._shape
    if n != m:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {n} by {m} matrices")
    if floating:
        check_floating(x, name, low_precision)


def check_floating(x: Tensor, name: str, low_precision: bool = True) -> None:
    """Raises RuntimeError for whole numbers, and for 16-bit floats where these are not taken."""
    if x._dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x._dtype.tensor_name}")
    if not low_precision and is_low_precision(x._dtype):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {x._dtype.tensor_name}")


def check_has_lapack(x: Tensor, kernel: str) -> None:
    """Raises NotImplementedError for dtypes that LAPACK does not know."""
    check_has_kernel(kernel, x, (*WHOLE, *HALVES))


def is_low_precision(kind: dtype) -> bool:
    return kind.is_floating_point and kind.itemsize < 4


def check_same_dtype(function: str, **tensors: Tensor) -> None:
    (one, a), (other, b) = tensors.items()
    if a._dtype is not b._dtype:
        raise RuntimeError(
            f"{function}: Expected {one} and {other} to have the same dtype, but found {one} of type "
            f"{a._dtype.tensor_name} and {other} of type {b._dtype.tensor_name} instead"
        )


def check_solvable(a: Tensor, b_shape: Shape, left: bool, name: str) -> None:
    """Raises RuntimeError where A X = B, or X A = B, cannot be for matrices of these shapes."""
    check_square(a, name)
    if len(b_shape) < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    n, (rows, columns) = a._shape[-1], b_shape[-2:]
    if n != (rows if left else columns):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and {rows}x{columns})"
        )


def check_pair(b: Tensor, a: Tensor, name: str) -> None:
    """The checks of the older solvers."""
    if a._dtype is not b._dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {b._dtype.tensor_name} and A of type "
            f"{a._dtype.tensor_name} instead."
        )
    *_, n, m = a._shape
    if n != m:
        raise RuntimeError(f"A must be batches of square matrices, but they are {n} by {m} matrices")
    if b._shape[-2] != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {b._shape[-2]} "
            f"by {b._shape[-1]}"
        )


# --- results ---------------------------------------------------------------------------------------------------------


def column_strides(shape: Sequence[int]) -> Shape:
    """The strides of a batch of matrices each of which lies column by column."""
    if len(shape) < 2:
        return tuple(contiguous_strides(tuple(shape)))
    return (*contiguous_strides(tuple(shape))[:-2], 1, max(shape[-2], 1))


def column_major(shape: Sequence[int], x: Tensor) -> Meta:
    """Returns the metadata of a matrix with the dtype of `x` as LAPACK gives it."""
    return Meta(tuple(shape), x._dtype, x._device, column_strides(shape))


def row_major(shape: Sequence[int], x: Tensor) -> Meta:
    return Meta(tuple(shape), x._dtype, x._device)


def integers(shape: Sequence[int], x: Tensor) -> Meta:
    """Pivots, or numbers that say how it went."""
    return Meta(tuple(shape), dtypes.int32, x._device)


def epsilon(kind: dtype) -> float:
    """The distance from 1 to the next number."""
    return float(np.finfo(kind.to_real().numpy).eps)


def common_batch(*shapes: Sequence[int]) -> Shape:
    """The batch that matrices of these shapes broadcast to."""
    return tuple(broadcast_shapes(*(tuple(shape[:-2]) for shape in shapes)))


def conj(x: Any) -> Any:
    """The complex conjugate, which a real tensor is its own."""
    return x.conj() if x._dtype.is_complex else x


# --- the loop over a batch -------------------------------------------------------------------------------------------


def for_each_matrix(
    function: Callable[..., Any], outs: Sequence[Any], *inputs: Any, vectors: int = 0, fails: str = ""
) -> None:
    """Fills the results with what `function` gives for each matrix, the batches broadcast against each other.

    outs, inputs: tensors, or numpy arrays; the last `vectors` of the inputs have vectors in the place of matrices.
    fails: where it is said, the last result is LAPACK's number, and this is the name under which a failure is raised.
    """
    arrays = [as_array(x) for x in inputs]
    kept = [2] * (len(arrays) - vectors) + [1] * vectors
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - d] for x, d in zip(arrays, kept, strict=True)))
    arrays = [np.broadcast_to(x, batch + x.shape[x.ndim - d :]) for x, d in zip(arrays, kept, strict=True)]
    targets = [as_array(out) for out in outs]
    if fails:
        targets.append(np.zeros(batch, np.int32))
    for at in np.ndindex(batch):
        found = function(*(x[at] for x in arrays))
        for target, value in zip(targets, found if isinstance(found, tuple) else (found,), strict=True):
            target[at] = value
    if fails:
        raise_for(targets[-1], fails, not batch)


def as_array(x: Any) -> np.ndarray:
    return as_numpy(x) if isinstance(x, Tensor) else x


# --- what went wrong -------------------------------------------------------------------------------------------------


check_errors_op = Operator("_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()")


@check_errors_op.kernel("CPU", "Meta")
def check_errors_kernel(info, api_name, is_matrix):
    if info._device.type != "meta":
        raise_for(info, api_name, is_matrix)


check_errors_op.understands("Autograd")  # there is no result that could have a gradient


def raise_for(info: Any, name: str, is_matrix: bool) -> None:
    """Raises LinAlgError for the first matrix whose number is not 0."""
    numbers = (shown(info) if isinstance(info, Tensor) else info).ravel()
    failed = np.flatnonzero(numbers)
    if failed.size:
        where = "" if is_matrix else f" (Batch element {failed[0]}):"
        raise error_of(name, f"{name}:{where} ", int(numbers[failed[0]]))


# What a number of LAPACK's means, by a word in the name of the function; the first one counts.
REASONS = (
    (
        "inv",
        "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular.",
    ),
    ("solve", "The solver failed because the input matrix is singular."),
    (
        "cholesky",
        "The factorization could not be completed because the input is not positive-definite (the leading minor of "
        "order {0} is not positive-definite).",
    ),
    (
        "eig",
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "eigenvalues (error code: {0}).",
    ),
    (
        "svd",
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
        "singular values (error code: {0}).",
    ),
    (
        "lstsq",
        "The least squares solution could not be computed because the input matrix does not have full rank (error "
        "code: {0}).",
    ),
    (
        "lu_factor",
        "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
        "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
    ),
    ("", "Unknown error code: {0}."),
)
NOT_FINITE = "The algorithm failed to converge because the input matrix contained non-finite values."


def error_of(name: str, start: str, info: int) -> Exception:
    reason = next(reason for word, reason in REASONS if word in name)
    if "svd" in name and info < 0:
        reason = NOT_FINITE
    kind = RuntimeError if "lu_factor" in name else LinAlgError
    return kind(start + reason.format(info))


# --- operators that are some of another's results --------------------------------------------------------------------


def some_results(
    schema: str, below: Any, inputs: Any = (), results: tuple[int, ...] = (0,), check: str = "", **facts: Any
) -> Any:
    """Declares an operator, with its out= form, that gives some of the results of `below`, and its public function.

    It refuses the dtypes that `below` refuses.
    inputs: with what `below` is called behind the operator's own arguments; or a function of these that gives all.
    check: the name under which the last result, which says how it went, is checked; "" if it is not.
    """
    below = getattr(below, "op", below)
    facts = {"refuses": tuple(below.refuses), "out": "out"} | facts

    def called_with(args: tuple[Any, ...]) -> list[Any]:
        return list(inputs(*args)) if callable(inputs) else [*args, *inputs]

    def chosen(found: Sequence[Any]) -> Any:
        if check:
            check_errors_op.functional(found[-1], check, is_matrix=not found[-1]._shape)
        return found[results[0]] if len(results) == 1 else tuple(found[i] for i in results)

    def functional(*args: Any) -> Any:
        return chosen(call(below.functional, called_with(args)))

    def into_out(*args: Any) -> Any:
        given, outs = called_with(args[: -len(results)]), dict(zip(results, args[-len(results) :], strict=True))
        targets = [
            outs[i] if i in outs else empty_op.functional([0], dtype=meta.dtype, device=meta.device)
            for i, meta in enumerate(below.metas_function(*given))
        ]
        call(below.out, [*given, *targets])
        return chosen(targets)

    return composite(schema, out_by=lambda op: op.composite(op.out)(into_out), **facts)(functional)
