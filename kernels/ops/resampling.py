"""From tensors to kernels/cpu/resample.py: results laid out as images, 16-bit floats computed in float32."""

from __future__ import annotations

from collections.abc import Sequence

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, empty
from redispatch.kernels import is_contiguous
from redispatch.kernels.cpu.resample import AxisMap, resample

from ..declare.structured import Meta
from .convolution import compute_dtype, dense
from .copying import suggested_format
from .creation import strides_for


def shaped_like(shape: Sequence[int], x: Tensor) -> Meta:
    """A result of this shape, with the dtype, the device and the memory format of `x`."""
    return Meta(tuple(shape), x._dtype, x._device, strides_for(shape, suggested_format(x)))


def resampled(out: Tensor, x: Tensor, axes: Sequence[AxisMap]) -> None:
    """Fills `out` with `x` mapped along its last axes, one map for each."""
    if not out._shape.numel():
        return
    compute = compute_dtype(x)
    whole = out._dtype is compute and is_contiguous(out._shape, out._stride)
    result = out if whole else empty(out._shape, compute, out._device)
    resample(result._operand, dense(x, compute)._operand, axes)
    if result is not out:
        kernels.copy(out._operand, result._operand)
