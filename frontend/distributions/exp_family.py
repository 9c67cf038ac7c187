"""Exponential families: densities exp(η·T(x) - A(η)) h(x), whose entropy follows from the log normaliser A.

Source: Banerjee et al., Clustering with Bregman divergences, 2005. Read next: kl.py, which uses the same.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd

from .distribution import Distribution


class ExponentialFamily(Distribution):
    """A family that gives its natural parameters η, its log normaliser A, and the mean of log h."""

    @property
    def _natural_params(self) -> tuple[rd.Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        """A(η) - η·∇A(η) - E log h, as ∇A(η) is the mean of T."""
        natural = [one.detach().requires_grad_() for one in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        slopes = rd.autograd.grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, slope in zip(natural, slopes, strict=True):
            result = result - (parameter * slope).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
