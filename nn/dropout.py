"""Dropout."""

from __future__ import annotations

from typing import Any

from . import functional
from .module import Module


class Dropout(Module):
    """In training, zeros a share `p` of the elements, chosen anew in each call, and scales the others by 1 / (1 - p).

    In evaluation, its input. Errors: ValueError for a `p` outside [0, 1].
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return functional.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
