"""StudentT: a normal number over an estimate of its scale."""

from __future__ import annotations

import math
from typing import Any

import redispatch as rd

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all


class StudentT(Distribution):
    """loc + scale t, with t of Student's distribution with `df` degrees of freedom."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("df", "loc", "scale")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Any:
        mean = self.loc.clone()
        mean[self.df <= 1] = rd.nan
        return mean

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        """inf where 1 < df <= 2, nan below."""
        df, variance = self.df, self.df.clone()
        variance[df > 2] = self.scale[df > 2].pow(2) * df[df > 2] / (df[df > 2] - 2)
        variance[(df <= 2) & (df > 1)] = rd.inf
        variance[df <= 1] = rd.nan
        return variance

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        x = rd.randn(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * x * rd.rsqrt(self._chi2.rsample(sample_shape) / self.df)

    def _log_normalizer(self) -> Any:
        half = 0.5 * self.df
        return 0.5 * self.df.log() + 0.5 * math.log(math.pi) + rd.lgamma(half) - rd.lgamma(half + 0.5)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * rd.log1p(y**2.0 / self.df) - self.scale.log() - self._log_normalizer()

    def entropy(self) -> Any:
        spread = rd.digamma(0.5 * (self.df + 1)) - rd.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * spread + self._log_normalizer()
