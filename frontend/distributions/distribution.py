"""Distribution: what all families have in common: shapes, checks of arguments, and the names of their quantities.

A sample has the shape `sample_shape + batch_shape + event_shape`: independent draws, independent parameters, and the
dimensions of one value. `log_prob` gives a number for each value. ExponentialFamily adds what follows from a log
normaliser. Read next: normal.py, the plainest family.
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
    _parameters: tuple[str, ...]  # the attributes that `expand` expands; a class that names them is a family
    _kept: tuple[str, ...] = ()  # the attributes that `expand` hands on as they are

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether arguments are checked from now on. ValueError for a value that is not a bool."""
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
        """Returns the same distribution with its batch expanded to `batch_shape`.

        Errors: NotImplementedError where a subclass changes `__init__`, but not `expand`.
        """
        family = next((cls for cls in type(self).__mro__ if "_parameters" in vars(cls)), None)
        if family is None:
            raise NotImplementedError
        new, shape = self._get_checked_instance(family, _instance), rd.Size(batch_shape)
        for name in self._parameters:
            if name in vars(self):
                value = vars(self)[name]
                more = () if isinstance(value, Distribution) else value.shape[len(self._batch_shape) :]
                setattr(new, name, value.expand(shape + more))
        vars(new).update({name: vars(self)[name] for name in self._kept})
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
        """The mean, of the shape of one sample."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most probable value, of the shape of one sample."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance of each element, of the shape of one sample."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws values of shape `sample_shape + batch_shape + event_shape`, without gradients."""
        with rd.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Draws values as a differentiable function of the parameters, where `has_rsample`."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """Returns `sample((n,))`: its former name."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample(rd.Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """Returns the logarithm of the density, or of the probability, at `value`; one number for each value."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """Returns the probability of values up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """Returns the value whose `cdf` is `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """Returns all values of a discrete distribution along a new first dimension, expanded over the batch or not."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """Returns the entropy in nats, of shape `batch_shape`."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """Returns exp of the entropy."""
        return rd.exp(self.entropy())

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> rd.Size:
        """Returns the shape of a sample."""
        return rd.Size(sample_shape) + self._batch_shape + self._event_shape

    def _values(self, values: rd.Tensor, expand: bool) -> rd.Tensor:
        """Returns values along the first dimension, as `enumerate_support` does."""
        values = values.view((-1,) + (1,) * len(self._batch_shape) + self._event_shape)
        return values.expand((-1,) + self._batch_shape + self._event_shape) if expand else values

    def _filled(self, number: float, like: Any) -> rd.Tensor:
        """Returns one number everywhere, in the shape of one sample: a moment that no parameter changes."""
        return rd.full(self._extended_shape(), number, dtype=like.dtype, device=like.device)

    def _check(self, value: Any) -> None:
        """Validates a value, unless checks are off."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Raises ValueError for a value whose shape does not fit, or that is outside of the support."""
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
        """Returns an empty object of this class. NotImplementedError for a subclass with its own __init__ only."""
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


class ExponentialFamily(Distribution):
    """A family of densities exp(η·T(x) - A(η)) h(x), whose entropy follows from the log normaliser A.

    A subclass gives its natural parameters η, A, and the mean of log h.
    Source: Banerjee et al., Clustering with Bregman divergences, 2005.
    """

    @property
    def _natural_params(self) -> Any:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def _means(self) -> tuple[Any, list[tuple[Any, Any]]]:
        """Returns A(η), and each parameter with the mean of its T."""
        natural = [one.detach().requires_grad_() for one in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        slopes = rd.autograd.grad(normalizer.sum(), natural, create_graph=True)
        return normalizer, list(zip(natural, slopes, strict=True))

    def entropy(self) -> Any:
        """Returns A(η) - η·∇A(η) - E log h, as ∇A(η) is the mean of T."""
        normalizer, pairs = self._means()
        result = normalizer - self._mean_carrier_measure
        for parameter, slope in pairs:
            result = result - (parameter * slope).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
