"""Pooling layers: the largest element or the mean of each window, or of as many windows as are asked for."""

from __future__ import annotations

from typing import Any

from . import functional
from .module import Module


class _MaxPool(Module):
    dims: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Any) -> Any:
        pool = getattr(functional, f"max_pool{self.dims}d")
        how = (self.kernel_size, self.stride, self.padding, self.dilation)
        return pool(input, *how, ceil_mode=self.ceil_mode, return_indices=self.return_indices)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest of each window of a length: (n, channels, length) -> (n, channels, length'), n optional."""

    dims = 1


class MaxPool2d(_MaxPool):
    """The largest of each window of an image: (n, channels, height, width) -> (n, channels, height', width')."""

    dims = 2


class MaxPool3d(_MaxPool):
    """The largest of each window of a volume."""

    dims = 3


class AvgPool1d(Module):
    """The mean of each window of a length: (n, channels, length) -> (n, channels, length'), n optional."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        one = [kernel_size, kernel_size if stride is None else stride, padding]
        self.kernel_size, self.stride, self.padding = ((n,) if isinstance(n, int) else tuple(n) for n in one)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Any) -> Any:
        how = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return functional.avg_pool1d(input, *how)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    dims: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Any) -> Any:
        pool = getattr(functional, f"avg_pool{self.dims}d")
        how = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return pool(input, *how, self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of an image: (n, channels, height, width) -> (n, channels, height', width')."""

    dims = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of a volume."""

    dims = 3


class _AdaptiveAvgPool(Module):
    dims: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return getattr(functional, f"adaptive_avg_pool{self.dims}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of `output_size` windows that cover a length."""

    dims = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of `output_size` windows that cover an image; None keeps a size."""

    dims = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of `output_size` windows that cover a volume; None keeps a size."""

    dims = 3
