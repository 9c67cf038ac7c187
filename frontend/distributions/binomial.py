"""Binomial: how many of several trials succeed."""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.nn import functional as F

from . import constraints
from .binary import ByProbsOrLogits, one_of
from .distribution import Distribution
from .utils import broadcast_all


class Binomial(ByProbsOrLogits, Distribution):
    """Counts of successes among `total_count` trials, each with probability `probs`."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _parameters = ("total_count", "probs", "logits")

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        given = one_of(probs, logits)
        count, parameter = broadcast_all(total_count, given)
        self.total_count = count.type_as(parameter)
        if logits is None:
            self.probs = parameter
        else:
            self.logits = parameter
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def param_shape(self) -> rd.Size:
        return self._param.size()

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with rd.no_grad():
            return rd.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        """log C(n, k) + k log(p / (1 - p)) + n log(1 - p)"""
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = rd.lgamma(n + 1) - rd.lgamma(value + 1) - rd.lgamma(n - value + 1)
        return ways + value * self.logits + n * F.logsigmoid(-self.logits)

    def entropy(self) -> Any:
        """Errors: NotImplementedError where the numbers of trials differ."""
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(rd.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """Errors: NotImplementedError where the numbers of trials differ."""
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        return self._values(rd.arange(1 + total, dtype=self._param.dtype, device=self._param.device), expand)
