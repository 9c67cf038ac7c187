"""Convolutions on a device, transposed ones too, and their gradients (kernels/cuda/convolution.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, channels_last_strides, empty
from redispatch.kernels.cuda.convolution import Geometry, gathered
from redispatch.kernels.ops import convolution
from redispatch.kernels.ops.convolution import Setting, is_channels_last

from .copies import copy_on_device
from .structured import ByWork, Task, dense, launched


def geometry(setting: Setting, input: Tensor, weight: Tensor, made: Sequence[int]) -> Geometry:
    """The windows: over the input, or, of a transposed convolution, over what it makes."""
    image, counts = (made[2:], input._shape[2:]) if setting.transposed else (input._shape[2:], made[2:])

    def full(values: Sequence[int], filler: int) -> tuple[int, ...]:
        """With three dimensions, whatever there are."""
        return (filler,) * (3 - setting.dims) + tuple(values)

    sizes = full(image, 1), full(counts, 1), full(weight._shape[2:], 1)
    how = full(setting.stride, 1), full(setting.padding, 0), full(setting.dilation, 1)
    return Geometry(*sizes, *how, weight._shape[1], weight._shape[0] // setting.groups, setting.groups)


def run(what: str, g: Geometry, out: Tensor, a: Tensor, b: Tensor) -> None:
    """One launch for a gradient, which lies row by row."""
    if not out._shape.numel():
        return
    batch = (b if what == "correlations" else out)._shape[0]
    launch, rest = gathered(what, out._dtype.name, batch, g)
    tensors = [out, dense(a), dense(b), None]
    launched([Task(launch, (0, 1, 2, 3), rest)], tensors)


def convolution_work(out: Tensor, input: Tensor, weight: Tensor, bias: Any, *how: Any) -> list[Task]:
    """`convolution`"""
    if not out._shape.numel():
        return []
    setting = Setting(input, weight, None, *how)
    g = geometry(setting, input, weight, out._shape)
    what = "spread" if setting.transposed else "correlate"
    last = is_channels_last(out)
    launch, rest = gathered(what, out._dtype.name, out._shape[0], g, bias is not None, last)
    return [Task(launch, (0, 2, 1, 3), rest)]


def laid(x: Tensor, strides: tuple[int, ...] | None) -> Tensor:
    """The tensor, or a copy that lies otherwise."""
    if strides is None:
        return x
    result = empty(x._shape, x._dtype, x._device, strides)
    copy_on_device(result, x)
    return result


def like_images(x: Tensor, *given: Tensor) -> Tensor:
    """Channels last, if one of the arguments lies so."""
    return laid(x, channels_last_strides(x._shape)) if any(map(is_channels_last, given)) else x


def convolution_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Any, *how_and_mask: Any
) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias, those that are asked for."""
    *how, output_mask = how_and_mask
    setting = Setting(input, weight, None, *how)
    made = convolution.check_gradient(grad_output, setting, input, weight)
    g = geometry(setting, input, weight, made)
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        out = empty(input._shape, input._dtype, input._device)
        run("correlate" if setting.transposed else "spread", g, out, weight, grad_output)
        of_input = like_images(out, input, weight)
    if output_mask[1]:
        out = empty(weight._shape, weight._dtype, weight._device)
        pair = (input, grad_output) if setting.transposed else (grad_output, input)
        run("correlations", g, out, *pair)
        of_weight = like_images(out, weight, input)
    if output_mask[2]:
        of_bias = grad_output.sum([d for d in range(len(made)) if d != 1])
    return of_input, of_weight, of_bias


OPERATORS = (ByWork(convolution.convolution_op, convolution_work, dense=("input", "weight", "bias")),)
KERNELS: dict[str, Callable[..., Any]] = {"convolution_backward": convolution_backward}
