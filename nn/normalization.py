"""LayerNorm."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from redispatch.ops import creation

from . import functional, init
from .module import Module
from .parameter import Parameter


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, where the mean is over the last dimensions.

    Shapes: (..., *normalized_shape) -> the same; `weight` and `bias` have the shape `normalized_shape` and start as
    ones and zeros. Without `elementwise_affine` there is neither, without `bias` no bias.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            (int(normalized_shape),) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)  # type: ignore[arg-type]  # an Integral is an int
        )
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            values = creation.empty(self.normalized_shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight to ones and bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Any) -> Any:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )
