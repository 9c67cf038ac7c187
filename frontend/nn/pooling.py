"""Pooling, as functions and as modules: the largest element, the mean or a norm of each window of an image.

Sizes are a number for all dimensions or one for each. The adaptive ones have as many windows as are asked for, which
cover the image; None there keeps a size. Shapes: (batch, channels, *image) -> (batch, channels, *windows), the batch
optional. Functions that end in `_with_indices` also return where in the image each element is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import max_pooling, pooling
from redispatch.kernels.ops.random import rand

from .derived import by_dims, functional, module_of, shows
from .images import each
from .module import Module

avg_pool1d, avg_pool2d, avg_pool3d = pooling.avg_pool1d, pooling.avg_pool2d, pooling.avg_pool3d
adaptive_avg_pool1d = pooling.adaptive_avg_pool1d


def named(name: str, doc: str, function: Any) -> Any:
    """Returns a function that stands for several numbers of dimensions, under the name for one of them."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return overridable_function(function)


def named_pair(name: str, doc: str, made: Callable[[bool], Any]) -> tuple[Any, Any]:
    """Returns the functions `name`, of `made(False)`, and `name_with_indices`, of `made(True)`."""
    return (
        named(name, f"{doc}; with `return_indices` also where in the image it is.", made(False)),
        named(f"{name}_with_indices", f"{doc}, and where in the image it is.", made(True)),
    )


# --- the largest -----------------------------------------------------------------------------------------------------


def _max_pool(dims: int, plain: Any, both: Any) -> tuple[Any, Any]:
    """Returns `max_pool2d` and `max_pool2d_with_indices`, for two dimensions."""

    def made(with_indices: bool) -> Any:
        def pool(
            input: Tensor,
            kernel_size: Any,
            stride: Any = None,
            padding: Any = 0,
            dilation: Any = 1,
            ceil_mode: bool = False,
            return_indices: bool = with_indices,
        ) -> Any:
            function = both if return_indices else plain
            if stride is None and padding == 0 and dilation == 1 and not ceil_mode:  # as nearly always
                return function(input, kernel_size)
            return function(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

        return pool

    return named_pair(f"max_pool{dims}d", "Computes the largest element of each window", made)


max_pool1d, max_pool1d_with_indices = _max_pool(1, max_pooling.max_pool1d, max_pooling.max_pool1d_with_indices)
max_pool2d, max_pool2d_with_indices = _max_pool(2, max_pooling.max_pool2d, max_pooling.max_pool2d_with_indices)
max_pool3d, max_pool3d_with_indices = _max_pool(3, max_pooling.max_pool3d, max_pooling.max_pool3d_with_indices)


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

    extra_repr = shows("kernel_size stride padding dilation ceil_mode")


MaxPool1d, MaxPool2d, MaxPool3d = by_dims(
    _MaxPool,
    """Computes the largest element of each window of {image}; with `return_indices` also where it is.

    Shapes: (batch, channels, {size}) -> the same with fewer elements, the batch optional.
    """,
)


def sizes_for(input: Tensor, output_size: Any, dims: int) -> list[int]:
    """Returns the sizes asked for, with the input's own where None stands."""
    sizes = each(output_size, dims)
    if input.dim() <= len(sizes):
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}")
    kept = input.shape[input.dim() - len(sizes) :]
    return [own if size is None else size for size, own in zip(sizes, kept, strict=True)]


def _adaptive_max(dims: int, operator: Any) -> tuple[Any, Any]:
    """Returns `adaptive_max_pool2d` and `adaptive_max_pool2d_with_indices`, for two dimensions."""

    def made(with_indices: bool) -> Any:
        def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
            values, places = operator(input, sizes_for(input, output_size, dims))
            return (values, places) if with_indices or return_indices else values

        return pool

    return named_pair(
        f"adaptive_max_pool{dims}d", "Computes the largest element of each of `output_size` windows", made
    )


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max(1, max_pooling.adaptive_max_pool1d)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max(2, max_pooling.adaptive_max_pool2d)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max(3, max_pooling.adaptive_max_pool3d)


_AdaptiveMaxPool = module_of(
    "_AdaptiveMaxPool", adaptive_max_pool2d, dims=True, inputs="input", shown="output_size={self.output_size}"
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = by_dims(
    _AdaptiveMaxPool,
    """Computes the largest element of each of `output_size` windows that cover {image}; None keeps a size.

    Shapes: (batch, channels, {size}) -> (batch, channels, *output_size), the batch optional.
    """,
)


def _fractional(dims: int, operator: Any) -> tuple[Any, Any]:
    """Returns `fractional_max_pool2d` and `fractional_max_pool2d_with_indices`, for two dimensions."""
    name = f"fractional_max_pool{dims}d"

    def made(with_indices: bool) -> Any:
        def pool(
            input: Tensor,
            kernel_size: Any,
            output_size: Any = None,
            output_ratio: Any = None,
            return_indices: bool = False,
            _random_samples: Tensor | None = None,
        ) -> Any:
            if output_size is None and output_ratio is None:
                raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
            if output_size is None:
                ratios = each(output_ratio, dims)
                if len(ratios) != dims:
                    raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
                output_size = [int(size * r) for size, r in zip(input.shape[-dims:], ratios, strict=True)]
            if _random_samples is None:
                images = [1, input.size(0)] if input.dim() == dims + 1 else [input.size(0), input.size(1)]
                _random_samples = rand([*images, dims], dtype=input.dtype, device=input.device)
            values, places = operator(input, each(kernel_size, dims), each(output_size, dims), _random_samples)
            return (values, places) if with_indices or return_indices else values

        return pool

    return named_pair(
        name, "Computes the largest element of each of `output_size` windows, or a ratio of the size, at random", made
    )


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2, max_pooling.fractional_max_pool2d)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3, max_pooling.fractional_max_pool3d)


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


FractionalMaxPool2d, FractionalMaxPool3d = by_dims(
    _FractionalMaxPool,
    """Computes the largest element of each of `output_size` windows of {image}, or of a ratio of its size, at random.

    Shapes: (batch, channels, {size}) -> (batch, channels, *output_size), the batch optional.
    Errors: ValueError for neither or both of size and ratio, and for a ratio outside (0, 1).
    """,
    dims=(2, 3),
)

# --- back to where they were -----------------------------------------------------------------------------------------


def unpooled_sizes(
    input: Tensor, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], output_size: Any
) -> list[int]:
    """Returns the sizes of what was pooled, as far as they are known; `output_size` chooses among those that fit."""
    dims = len(kernel)
    per = zip(input.shape[-dims:], kernel, stride, padding, strict=True)
    usual = [(size - 1) * step + k - 2 * p for size, k, step, p in per]
    if output_size is None:
        return usual
    wanted = list(output_size)[2:] if len(output_size) == dims + 2 else list(output_size)
    if len(wanted) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(wanted)}'"
        )
    for d, (size, step) in enumerate(zip(usual, stride, strict=True)):
        if not size - step < wanted[d] < size + step:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {d} must be between {size - step} and {size + step})'
            )
    return wanted


def _unpool(dims: int) -> Any:
    """Returns `max_unpool2d`, for two dimensions."""

    def unpool(
        input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        kernel, pads = each(kernel_size, dims), each(padding, dims)
        steps = kernel if stride is None else each(stride, dims)
        sizes = unpooled_sizes(input, kernel, steps, pads, output_size)
        if dims == 1:
            return max_pooling.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*sizes, 1]).squeeze(-1)
        if dims == 2:
            return max_pooling.max_unpool2d(input, indices, sizes)
        return max_pooling.max_unpool3d(input, indices, sizes, steps, pads)

    return named(f"max_unpool{dims}d", "Puts elements where `max_pool` found them, and zeros in other places.", unpool)


max_unpool1d, max_unpool2d, max_unpool3d = _unpool(1), _unpool(2), _unpool(3)


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

    extra_repr = shows("kernel_size stride padding")


MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = by_dims(
    _MaxUnpool,
    """Puts elements where MaxPool{dims}d found them, and zeros in other places of {image}.

    Shapes: elements and indices as MaxPool{dims}d returns them -> (batch, channels, {size}).
    Errors: ValueError for an `output_size` that does not fit.
    """,
)

# --- means and norms -------------------------------------------------------------------------------------------------


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

    extra_repr = shows("kernel_size stride padding")


class AvgPool1d(_AvgPool):
    """Computes the mean of each window of a length: (n, channels, length) -> (n, channels, length'), n optional."""

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


AvgPool2d, AvgPool3d = by_dims(
    _AvgPoolByDivisor,
    """Computes the mean of each window of {image}, or its sum over `divisor_override`.

    Shapes: (batch, channels, {size}) -> the same with fewer elements, the batch optional.
    """,
    name="AvgPool",
    dims=(2, 3),
)


def _adaptive_mean(dims: int, pool: Any) -> Any:
    """Returns `adaptive_avg_pool2d`, for two dimensions."""

    def adaptive(input: Tensor, output_size: Any) -> Tensor:
        return pool(input, sizes_for(input, output_size, dims))

    doc = "Computes the means of `output_size` windows, which cover the image; None keeps a size."
    return named(f"adaptive_avg_pool{dims}d", doc, adaptive)


adaptive_avg_pool2d = _adaptive_mean(2, pooling.adaptive_avg_pool2d)
adaptive_avg_pool3d = _adaptive_mean(3, pooling.adaptive_avg_pool3d)


_AdaptiveAvgPool = module_of("_AdaptiveAvgPool", adaptive_avg_pool2d, dims=True, inputs="input")
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = by_dims(
    _AdaptiveAvgPool,
    """Computes the means of `output_size` windows that cover {image}; None keeps a size.

    Shapes: (batch, channels, {size}) -> (batch, channels, *output_size), the batch optional.
    """,
)


def _lp_pool(dims: int, mean: Any, largest: Any) -> Any:
    """Returns `lp_pool2d`, for two dimensions."""

    def pool(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
        if norm_type == math.inf:
            return largest(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        if norm_type == -math.inf:
            return -largest(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        how = (kernel_size, [] if stride is None else stride, 0, ceil_mode)
        means = mean(input.pow(norm_type), *how)
        elements = math.prod(each(kernel_size, dims))
        return (means.sign() * means.abs().relu()).mul(elements).pow(1.0 / norm_type)

    return named(f"lp_pool{dims}d", "Computes the norm of each window: the root of the sum of powers.", pool)


lp_pool1d, lp_pool2d = _lp_pool(1, avg_pool1d, max_pool1d), _lp_pool(2, avg_pool2d, max_pool2d)
lp_pool3d = _lp_pool(3, avg_pool3d, max_pool3d)


class _LPPool(Module):
    dims: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Any) -> Any:
        pool = getattr(functional, f"lp_pool{self.dims}d")
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    extra_repr = shows("norm_type kernel_size stride ceil_mode")


LPPool1d, LPPool2d, LPPool3d = by_dims(
    _LPPool,
    """Computes (Σ x^norm_type)^(1 / norm_type) of each window of {image}.

    Shapes: (batch, channels, {size}) -> the same with fewer elements, the batch optional.
    """,
)
