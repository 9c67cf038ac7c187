"""Gamma: waiting times until several events."""

from __future__ import annotations

from typing import Any

import redispatch as rd

from . import constraints
from .exp_family import ExponentialFamily
from .utils import batch_of, broadcast_all


class Gamma(ExponentialFamily):
    """The gamma distribution with shape `concentration` and inverse scale `rate`.

    Samples are differentiated implicitly: `_standard_gamma` in kernels/ops/gamma_draws.py.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = ("concentration", "rate")
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(batch_of(concentration, rate), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        value = rd._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=rd.finfo(value.dtype).tiny)  # a sample that rounds to 0 has no density
        return value

    def log_prob(self, value: Any) -> Any:
        value = rd.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            rd.xlogy(self.concentration, self.rate)
            + rd.xlogy(self.concentration - 1, value)
            - self.rate * value
            - rd.lgamma(self.concentration)
        )

    def entropy(self) -> Any:
        a = self.concentration
        return a - rd.log(self.rate) + rd.lgamma(a) + (1.0 - a) * rd.digamma(a)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return rd.special.gammainc(self.concentration, self.rate * value)

    @property
    def _natural_params(self) -> Any:
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return rd.lgamma(x + 1) + (x + 1) * rd.log(-y.reciprocal())
