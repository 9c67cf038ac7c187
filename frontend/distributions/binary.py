"""What families of chances share: `probs` or `logits`, and the other one of them when it is asked for.

Read next: bernoulli.py.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd

from .utils import lazy_property, logits_to_probs, probs_to_logits


class ByProbsOrLogits:
    """A family given by probabilities or by logits."""

    _binary = True  # logits are log-odds; otherwise logarithms of probabilities along the last dimension
    logits: Any = lazy_property(lambda self: probs_to_logits(self.probs, self._binary))
    probs: Any = lazy_property(lambda self: logits_to_probs(self.logits, self._binary))

    @property
    def _param(self) -> rd.Tensor:
        """The one that was given."""
        return vars(self)["probs"] if "probs" in vars(self) else vars(self)["logits"]

    def _new(self, *args: Any, **kwargs: Any) -> rd.Tensor:
        return self._param.new(*args, **kwargs)


def one_of(probs: Any, logits: Any) -> Any:
    """The one that is given. ValueError for both or neither."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return logits if probs is None else probs
