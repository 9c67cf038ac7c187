"""Dropout as modules: they leave out elements, or whole channels, in training only.

Each takes the probability `p` of leaving out, and `inplace`, which writes over the input; what becomes of the rest says
dropouts.py. Errors: ValueError for a `p` outside [0, 1].
"""

from __future__ import annotations

from typing import Any

from . import functional
from .module import Module


class _Dropout(Module):
    """What they have in common."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, zeros a share `p` of the elements, chosen anew in each call, and scales the others by 1 / (1 - p).

    In evaluation, its input.
    """

    def forward(self, input: Any) -> Any:
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Zeros whole channels of [batch, channels, length], or of the same without a batch dimension."""

    def forward(self, input: Any) -> Any:
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Zeros whole channels of [batch, channels, height, width]."""

    def forward(self, input: Any) -> Any:
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Zeros whole channels of [batch, channels, depth, height, width], or of the same without a batch dimension."""

    def forward(self, input: Any) -> Any:
        return functional.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout behind SELU: what is left out becomes its lowest value; mean and variance stay."""

    def forward(self, input: Any) -> Any:
        return functional.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels, the second dimension."""

    def forward(self, input: Any) -> Any:
        return functional.feature_alpha_dropout(input, self.p, self.training, self.inplace)
