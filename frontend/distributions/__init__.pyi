"""Made by `python -m redispatch.stubs`."""

from . import constraints as constraints, transforms as transforms
from .bernoulli import Bernoulli as Bernoulli, Binomial as Binomial, ContinuousBernoulli as ContinuousBernoulli, Geometric as Geometric, NegativeBinomial as NegativeBinomial, Poisson as Poisson
from .categorical import Categorical as Categorical, MixtureSameFamily as MixtureSameFamily, Multinomial as Multinomial, OneHotCategorical as OneHotCategorical, OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough, RelaxedBernoulli as RelaxedBernoulli, RelaxedOneHotCategorical as RelaxedOneHotCategorical
from .cauchy import Cauchy as Cauchy, HalfCauchy as HalfCauchy, Laplace as Laplace, StudentT as StudentT
from .constraint_registry import biject_to as biject_to, transform_to as transform_to
from .distribution import Distribution as Distribution, ExponentialFamily as ExponentialFamily
from .exponential import Exponential as Exponential, GeneralizedPareto as GeneralizedPareto, Gumbel as Gumbel, Kumaraswamy as Kumaraswamy, Pareto as Pareto, Uniform as Uniform, Weibull as Weibull
from .gamma import Beta as Beta, Chi2 as Chi2, Dirichlet as Dirichlet, FisherSnedecor as FisherSnedecor, Gamma as Gamma, InverseGamma as InverseGamma
from .kl import kl_divergence as kl_divergence, register_kl as register_kl
from .lkj_cholesky import LKJCholesky as LKJCholesky
from .normal import HalfNormal as HalfNormal, LogisticNormal as LogisticNormal, LogNormal as LogNormal, LowRankMultivariateNormal as LowRankMultivariateNormal, MultivariateNormal as MultivariateNormal, Normal as Normal
from .transformed_distribution import Independent as Independent, TransformedDistribution as TransformedDistribution
from .von_mises import VonMises as VonMises
from .wishart import Wishart as Wishart
from .transforms import AbsTransform as AbsTransform, AffineTransform as AffineTransform, CatTransform as CatTransform, ComposeTransform as ComposeTransform, CorrCholeskyTransform as CorrCholeskyTransform, CumulativeDistributionTransform as CumulativeDistributionTransform, ExpTransform as ExpTransform, IndependentTransform as IndependentTransform, LowerCholeskyTransform as LowerCholeskyTransform, PositiveDefiniteTransform as PositiveDefiniteTransform, PowerTransform as PowerTransform, ReshapeTransform as ReshapeTransform, SigmoidTransform as SigmoidTransform, SoftmaxTransform as SoftmaxTransform, SoftplusTransform as SoftplusTransform, StackTransform as StackTransform, StickBreakingTransform as StickBreakingTransform, TanhTransform as TanhTransform, Transform as Transform, identity_transform as identity_transform

