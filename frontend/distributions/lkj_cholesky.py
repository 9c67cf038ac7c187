"""LKJCholesky: random correlation matrices, by their lower Cholesky factors.

Source: Lewandowski, Kurowicka, Joe, Generating random correlation matrices based on vines and extended onion method
(2009), the onion method and its constant of normalisation. Read next: gamma.py, where Beta is.
"""

from __future__ import annotations

import math
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution
from .gamma import Beta
from .utils import broadcast_all


class LKJCholesky(Distribution):
    """Lower Cholesky factors `[..., dim, dim]` of correlation matrices, of density ~ det(M)^(concentration - 1).

    With a concentration of 1 all correlation matrices are equally likely. Errors: ValueError for a `dim` below 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parameters = ("concentration",)
    _kept = ("dim", "_beta")

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, rd.Size((dim, dim)), validate_args=validate_args)
        # of row k the part below the diagonal: its squared length is a Beta number, its direction is uniform
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        before = rd.arange(dim - 1, **like)
        before = rd.cat([before.new_zeros(1), before])
        rest = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * before
        self._beta = Beta(before + 0.5, rest)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Returns the same distribution for each element of a larger batch."""
        new = super().expand(batch_shape, _instance)
        new._beta = self._beta.expand(rd.Size(batch_shape) + (self.dim,))
        return new

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws factors of shape `sample_shape + batch + (dim, dim)`."""
        squared = self._beta.sample(rd.Size(sample_shape)).unsqueeze(-1)
        direction = rd.randn(self._extended_shape(sample_shape), dtype=squared.dtype, device=squared.device).tril(-1)
        direction = direction / direction.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)
        below = rd.sqrt(squared) * direction
        smallest = rd.finfo(below.dtype).tiny
        return below + rd.diag_embed(rd.sqrt((1 - below.pow(2).sum(-1)).clamp(min=smallest)))

    def log_prob(self, value: Any) -> Any:
        """Computes the logarithm of the density of factors."""
        self._check(value)
        below = self.dim - 1
        rows = rd.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        density = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * below
        total = 0.5 * below * math.log(math.pi) + rd.mvlgamma(alpha - 0.5, below) - rd.lgamma(alpha) * below
        return density - total
