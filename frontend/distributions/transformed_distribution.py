"""Distributions made of others: TransformedDistribution, by transforms; Independent, by dimensions of the batch.

The density changes by the determinant: log p(y) = log p(x) - log |dy/dx|. Read next: categorical.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost


class Independent(Distribution):
    """The last `reinterpreted_batch_ndims` dimensions of the batch become dimensions of the event.

    Errors: ValueError where the batch has fewer.
    """

    arg_constraints: Any = {}
    _parameters = ()
    _kept = ("reinterpreted_batch_ndims",)

    mean, mode = property(attrgetter("base_dist.mean")), property(attrgetter("base_dist.mode"))
    variance = property(attrgetter("base_dist.variance"))
    has_rsample: Any = property(attrgetter("base_dist.has_rsample"))

    def __init__(
        self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        more, batch = reinterpreted_batch_ndims, base_distribution.batch_shape
        if more > len(batch):
            raise ValueError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {more} vs "
                f"{len(batch)}"
            )
        shape, split = batch + base_distribution.event_shape, len(batch) - more
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, more
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.base_dist = self.base_dist.expand(new.batch_shape + self.event_shape[: self.reinterpreted_batch_ndims])
        return new

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]  # it is the base's
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        inner, more = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(inner, more) if more else inner

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of t_n(... t_1(x)) for x of `base_distribution`.

    Errors: ValueError for transforms that are none, and for a base with too few dimensions.
    """

    arg_constraints: Any = {}
    transforms: list[Any]
    base_dist: Any
    _parameters: tuple[str, ...] = ()
    _kept = ("transforms",)

    has_rsample: Any = property(attrgetter("base_dist.has_rsample"))

    def __init__(
        self, base_distribution: Any, transforms: Transform | Sequence[Transform], validate_args: bool | None = None
    ) -> None:
        given = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(given, Sequence) or not all(isinstance(one, Transform) for one in given):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = list(given)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        needed = whole.domain.event_dim
        if len(shape) < needed:
            raise ValueError(f"base_distribution needs to have shape with size at least {needed}, but got {shape}.")
        after = whole.forward_shape(shape)
        before = whole.inverse_shape(after)  # the transforms' own parameters may broadcast
        base = base_distribution.expand(before[: len(before) - base_dim])
        self.base_dist = Independent(base, needed - base_dim) if needed > base_dim else base
        cut = len(after) - whole.codomain.event_dim - max(base_dim - needed, 0)
        super().__init__(after[:cut], after[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        inner = ComposeTransform(self.transforms).inverse_shape(new.batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(inner[: len(inner) - len(self.base_dist.event_shape)])
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        more = len(self.event_shape) - region.event_dim
        return constraints.independent(region, more) if more > 0 else region

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
        self._check(value)
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
        """Turns a probability round where the transforms together fall."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._monotone(value)))
