"""Exponential, Uniform and functions of them: Pareto, GeneralizedPareto, Weibull, Gumbel, Kumaraswamy."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import EULER, broadcast_all


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
        super().__init__(self.rate.shape, validate_args=validate_args)

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


class GeneralizedPareto(Distribution):
    """loc + scale (exp(k x) - 1) / k for x of Exponential(1) and k = `concentration`: tails of any weight.

    Density (1 + k z)^(-1 / k - 1) / scale for z = (x - loc) / scale ≥ 0, and z ≤ -1 / k for a k below 0; exp(-z) /
    scale for k = 0. `loc`, `scale` > 0 and `concentration` broadcast.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _parameters = ("loc", "scale", "concentration")

    mode = property(attrgetter("loc"))

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        k = self.concentration
        return constraints.interval(self.loc, rd.where(k < 0, self.loc - self.scale / k, rd.inf))

    @property
    def mean(self) -> Any:
        """The mean: nan where concentration >= 1."""
        k = self.concentration
        return self.loc + self.scale / (1 - k.masked_fill(k >= 1, rd.nan))

    @property
    def variance(self) -> Any:
        """The variance: nan where concentration >= 1 / 2."""
        k = self.concentration.masked_fill(self.concentration >= 0.5, rd.nan)
        return self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))

    def _by_concentration(self, x: Any, elsewhere: Any) -> Any:
        """Returns `elsewhere(k)`, and x + k x² / 2, the beginning of its series, where k is 0 or as good as."""
        k, zero = self.concentration, self.concentration.isclose(rd.zeros_like(self.concentration))
        return rd.where(zero, x + k * x**2 / 2, elsewhere(k.masked_fill(zero, 1)))

    def rsample(self, sample_shape: Any = ()) -> Any:
        unit = rd.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(unit)

    def log_prob(self, value: Any) -> Any:
        survival, k = self.log_survival_function(value), self.concentration
        at_end = (k == -1) & (survival == -rd.inf)  # of the uniform distribution: 0 times infinity is 0
        return (1 + k) * survival.masked_fill(at_end, 0) - self.scale.log()

    def log_survival_function(self, value: Any) -> Any:
        """Returns the logarithm of the probability of values above `value`."""
        self._check(value)
        z = (value - self.loc) / self.scale
        return self._by_concentration(-z, lambda k: -rd.log1p(k * z) / k)

    def log_cdf(self, value: Any) -> Any:
        """Returns the logarithm of `cdf`."""
        return rd.log1p(-rd.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return -rd.expm1(self.log_survival_function(value))

    def icdf(self, value: Any) -> Any:
        waiting = -rd.log1p(-value)
        return self.loc + self.scale * self._by_concentration(waiting, lambda k: rd.expm1(k * waiting) / k)

    def entropy(self) -> Any:
        return self.scale.log() + self.concentration + 1


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


# --- Uniform and functions of uniform numbers: Gumbel, Kumaraswamy ----------------------------------------------------


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
        super().__init__(self.low.shape, validate_args=validate_args)
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
        limits, shape = rd.finfo(self.loc.dtype), self.loc.shape
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
