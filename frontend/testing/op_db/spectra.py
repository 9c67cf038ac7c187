"""Samples of kernels/ops/spectra.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops.scans import cumsum
from redispatch.kernels.ops.spectra import geqrf

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .matrices import EQUAL_ROWS, is_computed, not_square, recorded


def apart(make: Maker, *shape: int) -> Tensor:
    """Matrices whose singular values, or eigenvalues, lie far apart: a diagonal of 4, 8, 12, ..."""
    x: Any = make(*shape, low=-1, high=1).detach()
    ones = make(*shape).detach() * 0 + 1
    steps = cumsum(ones, -1).tril().triu() * 4 if shape[-1] and shape[-2] else ones
    return recorded(make, (x + steps).to(make.dtype))


def symmetric(make: Maker, *shape: int) -> Tensor:
    x: Any = apart(make, *shape).detach()
    if not is_computed(make) or not x.numel():
        return recorded(make, x)
    return recorded(make, (x + x.mT) / 2 if not make.dtype.is_complex else x)


def shapes(*cases: tuple[int, ...], kind: Callable[..., Tensor] = apart, **kwargs: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for case in cases:
            yield sample(kind(make, *case), **kwargs)

    return samples


TALL_AND_WIDE = ((3, 3), (2, 4, 3), (2, 3, 4), (3, 0), (0, 3), (0, 2, 2))


def both(*kinds: Any) -> Any:
    """The samples of all."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for kind in kinds:
            yield from kind(make)

    return samples


def not_differentiable(samples: Any, reason: str) -> Any:
    return lambda make: [one.but_not("gradients", reason) for one in samples(make)]


def reflections(make: Maker) -> Iterator[SampleInput]:
    """What geqrf gives; not of whole numbers, which it refuses."""
    for shape in ((3, 3), (2, 4, 3)):
        x: Any = make(*shape).detach()
        a, tau = geqrf(x) if is_computed(make) else (x, x[..., 0, :])
        yield sample(recorded(make, a.contiguous()), recorded(make, tau.contiguous()))
    yield sample(make(4, 3), make(2))
    yield sample(make(3, 0), make(0))


def turned(make: Maker) -> Iterator[SampleInput]:
    first, batch, *_ = reflections(make)
    yield sample(*first.arguments, make(3, 2))
    yield sample(*batch.arguments, make(2, 4, 2), True, True)
    yield sample(*batch.arguments, make(2, 2, 4), False)
    yield sample(*batch.arguments, make(2, 2, 4), left=False, transpose=True)


def product(input: Any, tau: Any) -> Any:
    """The first columns of the product of reflections."""
    m, n = input.shape[-2:]
    found = np.broadcast_to(np.eye(m, dtype=input.dtype), (*input.shape[:-2], m, m))
    for i in range(tau.shape[-1]):
        v = np.concatenate(
            [np.zeros_like(input[..., :i, i]), np.ones_like(input[..., :1, i]), input[..., i + 1 :, i]], -1
        )
        t = tau[..., i, None, None]
        found = found @ (np.eye(m, dtype=input.dtype) - t * v[..., :, None] * v[..., None, :].conj())
    return found[..., :n]


def times_product(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    m = input.shape[-2]
    padded = np.zeros((*input.shape[:-1], m), input.dtype)
    padded[..., : input.shape[-1]] = input
    q = product(padded, tau)
    q = np.swapaxes(q.conj(), -1, -2) if transpose else q
    return q @ other if left else other @ q


def qr(A: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return np.zeros(0), np.linalg.qr(A, "r")
    return tuple(np.linalg.qr(A, "complete" if mode == "complete" else "reduced"))


def svd(A: Any, full_matrices: bool = True, *rest: Any, **kwargs: Any) -> Any:
    return None, np.linalg.svd(A, compute_uv=False), None


def qr_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "qr received unrecognized mode 'x' but expected one of 'reduced' (default), 'r', or 'complete'"
    yield ErrorInput(sample(make(3, 3), "x"), RuntimeError, text)
    yield ErrorInput(sample(make(3)), RuntimeError, "linalg.qr: The input tensor A must have at least 2 dimensions.")


def svd_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
    yield ErrorInput(SampleInput(make(3, 3), (), {"driver": "gesvd"}), RuntimeError, text)
    text = "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
    yield ErrorInput(sample(make(3, 3).detach() * float("nan")), RuntimeError, text)


def eigh_errors(make: Maker) -> Iterator[ErrorInput]:
    yield from not_square("linalg.eigh")(make)
    yield ErrorInput(sample(make(3, 3), "x"), RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got x")


def eig_errors(make: Maker) -> Iterator[ErrorInput]:
    yield from not_square("linalg.eig")(make)
    text = "torch.linalg.eig: input tensor should not contain infs or NaNs."
    yield ErrorInput(sample(make(2, 2).detach() * float("nan")), RuntimeError, text)


def ormqr_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "torch.ormqr: other.shape[-2] must be equal to input.shape[-2]"
    yield ErrorInput(sample(make(4, 3), make(3), make(3, 2)), RuntimeError, text)


def sizes_of_vectors(results: Any) -> Any:
    """Eigenvalues, and eigenvectors without their phases."""
    values, vectors = results
    return values, vectors.abs()


def sizes_of_pairs(results: Any) -> Any:
    """Singular values, and what is the same for all pairs of vectors that belong to them."""
    U, S, V = results
    return U.abs(), S, V.abs()


NO_NULL_SPACE = "what completes the vectors to a square matrix is not unique"
R_ALONE = "without Q there is no derivative"
SYMMETRIC = {"expanded": EQUAL_ROWS["expanded"]}
squares = shapes((3, 3), (2, 3, 3), (0, 3, 3), (0, 0))


ORTHOGONAL = [
    OpInfo(
        "linalg_qr",
        both(
            shapes(*TALL_AND_WIDE),
            shapes((2, 3, 4), mode="complete"),
            not_differentiable(shapes((2, 4, 3), mode="complete"), NO_NULL_SPACE),
            not_differentiable(shapes((2, 4, 3), (2, 3, 4), mode="r"), R_ALONE),
        ),
        qr,
        FLOATS,
        function="linalg.qr",
        skips=EQUAL_ROWS,
        errors=qr_errors,
    ),
    OpInfo("qr", shapes(*TALL_AND_WIDE), np.linalg.qr, FLOATS, skips=EQUAL_ROWS),
    OpInfo(
        "geqrf",
        shapes((3, 3), (2, 4, 3), (2, 3, 4), (3, 0)),
        None,
        FLOATS,
        skips={
            "gradients": "PyTorch has none, and says so",
            "second_gradients": "as for gradients",
            "parity": "the sign of numbers close to zero",
        },
    ),
    OpInfo(
        "linalg_householder_product",
        reflections,
        product,
        FLOATS,
        function="linalg.householder_product",
        skips=EQUAL_ROWS,
    ),
    OpInfo("orgqr", reflections, product, FLOATS, skips=EQUAL_ROWS),
    OpInfo("ormqr", turned, times_product, FLOATS, skips=EQUAL_ROWS, errors=ormqr_errors),
]
SPECTRA = [
    OpInfo(
        "_linalg_svd",
        shapes(*TALL_AND_WIDE),
        svd,
        FLOATS,
        definite=sizes_of_pairs,
        skips=EQUAL_ROWS,
        errors=svd_errors,
    ),
    OpInfo(
        "linalg_svd",
        both(
            squares,
            not_differentiable(shapes((2, 4, 3), (2, 3, 4), (3, 0)), NO_NULL_SPACE),
            shapes((2, 4, 3), full_matrices=False),
        ),
        svd,
        FLOATS,
        definite=sizes_of_pairs,
        function="linalg.svd",
        skips=EQUAL_ROWS,
    ),
    OpInfo(
        "linalg_svdvals",
        shapes(*TALL_AND_WIDE),
        lambda A: np.linalg.svd(A, compute_uv=False),
        FLOATS,
        function="linalg.svdvals",
    ),
    OpInfo(
        "svd",
        shapes(*TALL_AND_WIDE),
        svd,
        FLOATS,
        definite=sizes_of_pairs,
        skips=EQUAL_ROWS,
    ),
    OpInfo(
        "_linalg_eigh",
        both(shapes((3, 3), (2, 3, 3), (0, 3, 3), kind=symmetric), shapes((3, 3), kind=symmetric, UPLO="U")),
        lambda A, UPLO="L": (np.linalg.eigvalsh(A, UPLO), None),
        FLOATS,
        definite=sizes_of_vectors,
        hermitian=True,
        skips=SYMMETRIC,
        errors=eigh_errors,
    ),
    OpInfo(
        "linalg_eigh",
        both(shapes((3, 3), (2, 3, 3), (0, 3, 3), kind=symmetric), shapes((3, 3), kind=symmetric, UPLO="U")),
        lambda A, UPLO="L": (np.linalg.eigvalsh(A, UPLO), None),
        FLOATS,
        definite=sizes_of_vectors,
        hermitian=True,
        function="linalg.eigh",
        skips=SYMMETRIC,
    ),
    OpInfo(
        "linalg_eigvalsh",
        both(shapes((3, 3), (2, 3, 3), (0, 3, 3), kind=symmetric), shapes((3, 3), kind=symmetric, UPLO="U")),
        np.linalg.eigvalsh,
        FLOATS,
        hermitian=True,
        function="linalg.eigvalsh",
    ),
    OpInfo(
        "linalg_eig",
        shapes((3, 3), (2, 3, 3), (0, 3, 3), (0, 0)),
        None,
        FLOATS,
        definite=sizes_of_vectors,
        function="linalg.eig",
        skips=EQUAL_ROWS,
        errors=eig_errors,
    ),
    OpInfo(
        "linalg_eigvals",
        squares,
        None,
        FLOATS,
        function="linalg.eigvals",
        skips=EQUAL_ROWS,
    ),
    OpInfo(
        "_linalg_eigvals", squares, None, FLOATS, gradients=False, skips={**EQUAL_ROWS, "recording": "as PyTorch's"}
    ),
]
