"""Symmetric families with tails heavier than a normal's: Cauchy, HalfCauchy, Laplace, StudentT."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution
from .gamma import Chi2
from .normal import Half
from .transforms import AbsTransform
from .utils import broadcast_all


class Cauchy(Distribution):
    """The Cauchy distribution with median `loc` and half width `scale`; it has no mean.

    Density 1 / (π scale (1 + ((x - loc) / scale)²)) on the real numbers; `loc` and `scale` > 0 broadcast.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    mean = property(lambda self: self._filled(math.nan, self.loc))
    mode = property(attrgetter("loc"))
    variance = property(lambda self: self._filled(math.inf, self.loc))

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return rd.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return rd.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(Half):
    """|x| for x of Cauchy(0, scale): density 2 / (π scale (1 + (x / scale)²)) for x ≥ 0. `scale` > 0."""

    _parameters = ()

    mean = property(lambda self: self._filled(math.inf, self.scale))
    variance = property(attrgetter("base_dist.variance"))

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)


class Laplace(Distribution):
    """Two exponential tails back to back.

    Density exp(-|x - loc| / scale) / (2 scale) on the real numbers; `loc` and `scale` > 0 broadcast.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    mean = mode = property(attrgetter("loc"))
    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: 2**0.5 * self.scale)

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape, eps = self._extended_shape(sample_shape), rd.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(shape).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * rd.log1p(-u.abs())

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return -rd.log(2 * self.scale) - rd.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 0.5 - 0.5 * (value - self.loc).sign() * rd.expm1(-(value - self.loc).abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * rd.log1p(-2 * term.abs())

    def entropy(self) -> Any:
        return 1 + rd.log(2 * self.scale)


class StudentT(Distribution):
    """loc + scale t, with t of Student's distribution: a normal number over an estimate of its scale.

    Density proportional to (1 + t² / df)^(-(df + 1) / 2) on the real numbers; `df` > 0, the degrees of freedom, `loc`
    and `scale` > 0 broadcast.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("df", "loc", "scale", "_chi2")

    mean = property(lambda self: self.loc.masked_fill(self.df <= 1, rd.nan))
    mode = property(attrgetter("loc"))

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def variance(self) -> Any:
        """The variance: inf where 1 < df <= 2, nan below."""
        df, variance = self.df, self.df.clone()
        variance[df > 2] = self.scale[df > 2].pow(2) * df[df > 2] / (df[df > 2] - 2)
        variance[(df <= 2) & (df > 1)] = rd.inf
        variance[df <= 1] = rd.nan
        return variance

    def rsample(self, sample_shape: Any = ()) -> Any:
        x = rd.randn(self._extended_shape(sample_shape), dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * x * rd.rsqrt(self._chi2.rsample(sample_shape) / self.df)

    def _log_normalizer(self) -> Any:
        half = 0.5 * self.df
        return 0.5 * self.df.log() + 0.5 * math.log(math.pi) + rd.lgamma(half) - rd.lgamma(half + 0.5)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        y = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * rd.log1p(y**2.0 / self.df) - self.scale.log() - self._log_normalizer()

    def entropy(self) -> Any:
        spread = rd.digamma(0.5 * (self.df + 1)) - rd.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * spread + self._log_normalizer()
