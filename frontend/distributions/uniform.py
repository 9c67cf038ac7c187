"""Uniform and functions of uniform numbers: Gumbel, Kumaraswamy."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import EULER, batch_of, broadcast_all


class Uniform(Distribution):
    """The uniform distribution: density 1 / (high - low) on [low, high). `low` and `high` broadcast.

    Errors: ValueError where `low` is not less than `high`.
    """

    has_rsample = True
    _parameters = ("low", "high")

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: rd.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(batch_of(low, high), validate_args=validate_args)
        if self._validate_args and not rd.lt(self.low, self.high).all():
            raise ValueError("Uniform is not defined when low>= high")

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    def rsample(self, sample_shape: Any = ()) -> Any:
        unit = rd.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + unit * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return rd.log(inside) - rd.log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return rd.log(self.high - self.low)


class Gumbel(TransformedDistribution):
    """loc - scale log(-log u) for uniform u: the largest of many numbers.

    Density exp(y - exp(y)) / scale on the real numbers, y = (loc - x) / scale; `loc` and `scale` > 0 broadcast.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    mean = property(lambda self: self.loc + self.scale * EULER)
    mode = property(attrgetter("loc"))
    stddev = property(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits, shape = rd.finfo(self.loc.dtype), batch_of(loc, scale)
        low, high = self.loc.new_full(shape, limits.tiny), self.loc.new_full(shape, 1 - limits.eps)
        turned = AffineTransform(loc=0, scale=-rd.ones_like(self.scale))
        parts = [ExpTransform().inv, turned, ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale)]
        super().__init__(Uniform(low, high, validate_args=validate_args), parts, validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Any:
        return self.scale.log() + (1 + EULER)


class Kumaraswamy(TransformedDistribution):
    """(1 - u^(1 / b))^(1 / a) for uniform u: like Beta, with a plain inverse.

    Density a b x^(a - 1) (1 - x^a)^(b - 1) on [0, 1], with a = `concentration1` > 0 and b = `concentration0` > 0,
    which broadcast.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _parameters = ("concentration1", "concentration0")

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self.mean.pow(2))

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        low, high = rd.zeros_like(self.concentration0), rd.ones_like(self.concentration0)
        parts = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(low, high, validate_args=validate_args), parts, validate_args=validate_args)

    def _moment(self, n: int) -> Any:
        """Returns E x^n = b B(1 + n / a, b), with a = concentration1, b = concentration0."""
        first, b = 1 + n / self.concentration1, self.concentration0
        return (first.lgamma() + b.lgamma() - (first + b).lgamma() + b.log()).exp()

    @property
    def mode(self) -> Any:
        """The most probable value: nan where a concentration is below 1."""
        a, b = self.concentration1, self.concentration0
        mode = (a.reciprocal() * (-b).log1p() - a.reciprocal() * (-a * b).log1p()).exp()
        return mode.masked_fill((b < 1) | (a < 1), rd.nan)

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = rd.digamma(b + 1) + EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - rd.log(a) - rd.log(b)
