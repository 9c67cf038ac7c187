"""MixtureSameFamily: one of several distributions of a family, drawn by a Categorical."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """Values of `component_distribution`, whose last batch dimension is that of the components.

    Errors: ValueError for a mixture that is no Categorical, or has another number of components or another batch.
    """

    arg_constraints: Any = {}
    _parameters = ("_mixture_distribution",)
    _kept = ("_num_component", "_event_ndims")

    mixture_distribution = property(attrgetter("_mixture_distribution"))
    component_distribution = property(attrgetter("_component_distribution"))
    mean = property(lambda self: self._mean_of(self.component_distribution.mean))

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        batch = component_distribution.batch_shape[:-1]
        for own, other in zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False):
            if own != 1 and other != 1 and own != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        count, others = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != others:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({others})"
            )
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._component_distribution = self._component_distribution.expand(new.batch_shape + (self._num_component,))
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _mean_of(self, values: Any) -> Any:
        """Returns the mean over the components, by their probabilities."""
        probs = self.mixture_distribution.probs
        return rd.sum(probs.reshape(probs.shape + (1,) * self._event_ndims) * values, dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Any:
        """The variance: the mean of the variances and the variance of the means."""
        apart = self.component_distribution.mean - self.mean.unsqueeze(-1 - self._event_ndims)
        return self._mean_of(self.component_distribution.variance) + self._mean_of(apart.pow(2.0))

    def cdf(self, x: Any) -> Any:
        below = self.component_distribution.cdf(x.unsqueeze(-1 - self._event_ndims))
        return rd.sum(below * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Any) -> Any:
        self._check(x)
        each = self.component_distribution.log_prob(x.unsqueeze(-1 - self._event_ndims))
        return rd.logsumexp(each + rd.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with rd.no_grad():
            drawn = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            index = drawn.reshape(drawn.shape + (1,) * (self._event_ndims + 1))
            index = index.expand(drawn.shape + (1,) + self.event_shape)
            return rd.gather(values, dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
