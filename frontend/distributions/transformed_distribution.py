"""TransformedDistribution: numbers of one distribution, put through transforms.

The density changes by the determinant: log p(y) = log p(x) - log |dy/dx|. Read next: log_normal.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost


class TransformedDistribution(Distribution):
    """The distribution of t_n(... t_1(x)) for x of `base_distribution`.

    Errors: ValueError for transforms that are none, and for a base with too few dimensions.
    """

    arg_constraints: Any = {}
    transforms: list[Any]
    base_dist: Any

    def __init__(
        self,
        base_distribution: Any,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        given = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(given, Sequence) or not all(isinstance(one, Transform) for one in given):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = list(given)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        after = whole.forward_shape(shape)
        before = whole.inverse_shape(after)  # the transforms' own parameters may broadcast
        base_batch = before[: len(before) - base_dim]
        base_distribution = base_distribution.expand(base_batch)
        more = whole.domain.event_dim - base_dim
        self.base_dist = Independent(base_distribution, more) if more > 0 else base_distribution
        event_dim = whole.codomain.event_dim + max(base_dim - whole.domain.event_dim, 0)
        cut = len(after) - event_dim
        super().__init__(after[:cut], after[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = rd.Size(batch_shape)
        inner = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(inner[: len(inner) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        region, event_dim = self.transforms[-1].codomain, len(self.event_shape)
        return constraints.independent(region, event_dim - region.event_dim) if event_dim > region.event_dim else region

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Any:
        with rd.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        event_dim, result, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            result = result - sum_rightmost(slope, event_dim - transform.domain.event_dim)
            y = x
        more = event_dim - len(self.base_dist.event_shape)
        return result + sum_rightmost(self.base_dist.log_prob(y), more)

    def _monotone(self, value: Any) -> Any:
        """A probability as it is before transforms that fall turn it round."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._monotone(value)))
