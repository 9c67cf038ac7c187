"""redispatch.distributions: probability distributions with PyTorch's names, densities and samples that can be learned.

    policy = Categorical(logits=scores)
    action = policy.sample()
    loss = -policy.log_prob(action) * reward

A family and its relatives a file, written with public names only. Read in this order: distribution, normal,
constraints, transforms, transformed_distribution, kl.
"""

from redispatch import _moved

from . import constraints, transforms
from .bernoulli import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from .categorical import (
    Categorical,
    MixtureSameFamily,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from .cauchy import Cauchy, HalfCauchy, Laplace, StudentT
from .constraint_registry import biject_to, transform_to
from .distribution import Distribution, ExponentialFamily
from .exponential import Exponential, Pareto, Weibull
from .gamma import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, InverseGamma
from .kl import kl_divergence, register_kl
from .normal import HalfNormal, LogisticNormal, LogNormal, MultivariateNormal, Normal
from .transformed_distribution import Independent, TransformedDistribution
from .transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from .uniform import Gumbel, Kumaraswamy, Uniform

_moved.join(__name__)
