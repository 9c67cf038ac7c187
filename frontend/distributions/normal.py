"""Normal and its relatives: LogNormal, LogisticNormal, HalfNormal.

A file holds a family and its relatives. A class states its constraints and its moments as rows, then its formulas.
Read next: transformed_distribution.py, by which the relatives are made.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform, ExpTransform, StickBreakingTransform
from .utils import batch_of, broadcast_all


class Normal(ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    Density exp(-(x - loc)² / (2 scale²)) / (scale √(2π)) on the real numbers; `loc` and `scale` > 0 broadcast.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")
    _mean_carrier_measure = 0

    mean = mode = property(attrgetter("loc"))
    stddev = property(attrgetter("scale"))
    variance = property(lambda self: self.stddev.pow(2))

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(batch_of(loc, scale), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with rd.no_grad():
            return rd.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = rd.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        variance = self.scale**2
        return -((value - self.loc) ** 2) / (2 * variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 0.5 * (1 + rd.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * rd.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + rd.log(self.scale)

    _natural_params = property(lambda self: (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return -0.25 * x.pow(2) / y + 0.5 * rd.log(-math.pi / y)


class LogNormal(TransformedDistribution):
    """exp of Normal(loc, scale): positive numbers whose logarithm is normal. `loc` and `scale` > 0 broadcast."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = ()

    loc, scale = property(attrgetter("base_dist.loc")), property(attrgetter("base_dist.scale"))
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.pow(2).expm1() * (2 * self.loc + self.scale.pow(2)).exp())

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Vectors of n probabilities, broken off a stick by n - 1 numbers of Normal(loc, scale).

    The last dimension of `loc` and `scale` > 0, which broadcast, has size n - 1; numbers stand for n = 2.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _parameters = ()

    loc, scale = property(attrgetter("base_dist.base_dist.loc")), property(attrgetter("base_dist.base_dist.scale"))

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base.expand([1]) if not base.batch_shape else base
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)


class Half(TransformedDistribution):
    """|x| for x of a family that is symmetric around 0: twice its density, from 0 on."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale = property(attrgetter("base_dist.scale"))
    mode = property(lambda self: rd.zeros_like(self.scale))

    def log_prob(self, value: Any) -> Any:
        value = rd.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        self._check(value)
        return rd.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """|x| for x of Normal(0, scale): density √2 exp(-x² / (2 scale²)) / (scale √π) for x ≥ 0. `scale` > 0."""

    _parameters = ()

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)
