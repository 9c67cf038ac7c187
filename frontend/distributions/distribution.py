"""Distribution: what all families have in common: shapes, checks of arguments, and the names of their quantities.

A sample has the shape `sample_shape + batch_shape + event_shape`: independent draws, independent parameters, and the
dimensions of one value. `log_prob` gives a number for each value. Read next: normal.py, the plainest family.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import redispatch as rd

from . import constraints
from .utils import lazy_property


class Distribution:
    """A probability distribution, or a batch of them.

    Subclasses give `arg_constraints` (parameter -> constraint), `support`, `log_prob`, and `rsample` or `sample`.
    validate_args: whether arguments are checked, where it is given; otherwise `set_default_validate_args` says so.
    Errors: ValueError for parameters and values that are outside of their constraints.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _parameters: tuple[str, ...]  # of a family whose `expand` expands each of them

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Says whether arguments are checked from now on. ValueError for what is no bool."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = rd.Size(batch_shape), rd.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue  # it can only be checked once the distribution is made
            if name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # it follows from another parameter
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with its batch expanded to `batch_shape`.

        Errors: NotImplementedError where a subclass changes `__init__`, but not `expand`.
        """
        family = next((cls for cls in type(self).__mro__ if "_parameters" in vars(cls)), None)
        if family is None:
            raise NotImplementedError
        new, shape = self._get_checked_instance(family, _instance), rd.Size(batch_shape)
        for name in self._parameters:
            if name in vars(self):
                value = vars(self)[name]
                setattr(new, name, value.expand(shape + value.shape[len(self._batch_shape) :]))
        Distribution.__init__(new, shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> rd.Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> rd.Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """parameter -> constraint."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of the values."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Values drawn, of shape `sample_shape + batch_shape + event_shape`; nothing is differentiated."""
        with rd.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Values drawn as a function of the parameters that can be differentiated (`has_rsample`)."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """`sample((n,))`, by its former name."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample(rd.Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of what is not above `value`."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The value whose `cdf` is `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution along a new first dimension; expanded over the batch, or not."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy in nats, of shape `batch_shape`."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        return rd.exp(self.entropy())

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> rd.Size:
        """The shape of a sample."""
        return rd.Size(sample_shape) + self._batch_shape + self._event_shape

    def _values(self, values: rd.Tensor, expand: bool) -> rd.Tensor:
        """Values along the first dimension, as `enumerate_support` gives them."""
        values = values.view((-1,) + (1,) * len(self._batch_shape) + self._event_shape)
        return values.expand((-1,) + self._batch_shape + self._event_shape) if expand else values

    def _validate_sample(self, value: Any) -> None:
        """Whether `value` has a fitting shape and is in the support. ValueError where it is not."""
        if not isinstance(value, rd.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        split = len(value.size()) - len(self._event_shape)
        if value.size()[split:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for given, own in zip(reversed(value.size()), reversed(expected), strict=False):
            if given != 1 and own != 1 and given != own:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """An empty object of this class. NotImplementedError where a subclass changes __init__, but not `expand`."""
        own: Any = type(self)
        if _instance is None and own.__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in vars(self)]
        shown = (
            f"{name}: {vars(self)[name] if vars(self)[name].numel() == 1 else vars(self)[name].size()}"
            for name in names
        )
        return f"{type(self).__name__}({', '.join(shown)})"
