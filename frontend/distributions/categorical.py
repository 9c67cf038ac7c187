"""Categorical: one of several numbered categories."""

from __future__ import annotations

from typing import Any

import redispatch as rd

from . import constraints
from .binary import ByProbsOrLogits, one_of
from .distribution import Distribution


class Categorical(ByProbsOrLogits, Distribution):
    """The numbers 0 to K - 1, in proportion to `probs[..., K]`, or to exp of `logits[..., K]`.

    Both are normalised along the last dimension. Errors: ValueError for a parameter without dimensions.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False
    _parameters = ("probs", "logits")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        one_of(probs, logits)
        if logits is None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._num_events = self._num_events
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> rd.Size:
        return self._param.size()

    def _nan(self) -> rd.Tensor:
        """Categories are names: they have no mean."""
        return rd.full(self._extended_shape(), rd.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self) -> Any:
        return self._nan()

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self._nan()

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = rd.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = rd.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, logits = rd.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        least = rd.finfo(self.logits.dtype).min  # 0 log 0 is 0
        return -(rd.clamp(self.logits, min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._values(rd.arange(self._num_events, dtype=rd.long, device=self._param.device), expand)
