"""Counts, given by the chance of a success or by a rate: Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson.

ContinuousBernoulli is to Bernoulli what an amount is to a count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import redispatch as rd
from redispatch.nn import functional as F

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .gamma import Gamma
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, probs_to_logits


class ByProbsOrLogits:
    """A family given by probabilities or by logits; the other one is computed when it is read."""

    _binary = True  # logits are log-odds; otherwise logarithms of probabilities along the last dimension
    logits: Any = lazy_property(lambda self: probs_to_logits(self.probs, self._binary))
    probs: Any = lazy_property(lambda self: logits_to_probs(self.logits, self._binary))

    @property
    def _param(self) -> rd.Tensor:
        """The one that was given."""
        return vars(self)["probs"] if "probs" in vars(self) else vars(self)["logits"]

    def _new(self, *args: Any, **kwargs: Any) -> rd.Tensor:
        return self._param.new(*args, **kwargs)

    def _take(self, probs: Any, logits: Any, *others: Any) -> list[rd.Tensor]:
        """Sets the one that is given, broadcast with other parameters, and returns those."""
        *others_too, given = broadcast_all(*others, one_of(probs, logits))
        setattr(self, "probs" if logits is None else "logits", given)
        return others_too


def one_of(probs: Any, logits: Any) -> Any:
    """Returns the one that is given. ValueError for both or neither."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return logits if probs is None else probs


class Bernoulli(ByProbsOrLogits, ExponentialFamily):
    """1 with probability `probs`, or with log-odds `logits`, of any shape; 0 otherwise.

    Errors: ValueError unless exactly one of the two is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _parameters = ("probs", "logits")
    _mean_carrier_measure = 0

    mean = property(attrgetter("probs"))
    mode = property(lambda self: (self.probs >= 0.5).to(self.probs).masked_fill(self.probs == 0.5, rd.nan))
    variance = property(lambda self: self.probs * (1 - self.probs))
    param_shape = property(lambda self: self._param.size())

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        with rd.no_grad():
            return rd.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._values(rd.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    _natural_params = property(lambda self: (rd.logit(self.probs),))

    def _log_normalizer(self, x: Any) -> Any:
        return rd.log(1 + rd.exp(x))


class ContinuousBernoulli(ByProbsOrLogits, ExponentialFamily):
    """Amounts x in [0, 1] of density C p^x (1 - p)^(1 - x), for p = `probs` or its log-odds `logits`, of any shape.

    The factor is C = 2 artanh(a) / a with a = 1 - 2p. Where p is between `lims`, a is small, and what depends on it is
    the beginning of its Taylor series. p is not the mean.
    Source: Loaiza-Ganem, Cunningham, The continuous Bernoulli, 2019.
    Errors: ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _parameters = ("probs", "logits")
    _kept = ("_lims",)
    _mean_carrier_measure = 0

    probs: Any = lazy_property(lambda self: clamp_probs(logits_to_probs(self.logits, True)))
    stddev = property(lambda self: self.variance.sqrt())
    param_shape = property(lambda self: self._param.size())

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: Any = (0.499, 0.501), validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            if validate_args is not None and not constraints.unit_interval.check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def _by_probs(self, formula: Callable[[Any, Any, Any], Any], near: Callable[[Any], Any]) -> Any:
        """Returns a formula of p, a and artanh(a), and between the limits `near(a)`."""
        low, high = self._lims
        far = (self.probs <= low) | (self.probs > high)
        p = rd.where(far, self.probs, low)
        result = formula(p, 1 - 2 * p, (rd.log1p(-p) - rd.log(p)) / 2)
        return rd.where(far, result, near(1 - 2 * self.probs))

    def _log_factor(self) -> Any:
        return self._by_probs(lambda p, a, t: rd.log(2 * t / a), lambda a: math.log(2) + a**2 / 3 + 13 / 90 * a**4)

    @property
    def mean(self) -> Any:
        return self._by_probs(lambda p, a, t: (1 / t - 2 * p / a) / 2, lambda a: 0.5 - a / 6 - 2 / 45 * a**3)

    @property
    def variance(self) -> Any:
        return self._by_probs(
            lambda p, a, t: 1 / (4 * t**2) - p * (1 - p) / a**2, lambda a: 1 / 12 - a**2 / 60 - 8 / 945 * a**4
        )

    def rsample(self, sample_shape: Any = ()) -> Any:
        unit = rd.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
        return self.icdf(unit)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return self._log_factor() - F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value: Any) -> Any:
        self._check(value)
        inside = self._by_probs(lambda p, a, t: (1 - p - p**value * (1 - p) ** (1 - value)) / a, lambda a: value)
        return rd.where(value <= 0, 0.0, rd.where(value >= 1, 1.0, inside))

    def icdf(self, value: Any) -> Any:
        return self._by_probs(lambda p, a, t: (rd.log1p(-p) - rd.log1p(-p - value * a)) / (2 * t), lambda a: value)

    def entropy(self) -> Any:
        none, all_of_it = rd.log1p(-self.probs), rd.log(self.probs)
        return self.mean * (none - all_of_it) - self._log_factor() - none

    _natural_params = property(lambda self: (self.logits,))

    def _log_normalizer(self, x: Any) -> Any:
        """Returns log((exp(x) - 1) / x)."""
        near = (x > self._lims[0] - 0.5) & (x <= self._lims[1] - 0.5)
        far = x.masked_fill(near, 1)
        return rd.where(near, x / 2 + x**2 / 24 - x**4 / 2880, rd.log(rd.expm1(far) / far))


class Binomial(ByProbsOrLogits, Distribution):
    """Counts k of successes among n = `total_count` trials, each with probability p = `probs`.

    Probability C(n, k) p^k (1 - p)^(n - k) for k = 0 .. n; the parameters broadcast.
    Errors: ValueError unless exactly one of `probs` and `logits` is given; NotImplementedError from `entropy` and
    `enumerate_support` where the numbers of trials differ.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _parameters = ("total_count", "probs", "logits")

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    param_shape = property(lambda self: self._param.size())

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with rd.no_grad():
            return rd.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        """Returns log C(n, k) + k log(p / (1 - p)) + n log(1 - p)."""
        self._check(value)
        n = self.total_count
        ways = rd.lgamma(n + 1) - rd.lgamma(value + 1) - rd.lgamma(n - value + 1)
        return ways + value * self.logits + n * F.logsigmoid(-self.logits)

    def _trials(self, asked_by: str) -> int:
        """Returns the number of trials where it is one number."""
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asked_by}`.")
        return total

    def entropy(self) -> Any:
        self._trials("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(rd.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        total = self._trials("enumerate_support")
        return self._values(rd.arange(1 + total, dtype=self._param.dtype, device=self._param.device), expand)


class Geometric(ByProbsOrLogits, Distribution):
    """Counts k of failures before the first success: probability (1 - probs)^k probs for k = 0, 1, ...

    Errors: ValueError unless exactly one of `probs` and `logits`, of any shape, is given, and for a probability of 0.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameters = ("probs", "logits")

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: rd.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            value = self.probs
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{value}"
            )

    def sample(self, sample_shape: Any = ()) -> Any:
        with rd.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape))
            u.uniform_(rd.finfo(u.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone()
        probs[(probs == 1) & (value == 0)] = 0  # 0 log 0 is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class NegativeBinomial(ByProbsOrLogits, Distribution):
    """Counts k of successes before r = `total_count` failures; p = `probs` is the chance of a success, in [0, 1).

    Probability C(k + r - 1, k) p^k (1 - p)^r for k = 0, 1, ...; the parameters broadcast.
    Errors: ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _parameters = ("total_count", "probs", "logits")

    mean = property(lambda self: self.total_count * rd.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / rd.sigmoid(-self.logits))
    param_shape = property(lambda self: self._param.size())
    _gamma: Any = lazy_property(lambda self: Gamma(self.total_count, rd.exp(-self.logits), validate_args=False))

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (count,) = self._take(probs, logits, total_count)
        self.total_count = count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws Poisson counts whose rates are gamma numbers."""
        with rd.no_grad():
            return rd.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        n = self.total_count
        chances = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = rd.lgamma(n + value) - rd.lgamma(1.0 + value) - rd.lgamma(n)
        return chances + ways.masked_fill(n + value == 0.0, 0.0)


class Poisson(ExponentialFamily):
    """Counts k of independent events that come `rate` ≥ 0 times on average: probability rate^k exp(-rate) / k!."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _parameters = ("rate",)

    mean = variance = property(attrgetter("rate"))
    mode = property(lambda self: self.rate.floor())

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        with rd.no_grad():
            return rd.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params = property(lambda self: (rd.log(self.rate),))

    def _log_normalizer(self, x: Any) -> Any:
        return rd.exp(x)
