"""Normalisation by the activity of channels around one."""

from __future__ import annotations

from typing import Any

from redispatch.kernels.ops import creation

from . import functional
from .module import Module


class _ResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """x / (k + alpha * the mean of the squares of `size` channels around each) ** beta."""

    def forward(self, input: Any) -> Any:
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ResponseNorm):
    """The older form of the same, for images (n, channels, height, width).

    Its windows reach as far forward as back, and the first channel, once in a window, is in all that follow. That is
    PyTorch's rule, which networks were trained with.
    Errors: ValueError for another number of dimensions.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Any) -> Any:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels = input.size(1)
        reach = int((self.size - 1) / 2 + 1)
        counted = creation.zeros((channels, channels), dtype=input.dtype, device=input.device)
        for c in range(channels):
            counted[c, max(c - reach + 1, 0) : c + reach] = 1
            counted[c, 0] = 1
        sums = counted.matmul((input * input).flatten(2)).view(input.shape)
        return input * (sums * (self.alpha / self.size) + self.k) ** -self.beta
