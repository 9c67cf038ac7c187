"""Transforms from the real numbers to a constraint: `biject_to`, one to one; `transform_to`, plain ones.

    transform_to(constraints.positive)(x)       # positive, whatever x is

An optimizer moves an unconstrained x. Read next: transforms.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Number
from typing import Any

from . import constraints, transforms


class ConstraintRegistry:
    """Class of constraint -> maker of the transform to one. Call it with a constraint to get the transform."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Registers the transform to constraints of this class; a decorator where `factory` is not given.

        Errors: TypeError for an argument that is neither a constraint nor a class of them.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Returns the transform to a constraint. NotImplementedError for one of a class that is not registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def interval(low: Any, high: Any) -> Any:
    """Returns the transform to what lies between two bounds."""
    if isinstance(low, Number) and isinstance(high, Number) and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def exp_then(loc: Any, scale: int) -> Any:
    """Returns the transform to one side of a bound."""
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(loc, scale)])


# region -> the transform of one of its class; `to` is the registry, for the parts of a region
BOTH: list[tuple[Any, Callable[..., Any]]] = [
    (constraints.real, lambda c, to: transforms.identity_transform),
    (
        constraints.independent,
        lambda c, to: transforms.IndependentTransform(to(c.base_constraint), c.reinterpreted_batch_ndims),
    ),
    (constraints.positive, lambda c, to: transforms.ExpTransform()),
    (constraints.nonnegative, lambda c, to: transforms.ExpTransform()),
    (constraints.greater_than, lambda c, to: exp_then(c.lower_bound, 1)),
    (constraints.greater_than_eq, lambda c, to: exp_then(c.lower_bound, 1)),
    (constraints.less_than, lambda c, to: exp_then(c.upper_bound, -1)),
    (constraints.interval, lambda c, to: interval(c.lower_bound, c.upper_bound)),
    (constraints.half_open_interval, lambda c, to: interval(c.lower_bound, c.upper_bound)),
    (constraints.corr_cholesky, lambda c, to: transforms.CorrCholeskyTransform()),
    (constraints.cat, lambda c, to: transforms.CatTransform([to(one) for one in c.cseq], c.dim, c.lengths)),
    (constraints.stack, lambda c, to: transforms.StackTransform([to(one) for one in c.cseq], c.dim)),
]
for _registry in (biject_to, transform_to):
    for _region, _make in BOTH:
        _registry.register(_region, partial(_make, to=_registry))

biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform())
