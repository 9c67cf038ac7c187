"""Samples of kernels/ops/pseudo_inverse.py, matrix_functions.py and added_products.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops.from_data import tensor

from ..op_info import FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .linalg import scaled
from .matrices import EQUAL_ROWS, batches, not_square, regular
from .spectra import apart, shapes, symmetric

SHAPES = ((3, 3), (2, 4, 3), (2, 3, 4))

# --- pseudo-inverses --------------------------------------------------------------------------------------------------


def tolerances(*names: str) -> Any:
    """Each shape; and tolerances as numbers, which are small against the singular values."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in SHAPES:
            yield sample(apart(make, *shape))
        for name in names:
            yield sample(apart(make, 2, 4, 3), **{name: 0.1})
        yield sample(symmetric(make, 3, 3).detach(), hermitian=True)

    return samples


def tensor_tolerances(*names: str) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        yield sample(apart(make, 2, 4, 3))
        for name in names:
            yield sample(apart(make, 2, 4, 3), **{name: tensor([0.1, 0.2], dtype=dtypes.float64)})
        yield sample(symmetric(make, 3, 3).detach(), hermitian=True)

    return samples


def pinv(self: Any, *args: Any, **kwargs: Any) -> Any:
    return np.linalg.pinv(self)


def rank(self: Any, *args: Any, **kwargs: Any) -> Any:
    return np.zeros(self.shape[:-2]) if not self.size else np.linalg.matrix_rank(self)


def conditions(*norms: Any) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for p in norms:
            yield sample(apart(make, 2, 3, 3), p)

    return samples


def cond(self: Any, p: Any = None) -> Any:
    return np.zeros(self.shape[:-2]) if not self.size else np.linalg.cond(self, p)


def cond_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(3, 3), 3), RuntimeError, "linalg.cond got an invalid norm type: 3")
    text = "linalg.cond(ord=1): A must be batches of square matrices, but they are 3 by 4 matrices"
    yield ErrorInput(sample(make(3, 4), 1), RuntimeError, text)


def least_squares(make: Maker) -> Iterator[SampleInput]:
    yield sample(apart(make, 4, 3), make(4, 2))
    yield sample(apart(make, 2, 3, 4), make(2, 3, 2))
    yield sample(apart(make, 2, 4, 3), make(2, 4))
    for driver in ("gels", "gelsd", "gelss"):
        yield sample(apart(make, 2, 4, 3), make(2, 4, 2), driver=driver)
    yield sample(make(3, 0), make(3, 2))


def solution(self: Any, b: Any, driver: str = "gelsy") -> Any:
    found = np.linalg.pinv(self) @ (b[..., None] if b.ndim < self.ndim else b)
    return found[..., 0] if b.ndim < self.ndim else found, None, None, None


def lstsq_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
    yield ErrorInput(SampleInput(make(4, 3), (make(4, 2),), {"driver": "x"}), RuntimeError, text)
    text = "torch.linalg.lstsq: input.size(-2) should match other.size(-2)"
    yield ErrorInput(sample(make(4, 3), make(3, 2)), RuntimeError, text)


# --- functions of matrices --------------------------------------------------------------------------------------------


def powers(make: Maker) -> Iterator[SampleInput]:
    for n in (2, 0, 1, 5):
        yield sample(make(2, 2), n)
    yield sample(make(2, 3, 3), 3)
    if make.dtype in (dtypes.float32, dtypes.float64):
        yield sample(regular(make, 3, 3), -2)


def exponential(self: Any) -> Any:
    """By eigenvalues: what the samples have are all different."""
    values, vectors = np.linalg.eig(self.astype(np.complex128))
    found = vectors @ (np.exp(values)[..., None] * np.linalg.inv(vectors)) if self.size else self
    return found if np.iscomplexobj(self) else found.real


def small(make: Maker, *shape: int) -> Any:
    return make(*shape, low=-1, high=1)


def chains(make: Maker) -> Iterator[SampleInput]:
    yield sample([make(2, 3), make(3, 4)])
    yield sample([make(2, 3), make(3, 4), make(4, 2)])
    yield sample([make(4, 1), make(1, 4), make(4, 2), make(2, 5)])


def chains_of_vectors(make: Maker) -> Iterator[SampleInput]:
    yield from chains(make)
    yield sample([make(3), make(3, 4), make(4)])
    yield sample([make(3), make(3, 4)])


def chain(tensors: Any) -> Any:
    found = tensors[0]
    for x in tensors[1:]:
        found = found @ x
    return found


def chain_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "multi_dot(): expected at least 2 tensors but got 1"
    yield ErrorInput(SampleInput([make(2, 2)]), RuntimeError, text)
    text = "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied"
    yield ErrorInput(SampleInput([make(2, 3), make(2, 3)]), RuntimeError, text)


def tensor_inverses(make: Maker) -> Iterator[SampleInput]:
    for shape, ind in (((4, 2, 2), 1), ((2, 2, 4), 2)):
        yield sample(regular(make, 4, 4).detach().reshape(shape).requires_grad_(regular(make, 1, 1).requires_grad), ind)


def tensor_equations(make: Maker) -> Iterator[SampleInput]:
    grad = regular(make, 1, 1).requires_grad
    yield sample(regular(make, 6, 6).detach().reshape(2, 3, 6).requires_grad_(grad), make(2, 3))
    yield sample(regular(make, 6, 6).detach().reshape(2, 3, 6).mT.contiguous().requires_grad_(grad), make(2, 3), [1])


def tensorsolve(self: Any, other: Any, dims: Any = None) -> Any:
    return np.linalg.tensorsolve(self, other, dims and tuple(dims))


def tensorinv_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "Expected a strictly positive integer for 'ind', but got 0"
    yield ErrorInput(sample(make(2, 2), 0), RuntimeError, text)


def vandermonde(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3))
    yield sample(make(2, 3), N=4)


def old_vandermonde(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3))
    yield sample(make(3), 2, True)
    yield sample(make(3), 0)
    yield sample(make(0))


def vander(x: Any, N: Any = None) -> Any:
    return x[..., None] ** np.arange(N or x.shape[-1])


def inner_products(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3), make(3))
    yield sample(make(2, 3), make(3))
    yield sample(make(2, 3), make(2, 3), dim=0)


def inner_product(x: Any, y: Any, dim: int = -1) -> Any:
    return (x.conj() * y).sum(dim)


def cross_products(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 3))
    yield sample(make(1, 3), make(4, 3))
    yield sample(make(3, 2), make(3, 2), dim=0)


def old_cross_products(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 2), make(3, 2))
    yield sample(make(3, 3), make(3, 3), 1)


def cross(self: Any, other: Any, dim: Any = -1) -> Any:
    dim = list(self.shape).index(3) if dim is None else dim
    return np.cross(self, other, axis=dim)


def cross_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "linalg.cross: inputs dimension -1 must have length 3. Got 3 and 2"
    yield ErrorInput(sample(make(3), make(2)), RuntimeError, text)
    text = "linalg.cross: inputs must have the same number of dimensions."
    yield ErrorInput(sample(make(2, 3), make(3)), RuntimeError, text)


# --- added products ---------------------------------------------------------------------------------------------------


def summed(self: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * self + alpha * (a @ b).sum(0)


def addbmm_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "batch1 and batch2 must have same number of batches, got 2 and 3"
    yield ErrorInput(sample(make(2, 2), make(2, 2, 3), make(3, 3, 2)), RuntimeError, text)
    text = "Incompatible matrix sizes for bmm (2x3 and 2x3)"
    yield ErrorInput(sample(make(2, 3), make(2, 2, 3), make(2, 2, 3)), RuntimeError, text)


def addr(self: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * self + alpha * np.outer(a, b)


def addr_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "addr: Expected 1-D argument vec1, but got 2-D"
    yield ErrorInput(sample(make(2, 2), make(2, 2), make(2)), RuntimeError, text)


PSEUDO_INVERSES = [
    OpInfo("linalg_pinv.atol_rtol_tensor", tensor_tolerances("atol", "rtol"), pinv, FLOATS, function="linalg.pinv"),
    OpInfo("linalg_pinv.atol_rtol_float", tolerances("atol", "rtol"), pinv, FLOATS),
    OpInfo("linalg_pinv", shapes(*SHAPES, rcond=1e-3), pinv, FLOATS, function="linalg.pinv"),
    OpInfo(
        "linalg_pinv.rcond_tensor",
        lambda make: [sample(apart(make, 4, 3), tensor(0.1))],
        pinv,
        FLOATS,
        function="linalg.pinv",
    ),
    OpInfo("pinverse", shapes(*SHAPES), pinv, FLOATS),
    OpInfo("linalg_matrix_rank.atol_rtol_tensor", tensor_tolerances("atol", "rtol"), rank, FLOATS, gradients=False),
    OpInfo("linalg_matrix_rank.atol_rtol_float", tolerances("atol", "rtol"), rank, FLOATS, gradients=False),
    OpInfo("linalg_matrix_rank", shapes(*SHAPES, tol=0.1), rank, FLOATS, gradients=False),
    OpInfo(
        "linalg_matrix_rank.tol_tensor",
        lambda make: [sample(apart(make, 4, 3), tensor(0.1))],
        rank,
        FLOATS,
        gradients=False,
    ),
    OpInfo(
        "linalg_cond",
        conditions(None, 2, -2, 1, math.inf),
        cond,
        FLOATS,
        function="linalg.cond",
        skips=EQUAL_ROWS,
        errors=cond_errors,
    ),
    OpInfo("linalg_cond.p_str", conditions("fro", "nuc"), cond, FLOATS, function="linalg.cond", skips=EQUAL_ROWS),
    OpInfo(
        "linalg_lstsq",
        least_squares,
        solution,
        FLOATS,
        function="linalg.lstsq",
        skips={**EQUAL_ROWS, "meta": "the sizes of its results depend on the rank"},
        errors=lstsq_errors,
    ),
]
MATRIX_FUNCTIONS = [
    OpInfo("matrix_power", powers, np.linalg.matrix_power, FLOATS),
    OpInfo(
        "linalg_matrix_power",
        powers,
        np.linalg.matrix_power,
        FLOATS,
        function="linalg.matrix_power",
        errors=lambda make: [
            ErrorInput(
                sample(make(2, 3), 2),
                RuntimeError,
                "linalg.matrix_power: A must be batches of square matrices, but they are 2 by 3 matrices",
            )
        ],
    ),
    OpInfo(
        "linalg_matrix_exp",
        batches(small),
        exponential,
        FLOATS,
        function="linalg.matrix_exp",
        errors=not_square("linalg.matrix_exp"),
    ),
    OpInfo("matrix_exp", batches(small), exponential, FLOATS),
    OpInfo("linalg_multi_dot", chains_of_vectors, chain, FLOATS, function="linalg.multi_dot", errors=chain_errors),
    OpInfo("chain_matmul", chains, chain, FLOATS, function="ops.aten.chain_matmul"),
    OpInfo(
        "linalg_matmul", lambda make: [sample(make(2, 3), make(3, 2))], np.matmul, NUMBERS, function="linalg.matmul"
    ),
    OpInfo(
        "linalg_tensorinv",
        tensor_inverses,
        np.linalg.tensorinv,
        FLOATS,
        function="linalg.tensorinv",
        skips=EQUAL_ROWS,
        errors=tensorinv_errors,
    ),
    OpInfo(
        "linalg_tensorsolve",
        tensor_equations,
        tensorsolve,
        FLOATS,
        function="linalg.tensorsolve",
        skips=EQUAL_ROWS,
    ),
    OpInfo("linalg_vander", vandermonde, vander, NUMBERS, function="linalg.vander"),
    OpInfo(
        "vander",
        old_vandermonde,
        np.vander,
        NUMBERS,
        skips={
            **dict.fromkeys(("gradients", "second_gradients"), "PyTorch has none: it writes over what it has saved"),
            "subclass": "it writes into a new tensor, which is a plain one",
        },
    ),
    OpInfo("linalg_vecdot", inner_products, inner_product, FLOATS, function="linalg.vecdot"),
    OpInfo("linalg_cross", cross_products, cross, NUMBERS, function="linalg.cross", errors=cross_errors),
    OpInfo("cross", old_cross_products, lambda self, other, dim=None: cross(self, other, dim), NUMBERS),
    OpInfo(
        "linalg_diagonal",
        lambda make: [sample(make(2, 3, 4)), sample(make(2, 3, 4), offset=1, dim1=0)],
        lambda A, offset=0, dim1=-2, dim2=-1: np.diagonal(A, offset, dim1, dim2),
        NUMBERS,
        function="linalg.diagonal",
    ),
    OpInfo(
        "addbmm",
        scaled([(2, 2), (3, 2, 3), (3, 3, 2)], [(2,), (2, 2, 3), (2, 3, 2)], [(2, 2), (0, 2, 3), (0, 3, 2)]),
        summed,
        NUMBERS,
        errors=addbmm_errors,
    ),
    OpInfo("addr", scaled([(2, 3), (2,), (3,)], [(3,), (2,), (3,)]), addr, NUMBERS, errors=addr_errors),
    OpInfo(
        "ger",
        lambda make: [sample(make(2), make(3)), sample(make(0), make(3))],
        np.outer,
        NUMBERS,
    ),
]
