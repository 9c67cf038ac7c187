"""Normal and its relatives: LogNormal, LogisticNormal, HalfNormal, and normal vectors.

A file holds a family and its relatives. A class states its constraints and its moments as rows, then its formulas.
Read next: transformed_distribution.py, by which the relatives are made.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Any

import redispatch as rd

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform, ExpTransform, StickBreakingTransform
from .utils import broadcast_all, lazy_property


class Normal(ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    Density exp(-(x - loc)² / (2 scale²)) / (scale √(2π)) on the real numbers; `loc` and `scale` > 0 broadcast.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")
    _mean_carrier_measure = 0

    mean = mode = property(attrgetter("loc"))
    stddev = property(attrgetter("scale"))
    variance = property(lambda self: self.stddev.pow(2))

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with rd.no_grad():
            return rd.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = rd.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        variance = self.scale**2
        return -((value - self.loc) ** 2) / (2 * variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 0.5 * (1 + rd.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * rd.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + rd.log(self.scale)

    _natural_params = property(lambda self: (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return -0.25 * x.pow(2) / y + 0.5 * rd.log(-math.pi / y)


class LogNormal(TransformedDistribution):
    """exp of Normal(loc, scale): positive numbers whose logarithm is normal. `loc` and `scale` > 0 broadcast."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = ()

    loc, scale = property(attrgetter("base_dist.loc")), property(attrgetter("base_dist.scale"))
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.pow(2).expm1() * (2 * self.loc + self.scale.pow(2)).exp())

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Vectors of n probabilities, broken off a stick by n - 1 numbers of Normal(loc, scale).

    The last dimension of `loc` and `scale` > 0, which broadcast, has size n - 1; numbers stand for n = 2.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _parameters = ()

    loc, scale = property(attrgetter("base_dist.base_dist.loc")), property(attrgetter("base_dist.base_dist.scale"))

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base.expand([1]) if not base.batch_shape else base
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)


class Half(TransformedDistribution):
    """|x| for x of a family that is symmetric around 0: twice its density, from 0 on."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale = property(attrgetter("base_dist.scale"))
    mode = property(lambda self: rd.zeros_like(self.scale))

    def log_prob(self, value: Any) -> Any:
        value = rd.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        self._check(value)
        return rd.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """|x| for x of Normal(0, scale): density √2 exp(-x² / (2 scale²)) / (scale √π) for x ≥ 0. `scale` > 0."""

    _parameters = ()

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)


# --- MultivariateNormal: normal vectors with correlations -------------------------------------------------------------


def batch_mv(matrix: rd.Tensor, vector: rd.Tensor) -> rd.Tensor:
    """Multiplies each matrix `[..., n, n]` with its vector `[..., n]`."""
    return rd.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def half_log_det(factor: rd.Tensor) -> rd.Tensor:
    """Returns half of the logarithm of det L Lᵀ."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def squared_lengths(factor: rd.Tensor, columns: rd.Tensor) -> rd.Tensor:
    """Returns xᵀ (L Lᵀ)⁻¹ x of each column x, `[..., n, k]`, and lower triangle `[..., n, n]`; batches broadcast."""
    batch = rd.broadcast_shapes(factor.shape[:-2], columns.shape[:-2])
    whole = factor.expand(batch + factor.shape[-2:]), columns.expand(batch + columns.shape[-2:])
    return rd.linalg.solve_triangular(*whole, upper=False).pow(2).sum(-2)


def factor_of_precision(precision: rd.Tensor) -> rd.Tensor:
    """Returns the lower Cholesky factor of the inverse, found by way of the reversed matrix."""
    reversed_factor = rd.linalg.cholesky(rd.flip(precision, (-2, -1)))
    upper = rd.flip(reversed_factor, (-2, -1)).transpose(-2, -1)
    identity = rd.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return rd.linalg.solve_triangular(upper, identity, upper=False)


def _batch_mahalanobis(factor: rd.Tensor, x: rd.Tensor) -> rd.Tensor:
    """Returns xᵀ (L Lᵀ)⁻¹ x of vectors: PyTorch's name, as the two below."""
    return squared_lengths(factor, x.unsqueeze(-1)).squeeze(-1)


_batch_mv, _precision_to_scale_tril = batch_mv, factor_of_precision


def of_whole_batch(self: Any, matrix: Any) -> Any:
    """Expands matrices to the batch of a distribution."""
    return matrix.expand(self._batch_shape + self._event_shape[-1:] * 2)


class ByMatrix:
    """A family given by a covariance, a precision, or the lower Cholesky factor of the covariance.

    The others are computed when they are read.
    """

    _matrices = ("covariance_matrix", "precision_matrix", "scale_tril")
    _kept: tuple[str, ...] = ("_unbroadcasted_scale_tril",)

    scale_tril: Any = lazy_property(lambda self: of_whole_batch(self, self._unbroadcasted_scale_tril))
    covariance_matrix: Any = lazy_property(
        lambda self: of_whole_batch(self, rd.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))
    )
    precision_matrix: Any = lazy_property(
        lambda self: of_whole_batch(self, rd.cholesky_inverse(self._unbroadcasted_scale_tril))
    )

    def _one_of(self, error: type[Exception], *matrices: Any) -> tuple[str, Any]:
        """Returns the one that is given, and its name before it. Raises `error` for none and for several."""
        given = [(name, one) for name, one in zip(self._matrices, matrices, strict=True) if one is not None]
        if len(given) != 1:
            raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        return given[0]

    def _factorize(self, name: str, matrix: Any) -> None:
        """Sets the factor of the matrix that is given."""
        how = {"scale_tril": lambda it: it, "covariance_matrix": rd.linalg.cholesky}
        self._unbroadcasted_scale_tril = how.get(name, factor_of_precision)(matrix)


class NormalVectors(Distribution):
    """Normal vectors with mean `loc[..., n]`, whatever way their covariance Σ is given in.

    Subclasses give log det Σ / 2, the lengths xᵀ Σ⁻¹ x of columns, and columns whose outer products sum up to Σ.
    """

    support = constraints.real_vector
    has_rsample = True
    loc: Any

    mean = mode = property(attrgetter("loc"))

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        distance = self._lengths((value - self.loc).unsqueeze(-1)).squeeze(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> Any:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape)

    def _half_log_det(self) -> Any:
        raise NotImplementedError

    def _lengths(self, columns: Any) -> Any:
        raise NotImplementedError

    @property
    def _columns(self) -> Any:
        raise NotImplementedError


class MultivariateNormal(ByMatrix, NormalVectors):
    """Normal vectors with mean `loc[..., n]` and one of: covariance, precision, or lower Cholesky factor `[..., n, n]`.

    Density exp(-(x - loc)ᵀ Σ⁻¹ (x - loc) / 2) / √((2π)ⁿ det Σ), of real vectors with covariance Σ.
    Errors: ValueError for parameters with too few dimensions, and unless exactly one matrix is given.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    _parameters = ("loc", *ByMatrix._matrices)

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._one_of(ValueError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch, size = rd.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]), loc.shape[-1:]
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        self.loc = loc.expand(batch + size)
        super().__init__(batch, size, validate_args=validate_args)
        self._factorize(name, matrix)

    @property
    def variance(self) -> Any:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = rd.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, noise)

    def _half_log_det(self) -> Any:
        return half_log_det(self._unbroadcasted_scale_tril)

    def _lengths(self, columns: Any) -> Any:
        return squared_lengths(self._unbroadcasted_scale_tril, columns)

    _columns = property(attrgetter("_unbroadcasted_scale_tril"))


class LowRankMultivariateNormal(NormalVectors):
    """Normal vectors with mean `loc[..., n]` and covariance W Wᵀ + diag(d).

    W is `cov_factor[..., n, m]`, d is `cov_diag[..., n]`.
    Its density takes matrices of m rows alone. Source: Woodbury's identity, and the lemma on determinants beside it.
    Errors: ValueError for parameters with too few dimensions, or whose shapes do not belong together.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    _parameters = ("loc", "cov_factor", "cov_diag")
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        size = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size[0]} x m")
        if cov_diag.shape[-1:] != size:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {size}")
        batches = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        try:
            batch = rd.broadcast_shapes(*batches)
        except RuntimeError as problem:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from problem
        self.loc = loc.expand(batch + size)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch + size)
        super().__init__(batch, size, validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        weighted = cov_factor.mT / cov_diag.unsqueeze(-2)
        identity = rd.eye(cov_factor.shape[-1], dtype=cov_factor.dtype, device=cov_factor.device)
        self._capacitance_tril = rd.linalg.cholesky(identity + rd.matmul(weighted, cov_factor))

    @lazy_property
    def scale_tril(self) -> Any:
        root = self._unbroadcasted_cov_diag.sqrt()
        scaled = self._unbroadcasted_cov_factor / root.unsqueeze(-1)
        identity = rd.eye(self._event_shape[0], dtype=root.dtype, device=root.device)
        factor = rd.linalg.cholesky(identity + rd.matmul(scaled, scaled.mT))
        return of_whole_batch(self, root.unsqueeze(-1) * factor)

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_cov_factor
        return of_whole_batch(self, rd.matmul(factor, factor.mT) + rd.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Any:
        weighted = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = rd.linalg.solve_triangular(self._capacitance_tril, weighted, upper=False)
        inverse = rd.diag_embed(self._unbroadcasted_cov_diag.reciprocal())
        return of_whole_batch(self, inverse - rd.matmul(solved.mT, solved))

    @lazy_property
    def variance(self) -> Any:
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        common = rd.randn(shape[:-1] + self.cov_factor.shape[-1:], **like)
        own = rd.randn(shape, **like)
        spread = self._unbroadcasted_cov_diag.sqrt() * own
        return self.loc + batch_mv(self._unbroadcasted_cov_factor, common) + spread

    def _half_log_det(self) -> Any:
        return half_log_det(self._capacitance_tril) + 0.5 * self._unbroadcasted_cov_diag.log().sum(-1)

    def _lengths(self, columns: Any) -> Any:
        weighted = columns / self._unbroadcasted_cov_diag.unsqueeze(-1)
        along = rd.matmul(self._unbroadcasted_cov_factor.mT, weighted)
        return (columns * weighted).sum(-2) - squared_lengths(self._capacitance_tril, along)

    @property
    def _columns(self) -> Any:
        return rd.cat([self.cov_factor, rd.diag_embed(self.cov_diag.sqrt())], -1)
