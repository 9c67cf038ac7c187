"""Pooling layers: the largest element, the mean or a norm of each window, or of as many windows as are asked for."""

from __future__ import annotations

from typing import Any

from . import functional
from .images import each
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


class _MaxUnpool(Module):
    dims: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = each(kernel_size, self.dims)
        self.stride = self.kernel_size if stride is None else each(stride, self.dims)
        self.padding = each(padding, self.dims)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        unpool = getattr(functional, f"max_unpool{self.dims}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Elements back where MaxPool1d found them, and zeros in other places."""

    dims = 1


class MaxUnpool2d(_MaxUnpool):
    """Elements back where MaxPool2d found them, and zeros in other places."""

    dims = 2


class MaxUnpool3d(_MaxUnpool):
    """Elements back where MaxPool3d found them, and zeros in other places."""

    dims = 3


class _FractionalMaxPool(Module):
    dims: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.return_indices = each(kernel_size, self.dims), return_indices
        if self.dims == 3 and min(self.kernel_size) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each(output_size, self.dims)
        self.output_ratio = None if output_ratio is None else each(output_ratio, self.dims)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Any) -> Any:
        pool = getattr(functional, f"fractional_max_pool{self.dims}d")
        how = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices)
        return pool(input, *how, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest of each of `output_size` windows of an image, or of a ratio of its size, placed at random."""

    dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest of each of `output_size` windows of a volume, or of a ratio of its size, placed at random."""

    dims = 3


class _AvgPool(Module):
    dims: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad

    def forward(self, input: Any, *divisor: Any) -> Any:
        pool = getattr(functional, f"avg_pool{self.dims}d")
        how = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return pool(input, *how, *divisor)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of each window of a length: (n, channels, length) -> (n, channels, length'), n optional."""

    dims = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kernel_size, self.stride, self.padding = (
            each(n, 1) for n in (self.kernel_size, self.stride, self.padding)
        )


class _AvgPoolByDivisor(_AvgPool):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return super().forward(input, self.divisor_override)


class AvgPool2d(_AvgPoolByDivisor):
    """The mean of each window of an image: (n, channels, height, width) -> (n, channels, height', width')."""

    dims = 2


class AvgPool3d(_AvgPoolByDivisor):
    """The mean of each window of a volume."""

    dims = 3


class _LPPool(Module):
    dims: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Any) -> Any:
        pool = getattr(functional, f"lp_pool{self.dims}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The norm of each window of a length."""

    dims = 1


class LPPool2d(_LPPool):
    """The norm of each window of an image."""

    dims = 2


class LPPool3d(_LPPool):
    """The norm of each window of a volume."""

    dims = 3


class _AdaptiveMaxPool(Module):
    dims: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Any) -> Any:
        pool = getattr(functional, f"adaptive_max_pool{self.dims}d")
        return pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows that cover a length."""

    dims = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows that cover an image; None keeps a size."""

    dims = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of `output_size` windows that cover a volume; None keeps a size."""

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
