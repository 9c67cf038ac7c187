"""Dirichlet: random probabilities."""

from __future__ import annotations

from typing import Any

import redispatch as rd

from . import constraints
from .exp_family import ExponentialFamily


class Dirichlet(ExponentialFamily):
    """Vectors of K probabilities whose sum is 1, from `concentration[..., K]`.

    A sample is one of K gamma numbers over their sum, and is differentiated as that.
    Errors: ValueError for a parameter without dimensions.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _parameters = ("concentration",)

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        """Where no concentration is above 1, a corner."""
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
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return rd.xlogy(a - 1.0, value).sum(-1) + rd.lgamma(a.sum(-1)) - rd.lgamma(a).sum(-1)

    def entropy(self) -> Any:
        a, total, k = self.concentration, self.concentration.sum(-1), self.concentration.size(-1)
        spread = (k - total) * rd.digamma(total) + ((a - 1.0) * rd.digamma(a)).sum(-1)
        return rd.lgamma(a).sum(-1) - rd.lgamma(total) - spread

    @property
    def _natural_params(self) -> Any:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:
        return x.lgamma().sum(-1) - rd.lgamma(x.sum(-1))
