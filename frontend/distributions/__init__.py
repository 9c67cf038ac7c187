"""redispatch.distributions: probability distributions with PyTorch's names, densities and samples that can be learned.

    policy = Categorical(logits=scores)
    action = policy.sample()
    loss = -policy.log_prob(action) * reward

A family and its relatives a file, written with public names only. Read in this order: distribution, normal,
constraints, transforms, transformed_distribution, kl.
"""

from redispatch import _moved, _names

from . import constraints, transforms

__all__ = _names.take(
    globals(),
    {
        ".bernoulli": "Bernoulli Binomial ContinuousBernoulli Geometric NegativeBinomial Poisson",
        ".categorical": """
            Categorical MixtureSameFamily Multinomial OneHotCategorical OneHotCategoricalStraightThrough
            RelaxedBernoulli RelaxedOneHotCategorical
        """,
        ".cauchy": "Cauchy HalfCauchy Laplace StudentT",
        ".constraint_registry": "biject_to transform_to",
        ".distribution": "Distribution ExponentialFamily",
        ".exponential": "Exponential GeneralizedPareto Gumbel Kumaraswamy Pareto Uniform Weibull",
        ".gamma": "Beta Chi2 Dirichlet FisherSnedecor Gamma InverseGamma",
        ".kl": "kl_divergence register_kl",
        ".lkj_cholesky": "LKJCholesky",
        ".normal": "HalfNormal LogisticNormal LogNormal LowRankMultivariateNormal MultivariateNormal Normal",
        ".transformed_distribution": "Independent TransformedDistribution",
        ".von_mises": "VonMises",
        ".wishart": "Wishart",
        ".transforms": """
            AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform
            CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform
            PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftmaxTransform
            SoftplusTransform StackTransform StickBreakingTransform TanhTransform Transform identity_transform
        """,
    },
)

_moved.join(__name__)
