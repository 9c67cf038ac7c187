"""Weibull: how long things last whose chance to fail changes with age."""

from __future__ import annotations

from typing import Any

import redispatch as rd

from . import constraints
from .exponential import Exponential
from .gumbel import EULER
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all


class Weibull(TransformedDistribution):
    """scale x^(1 / concentration) for x of Exponential(1)."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        parts = [PowerTransform(exponent=self.concentration.reciprocal()), AffineTransform(loc=0, scale=self.scale)]
        base = Exponential(rd.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, parts, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        new = super().expand(batch_shape, new)
        new.transforms = [
            PowerTransform(exponent=new.concentration.reciprocal()),
            AffineTransform(loc=0, scale=new.scale),
        ]
        return new

    @property
    def mean(self) -> Any:
        return self.scale * rd.exp(rd.lgamma(1 + self.concentration.reciprocal()))

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
