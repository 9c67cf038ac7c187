"""Pooling, as functions: the largest element, the mean or a norm of windows. `functional` names them with the others.

They read sizes as users give them: a number for all dimensions or one for each, None for what the input says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import max_pooling, mean_pooling, unpooling
from redispatch.kernels.ops.random import rand

from .images import each, pad

avg_pool1d, avg_pool2d, avg_pool3d = mean_pooling.avg_pool1d, mean_pooling.avg_pool2d, mean_pooling.avg_pool3d
adaptive_avg_pool1d = mean_pooling.adaptive_avg_pool1d


def named(name: str, doc: str, function: Any) -> Any:
    """A function that stands for several numbers of dimensions, under the name for one of them."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return overridable_function(function)


# --- the largest -----------------------------------------------------------------------------------------------------


def _max_pool(dims: int, plain: Any, both: Any) -> tuple[Any, Any]:
    """`max_pool2d` and `max_pool2d_with_indices`, for two dimensions."""

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> Any:
        function = both if return_indices else plain
        if stride is None and padding == 0 and dilation == 1 and not ceil_mode:  # as nearly always
            return function(input, kernel_size)
        return function(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return with_indices(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    name, doc = f"max_pool{dims}d", "The largest element of each window"
    return (
        named(name, f"{doc}; with `return_indices` also where in the image it is.", pool),
        named(f"{name}_with_indices", f"{doc}, and where in the image it is.", with_indices),
    )


max_pool1d, max_pool1d_with_indices = _max_pool(1, max_pooling.max_pool1d, max_pooling.max_pool1d_with_indices)
max_pool2d, max_pool2d_with_indices = _max_pool(2, max_pooling.max_pool2d, max_pooling.max_pool2d_with_indices)
max_pool3d, max_pool3d_with_indices = _max_pool(3, max_pooling.max_pool3d, max_pooling.max_pool3d_with_indices)


def sizes_for(input: Tensor, output_size: Any, dims: int) -> list[int]:
    """The sizes asked for, with the input's own where None stands."""
    sizes = each(output_size, dims)
    kept = list(input.shape[-len(sizes) :])
    return [own if size is None else size for size, own in zip(sizes, kept, strict=True)]


def _adaptive_max(dims: int, pool: Any) -> tuple[Any, Any]:
    """`adaptive_max_pool2d` and `adaptive_max_pool2d_with_indices`, for two dimensions."""

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        return pool(input, sizes_for(input, output_size, dims))

    def adaptive(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        values, places = pool(input, sizes_for(input, output_size, dims))
        return (values, places) if return_indices else values

    name, doc = f"adaptive_max_pool{dims}d", "The largest elements of so many windows, which cover the image"
    return (
        named(name, f"{doc}; None keeps a size.", adaptive),
        named(f"{name}_with_indices", f"{doc}, and where in the image they are.", with_indices),
    )


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max(1, max_pooling.adaptive_max_pool1d)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max(2, max_pooling.adaptive_max_pool2d)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max(3, max_pooling.adaptive_max_pool3d)


def _fractional(dims: int, operator: Any) -> tuple[Any, Any]:
    """`fractional_max_pool2d` and `fractional_max_pool2d_with_indices`, for two dimensions."""
    name = f"fractional_max_pool{dims}d"

    def with_indices(
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
            output_size = [int(size * r) for size, r in zip(input.shape[-dims:], ratios, strict=True)]
        if _random_samples is None:
            images = [1, input.size(0)] if input.dim() == dims + 1 else [input.size(0), input.size(1)]
            _random_samples = rand([*images, dims], dtype=input.dtype, device=input.device)
        return operator(input, each(kernel_size, dims), each(output_size, dims), _random_samples)

    def pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        values, places = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return (values, places) if return_indices else values

    doc = "The largest element of each of `output_size` windows, or a ratio of the size, placed at random"
    return (
        named(name, f"{doc}.", pool),
        named(f"{name}_with_indices", f"{doc}, and where in the image it is.", with_indices),
    )


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2, max_pooling.fractional_max_pool2d)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3, max_pooling.fractional_max_pool3d)

# --- back to where they were -----------------------------------------------------------------------------------------


def unpooled_sizes(
    input: Tensor, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], output_size: Any
) -> list[int]:
    """The sizes of what was pooled, as far as they are known; `output_size` chooses among those that fit."""
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
    """`max_unpool2d`, for two dimensions."""

    def unpool(
        input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        kernel, pads = each(kernel_size, dims), each(padding, dims)
        steps = kernel if stride is None else each(stride, dims)
        sizes = unpooled_sizes(input, kernel, steps, pads, output_size)
        if dims == 1:
            return unpooling.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*sizes, 1]).squeeze(-1)
        if dims == 2:
            return unpooling.max_unpool2d(input, indices, sizes)
        return unpooling.max_unpool3d(input, indices, sizes, steps, pads)

    return named(f"max_unpool{dims}d", "The elements where `max_pool` found them, and zeros in other places.", unpool)


max_unpool1d, max_unpool2d, max_unpool3d = _unpool(1), _unpool(2), _unpool(3)

# --- means and norms -------------------------------------------------------------------------------------------------


def _adaptive_mean(dims: int, pool: Any) -> Any:
    """`adaptive_avg_pool2d`, for two dimensions."""

    def adaptive(input: Tensor, output_size: Any) -> Tensor:
        return pool(input, sizes_for(input, output_size, dims))

    doc = "The means of so many windows, which cover the image; None keeps a size."
    return named(f"adaptive_avg_pool{dims}d", doc, adaptive)


adaptive_avg_pool2d = _adaptive_mean(2, mean_pooling.adaptive_avg_pool2d)
adaptive_avg_pool3d = _adaptive_mean(3, mean_pooling.adaptive_avg_pool3d)


def _lp_pool(dims: int, mean: Any, largest: Any) -> Any:
    """`lp_pool2d`, for two dimensions."""

    def pool(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
        if norm_type == math.inf:
            return largest(input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        if norm_type == -math.inf:
            return -largest(-input.abs(), kernel_size, stride, 0, 1, ceil_mode)
        how = (kernel_size, [] if stride is None else stride, 0, ceil_mode)
        means = mean(input.pow(norm_type), *how)
        elements = math.prod(each(kernel_size, dims))
        return (means.sign() * means.abs().relu()).mul(elements).pow(1.0 / norm_type)

    return named(f"lp_pool{dims}d", "The norm of each window: the root of the sum of powers.", pool)


lp_pool1d, lp_pool2d = _lp_pool(1, avg_pool1d, max_pool1d), _lp_pool(2, avg_pool2d, max_pool2d)
lp_pool3d = _lp_pool(3, avg_pool3d, max_pool3d)


@overridable_function
def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * the mean of the squares of `size` channels around each) ** beta.

    Errors: ValueError for fewer than three dimensions.
    """
    ndim = input.dim()
    if ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {ndim} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    widths = [size // 2, (size - 1) // 2]
    if ndim == 3:
        means = avg_pool2d(pad(squares.unsqueeze(1), [0, 0, *widths]), (size, 1), stride=1).squeeze(1)
    else:
        flat = squares.view(input.size(0), 1, input.size(1), input.size(2), -1)
        means = avg_pool3d(pad(flat, [0, 0, 0, 0, *widths]), (size, 1, 1), stride=1).squeeze(1).view(input.shape)
    return input / means.mul(alpha).add(k).pow(beta)
