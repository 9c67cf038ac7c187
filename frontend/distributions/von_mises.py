"""VonMises: random angles.

Source of the samples: Best, Fisher, Efficient simulation of the von Mises distribution (1979). Read next: normal.py.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all


class VonMises(Distribution):
    """Angles around `loc`, the closer the larger `concentration` > 0: a normal distribution on the circle.

    Density exp(concentration cos(x - loc)) / (2π I₀(concentration)), of x in radians; the parameters broadcast. Mean
    and variance are those of the circle.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _parameters = ("loc", "concentration")

    mean = mode = property(attrgetter("loc"))
    variance = property(lambda self: 1 - rd.special.i1e(self.concentration) / rd.special.i0e(self.concentration))

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws angles in [-π, π), by rejection, in double precision."""
        shape = self._extended_shape(sample_shape)
        with rd.no_grad():
            k = self.concentration.double().expand(shape)
            tau = 1 + (1 + 4 * k**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * k)
            r = rd.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))  # the first two terms of its series
            angle, wanted = rd.zeros_like(k), rd.ones_like(k, dtype=rd.bool)
            while wanted.any():
                u1, u2, u3 = rd.rand((3, *shape), dtype=k.dtype, device=k.device)
                z = rd.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                refused = (c * (2 - c) <= u2) & ((c / u2).log() + 1 - c < 0)  # not where it is nan
                angle = rd.where(refused, angle, (u3 - 0.5).sign() * f.acos())  # also where there is one: as in PyTorch
                wanted = wanted & refused
            return ((angle + math.pi + self.loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        k = self.concentration
        return k * (rd.cos(value - self.loc) - 1) - math.log(2 * math.pi) - rd.special.i0e(k).log()
