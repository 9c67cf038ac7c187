"""Geometric: how many failures come before the first success."""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.nn import functional as F

from . import constraints
from .binary import ByProbsOrLogits, one_of
from .distribution import Distribution
from .utils import batch_of, broadcast_all


class Geometric(ByProbsOrLogits, Distribution):
    """Counts of failures before the first success, whose probability is `probs`. ValueError for a probability of 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameters = ("probs", "logits")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given = one_of(probs, logits)
        (parameter,) = broadcast_all(given)
        if logits is None:
            self.probs = parameter
        else:
            self.logits = parameter
        super().__init__(batch_of(given), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            value = self.probs
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to be positive but found invalid values:\n{value}"
            )

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return rd.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        with rd.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape))
            u.uniform_(rd.finfo(u.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone()
        probs[(probs == 1) & (value == 0)] = 0  # 0 log 0 is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
