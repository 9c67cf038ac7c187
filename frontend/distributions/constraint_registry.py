"""Which transform leads from the real numbers to a constraint: `biject_to`, one to one; `transform_to`, plain ones.

    transform_to(constraints.positive)(x)       # positive, whatever x is

An optimizer moves an unconstrained x. Read next: transforms.py.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from . import constraints, transforms


class ConstraintRegistry:
    """Class of constraint -> what makes the transform of one. Call it with a constraint to get the transform."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Says which transform leads to constraints of this class; a decorator where `factory` is not given.

        Errors: TypeError for what is neither a constraint nor a class of them.
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
        """The transform to a constraint. NotImplementedError for one of a class that is not registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def both(constraint: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Registers one transform with both."""

    def register(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        biject_to.register(constraint, factory)
        return transform_to.register(constraint, factory)

    return register


@both(constraints.real)
def real(constraint: Any) -> Any:
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def independent_bijection(constraint: Any) -> Any:
    return transforms.IndependentTransform(biject_to(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def independent(constraint: Any) -> Any:
    return transforms.IndependentTransform(
        transform_to(constraint.base_constraint), constraint.reinterpreted_batch_ndims
    )


@both(constraints.positive)
@both(constraints.nonnegative)
def positive(constraint: Any) -> Any:
    return transforms.ExpTransform()


@both(constraints.greater_than)
@both(constraints.greater_than_eq)
def greater_than(constraint: Any) -> Any:
    rising = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), rising])


@both(constraints.less_than)
def less_than(constraint: Any) -> Any:
    falling = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), falling])


@both(constraints.interval)
@both(constraints.half_open_interval)
def interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def simplex_bijection(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


@both(constraints.corr_cholesky)
def corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.cat)
def cat_bijection(constraint: Any) -> Any:
    return transforms.CatTransform([biject_to(one) for one in constraint.cseq], constraint.dim, constraint.lengths)


@transform_to.register(constraints.cat)
def cat(constraint: Any) -> Any:
    return transforms.CatTransform([transform_to(one) for one in constraint.cseq], constraint.dim, constraint.lengths)


@biject_to.register(constraints.stack)
def stack_bijection(constraint: Any) -> Any:
    return transforms.StackTransform([biject_to(one) for one in constraint.cseq], constraint.dim)


@transform_to.register(constraints.stack)
def stack(constraint: Any) -> Any:
    return transforms.StackTransform([transform_to(one) for one in constraint.cseq], constraint.dim)
