"""Gamma and families made of gamma numbers: Chi2, InverseGamma, Dirichlet, Beta, FisherSnedecor."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform
from .utils import broadcast_all


class Gamma(ExponentialFamily):
    """The gamma distribution with shape `concentration` and inverse scale `rate`.

    Density proportional to x^(concentration - 1) exp(-rate x) for x ≥ 0; `concentration` > 0 and `rate` > 0 broadcast.
    Samples are differentiated implicitly: `_standard_gamma` in kernels/ops/distributions.py.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters: tuple[str, ...] = ("concentration", "rate")
    _mean_carrier_measure = 0

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        value = rd._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=rd.finfo(value.dtype).tiny)  # a sample that rounds to 0 has no density
        return value

    def log_prob(self, value: Any) -> Any:
        value = rd.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        a, rate = self.concentration, self.rate
        return rd.xlogy(a, rate) + rd.xlogy(a - 1, value) - rate * value - rd.lgamma(a)

    def entropy(self) -> Any:
        a = self.concentration
        return a - rd.log(self.rate) + rd.lgamma(a) + (1.0 - a) * rd.digamma(a)

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return rd.special.gammainc(self.concentration, self.rate * value)

    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return rd.lgamma(x + 1) + (x + 1) * rd.log(-y.reciprocal())


class Chi2(Gamma):
    """The sum of the squares of `df` > 0 standard normal numbers: Gamma(df / 2, 1 / 2)."""

    arg_constraints = {"df": constraints.positive}
    _parameters = ("concentration", "rate")

    df = property(lambda self: self.concentration * 2)

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)


class InverseGamma(TransformedDistribution):
    """1 / x for x of Gamma(concentration, rate).

    Density proportional to x^(-concentration - 1) exp(-rate / x) for x > 0; `concentration` > 0 and `rate` > 0
    broadcast.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = ()

    concentration, rate = property(attrgetter("base_dist.concentration")), property(attrgetter("base_dist.rate"))
    mean = property(lambda self: rd.where(self.concentration > 1, self.rate / (self.concentration - 1), rd.inf))
    mode = property(lambda self: self.rate / (self.concentration + 1))

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def variance(self) -> Any:
        """The variance: inf where concentration <= 2."""
        above = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return rd.where(self.concentration > 2, above, rd.inf)

    def entropy(self) -> Any:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Dirichlet(ExponentialFamily):
    """Vectors of K probabilities whose sum is 1, from `concentration[..., K]` > 0.

    Density proportional to the product of x_k^(concentration_k - 1). A sample is K gamma numbers over their sum, and
    is differentiated as that.
    Errors: ValueError for a parameter without dimensions.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _parameters = ("concentration",)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mode(self) -> Any:
        """The most probable value: a corner where no concentration is above 1."""
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        flat = (self.concentration < 1).all(dim=-1)
        mode[flat] = rd.nn.functional.one_hot(mode[flat].argmax(dim=-1), above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        numbers = rd._standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        numbers = numbers.clamp(min=rd.finfo(numbers.dtype).tiny)
        return numbers / numbers.sum(-1, True)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        a = self.concentration
        return rd.xlogy(a - 1.0, value).sum(-1) + rd.lgamma(a.sum(-1)) - rd.lgamma(a).sum(-1)

    def entropy(self) -> Any:
        a, total, k = self.concentration, self.concentration.sum(-1), self.concentration.size(-1)
        spread = (k - total) * rd.digamma(total) + ((a - 1.0) * rd.digamma(a)).sum(-1)
        return rd.lgamma(a).sum(-1) - rd.lgamma(total) - spread

    _natural_params = property(lambda self: (self.concentration,))

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - rd.lgamma(x.sum(-1))


class Beta(ExponentialFamily):
    """A random probability: a Dirichlet of two.

    Density proportional to x^(concentration1 - 1) (1 - x)^(concentration0 - 1) on [0, 1]; the concentrations, both
    > 0, broadcast.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _parameters = ("_dirichlet",)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        both = rd.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self._dirichlet.log_prob(rd.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()

    _natural_params = property(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return rd.lgamma(x) + rd.lgamma(y) - rd.lgamma(x + y)


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two estimates of a variance, of `df1` and `df2` degrees of freedom.

    Density proportional to x^(df1 / 2 - 1) (1 + x df1 / df2)^(-(df1 + df2) / 2) for x > 0; `df1` > 0 and `df2` > 0
    broadcast.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = ("df1", "df2", "_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        """The mean: nan where df2 <= 2."""
        df2 = self.df2.masked_fill(self.df2 <= 2, rd.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Any:
        """The most probable value: nan where df1 <= 2."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, rd.nan)

    @property
    def variance(self) -> Any:
        """The variance: nan where df2 <= 4."""
        df2 = self.df2.masked_fill(self.df2 <= 4, rd.nan)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Any:
        x1, x2 = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = rd.finfo(x2.dtype).tiny
        x2.detach().clamp_(min=tiny)
        y = x1 / x2
        y.detach().clamp_(min=tiny)
        return y

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * rd.log1p(ratio * value) - log_beta
