"""Gradients of convolutions by themselves: with respect to the input, of its size, or to the weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.kernels.ops import creation

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def gradient(dims: int, which: int) -> Callable[..., Any]:
    """Returns the function for one of the two, `which` place among the arguments of a convolution."""
    name = f"conv{dims}d_{('input', 'weight')[which]}"

    def each(value: Any) -> list[int]:
        return list(value) if isinstance(value, Sequence) else [value] * dims

    def of_convolution(
        first: Any, second: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        given = [first, second]
        given[which] = creation.empty(given[which], dtype=grad_output.dtype, device=grad_output.device)
        options = (each(stride), each(padding), each(dilation), False, [0] * dims, groups)
        wanted = [which == 0, which == 1, False]
        return ops.aten.convolution_backward.default(grad_output, *given, None, *options, wanted)[which]

    of_convolution.__name__ = of_convolution.__qualname__ = name
    of_convolution.__doc__ = f"Computes the gradient of conv{dims}d by its {('input', 'weight')[which]}."
    return of_convolution


(conv1d_input, conv1d_weight), (conv2d_input, conv2d_weight), (conv3d_input, conv3d_weight) = (
    (gradient(dims, 0), gradient(dims, 1)) for dims in (1, 2, 3)
)
