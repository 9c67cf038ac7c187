"""Every distribution's quantities, here and in PyTorch: densities, moments, gradients, divergences, text, errors.

Run with a Python that has torch: `python tests/parity/distributions.py`. Exits non-zero on any difference.
"""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any

import torch

import redispatch

warnings.simplefilter("ignore")
HALVES, THIRDS = [0.5, 1.5, 2.5], [0.3, 1.2, 2.9]
MATRIX = [[2.0, 0.5], [0.5, 1.0]]

# name -> (parameters, values)
CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "Bernoulli": ({"probs": [0.2, 0.5, 0.9]}, [0.0, 1.0, 1.0]),
    "Bernoulli logits": ({"logits": [-0.7, 0.0, 1.9]}, [0.0, 1.0, 1.0]),
    "Beta": ({"concentration1": HALVES, "concentration0": THIRDS}, [0.1, 0.5, 0.8]),
    "Binomial": ({"total_count": [4.0, 4.0, 4.0], "probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 4.0]),
    "Categorical": ({"probs": [[0.2, 0.3, 0.6], [1.0, 2.0, 0.0]]}, [2.0, 0.0]),
    "Categorical logits": ({"logits": [[0.2, 0.3, -0.6], [1.0, 2.0, 0.0]]}, [2.0, 0.0]),
    "Cauchy": ({"loc": [-1.0, 0.0, 2.0], "scale": HALVES}, [0.2, -3.0, 5.0]),
    "Chi2": ({"df": HALVES}, THIRDS),
    "ContinuousBernoulli": ({"probs": [0.2, 0.5, 0.9]}, [0.1, 0.5, 0.8]),
    "ContinuousBernoulli logits": ({"logits": [-0.7, 0.001, 1.9]}, [0.1, 0.5, 0.8]),
    "Dirichlet": ({"concentration": [[0.5, 2.0, 1.0], [3.0, 1.0, 0.2]]}, [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
    "Exponential": ({"rate": HALVES}, THIRDS),
    "FisherSnedecor": ({"df1": HALVES, "df2": [5.0, 6.0, 3.0]}, THIRDS),
    "Gamma": ({"concentration": HALVES, "rate": THIRDS}, [0.1, 2.0, 3.0]),
    "GeneralizedPareto": ({"loc": HALVES, "scale": THIRDS, "concentration": [0.3, 0.6, -0.5]}, [0.7, 2.0, 2.6]),
    "GeneralizedPareto edges": ({"loc": 0.0, "scale": HALVES, "concentration": [0.0, -1.0, -1.0]}, [0.7, 1.0, 2.5]),
    "Geometric": ({"probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 1.0]),
    "Gumbel": ({"loc": [-1.0, 0.0, 2.0], "scale": HALVES}, [0.2, -3.0, 5.0]),
    "HalfCauchy": ({"scale": HALVES}, THIRDS),
    "HalfNormal": ({"scale": HALVES}, THIRDS),
    "InverseGamma": ({"concentration": HALVES, "rate": THIRDS}, [0.1, 2.0, 3.0]),
    "Kumaraswamy": ({"concentration1": HALVES, "concentration0": THIRDS}, [0.1, 0.5, 0.8]),
    "Laplace": ({"loc": [-1.0, 0.0, 2.0], "scale": HALVES}, [0.2, -3.0, 5.0]),
    "LogNormal": ({"loc": [-1.0, 0.0, 2.0], "scale": HALVES}, THIRDS),
    "LogisticNormal": ({"loc": [[-1.0, 0.0]], "scale": [[0.5, 1.5]]}, [[0.2, 0.3, 0.5]]),
    "Multinomial": ({"total_count": 5, "probs": [[0.2, 0.3, 0.5]]}, [[1.0, 3.0, 1.0]]),
    "LKJCholesky": (
        {"dim": 3, "concentration": [0.5, 2.0]},
        [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]],
    ),
    "LowRankMultivariateNormal": (
        {"loc": [[1.0, 2.0], [0.0, -1.0]], "cov_factor": [[0.5], [2.0]], "cov_diag": [0.3, 1.5]},
        [0.3, -1.0],
    ),
    "MultivariateNormal": ({"loc": [[1.0, 2.0], [0.0, -1.0]], "covariance_matrix": MATRIX}, [0.3, -1.0]),
    "MultivariateNormal precision": ({"loc": [1.0, 2.0], "precision_matrix": MATRIX}, [0.3, -1.0]),
    "MultivariateNormal factor": ({"loc": [1.0, 2.0], "scale_tril": [[1.0, 0.0], [0.5, 2.0]]}, [0.3, -1.0]),
    "NegativeBinomial": ({"total_count": [4.0, 2.0, 1.0], "probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 4.0]),
    "Normal": ({"loc": [-1.0, 0.0, 2.0], "scale": HALVES}, [0.2, -3.0, 5.0]),
    "OneHotCategorical": ({"probs": [[0.2, 0.3, 0.6]]}, [[0.0, 1.0, 0.0]]),
    "Pareto": ({"scale": HALVES, "alpha": [0.5, 3.0, 1.5]}, [0.9, 2.0, 4.0]),
    "Poisson": ({"rate": HALVES}, [0.0, 3.0, 2.0]),
    "RelaxedBernoulli": ({"temperature": 0.7, "probs": [0.2, 0.5, 0.9]}, [0.1, 0.5, 0.8]),
    "RelaxedOneHotCategorical": ({"temperature": 0.7, "probs": [[0.2, 0.3, 0.6]]}, [[0.2, 0.3, 0.5]]),
    "StudentT": ({"df": HALVES, "loc": [-1.0, 0.0, 2.0], "scale": THIRDS}, [0.2, -3.0, 5.0]),
    "Uniform": ({"low": [-1.0, 0.0, 2.0], "high": [1.0, 3.0, 2.5]}, [0.2, 2.0, 2.25]),
    "VonMises": ({"loc": [-1.0, 0.0, 2.0], "concentration": [0.5, 4.0, 30.0]}, [0.2, -3.0, 5.0]),
    "Weibull": ({"scale": HALVES, "concentration": THIRDS}, [0.1, 2.0, 3.0]),
    "Wishart": ({"df": [3.0, 4.5], "covariance_matrix": MATRIX}, [[1.5, 0.3], [0.3, 0.7]]),
    "Wishart precision": ({"df": 3.0, "precision_matrix": [MATRIX, MATRIX]}, [[1.5, 0.3], [0.3, 0.7]]),
    "Wishart factor": ({"df": 3.0, "scale_tril": [[1.0, 0.0], [0.5, 2.0]]}, [[1.5, 0.3], [0.3, 0.7]]),
}


def normal_vectors(t: Any, d: Any) -> Any:
    """Two distributions of vectors that differ in length."""
    low = d.LowRankMultivariateNormal(t.zeros(3), t.ones(3, 1), t.ones(3))
    return d.MultivariateNormal(t.zeros(2), t.eye(2)), low


BAD: list[tuple[str, Any]] = [
    ("a parameter outside of its constraint", lambda t, d: d.Normal(t.zeros(2), t.tensor([1.0, -1.0]))),
    ("no number and no tensor", lambda t, d: d.Normal("0", 1.0)),
    ("both probs and logits", lambda t, d: d.Bernoulli(probs=0.5, logits=0.0)),
    ("probs of no dimension", lambda t, d: d.Categorical(t.tensor(1.0))),
    ("no degrees of freedom", lambda t, d: d.Wishart(1.0, t.eye(3))),
    ("no matrix of Wishart", lambda t, d: d.Wishart(3.0)),
    ("a vector of Wishart", lambda t, d: d.Wishart(3.0, t.ones(3))),
    ("chances above 1", lambda t, d: d.ContinuousBernoulli(t.tensor([0.5, 1.5]), validate_args=True)),
    ("vectors of two lengths", lambda t, d: d.kl_divergence(*normal_vectors(t, d))),
    ("no simplex", lambda t, d: d.Categorical(t.tensor([-1.0, 2.0]))),
    ("bounds the wrong way round", lambda t, d: d.Uniform(1.0, 0.0)),
    ("a value outside of the support", lambda t, d: d.Exponential(1.0).log_prob(t.tensor(-1.0))),
    ("a value that is no tensor", lambda t, d: d.Normal(0.0, 1.0).log_prob(1.0)),
    ("a value of another event", lambda t, d: d.Dirichlet(t.ones(3)).log_prob(t.ones(2))),
    ("a value of another batch", lambda t, d: d.Normal(t.zeros(3), 1.0).log_prob(t.ones(2))),
    ("two matrices", lambda t, d: d.MultivariateNormal(t.zeros(2), t.eye(2), t.eye(2))),
    ("more dimensions than the batch has", lambda t, d: d.Independent(d.Normal(0.0, 1.0), 1)),
    ("a divergence that nobody knows", lambda t, d: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0))),
    ("no transform", lambda t, d: d.TransformedDistribution(d.Normal(0.0, 1.0), 3)),
    ("a constraint without a transform", lambda t, d: d.biject_to(d.constraints.positive_definite)),
    ("a shape that does not fit", lambda t, d: d.ReshapeTransform((2,), (3,))),
]
TRANSFORMS: list[tuple[str, Any]] = [
    ("Exp", lambda t, d: d.ExpTransform()),
    ("Power", lambda t, d: d.ComposeTransform([d.ExpTransform(), d.PowerTransform(t.tensor(2.0))])),
    ("Sigmoid", lambda t, d: d.SigmoidTransform()),
    ("Tanh", lambda t, d: d.TanhTransform()),
    ("Softplus", lambda t, d: d.SoftplusTransform()),
    ("Affine", lambda t, d: d.AffineTransform(t.tensor([1.0, 2.0, 3.0]), t.tensor([-1.0, 2.0, 0.5]))),
    ("Affine of vectors", lambda t, d: d.AffineTransform(1.0, -2.0, event_dim=1)),
    ("StickBreaking", lambda t, d: d.StickBreakingTransform()),
    ("CorrCholesky", lambda t, d: d.CorrCholeskyTransform()),
    ("Independent", lambda t, d: d.IndependentTransform(d.ExpTransform(), 1)),
    ("Compose", lambda t, d: d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.StickBreakingTransform()])),
    ("Reshape", lambda t, d: d.ReshapeTransform((3,), (1, 3))),
    ("Stack", lambda t, d: d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.SigmoidTransform()], dim=-1)),
    ("Cat", lambda t, d: d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=-1, lengths=[2, 1])),
    ("Cumulative", lambda t, d: d.CumulativeDistributionTransform(d.Normal(0.0, 2.0))),
]


SINGLE = {"GeneralizedPareto", "GeneralizedPareto edges"}  # PyTorch computes its densities in float32 only
# Where PyTorch's gradient is another one: at a kink of its formula, and above the diagonal of a triangle
NO_GRADIENT = {"GeneralizedPareto edges", "Wishart factor"}


def tensors(t: Any, name: str, value: Any) -> Any:
    return value if isinstance(value, int) else t.tensor(value, dtype=t.float32 if name in SINGLE else t.float64)


def made(t: Any, name: str) -> tuple[Any, Any, list[Any]]:
    """A distribution, the values to ask it about, and its parameters."""
    parameters, values = CASES[name]
    kwargs = {key: tensors(t, name, value) for key, value in parameters.items()}
    learned = [
        kwargs[key].requires_grad_()
        for key in kwargs
        if key not in ("dim", "total_count", "low", "high", "temperature") and name not in NO_GRADIENT
    ]
    return getattr(t.distributions, name.split()[0])(**kwargs), tensors(t, name, values), learned


def outcome(ask: Any) -> Any:
    """Numbers, or text, or the class and words of what is raised."""
    try:
        found = ask()
    except Exception as error:
        return re.sub(r"class '[\w.]*\.", "class '", f"{type(error).__name__}: {error}".replace("redispatch", "torch"))
    return found.tolist() if hasattr(found, "tolist") else repr(found).replace("redispatch", "torch")


def quantities(t: Any, name: str) -> dict[str, Any]:
    distribution, values, parameters = made(t, name)
    asked = {key: lambda key=key: getattr(distribution, key) for key in "mean mode variance stddev support".split()}
    asked |= {
        key: lambda key=key: getattr(distribution, key)() for key in "entropy perplexity enumerate_support".split()
    }
    asked |= {
        "text": lambda: distribution,
        "shapes": lambda: (distribution.batch_shape, distribution.event_shape, distribution.has_rsample),
        "log_prob": lambda: distribution.log_prob(values),
        "cdf": lambda: distribution.cdf(values),
        "icdf": lambda: distribution.icdf(t.full(distribution.batch_shape, 0.3, dtype=t.float64)),
        "gradients": lambda: t.cat(
            [g.flatten() for g in t.autograd.grad(distribution.log_prob(values).sum(), parameters)]
        ),
        "expanded": lambda: distribution.expand((2, *distribution.batch_shape)).log_prob(values),
        "sampled": lambda: (distribution.sample((2, 3)).shape, distribution.sample().dtype),
        "independent": lambda: t.distributions.Independent(distribution, 1).log_prob(values),
    }
    return {f"{name}: {key}": outcome(ask) for key, ask in asked.items()}


def divergences(t: Any) -> dict[str, Any]:
    names = [name for name in CASES if " " not in name]
    return {
        f"kl {p} {q}": outcome(lambda p=p, q=q: t.distributions.kl_divergence(made(t, p)[0], made(t, q)[0]))
        for p in names
        for q in names
    }


def transformations(t: Any) -> dict[str, Any]:
    found = {}
    for name, make in TRANSFORMS:
        found |= {f"{name}: {key}": answer for key, answer in of_transform(t, make(t, t.distributions)).items()}
    for name, make in COMPOSED:
        found |= {f"{name}: {key}": answer for key, answer in of_composed(t, make(t, t.distributions)).items()}
    return found


def of_transform(t: Any, transform: Any) -> dict[str, Any]:
    x = t.tensor([[0.3, -0.7, 1.1], [0.0, 0.2, -2.0]])
    y = transform(x)
    return {
        "values": outcome(lambda: y),
        "back": outcome(lambda: transform.inv(y)),
        "slope": outcome(lambda: transform.log_abs_det_jacobian(x, y)),
        "slope back": outcome(lambda: transform.inv.log_abs_det_jacobian(y, x)),
        "shapes": outcome(lambda: (transform.forward_shape(x.shape), transform.inverse_shape(y.shape))),
        "metadata": outcome(lambda: (transform, transform.inv, transform.domain, transform.codomain)),
        "bijective": outcome(lambda: (transform.bijective, transform.event_dim)),
    }


COMPOSED: list[tuple[str, Any]] = [
    (
        "mixture",
        lambda t, d: d.MixtureSameFamily(
            d.Categorical(t.tensor([0.3, 0.7])), d.Normal(t.tensor([0.0, 2.0]), t.tensor([1.0, 0.5]))
        ),
    ),
    (
        "chain",
        lambda t, d: d.TransformedDistribution(
            d.Normal(t.zeros(3), 1.0), [d.AffineTransform(1.0, -2.0), d.SigmoidTransform()]
        ),
    ),
]


def of_composed(t: Any, one: Any) -> dict[str, Any]:
    value = t.tensor(0.3)
    return {
        "metadata": outcome(lambda: (one.batch_shape, one.event_shape, one.support, one.sample((2,)).shape)),
        "mean": outcome(lambda: one.mean),
        "variance": outcome(lambda: one.variance),
        "log_prob": outcome(lambda: one.log_prob(value)),
        "cdf": outcome(lambda: one.cdf(value)),
    }


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or ours != ours and theirs != theirs or abs(ours - theirs) <= 1e-6 + 1e-6 * abs(theirs)
    if isinstance(ours, str) and isinstance(theirs, str):
        return " ".join(ours.split(" at 0x")[0].split()) == " ".join(theirs.split(" at 0x")[0].split())
    return ours == theirs


def main() -> int:
    found = []
    for t in (redispatch, torch):
        answers = {f"error: {name}": outcome(lambda make=make, t=t: make(t, t.distributions)) for name, make in BAD}
        for name in CASES:
            answers |= quantities(t, name)
        found.append(answers | divergences(t) | transformations(t))
    ours, theirs = found
    different = [name for name in theirs if not same(ours[name], theirs[name])]
    for name in different:
        print(f"{name}\n    ours   {ours[name]}\n    theirs {theirs[name]}")
    print(f"{len(theirs) - len(different)} / {len(theirs)} answers are the same")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
