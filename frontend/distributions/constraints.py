"""Constraints: regions that the parameters and the values of a distribution lie in, and how to check that they do.

    constraints.positive.check(x)     # a bool for each element; for each vector or matrix where `event_dim` says so

`is_discrete`: whether the region is one of integers. `event_dim`: how many dimensions from the right belong to one
value. Lower-case names are the constraints themselves, or make them. Read next: constraint_registry.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import redispatch as rd
from redispatch import _names


class Constraint:
    """A region. Subclasses override `check`."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Returns which values lie inside: a bool tensor of `value`'s shape without its last `event_dim` dimensions."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class _Dependent(Constraint):
    """A region that is known only once the other parameters are."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    is_discrete = property(lambda self: self._known("is_discrete", self._is_discrete))
    event_dim = property(lambda self: self._known("event_dim", self._event_dim))

    def _known(self, name: str, value: Any) -> Any:
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Returns whether a constraint is known only of instances."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives an instance's constraint, and of the class stands for a dependent one."""

    def __init__(self, fn: Any = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Constraint]) -> _DependentProperty:  # type: ignore[override]  # another signature than the base class, as PyTorch's
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """A region in which all of the last dimensions must lie."""

    is_discrete = property(attrgetter("base_constraint.is_discrete"))
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        inside = self.base_constraint.check(value)
        more = self.reinterpreted_batch_ndims
        if inside.dim() < more:
            expected = self.base_constraint.event_dim + more
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return inside.reshape(inside.shape[: inside.dim() - more] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of each component of a mixture; a value is compared with all of them."""

    is_discrete = property(attrgetter("base_constraint.is_discrete"))
    event_dim = property(attrgetter("base_constraint.event_dim"))

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    def check(self, value: Any) -> Any:
        inside = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return inside.reshape(inside.shape[: value.dim() - self.event_dim] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


# --- numbers ----------------------------------------------------------------------------------------------------------


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    """Any number but nan."""

    def check(self, value: Any) -> Any:
        return value == value


class _Bounded(Constraint):
    """Numbers on one side of a bound, or between two; the names of the bounds are those of the attributes."""

    def __init__(self, **bounds: Any) -> None:
        vars(self).update(bounds)
        self._bounds = bounds

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({', '.join(f'{name}={bound}' for name, bound in self._bounds.items())})"


class _GreaterThan(_Bounded):
    lower_bound: Any

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    upper_bound: Any

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Bounded):
    lower_bound: Any
    upper_bound: Any

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_GreaterThan):
    """Integers from a bound on."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


# --- vectors ----------------------------------------------------------------------------------------------------------


class _Simplex(Constraint):
    """Vectors of non-negative numbers whose sum is 1, up to 1e-6."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    """Vectors of zeros and one 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Multinomial(Constraint):
    """Vectors of counts; their sum, where numbers of trials differ, is not checked to be less."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(dim=-1) & (value.sum(dim=-1) <= self.upper_bound)


# --- matrices ---------------------------------------------------------------------------------------------------------


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).view(value.shape[:-2] + (-1,)).min(-1)[0]


class _LowerCholesky(_LowerTriangular):
    """Lower triangular, with a positive diagonal."""

    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]


class _CorrCholesky(_LowerCholesky):
    """A lower Cholesky factor whose rows have length 1: that of a correlation matrix."""

    def check(self, value: Any) -> Any:
        tolerance = rd.finfo(value.dtype).eps * value.size(-1) * 10
        unit = (rd.linalg.norm(value.detach(), dim=-1) - 1).abs().le(tolerance).all(dim=-1)
        return super().check(value) & unit


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return rd.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=rd.bool, device=value.device)


class _Symmetric(_Square):
    """Square and equal to its transpose, up to 1e-6."""

    def check(self, value: Any) -> Any:
        square = super().check(value)
        return square if not square.all() else rd.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return symmetric if not symmetric.all() else rd.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return symmetric if not symmetric.all() else rd.linalg.cholesky_ex(value).info.eq(0)


# --- several ----------------------------------------------------------------------------------------------------------


class _Several(Constraint):
    """Constraints for parts of a value along one dimension."""

    is_discrete = property(lambda self: any(one.is_discrete for one in self.cseq))
    event_dim = property(lambda self: max(one.event_dim for one in self.cseq))

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(one, Constraint) for one in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    def _check_dim(self, value: Any) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Several):
    """One constraint after another; `lengths` says how many elements each has."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        parts, start = [], 0
        for one, length in zip(self.cseq, self.lengths, strict=True):
            parts.append(one.check(value.narrow(self.dim, start, length)))
            start += length
        return rd.cat(parts, self.dim)


class _Stack(_Several):
    """One constraint for each slice."""

    @property
    def event_dim(self) -> int:
        own = super().event_dim
        return own + 1 if self.dim + own < 0 else own  # the slices belong to one value

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        slices = (value.select(self.dim, i) for i in range(value.size(self.dim)))
        return rd.stack([one.check(part) for part, one in zip(slices, self.cseq, strict=True)], self.dim)


dependent: Constraint = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean: Constraint = _Boolean()
one_hot: Constraint = _OneHot()
nonnegative_integer: Constraint = _IntegerGreaterThan(0)
positive_integer: Constraint = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real: Constraint = _Real()
real_vector: Constraint = independent(real, 1)
positive: Constraint = _GreaterThan(0.0)
nonnegative: Constraint = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval: Constraint = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex: Constraint = _Simplex()
lower_triangular: Constraint = _LowerTriangular()
lower_cholesky: Constraint = _LowerCholesky()
corr_cholesky: Constraint = _CorrCholesky()
square: Constraint = _Square()
symmetric: Constraint = _Symmetric()
positive_semidefinite: Constraint = _PositiveSemidefinite()
positive_definite: Constraint = _PositiveDefinite()
cat = _Cat
stack = _Stack

__all__ = _names.own(globals())
