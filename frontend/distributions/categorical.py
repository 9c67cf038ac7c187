"""One of several categories: Categorical; as a vector: OneHotCategorical; counts of many draws: Multinomial."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import redispatch as rd
from redispatch.nn import functional as F

from . import constraints
from .bernoulli import Binomial, ByProbsOrLogits, one_of
from .distribution import Distribution
from .utils import broadcast_all


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
