"""kl_divergence: how far one distribution is from another, by rules for pairs of families.

    kl_divergence(p, q)         # E_p[log p - log q], in nats
    @register_kl(Mine, Normal)
    def kl_mine_normal(p, q): ...

The rule of the nearest base classes answers. Source of the formulas, where none is given: p's entropy and the means of
q's log density under p. Read next: distribution.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import redispatch as rd

from .bernoulli import Bernoulli, Binomial, ContinuousBernoulli, Geometric, Poisson
from .categorical import Categorical, OneHotCategorical
from .cauchy import Cauchy, Laplace
from .distribution import ExponentialFamily
from .exponential import Exponential, Gumbel, Pareto, Uniform
from .gamma import Beta, Dirichlet, Gamma
from .normal import HalfNormal, LowRankMultivariateNormal, MultivariateNormal, Normal
from .transformed_distribution import Independent, TransformedDistribution
from .utils import EULER, sum_rightmost

Rule = Callable[[Any, Any], Any]
_RULES: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Makes a function the rule for two families and their subclasses. TypeError for what is no class."""
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def register(rule: Rule) -> Rule:
        _RULES[type_p, type_q] = rule
        rule_for.cache_clear()
        return rule

    return register


@cache
def rule_for(type_p: Any, type_q: Any) -> Rule | None:
    """The rule whose classes are the nearest, p's first; a RuntimeWarning where q's first would be another one."""
    near = [
        (type_p.__mro__.index(p), type_q.__mro__.index(q), p, q)
        for p, q in _RULES
        if issubclass(type_p, p) and issubclass(type_q, q)
    ]
    if not near:
        return None
    by_p, by_q = min(near, key=lambda found: found[:2]), min(near, key=lambda found: (found[1], found[0]))
    found = _RULES[by_p[2:]]
    if found is not _RULES[by_q[2:]]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[2].__name__}, {by_q[3].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return found


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence of q from p, of their batch shape. NotImplementedError where there is no rule."""
    families: Any = type(p), type(q)
    rule = rule_for(*families)
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return rule(p, q)


# --- of one family ----------------------------------------------------------------------------------------------------


def x_log_x_over_y(x: Any, y: Any) -> Any:
    """0 where x is 0, inf where only y is."""
    return rd.where(x == 0, 0.0, rd.where(y == 0, math.inf, x * (x / y).log()))


@register_kl(ExponentialFamily, ExponentialFamily)
def kl_of_exponential_families(p: Any, q: Any) -> Any:
    """A(η_q) - A(η_p) - (η_q - η_p)·∇A(η_p), the Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    natural_q = q._natural_params
    normalizer, means = p._means()
    result = q._log_normalizer(*natural_q) - normalizer
    for (of_p, slope), of_q in zip(means, natural_q, strict=True):
        result = result - ((of_q - of_p) * slope).reshape(result.shape + (-1,)).sum(-1)
    return result


@register_kl(Binomial, Binomial)
def kl_of_binomials(p: Any, q: Any) -> Any:
    """inf where p has more trials. NotImplementedError where it has fewer."""
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return rd.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def kl_of_categoricals(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = rd.where((q.probs == 0).expand_as(terms), math.inf, terms)
    return rd.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(Normal, Normal)
def kl_of_normals(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    apart = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + apart - 1 - ratio.log())


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def kl_of_normal_vectors(p: Any, q: Any) -> Any:
    if p.event_shape != q.event_shape:
        low = [isinstance(one, LowRankMultivariateNormal) for one in (p, q)]
        kind = "Low Rank " if all(low) else "(Low Rank) " if any(low) else ""
        raise ValueError(
            f"KL-divergence between two {kind}Multivariate Normals with different event shapes cannot be computed"
        )
    spread = q._lengths(p._columns).sum(-1) + q._lengths((q.loc - p.loc).unsqueeze(-1)).squeeze(-1)
    return q._half_log_det() - p._half_log_det() + 0.5 * (spread - p.event_shape[0])


@register_kl(Laplace, Laplace)
def kl_of_laplaces(p: Any, q: Any) -> Any:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * rd.exp(-apart / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def kl_of_cauchys(p: Any, q: Any) -> Any:
    """Source: Chyzak, Nielsen, A closed-form formula for the divergence between Cauchy distributions, 2019."""
    apart = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return apart - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def kl_of_gumbels(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    apart = (p.loc - q.loc) / q.scale
    return -ratio.log() - apart + ratio * EULER + rd.exp(-apart + (1 + ratio).lgamma()) - (1 + EULER) + 2 * apart


@register_kl(Exponential, Exponential)
def kl_of_exponentials(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def kl_of_gammas(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log() + rd.lgamma(b) - rd.lgamma(a) + (a - b) * rd.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )  # fmt: skip


@register_kl(Dirichlet, Dirichlet)
def kl_of_dirichlets(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    spread = ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)
    return total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1) + spread


@register_kl(Pareto, Pareto)
def kl_of_paretos(p: Any, q: Any) -> Any:
    """inf where p begins below q."""
    scale, shape = p.scale / q.scale, q.alpha / p.alpha
    return rd.where(
        p.support.lower_bound < q.support.lower_bound, math.inf, q.alpha * scale.log() - shape.log() + shape - 1
    )


@register_kl(Uniform, Uniform)
def kl_of_uniforms(p: Any, q: Any) -> Any:
    """inf where p reaches beyond q."""
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return rd.where((q.low > p.low) | (q.high < p.high), math.inf, result)


# A family -> the divergence of two of it, where one expression says it
ONE: dict[type, Rule] = {
    Bernoulli: lambda p, q: x_log_x_over_y(p.probs, q.probs) + x_log_x_over_y(1 - p.probs, 1 - q.probs),
    Geometric: lambda p, q: -p.entropy() - rd.log1p(-q.probs) / p.probs - q.logits,
    Poisson: lambda p, q: p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate),
    OneHotCategorical: lambda p, q: kl_of_categoricals(p._categorical, q._categorical),
    HalfNormal: lambda p, q: kl_of_normals(p.base_dist, q.base_dist),
    Beta: lambda p, q: kl_of_dirichlets(p._dirichlet, q._dirichlet),
}
for _family, _rule in ONE.items():
    register_kl(_family, _family)(_rule)


# --- of distributions that are made of others -------------------------------------------------------------------------


@register_kl(TransformedDistribution, TransformedDistribution)
def kl_of_transformed(p: Any, q: Any) -> Any:
    """Returns the divergence of the bases: a one-to-one transform changes none. NotImplementedError for different
    transforms."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def kl_of_independents(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# --- of two families --------------------------------------------------------------------------------------------------


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Pareto, Normal)
@register_kl(Uniform, Normal)
def kl_to_normal(p: Any, q: Any) -> Any:
    """The logarithm of q's density is quadratic: p's mean and variance are enough."""
    spread = (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))
    return spread + q.scale.log() + 0.5 * math.log(2 * math.pi) - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
@register_kl(Pareto, Exponential)
def kl_to_exponential(p: Any, q: Any) -> Any:
    """The logarithm of q's density is linear: p's mean is enough."""
    return q.rate * p.mean - q.rate.log() - p.entropy()


def mean_of_log_between(low: Any, high: Any) -> Any:
    """Returns the mean of log x for an x that is uniform between two bounds."""
    return (rd.xlogy(high, high) - rd.xlogy(low, low)) / (high - low) - 1


# How the mean of log x follows from the parameters of x.
MEAN_OF_LOG: dict[type, Callable[[Any], Any]] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -EULER - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: mean_of_log_between(p.low, p.high),
}
# How the mean of exp(t x) follows from the parameters of x.
MEAN_OF_EXP: dict[type, Callable[[Any, Any], Any]] = {
    Exponential: lambda p, t: p.rate / (p.rate - t),
    Gamma: lambda p, t: (1 - t / p.rate).pow(-p.concentration),
    Normal: lambda p, t: (p.loc * t + (p.scale * t).pow(2) / 2).exp(),
    Uniform: lambda p, t: ((p.high * t).exp() - (p.low * t).exp()) / (t * (p.high - p.low)),
}


def fact(facts: dict[type, Any], p: Any) -> Any:
    """Returns the row of p's family."""
    return next(rule for family, rule in facts.items() if isinstance(p, family))


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
@register_kl(Pareto, Gamma)
def kl_to_gamma(p: Any, q: Any) -> Any:
    """The logarithm of q's density is one of x and log x: their means are enough."""
    a, rate = q.concentration, q.rate
    return rd.lgamma(a) - a * rate.log() - (a - 1) * fact(MEAN_OF_LOG, p)(p) + rate * p.mean - p.entropy()


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Uniform, Gumbel)
def kl_to_gumbel(p: Any, q: Any) -> Any:
    """The logarithm of q's density is one of x and exp(-x / scale): their means are enough."""
    grown = (q.loc / q.scale).exp() * fact(MEAN_OF_EXP, p)(p, -1 / q.scale)
    return (p.mean - q.loc) / q.scale + grown + q.scale.log() - p.entropy()


@register_kl(Beta, ContinuousBernoulli)
@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def kl_to_continuous_bernoulli(p: Any, q: Any) -> Any:
    """The logarithm of q's density is linear: p's mean is enough."""
    return -p.entropy() - p.mean * q.logits - rd.log1p(-q.probs) - q._log_factor()


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def kl_to_uniform(p: Any, q: Any) -> Any:
    """inf where q does not reach from 0 to 1, as p does."""
    return rd.where((q.low > 0) | (q.high < 1), math.inf, (q.high - q.low).log() - p.entropy())


@register_kl(Uniform, Exponential)
def kl_of_uniform_to_exponential(p: Any, q: Any) -> Any:
    return rd.where(p.low < 0, math.inf, kl_to_exponential(p, q))


@register_kl(Uniform, Gamma)
def kl_of_uniform_to_gamma(p: Any, q: Any) -> Any:
    return rd.where(p.low < 0, math.inf, kl_to_gamma(p, q))


@register_kl(Uniform, Pareto)
def kl_of_uniform_to_pareto(p: Any, q: Any) -> Any:
    density = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * fact(MEAN_OF_LOG, p)(p)
    return rd.where(p.low < q.scale, math.inf, -density - p.entropy())


@register_kl(Uniform, Beta)
def kl_of_uniform_to_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    density = (a - 1) * fact(MEAN_OF_LOG, p)(p) + (b - 1) * mean_of_log_between(1 - p.high, 1 - p.low)
    result = a.lgamma() + b.lgamma() - (a + b).lgamma() - density - p.entropy()
    return rd.where((p.low < 0) | (p.high > 1), math.inf, result)


@register_kl(Uniform, ContinuousBernoulli)
def kl_of_uniform_to_continuous_bernoulli(p: Any, q: Any) -> Any:
    return rd.where((p.low < 0) | (p.high > 1), math.inf, kl_to_continuous_bernoulli(p, q))


@register_kl(Normal, Laplace)
def kl_of_normal_to_laplace(p: Any, q: Any) -> Any:
    """E|x - m| of a normal x is that of a folded normal number (Leone et al., 1961)."""
    apart = p.loc - q.loc
    inner = apart / p.scale
    folded = p.scale * math.sqrt(2 / math.pi) * rd.exp(-0.5 * inner.pow(2)) + apart * rd.erf(math.sqrt(0.5) * inner)
    return folded / q.scale + rd.log(2 * q.scale) - p.entropy()


@register_kl(Bernoulli, Poisson)
def kl_of_bernoulli_to_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def nowhere_covered(p: Any, q: Any) -> Any:
    """inf: p has values that q has not."""
    return rd.full_like(p.mean, math.inf)


for _p, _all_q in {
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
    Beta: (Pareto,),
}.items():
    for _q in _all_q:
        register_kl(_p, _q)(nowhere_covered)
