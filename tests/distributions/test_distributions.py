"""Distributions: densities against scipy, samples against densities, what PyTorch's programs rely on.

tests/parity/distributions.py compares every quantity of every family with PyTorch.
"""

import math

import pytest
from scipy import stats

import redispatch as rd
from redispatch import distributions as D
from redispatch.distributions import constraints, transforms

X = [0.2, 0.7]


pytestmark = pytest.mark.usefixtures("seeded")

CONTINUOUS = [
    (lambda: D.Normal(1.0, 2.0), stats.norm(1, 2)),
    (lambda: D.Uniform(-1.0, 2.0), stats.uniform(-1, 3)),
    (lambda: D.Exponential(2.0), stats.expon(scale=0.5)),
    (lambda: D.Laplace(1.0, 2.0), stats.laplace(1, 2)),
    (lambda: D.Cauchy(1.0, 2.0), stats.cauchy(1, 2)),
    (lambda: D.Gamma(2.5, 3.0), stats.gamma(2.5, scale=1 / 3)),
    (lambda: D.Beta(2.5, 1.5), stats.beta(2.5, 1.5)),
    (lambda: D.Chi2(rd.tensor(3.0)), stats.chi2(3)),
    (lambda: D.StudentT(3.0, 1.0, 2.0), stats.t(3, 1, 2)),
    (lambda: D.FisherSnedecor(5.0, 7.0), stats.f(5, 7)),
    (lambda: D.LogNormal(0.5, 0.75), stats.lognorm(0.75, scale=math.exp(0.5))),
    (lambda: D.HalfNormal(2.0), stats.halfnorm(scale=2)),
    (lambda: D.HalfCauchy(2.0), stats.halfcauchy(scale=2)),
    (lambda: D.Gumbel(1.0, 2.0), stats.gumbel_r(1, 2)),
    (lambda: D.Weibull(2.0, 1.5), stats.weibull_min(1.5, scale=2)),
    (lambda: D.Pareto(0.1, 2.5), stats.pareto(2.5, scale=0.1)),
    (lambda: D.InverseGamma(3.5, 2.0), stats.invgamma(3.5, scale=2)),
    (lambda: D.GeneralizedPareto(-0.5, 2.0, 0.3), stats.genpareto(0.3, -0.5, 2)),
    (lambda: D.GeneralizedPareto(0.0, 2.0, 0.0), stats.genpareto(0, 0, 2)),
    (lambda: D.GeneralizedPareto(0.0, 1.0, -0.5), stats.genpareto(-0.5, 0, 1)),
    (lambda: D.VonMises(1.0, 2.5), stats.vonmises(2.5, 1)),
    (lambda: D.VonMises(0.0, 1e-6), stats.vonmises(1e-6)),
    (lambda: D.ContinuousBernoulli(0.2), stats.truncexpon(math.log(4), 0, 1 / math.log(4))),
]


@pytest.mark.parametrize(("made", "expected"), CONTINUOUS, ids=[known.dist.name for _, known in CONTINUOUS])
def test_a_density_is_scipys_and_samples_have_it(made, expected):
    distribution = made()
    assert distribution.log_prob(rd.tensor(X)).tolist() == pytest.approx(expected.logpdf(X), rel=1e-5)
    drawn = distribution.sample((4000,)).double().numpy()
    assert stats.kstest(drawn, expected.cdf).pvalue > 1e-3


DISCRETE = [
    (lambda: D.Bernoulli(0.3), stats.bernoulli(0.3)),
    (lambda: D.Binomial(5, rd.tensor(0.3)), stats.binom(5, 0.3)),
    (lambda: D.Poisson(2.5), stats.poisson(2.5)),
    (lambda: D.Geometric(0.3), stats.geom(0.3, loc=-1)),
    (lambda: D.NegativeBinomial(4, rd.tensor(0.3)), stats.nbinom(4, 0.7)),
    (lambda: D.Categorical(rd.tensor([0.2, 0.5, 0.3])), stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3]))),
]


@pytest.mark.parametrize(("made", "expected"), DISCRETE, ids="bernoulli binom poisson geom nbinom categorical".split())
def test_probabilities_are_scipys_and_samples_have_them(made, expected):
    distribution = made()
    assert distribution.log_prob(rd.tensor([0.0, 1.0])).tolist() == pytest.approx(expected.logpmf([0, 1]), rel=1e-5)
    drawn = distribution.sample((4000,)).double()
    for value in (0, 1):
        chance = expected.pmf(value)
        assert (drawn == value).double().mean().item() == pytest.approx(chance, abs=5 * math.sqrt(chance / 4000))


def test_probabilities_of_vectors_are_scipys():
    loc, covariance = [1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]
    normal = D.MultivariateNormal(rd.tensor(loc), rd.tensor(covariance))
    expected = stats.multivariate_normal(loc, covariance)
    assert normal.log_prob(rd.tensor(X)).item() == pytest.approx(expected.logpdf(X), rel=1e-5)
    assert normal.entropy().item() == pytest.approx(expected.entropy(), rel=1e-5)
    assert normal.sample((4000,)).T.cov().flatten().tolist() == pytest.approx([2, 0.5, 0.5, 1], abs=0.2)
    low = D.LowRankMultivariateNormal(rd.tensor(loc), rd.tensor([[0.5], [1.0]]), rd.tensor([1.75, 0.5]))
    expected = stats.multivariate_normal(loc, [[2.0, 0.5], [0.5, 1.5]])
    assert low.log_prob(rd.tensor(X)).item() == pytest.approx(expected.logpdf(X), rel=1e-5)
    assert low.entropy().item() == pytest.approx(expected.entropy(), rel=1e-5)
    assert low.sample((4000,)).T.cov().flatten().tolist() == pytest.approx([2, 0.5, 0.5, 1.5], abs=0.2)
    assert (low.precision_matrix @ low.covariance_matrix - rd.eye(2)).abs().max() < 1e-5
    assert (low.scale_tril @ low.scale_tril.T - low.covariance_matrix).abs().max() < 1e-5
    assert low.expand((3,)).log_prob(rd.tensor(X)).shape == (3,)
    factors = D.LKJCholesky(3, rd.tensor([1.0, 4.0])).sample((4000,))
    correlations = factors @ factors.mT
    assert (correlations.diagonal(dim1=-2, dim2=-1) - 1).abs().max() < 1e-5
    # of two of n variables, (r + 1) / 2 is a Beta number of concentrations eta - 1 + n / 2
    assert correlations[..., 0, 1].var(0).tolist() == pytest.approx([1 / 4, 1 / 10], abs=0.03)
    shares = D.Dirichlet(rd.tensor([2.0, 3.0, 0.5]))
    expected = stats.dirichlet([2, 3, 0.5])
    assert shares.log_prob(rd.tensor([0.2, 0.7, 0.1])).item() == pytest.approx(
        expected.logpdf([0.2, 0.7, 0.1]), rel=1e-5
    )
    assert shares.sample((4000,)).mean(0).tolist() == pytest.approx(expected.mean(), abs=0.02)
    counts = D.Multinomial(5, rd.tensor([0.2, 0.5, 0.3]))
    expected = stats.multinomial(5, [0.2, 0.5, 0.3])
    assert counts.log_prob(rd.tensor([1.0, 3.0, 1.0])).item() == pytest.approx(expected.logpmf([1, 3, 1]), rel=1e-5)
    assert counts.sample((2000,)).mean(0).tolist() == pytest.approx([1, 2.5, 1.5], abs=0.15)


def test_a_divergence_is_the_mean_of_the_difference_of_log_densities():
    pairs = [
        (D.Normal(0.0, 1.0), D.Normal(1.0, 2.0)),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 2.0)),
        (D.Beta(2.0, 3.0), D.Normal(0.0, 1.0)),
        (D.Beta(2.0, 3.0), D.Gamma(3.0, 2.0)),
        (D.Exponential(2.0), D.Gamma(3.0, 2.0)),
        (D.Normal(0.5, 1.0), D.Laplace(0.0, 2.0)),
        (D.Gumbel(0.5, 1.0), D.Gumbel(0.0, 2.0)),
        (D.Categorical(rd.tensor([0.2, 0.8])), D.Categorical(rd.tensor([0.5, 0.5]))),
    ]
    for p, q in pairs:
        drawn = p.sample((40000,))
        mean = (p.log_prob(drawn) - q.log_prob(drawn)).mean().item()
        assert D.kl_divergence(p, q).item() == pytest.approx(mean, abs=0.03), (p, q)
    assert D.kl_divergence(D.Normal(0.0, 1.0), D.Uniform(0.0, 1.0)).item() == math.inf


def test_the_rule_of_the_nearest_classes_answers_and_a_user_may_add_one():
    class Mine(D.Normal):
        pass

    class Other(D.Normal):
        pass

    from redispatch.distributions import kl

    before = dict(kl._RULES)
    try:
        assert D.kl_divergence(Mine(0.0, 1.0), Other(0.0, 1.0)).item() == 0  # that of Normal

        @D.register_kl(Mine, D.Normal)
        def rule(p, q):
            return "mine first"

        assert D.kl_divergence(Mine(0.0, 1.0), Other(0.0, 1.0)) == "mine first"
        D.register_kl(D.Normal, Other)(lambda p, q: "other first")
        with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
            assert D.kl_divergence(Mine(0.0, 1.0), Other(0.0, 1.0)) == "mine first"
        with pytest.raises(TypeError, match="Distribution subclass"):  # of any other class PyTorch lets a rule be
            D.register_kl(3, D.Normal)
    finally:
        kl._RULES.clear()
        kl._RULES.update(before)
        kl.rule_for.cache_clear()


def test_samples_carry_gradients_to_the_parameters_where_a_family_says_so():
    for made in (D.Normal, D.Laplace, D.Gumbel, D.Gamma, D.Beta, D.Cauchy):
        parameters = [rd.tensor(1.5, requires_grad=True), rd.tensor(2.5, requires_grad=True)]
        distribution = made(*parameters)
        assert distribution.has_rsample
        distribution.rsample((3,)).sum().backward()
        assert all(one.grad is not None and one.grad.isfinite() for one in parameters)
        assert not distribution.sample((3,)).requires_grad


def test_every_constraint_is_reached_by_its_transform():
    x = rd.randn(4, 3)
    for region in (
        constraints.real,
        constraints.positive,
        constraints.greater_than(2.0),
        constraints.less_than(-1.0),
        constraints.interval(-2.0, 3.0),
        constraints.unit_interval,
        constraints.simplex,
        constraints.corr_cholesky,
        constraints.independent(constraints.positive, 1),
    ):
        to = D.biject_to(region)
        y = to(x)
        assert region.check(y).all(), region
        assert rd.allclose(to.inv(y), x, atol=1e-4), region
    square = rd.randn(2, 3, 3)
    for region in (constraints.lower_cholesky, constraints.positive_definite):
        assert region.check(D.transform_to(region)(square)).all()


def test_a_slope_is_the_determinant_of_the_jacobian():
    x = rd.randn(3, dtype=rd.float64)
    for transform in (
        transforms.StickBreakingTransform(),
        transforms.IndependentTransform(transforms.TanhTransform(), 1),
        transforms.ComposeTransform([transforms.AffineTransform(1.0, 2.0), transforms.StickBreakingTransform()]),
    ):
        y = transform(x)
        jacobian = rd.func.jacrev(transform)(x)[: len(x)]
        assert transform.log_abs_det_jacobian(x, y).item() == pytest.approx(jacobian.det().abs().log().item())


def test_a_transform_with_a_cache_gives_back_the_very_value():
    x = rd.tensor([20.0])  # its sigmoid is 1 in float32
    kept, forgotten = transforms.SigmoidTransform(cache_size=1), transforms.SigmoidTransform()
    assert kept.inv(kept(x)) is x and forgotten.inv(forgotten(x)).item() != 20
    assert kept.inv.inv is kept and transforms.ExpTransform() == transforms.ExpTransform()


def test_parameters_of_different_shapes_give_the_batch_that_they_broadcast_to():
    for made in (D.Normal, D.Gamma, D.Laplace, D.VonMises, D.Gumbel, D.FisherSnedecor):
        distribution = made(rd.tensor(1.0), rd.ones(3))
        assert distribution.batch_shape == distribution.sample().shape == (3,)
    assert D.GeneralizedPareto(0.0, rd.ones(2, 1), rd.ones(3)).expand((4, 2, 3)).sample().shape == (4, 2, 3)


def test_checks_can_be_switched_off():
    D.Normal(0.0, -1.0, validate_args=False)
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError):
        D.Distribution.set_default_validate_args("perhaps")


def test_a_subclass_with_an_init_of_its_own_must_say_how_it_expands():
    class Standard(D.Normal):
        def __init__(self):
            super().__init__(rd.zeros(()), 1.0)

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Standard().expand((2,))


def test_a_policy_learns_from_its_log_probabilities():
    logits = rd.zeros(2, requires_grad=True)
    for _ in range(50):
        policy = D.Categorical(logits=logits)
        action = policy.sample((16,))
        (-policy.log_prob(action) * (action == 1).float()).mean().backward()
        with rd.no_grad():
            logits -= 0.5 * logits.grad
            logits.grad = None
    assert D.Categorical(logits=logits).probs[1] > 0.9
