"""Exponential and what follows from it: Pareto, Weibull."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import EULER, batch_of, broadcast_all


class Exponential(ExponentialFamily):
    """Waiting times of events that come `rate` > 0 times in a unit of time: density rate exp(-rate x) for x ≥ 0."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = ("rate",)
    _mean_carrier_measure = 0

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: rd.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(batch_of(rate), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 1 - rd.exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -rd.log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1.0 - rd.log(self.rate)

    _natural_params = property(lambda self: (-self.rate,))

    def _log_normalizer(self, x: Any) -> Any:
        return -rd.log(-x)


class Pareto(TransformedDistribution):
    """scale exp(x) for x of Exponential(alpha): a power law.

    Density alpha scale^alpha / x^(alpha + 1) for x ≥ scale; `scale` > 0 and `alpha` > 0 broadcast.
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _parameters = ("scale", "alpha")

    mode = property(attrgetter("scale"))

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        parts = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, parts, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """The mean: inf where alpha <= 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def variance(self) -> Any:
        """The variance: inf where alpha <= 2."""
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(TransformedDistribution):
    """scale x^(1 / concentration) for x of Exponential(1): lifetimes whose chance to end changes with age.

    Density proportional to x^(concentration - 1) exp(-(x / scale)^concentration) for x > 0; `scale` > 0 and
    `concentration` > 0 broadcast.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = ("scale", "concentration")

    mean = property(lambda self: self.scale * rd.exp(rd.lgamma(1 + self.concentration.reciprocal())))

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(rd.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._parts(), validate_args=validate_args)

    def _parts(self) -> Any:
        power = PowerTransform(exponent=self.concentration.reciprocal())
        return [power, AffineTransform(loc=0, scale=self.scale)]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.transforms = new._parts()
        return new

    @property
    def mode(self) -> Any:
        share = (self.concentration - 1) / self.concentration
        return self.scale * share ** self.concentration.reciprocal()

    @property
    def variance(self) -> Any:
        inverse = self.concentration.reciprocal()
        return self.scale.pow(2) * (rd.exp(rd.lgamma(1 + 2 * inverse)) - rd.exp(2 * rd.lgamma(1 + inverse)))

    def entropy(self) -> Any:
        inverse = self.concentration.reciprocal()
        return EULER * (1 - inverse) + rd.log(self.scale * inverse) + 1
