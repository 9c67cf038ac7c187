"""MultivariateNormal: normal vectors with correlations."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution
from .utils import lazy_property


def batch_mv(matrix: rd.Tensor, vector: rd.Tensor) -> rd.Tensor:
    """Multiplies each matrix `[..., n, n]` with its vector `[..., n]`."""
    return rd.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def half_log_det(factor: rd.Tensor) -> rd.Tensor:
    """Returns half of the logarithm of det L Lᵀ."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def mahalanobis(factor: rd.Tensor, x: rd.Tensor) -> rd.Tensor:
    """Returns xᵀ (L Lᵀ)⁻¹ x, of vectors `[..., n]` and lower triangles `[..., n, n]` whose batches broadcast."""
    batch = rd.broadcast_shapes(factor.shape[:-2], x.shape[:-1])
    size = factor.shape[-1]
    solved = rd.linalg.solve_triangular(
        factor.expand(batch + (size, size)), x.expand(batch + (size,)).unsqueeze(-1), upper=False
    )
    return solved.squeeze(-1).pow(2).sum(-1)


def factor_of_precision(precision: rd.Tensor) -> rd.Tensor:
    """Returns the lower Cholesky factor of the inverse, found by way of the reversed matrix."""
    reversed_factor = rd.linalg.cholesky(rd.flip(precision, (-2, -1)))
    upper = rd.flip(reversed_factor, (-2, -1)).transpose(-2, -1)
    identity = rd.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return rd.linalg.solve_triangular(upper, identity, upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors with mean `loc[..., n]` and one of: covariance, precision, or lower Cholesky factor `[..., n, n]`.

    Density exp(-(x - loc)ᵀ Σ⁻¹ (x - loc) / 2) / √((2π)ⁿ det Σ), of real vectors with covariance Σ.
    Errors: ValueError for parameters with too few dimensions, and unless exactly one matrix is given.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _parameters = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
    _kept = ("_unbroadcasted_scale_tril",)

    mean = mode = property(attrgetter("loc"))

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = (covariance_matrix, precision_matrix, scale_tril)
        given = {name: one for name, one in zip(self._parameters[1:], matrices, strict=True) if one is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch, size = rd.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]), loc.shape[-1:]
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        self.loc = loc.expand(batch + size)
        super().__init__(batch, size, validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = scale_tril
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = rd.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = factor_of_precision(precision_matrix)

    def _of_whole_batch(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    scale_tril: Any = lazy_property(lambda self: self._of_whole_batch(self._unbroadcasted_scale_tril))
    covariance_matrix: Any = lazy_property(
        lambda self: self._of_whole_batch(rd.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))
    )
    precision_matrix: Any = lazy_property(
        lambda self: self._of_whole_batch(rd.cholesky_inverse(self._unbroadcasted_scale_tril))
    )

    @property
    def variance(self) -> Any:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = rd.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        factor = self._unbroadcasted_scale_tril
        distance = mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - half_log_det(factor)

    def entropy(self) -> Any:
        half = half_log_det(self._unbroadcasted_scale_tril)
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half
        return entropy.expand(self._batch_shape)
