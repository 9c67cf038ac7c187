"""Poisson: how many events come in a unit of time."""

from __future__ import annotations

from typing import Any

import redispatch as rd

from . import constraints
from .exp_family import ExponentialFamily
from .utils import batch_of, broadcast_all


class Poisson(ExponentialFamily):
    """Counts of independent events that come `rate` times on average."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _parameters = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(batch_of(rate), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return self.rate.floor()

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        with rd.no_grad():
            return rd.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> Any:
        return (rd.log(self.rate),)

    def _log_normalizer(self, x: Any) -> Any:
        return rd.exp(x)
