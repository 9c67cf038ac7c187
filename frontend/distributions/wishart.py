"""Wishart: random covariance matrices, sums of outer products of normal vectors.

Source of the samples: Bartlett's decomposition (Anderson, An Introduction to Multivariate Statistical Analysis, 2003).
Read next: normal.py, of which the parameters are.
"""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import ExponentialFamily
from .gamma import Chi2
from .normal import ByMatrix, half_log_det
from .utils import lazy_property


class Wishart(ByMatrix, ExponentialFamily):
    """Positive definite matrices `[..., n, n]` with mean `df` Σ, for one of: Σ, its inverse, its lower Cholesky factor.

    Density ~ det(x)^((df - n - 1) / 2) exp(-tr(Σ⁻¹ x) / 2); `df` > n - 1. For an integer `df` it is that of the sum of
    the outer products of `df` normal vectors of covariance Σ.
    Errors: ValueError for a matrix with too few dimensions or a `df` too small; AssertionError unless exactly one
    matrix is given.
    """

    support = constraints.positive_definite
    has_rsample = True
    _parameters = ("df", *ByMatrix._matrices)
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._one_of(AssertionError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        batch, event = matrix.shape[:-2], matrix.shape[-2:]
        if isinstance(df, Number):
            self.df = rd.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch = rd.broadcast_shapes(batch, df.shape)
            self.df = df.expand(batch)
        if self.df.le(event[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        if self.df.lt(event[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand(batch + event))
        super().__init__(batch, event, validate_args=validate_args)
        self._factorize(name, matrix)

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    _n: Any = property(lambda self: self._event_shape[-1])

    @property
    def mean(self) -> Any:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """The most probable matrix: nan where df <= n + 1."""
        factor = self.df - self._n - 1
        return factor.masked_fill(factor <= 0, rd.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (self.covariance_matrix.pow(2) + outer)

    @lazy_property
    def _chi2(self) -> Any:
        """The squares of the diagonal of a standard sample's factor."""
        return Chi2(self.df.unsqueeze(-1) - rd.arange(self._n, dtype=self.df.dtype, device=self.df.device))

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """Draws matrices; those that rounding makes singular are drawn again, at most `max_try_correction` times."""
        sample = self._bartlett(sample_shape)
        for attempt in range(10 if max_try_correction is None else max_try_correction):
            singular = ~self.support.check(sample)
            if not singular.any():
                break
            if not attempt:
                warnings.warn("Singular sample detected.", stacklevel=2)
            sample = rd.where(singular[..., None, None], self._bartlett(sample_shape), sample)
        return sample

    def _bartlett(self, sample_shape: Any) -> Any:
        diagonal = self._chi2.rsample(sample_shape).sqrt()
        diagonal = diagonal.clamp(min=rd.finfo(diagonal.dtype).eps)
        below = rd.randn(self._extended_shape(sample_shape), dtype=diagonal.dtype, device=diagonal.device).tril(-1)
        factor = rd.matmul(self._unbroadcasted_scale_tril, below + rd.diag_embed(diagonal))
        return rd.matmul(factor, factor.mT)

    def _half_log_det_of_2(self) -> Any:
        """Returns log det(2 Σ) / 2."""
        return self._n * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        df, n = self.df, self._n
        trace = rd.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        density = (df - n - 1) / 2 * rd.linalg.slogdet(value).logabsdet - trace / 2
        return density - df * self._half_log_det_of_2() - rd.mvlgamma(df / 2, n)

    def entropy(self) -> Any:
        df, n = self.df, self._n
        slope = rd.digamma(df.unsqueeze(-1) / 2 - rd.arange(n, dtype=df.dtype, device=df.device) / 2).sum(-1)
        log_gamma = rd.mvlgamma(df / 2, n)
        return (n + 1) * self._half_log_det_of_2() + log_gamma - (df - n - 1) / 2 * slope + df * n / 2

    _natural_params = property(lambda self: (-self.precision_matrix / 2, (self.df - self._n - 1) / 2))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        half_df = y + (self._n + 1) / 2
        log_det = rd.linalg.slogdet(-2 * x).logabsdet
        return half_df * (self._n * math.log(2) - log_det) + rd.mvlgamma(half_df, self._n)
