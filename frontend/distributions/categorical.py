"""One of several categories: Categorical; as a vector: OneHotCategorical; counts of many draws: Multinomial."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import redispatch as rd
from redispatch.nn import functional as F

from . import constraints
from .bernoulli import Binomial, ByProbsOrLogits, one_of
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs


class Categorical(ByProbsOrLogits, Distribution):
    """The numbers 0 to K - 1, in proportion to `probs[..., K]`, or to exp of `logits[..., K]`.

    Both are normalised along the last dimension.
    Errors: ValueError for a parameter without dimensions, and unless exactly one of the two is given.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False
    _parameters = ("probs", "logits")
    _kept = ("_num_events",)

    mean = variance = property(lambda self: self._filled(rd.nan, self.probs))  # categories are names
    mode = property(lambda self: self.probs.argmax(dim=-1))
    param_shape = property(lambda self: self._param.size())

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name = "probs" if logits is None else "logits"
        given = one_of(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    def sample(self, sample_shape: Any = ()) -> Any:
        rows = self.probs.reshape(-1, self._num_events)
        drawn = rd.multinomial(rows, rd.Size(sample_shape).numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        value, logits = rd.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        least = rd.finfo(self.logits.dtype).min  # 0 log 0 is 0
        return -(rd.clamp(self.logits, min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        return self._values(rd.arange(self._num_events, dtype=rd.long, device=self._param.device), expand)


class OfCategorical(Distribution):
    """A family of vectors `[..., K]` that is made of a Categorical, whose parameters are its own."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    probs, logits = property(attrgetter("_categorical.probs")), property(attrgetter("_categorical.logits"))
    param_shape = property(attrgetter("_categorical.param_shape"))

    def _begin(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)


class OneHotCategorical(OfCategorical):
    """Vectors of length K with one 1, at the place drawn by `Categorical(probs, logits)`; parameters `[..., K]`."""

    support = constraints.one_hot
    has_enumerate_support = True
    _parameters = ("_categorical",)

    _param = property(attrgetter("_categorical._param"))
    mean = property(attrgetter("probs"))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._begin(probs, logits, validate_args)

    @property
    def mode(self) -> Any:
        return F.one_hot(self.probs.argmax(dim=-1), num_classes=self.probs.shape[-1]).to(self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        places = self._categorical.sample(rd.Size(sample_shape))
        return F.one_hot(places, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        size = self.event_shape[0]
        values = rd.eye(size, dtype=self._param.dtype, device=self._param.device)
        values = values.view((size,) + (1,) * len(self.batch_shape) + (size,))
        return values.expand((size,) + self.batch_shape + (size,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A OneHotCategorical whose samples have the gradient of the probabilities. Source: Bengio et al., 2013."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        probs = self._categorical.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(OfCategorical):
    """Counts of K categories among n = `total_count` draws of `Categorical(probs, logits)`; parameters `[..., K]`.

    Probability n! times the product of p_k^(x_k) / x_k!.
    Errors: NotImplementedError for a number of draws that is not an int.
    """

    total_count: int
    _parameters = ("_categorical",)
    _kept = ("total_count",)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._begin(probs, logits, validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._binomial = Binomial(total_count=self.total_count, probs=new.probs)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    def sample(self, sample_shape: Any = ()) -> Any:
        sample_shape = rd.Size(sample_shape)
        drawn = self._categorical.sample(rd.Size((self.total_count,)) + sample_shape)
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, rd.ones_like(drawn))
        return counts.type_as(self.probs)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -rd.inf), 0)
        ways = rd.lgamma(value.sum(-1) + 1) - rd.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Any:
        n = rd.tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = rd.exp(self._binomial.log_prob(counts)) * rd.lgamma(counts + 1)
        return n * self._categorical.entropy() - rd.lgamma(n + 1) + weights.sum([0, -1])


# --- Bernoulli and one-hot values made continuous, so that samples can be differentiated ------------------------------
#
# Source: Maddison, Mnih, Teh, The concrete distribution, 2017; Jang, Gu, Poole, 2017.


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


# --- MixtureSameFamily: one of several distributions of a family, drawn by a Categorical ------------------------------


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
