"""Numbers rounded as if they were stored in a few bits, for training with what quantization will cost.

    q = clamp(round(x / scale) + zero_point, quant_min, quant_max);   result = (q - zero_point) * scale

Backward is straight through: where nothing was clamped the gradient passes as if nothing had been done, elsewhere none
does. The operators called `..._cachemask` also give the mask of these places, which backward needs.

Source: Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference"
(2018).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch.dispatch import TensorBase, ops
from redispatch.dispatch.tensor import dtypes

from ..declare.declare import Operator, through
from ..declare.operator import CPU_FP32, composite, kernel
from ..declare.pointwise import NOT_FLOATING
from ..declare.structured import not_implemented
from .convolution import compute_dtype

BOUNDS = "int quant_min, int quant_max"
NUMBERS, TENSORS = "float scale, int zero_point", "Tensor scale, Tensor zero_point"
BOTH = "(Tensor output, Tensor mask)"
FLOATING: dict[str, Any] = {"refuses": {NOT_FLOATING: ""}}


def rounded(x: Any, scale: Any, zero_point: Any, low: int, high: int, into: Any) -> tuple[Any, Any]:
    """(what is left of x, where it was not clamped). Scale and zero point are numbers, or tensors that broadcast.

    A NaN becomes `low`. 16-bit floats are computed in float32; what is left is scaled in the dtype `into`.
    """
    inverse: Any = math.copysign(math.inf, scale) if isinstance(scale, float) and not scale else 1 / scale
    place = (x.to(compute_dtype(x)) * single(inverse)).round() + zero_point
    mask = place.ge(low).logical_and(place.le(high))
    kept = place.clamp(low, high).nan_to_num(low).to(into)
    return ((kept - zero_point) * scale).to(x.dtype), mask


def single(number: Any) -> Any:
    """A number as float32 holds it; a tensor as it is."""
    return number if isinstance(number, TensorBase) else float(np.float32(number))


def check(kernel: str, x: Any, low: int, high: int) -> None:
    if low > high:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")
    if not x.dtype.is_floating_point:
        raise not_implemented(kernel, x.dtype)


def straight_through(name: str) -> Operator:
    """Declares an operator that computes a gradient."""

    @composite(f"{name}_cachemask_backward(Tensor grad, Tensor mask) -> Tensor", face=False)
    def backward(grad, mask):
        """The gradient where nothing was clamped, 0 elsewhere. RuntimeError for a mask that is not for it."""
        if mask.dtype is not dtypes.bool:
            raise RuntimeError(f"{name}_cachemask_backward: expected a mask of bools, but got {mask.dtype}")
        if mask.numel() != grad.numel():
            raise RuntimeError(
                f"`mask` and `dY` are not the same size: `mask` is size {mask.numel()} and `dY` is size {grad.numel()}"
            )
        return grad * mask

    return backward


MASKED: dict[str, Any] = FLOATING | {"late_out": ("out", "out0", "out1"), "face": False}
OF_TENSOR, OF_CHANNEL = (
    MASKED | {"derivative": through(straight_through(f"fake_quantize_per_{whose}_affine"), "grad", "result1")}
    for whose in ("tensor", "channel")
)


@kernel(f"fake_quantize_per_tensor_affine_cachemask(Tensor self, {NUMBERS}, {BOUNDS}) -> {BOTH}", **OF_TENSOR)
def masked_op(self, scale, zero_point, low, high):
    """Errors: RuntimeError for a zero point out of bounds; NotImplementedError for a dtype that is not floating."""
    check("fake_quantize_tensor_cachemask_kernel_type_handling", self, low, high)
    if not low <= zero_point <= high:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return rounded(self, single(scale), zero_point, low, high, dtypes.float32)


@kernel(
    f"_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, {TENSORS}, Tensor fake_quant_enabled, "
    f"{BOUNDS}) -> {BOTH}",
    **OF_TENSOR,
)
def masked_by_tensors_op(self, scale, zero_point, enabled, low, high):
    """Rounds by tensors of one element for numbers; where `enabled` is 0, the input as it is."""
    check("fake_quantize_tensor_cachemask_kernel_type_handling", self, low, high)
    for one in (scale, zero_point, enabled):
        if one.numel() != 1:
            raise RuntimeError(f"a Tensor with {one.numel()} elements cannot be converted to Scalar")
    numbers = wide(scale).reshape([]), wide(zero_point.trunc()).reshape([])
    kept, mask = rounded(self, *numbers, low, high, dtypes.float32)
    on = enabled.reshape([]).ne(0)
    return kept.where(on, self), mask.logical_or(on.logical_not())


@kernel(
    f"fake_quantize_per_channel_affine_cachemask(Tensor self, {TENSORS}, int axis, {BOUNDS}) -> {BOTH}", **OF_CHANNEL
)
def masked_channel_op(self, scale, zero_point, axis, low, high):
    """Rounds with a scale and a zero point for each index along `axis`.

    Errors: RuntimeError where these are not as many, of another dtype, or out of bounds.
    """
    if scale.dtype not in (dtypes.float32, dtypes.bfloat16):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {scale.dtype.tensor_name}")
    if zero_point.dtype not in (dtypes.int32, dtypes.float32, dtypes.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype.tensor_name}")
    for name, one in (("scale", scale), ("zero point", zero_point)):
        if one.dim() != 1:
            raise RuntimeError(f"{name} should be a 1-D tensor")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if scale.numel() != self.size(axis):
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    if not 0 <= axis < self.dim():
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    check("fake_quantize_channel_cachemask_cpu_type_handling", self, low, high)
    shape = [1] * self.dim()
    shape[axis] = -1
    if zero_point.device.type != "meta" and not bool(zero_point.ge(low).logical_and(zero_point.le(high)).all()):
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return rounded(self, wide(scale).view(shape), wide(zero_point).view(shape), low, high, compute_dtype(self))


def wide(parameter: Any) -> Any:
    """A scale or zero point in float32, as which PyTorch's kernels know them."""
    return parameter.to(dtypes.float32)


@composite(f"fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, {TENSORS}, {BOUNDS}) -> Tensor", **FLOATING)
def tensor_by_tensors_op(self, scale, zero_point, quant_min, quant_max):
    on = ops.aten.ones.default([1], dtype=dtypes.int64, device=self.device)
    return masked_by_tensors_op.functional(self, scale, zero_point, on, quant_min, quant_max)[0]


@composite(
    f"fake_quantize_per_channel_affine(Tensor self, {TENSORS}, int axis, {BOUNDS}) -> Tensor",
    **FLOATING,
    method=False,
    doc="Returns what is left of numbers that are quantized with a scale and zero point for each channel.",
)
def fake_quantize_per_channel_affine(self, scale, zero_point, axis, quant_min, quant_max):
    return masked_channel_op.functional(self, scale, zero_point, axis, quant_min, quant_max)[0]


@composite(
    f"fake_quantize_per_tensor_affine(Tensor self, {NUMBERS}, {BOUNDS}) -> Tensor",
    autocast=CPU_FP32,
    **FLOATING,
    also=(tensor_by_tensors_op,),
    method=False,
    doc="Returns what is left of numbers that are quantized with one scale and zero point.",
)
def fake_quantize_per_tensor_affine(self, scale, zero_point, quant_min, quant_max):
    return masked_op.functional(self, scale, zero_point, quant_min, quant_max)[0]
