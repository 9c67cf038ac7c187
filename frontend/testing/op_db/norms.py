"""Samples of kernels/ops/norms.py."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .spectra import apart


def matrix_norms(make: Maker) -> Iterator[SampleInput]:
    for ord in (1, -1, math.inf, 2, -2):
        yield sample(apart(make, 3, 3), ord)
    yield sample(make(2, 3, 4), 1, [0, 2])
    yield sample(make(2, 3, 4), math.inf, [2, 0], True)
    yield sample(make(2, 3, 4), 2, [0, 2], True)


def matrix_norm(self: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    if 0 in self.shape:
        return np.zeros(self.shape[:-2])
    return np.linalg.norm(self, ord, tuple(dim), keepdim)


def named_matrix_norms(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(3, 3))
    yield sample(apart(make, 2, 3, 4), "nuc")
    yield sample(make(2, 3, 4), "fro", [0, 2], True)
    yield sample(apart(make, 2, 3, 4), "nuc", [1, 2], True)


def norms(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3, 4))
    yield sample(make(3), 3)
    yield sample(apart(make, 3, 3), 2)
    yield sample(make(2, 3), None, [1], True)
    yield sample(make(2, 3, 4), 1, [1, 2])


def norm(self: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    return np.linalg.norm(self, ord, dim if dim is None else tuple(dim) if len(dim) == 2 else dim[0], keepdim)


def named_norms(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), "fro")
    yield sample(apart(make, 3, 3), "nuc")
    yield sample(make(2, 3, 4), "fro", [0, 1], True)


def old_norms(make: Maker) -> Iterator[SampleInput]:
    for p in (2, 1, 3):
        yield sample(make(2, 3), p)


def old_norms_along(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), 2, [1], False)
    yield sample(make(2, 3), None, [0], True)


def with_dtype(samples: Any) -> Any:
    def made(make: Maker) -> Iterator[SampleInput]:
        kind = dtypes.complex128 if make.dtype.is_complex else dtypes.float64
        for one in samples(make):
            yield SampleInput(one.input, one.args, {"dtype": kind})

    return made


def old_norm(self: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    sizes = abs(self) if dtype is None else abs(self.astype(dtype))
    order, axis = 2 if p is None else p, None if dim is None else tuple(dim)
    return (sizes**order).sum(axis, keepdims=keepdim) ** (1 / order)


def distances(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 3))
    yield sample(make(2, 3), make(3), 3)
    yield sample(make(2, 1), make(3), 1)
    yield sample(make(0, 3), make(3))


def scaled_down(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), 2, 0, 1.5)
    yield sample(make(2, 3), 1, -1, 100.0)
    yield sample(make(2, 3, 2), 3, 1, 2)
    yield sample(make(0, 3), 2, 0, 1.0)


def renorm(self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    axes = tuple(d for d in range(self.ndim) if d != dim % self.ndim)
    size = (abs(self) ** p).sum(axis=axes, keepdims=True) ** (1 / p)
    return np.where(size > maxnorm, self * maxnorm / (size + 1e-7), self)


def wrong_matrices(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(3, 3), 3), RuntimeError, "linalg.matrix_norm: Order 3 not supported.")
    text = "linalg.matrix_norm: dims must be different. Got (0, 0)"
    yield ErrorInput(sample(make(3, 3), 2, [0, 0]), RuntimeError, text)
    text = "linalg.matrix_norm: dim must be a 2-tuple. Got 0"
    yield ErrorInput(sample(make(3, 3), 2, [0]), RuntimeError, text)


def wrong_dims(make: Maker) -> Iterator[ErrorInput]:
    text = "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D."
    yield ErrorInput(sample(make(2, 3, 3), 2), RuntimeError, text)


def wrong_limits(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2, 3), 0, 0, 1), RuntimeError, "renorm: non-positive-norm not supported")
    yield ErrorInput(
        sample(make(3), 2, 0, 1), RuntimeError, "renorm: input needs at least 2 dimensions, got 1 dimensions"
    )


NORMS = [
    OpInfo(
        "linalg_matrix_norm", matrix_norms, matrix_norm, FLOATS, function="linalg.matrix_norm", errors=wrong_matrices
    ),
    OpInfo("linalg_matrix_norm.str_ord", named_matrix_norms, matrix_norm, FLOATS, function="linalg.matrix_norm"),
    OpInfo("linalg_norm", norms, norm, FLOATS, function="linalg.norm", errors=wrong_dims),
    OpInfo("linalg_norm.ord_str", named_norms, norm, FLOATS, function="linalg.norm"),
    OpInfo("norm.Scalar", old_norms, old_norm, FLOATS),
    OpInfo("norm.ScalarOpt_dim", old_norms_along, old_norm, FLOATS),
    OpInfo("norm.ScalarOpt_dtype", with_dtype(old_norms), old_norm, FLOATS),
    OpInfo("norm.ScalarOpt_dim_dtype", with_dtype(old_norms_along), old_norm, FLOATS),
    OpInfo(
        "frobenius_norm.dim",
        lambda make: [sample(make(2, 3), [1]), sample(make(2, 3), [0, 1], True)],
        lambda self, dim, keepdim=False: old_norm(self, 2, dim, keepdim),
        FLOATS,
    ),
    OpInfo(
        "nuclear_norm",
        lambda make: [sample(apart(make, 3, 3)), sample(apart(make, 2, 3, 4))],
        lambda self: np.linalg.norm(self, "nuc", (-2, -1)),
        FLOATS,
    ),
    OpInfo(
        "nuclear_norm.dim",
        lambda make: [sample(apart(make, 3, 3), [0, 1]), sample(apart(make, 2, 3, 4), [1, 2], True)],
        lambda self, dim, keepdim=False: np.linalg.norm(self, "nuc", tuple(dim), keepdim),
        FLOATS,
    ),
    OpInfo("dist", distances, lambda self, other, p=2: old_norm(self - other, p), FLOATS),
    OpInfo("renorm", scaled_down, renorm, FLOATS, errors=wrong_limits),
]
