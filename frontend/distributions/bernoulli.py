"""Bernoulli: 1 with a probability, else 0."""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.nn import functional as F

from . import constraints
from .binary import ByProbsOrLogits, one_of
from .exp_family import ExponentialFamily
from .utils import batch_of, broadcast_all


class Bernoulli(ByProbsOrLogits, ExponentialFamily):
    """1 with probability `probs`, or with log-odds `logits`; 0 otherwise."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _parameters = ("probs", "logits")
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = one_of(probs, logits)
        (parameter,) = broadcast_all(given)
        if logits is None:
            self.probs = parameter
        else:
            self.logits = parameter
        super().__init__(batch_of(given), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        """nan where both values are as probable."""
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = rd.nan
        return mode

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    @property
    def param_shape(self) -> rd.Size:
        return self._param.size()

    def sample(self, sample_shape: Any = ()) -> Any:
        with rd.no_grad():
            return rd.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._values(rd.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    @property
    def _natural_params(self) -> Any:
        return (rd.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:
        return rd.log(1 + rd.exp(x))
