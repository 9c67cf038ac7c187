"""Transforms: functions with an inverse and a known log |det J|, by which distributions are made of others.

    y = ExpTransform()(x);  x = ExpTransform().inv(y);  ExpTransform().log_abs_det_jacobian(x, y)

A transform says from which constraint (`domain`) to which (`codomain`) it goes. With `cache_size=1` it remembers its
last pair, so that `inv(t(x))` is `x` itself. Read next: transformed_distribution.py.
"""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Sequence
from numbers import Number
from operator import attrgetter
from typing import Any

import redispatch as rd
from redispatch import _names
from redispatch.nn import functional as F

from . import constraints
from .utils import broadcast_all, sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix


class Transform:
    """A function with an inverse. Subclasses give `_call`, `_inverse` and `log_abs_det_jacobian`.

    cache_size: 0, or 1 to remember the last pair. `sign`: +1 or -1, whether an elementwise one rises or falls.
    Errors: ValueError for another cache size.
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    _arguments: tuple[str, ...]  # the attributes that `__init__` is given; a class that names them is a family

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None  # weak: the inverse holds on to its transform
        self._cached_x_y: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_inv": None}

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse transform; its inverse is this one."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """Returns the same transform with another cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        family = _family(self)
        if family is None:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        return family(*(getattr(self, name) for name in self._arguments), cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, x: Any) -> Any:
        if self._cache_size == 0:
            return self._call(x)
        known, result = self._cached_x_y
        if x is known:
            return result
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        result, known = self._cached_x_y
        if y is known:
            return result
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns log |dy/dx| for each value; y is the transform of x."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Returns the shape of the transform of values of this shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Returns the shape of the values whose transforms have this shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """A transform the other way round; it has no cache of its own."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Any = transform

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    domain, codomain = property(attrgetter("_inv.codomain")), property(attrgetter("_inv.domain"))
    bijective, sign = property(attrgetter("_inv.bijective")), property(attrgetter("_inv.sign"))
    inv = property(attrgetter("_inv"))

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


def _family(transform: object) -> Any:
    """Returns the nearest class that names its arguments."""
    return next((cls for cls in type(transform).__mro__ if "_arguments" in vars(cls)), None)


def _alike(a: Any, b: Any) -> bool:
    return bool(a == b) if isinstance(a, Number) and isinstance(b, Number) else bool((a == b).all().item())


class _Comparable(Transform):
    """A transform that is equal to those of its family with equal arguments."""

    def __eq__(self, other: object) -> bool:
        return _family(self) is _family(other) and all(
            _alike(getattr(self, name), getattr(other, name)) for name in self._arguments if name != "event_dim"
        )

    __hash__ = Transform.__hash__


def _at_least(dims: int, shape: Sequence[int]) -> None:
    """Raises ValueError for a shape with fewer dimensions."""
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")


# --- of others --------------------------------------------------------------------------------------------------------


class ComposeTransform(Transform):
    """One transform after another, the first of `parts` first."""

    _arguments = ("parts",)

    domain = property(lambda self: self._end(self.parts, "domain", "codomain"))
    codomain = property(lambda self: self._end(self.parts[::-1], "codomain", "domain"))
    bijective = property(lambda self: all(part.bijective for part in self.parts))
    sign = property(lambda self: math.prod(part.sign for part in self.parts))

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        super().__init__(cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def _end(self, parts: Sequence[Any], at: str, back: str) -> Any:
        """Returns the constraint at one end, with the event dimensions that any part along the way needs."""
        if not parts:
            return constraints.real
        end = getattr(parts[0], at)
        event_dim = getattr(parts[-1], back).event_dim
        for part in reversed(parts):
            near, far = getattr(part, at).event_dim, getattr(part, back).event_dim
            event_dim = max(event_dim + near - far, near)
        return constraints.independent(end, event_dim - end.event_dim) if event_dim > end.event_dim else end

    @property
    def inv(self) -> Any:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv, inverse._inv = weakref.ref(inverse), weakref.ref(self)
        return inverse

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns the sum over the parts, each summed over the event dimensions that it does not have itself."""
        if not self.parts:
            return rd.zeros_like(x)
        path = [x]
        for part in self.parts[:-1]:
            path.append(part(path[-1]))
        path.append(y)
        terms, event_dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, path, path[1:], strict=False):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        lines = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {lines}\n)"


identity_transform: Transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last `reinterpreted_batch_ndims` dimensions are one value.

    Errors: ValueError for values with fewer dimensions.
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)
    )
    bijective, sign = property(attrgetter("base_transform.bijective")), property(attrgetter("base_transform.sign"))

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _call(self, x: Any) -> Any:
        _at_least(self.domain.event_dim, x.shape)
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        _at_least(self.codomain.event_dim, y.shape)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _Parts(Transform):
    """Transforms of parts of a value along one dimension. A subclass splits a value into them and joins them."""

    bijective = property(lambda self: all(one.bijective for one in self.transforms))
    domain = constraints.dependent_property(lambda self: self._region([one.domain for one in self.transforms]))
    codomain = constraints.dependent_property(lambda self: self._region([one.codomain for one in self.transforms]))
    _region: Any
    _each: Any
    _join: Any

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(one, Transform) for one in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = [one.with_cache(cache_size) if cache_size else one for one in tseq], dim

    def _call(self, x: Any) -> Any:
        return self._join([one(part) for one, part in zip(self.transforms, self._each(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._join([one.inv(part) for one, part in zip(self.transforms, self._each(y), strict=True)])

    def _slopes(self, x: Any, y: Any) -> list[Any]:
        parts = zip(self.transforms, self._each(x), self._each(y), strict=True)
        return [one.log_abs_det_jacobian(before, after) for one, before, after in parts]


class CatTransform(_Parts):
    """Transforms of parts that follow one another along `dim`, of these `lengths`."""

    _arguments = ("transforms", "dim", "lengths")

    event_dim = property(lambda self: max(one.event_dim for one in self.transforms))
    length = property(lambda self: sum(self.lengths))

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match tseq ({len(self.transforms)})")

    def _region(self, regions: Sequence[Any]) -> Any:
        return constraints.cat(regions, self.dim, self.lengths)

    def _each(self, value: Any) -> Sequence[Any]:
        return value.split(self.lengths, self.dim)

    def _join(self, parts: list[Any]) -> Any:
        return rd.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns that of each part, summed over one value of the widest; the sum of all where that covers `dim`."""
        slopes = zip(self.transforms, self._slopes(x, y), strict=True)
        terms = [sum_rightmost(slope, self.event_dim - one.event_dim) for one, slope in slopes]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return rd.cat(terms, dim=dim) if dim < 0 else sum(terms)


class StackTransform(_Parts):
    """Transforms of the slices along `dim`."""

    _arguments = ("transforms", "dim")

    def _region(self, regions: Sequence[Any]) -> Any:
        return constraints.stack(regions, self.dim)

    def _each(self, value: Any) -> Sequence[Any]:
        return value.unbind(self.dim)

    def _join(self, parts: list[Any]) -> Any:
        return rd.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self._join(self._slopes(x, y))


# --- of each element --------------------------------------------------------------------------------------------------


class _Rising(_Comparable):
    """An elementwise transform without parameters that rises."""

    domain = constraints.real
    bijective = True
    sign = +1


class ExpTransform(_Rising):
    """y = exp(x)"""

    codomain = constraints.positive
    _arguments = ()

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


def _clipped_sigmoid(x: Any) -> Any:
    """Returns the sigmoid within the open interval between 0 and 1."""
    limits = rd.finfo(x.dtype)
    return rd.clamp(rd.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_Rising):
    """y = 1 / (1 + exp(-x)), kept within the open interval."""

    codomain = constraints.unit_interval
    _arguments = ()

    def _call(self, x: Any) -> Any:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        limits = rd.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Rising):
    """y = log(1 + exp(x))"""

    codomain = constraints.positive
    _arguments = ()

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x)


class TanhTransform(_Rising):
    """y = tanh(x)"""

    codomain = constraints.interval(-1.0, 1.0)
    _arguments = ()

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return rd.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Returns log (1 - tanh² x), in a form that is exact for large x, too."""
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(_Comparable):
    """y = |x|; the inverse returns the x that is not negative."""

    domain = constraints.real
    codomain = constraints.positive
    _arguments = ()

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class PowerTransform(_Comparable):
    """y = x^exponent, of positive numbers; `exponent` broadcasts with them."""

    domain = codomain = constraints.positive
    bijective = True
    _arguments = ("exponent",)

    sign = property(lambda self: self.exponent.sign())

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return rd.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class AffineTransform(_Comparable):
    """y = loc + scale x; both broadcast with x. event_dim: how many dimensions are one value."""

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    event_dim = property(attrgetter("_event_dim"))
    domain = codomain = constraints.dependent_property(
        lambda self: constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real,
        is_discrete=False,
    )

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Number):
            return 1 if float(self.scale) > 0 else -1 if float(self.scale) < 0 else 0  # type: ignore[arg-type]  # of the right type, which mypy cannot tell
        return self.scale.sign()

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, Number):
            result = rd.full_like(x, math.log(abs(self.scale)))  # type: ignore[arg-type]  # of the right type, which mypy cannot tell
        else:
            result = rd.abs(self.scale).log()
        return sum_rightmost(result, self.event_dim).expand(x.shape[: x.dim() - self.event_dim])

    def forward_shape(self, shape: Any) -> Any:
        return rd.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = the `cdf` of a distribution at x."""

    codomain = constraints.unit_interval
    bijective = True
    sign = +1
    _arguments = ("distribution",)

    domain = property(attrgetter("distribution.support"))

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)


# --- of vectors and matrices ------------------------------------------------------------------------------------------


class ReshapeTransform(Transform):
    """The last dimensions, of shape `in_shape`, in the shape `out_shape`. ValueError for another number of elements."""

    bijective = True
    _arguments = ("in_shape", "out_shape")

    domain = constraints.dependent_property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = constraints.dependent_property(
        lambda self: constraints.independent(constraints.real, len(self.out_shape))
    )

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = rd.Size(in_shape), rd.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    def _call(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return rd.zeros(x.shape[: x.dim() - len(self.in_shape)], dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Any) -> Any:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _exchanged(shape: Any, old: Any, new: Any) -> Any:
        _at_least(len(old), shape)
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new


class SoftmaxTransform(_Comparable):
    """y = exp(x) over its sum; the inverse returns one of the vectors that it comes from."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    _arguments = ()

    def _call(self, x: Any) -> Any:
        return F.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _at_least(1, shape)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Comparable):
    """From vectors of n - 1 numbers to n probabilities: each takes its share of what is left of a stick of length 1."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True
    _arguments = ()

    @staticmethod
    def _left(values: Any) -> Any:
        """Returns how many pieces are left to be broken off, at each place."""
        return values.shape[-1] + 1 - values.new_ones(values.shape[-1]).cumsum(-1)

    def _call(self, x: Any) -> Any:
        share = SigmoidTransform()(x - self._left(x).log())
        rest = (1 - share).cumprod(-1)
        return F.pad(share, [0, 1], value=1) * F.pad(rest, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        pieces = y[..., :-1]
        rest = rd.clamp(1 - pieces.cumsum(-1), min=rd.finfo(y.dtype).tiny)
        return pieces.log() - rest.log() + self._left(pieces).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._left(x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _at_least(1, shape)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        _at_least(1, shape)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Comparable):
    """From matrices to lower triangles with a positive diagonal, which is the exponential of the matrix's."""

    domain = constraints.independent(constraints.real, 2)
    codomain: Any = constraints.lower_cholesky
    _arguments = ()

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(LowerCholeskyTransform):
    """From matrices to positive definite ones: the lower triangle times its transpose."""

    codomain = constraints.positive_definite
    _arguments = ()

    def _call(self, x: Any) -> Any:
        factor = super()._call(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return super()._inverse(rd.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """From vectors of n (n - 1) / 2 numbers to Cholesky factors of n x n correlation matrices.

    tanh of each is a partial correlation; along a row each takes its share of what is left of the length 1.
    Source: Lewandowski, Kurowicka, Joe, Generating random correlation matrices, 2009.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = rd.finfo(x.dtype).eps
        r = vec_to_tril_matrix(rd.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r**2).sqrt().cumprod(-1)
        r = r + rd.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        rest = F.pad((1 - rd.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        rest = 1 - (y * y).cumsum(dim=-1)
        columns = 0.5 * tril_matrix_to_vec(rest, diag=-2).log().sum(-1)
        return columns - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape: Any) -> Any:
        _at_least(1, shape)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (size, size)

    def inverse_shape(self, shape: Any) -> Any:
        _at_least(2, shape)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


__all__ = _names.own(globals())
