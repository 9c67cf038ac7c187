"""NegativeBinomial: how many trials succeed before a number of failures is reached."""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.nn import functional as F

from . import constraints
from .binary import ByProbsOrLogits, one_of
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, lazy_property


class NegativeBinomial(ByProbsOrLogits, Distribution):
    """Counts of successes before `total_count` failures; `probs` is the chance of a success, in [0, 1)."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _parameters = ("total_count", "probs", "logits")

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = one_of(probs, logits)
        count, parameter = broadcast_all(total_count, given)
        self.total_count = count.type_as(parameter)
        if logits is None:
            self.probs = parameter
        else:
            self.logits = parameter
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def param_shape(self) -> rd.Size:
        return self._param.size()

    @property
    def mean(self) -> Any:
        return self.total_count * rd.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / rd.sigmoid(-self.logits)

    _gamma: Any = lazy_property(lambda self: Gamma(self.total_count, rd.exp(-self.logits), validate_args=False))

    def sample(self, sample_shape: Any = ()) -> Any:
        """A Poisson count whose rate is a gamma number."""
        with rd.no_grad():
            return rd.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        chances = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = rd.lgamma(n + value) - rd.lgamma(1.0 + value) - rd.lgamma(n)
        return chances + ways.masked_fill(n + value == 0.0, 0.0)
