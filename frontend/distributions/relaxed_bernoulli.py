"""Bernoulli and one-hot values made continuous, so that samples can be differentiated.

Source: Maddison, Mnih, Teh, The concrete distribution, 2017; Jang, Gu, Poole, 2017.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .bernoulli import ByProbsOrLogits
from .categorical import OfCategorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs


class LogitRelaxedBernoulli(ByProbsOrLogits, Distribution):
    """Logits with logistic noise, divided by a temperature: real numbers, of which RelaxedBernoulli is the sigmoid.

    Errors: ValueError unless exactly one of `probs` and `logits`, of any shape, is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _parameters = ("probs", "logits")
    _kept = ("temperature",)

    param_shape = property(lambda self: self._param.size())

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(rd.rand(shape, dtype=probs.dtype, device=probs.device))
        noise = uniforms.log() - (-uniforms).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class ExpRelaxedCategorical(OfCategorical):
    """Logits `[..., K]` with Gumbel noise, divided by a temperature and normalised: the logarithm of a relaxed
    one-hot vector."""

    support = constraints.real_vector
    has_rsample = True
    _parameters = ("_categorical",)
    _kept = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._begin(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(rd.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-uniforms.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        k = self._categorical._num_events
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        scale = rd.full_like(self.temperature, float(k)).lgamma() - self.temperature.log().mul(-(k - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class _Relaxed(TransformedDistribution):
    """A transform of one of the two above, whose parameters are its own."""

    has_rsample = True
    temperature = property(attrgetter("base_dist.temperature"))
    logits, probs = property(attrgetter("base_dist.logits")), property(attrgetter("base_dist.probs"))


class RelaxedBernoulli(_Relaxed):
    """Numbers between 0 and 1, nearer to them the lower the temperature: the sigmoid of LogitRelaxedBernoulli.

    Errors: ValueError unless exactly one of `probs` and `logits`, of any shape, is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _parameters = ()

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors of K probabilities, nearer to one-hot ones the lower the temperature: exp of ExpRelaxedCategorical.

    Errors: ValueError unless exactly one of `probs` and `logits`, of shape `[..., K]`, is given.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _parameters = ()

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
