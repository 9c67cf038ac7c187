"""Quantizer: how the codes of a quantised tensor are read, `value = (code - zero_point) * scale`.

A quantised tensor holds small integers, its codes, in the memory of any other tensor; its dtype (quint8, qint8, qint32)
gives it the key QuantizedCPU in the place of CPU, and `_quantizer` says what the codes mean: one scale and zero point
for all, or one for each index along an axis. Pure functions of numpy arrays are here, as far as printing needs them;
operators are in kernels/ops/quantized.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..records import dataclass
from . import dtypes
from .dtypes import dtype
from .layouts import per_channel_affine, per_channel_affine_float_qparams, per_tensor_affine, qscheme
from .operand import Operand, as_ndarray

CODES = {"quint8": dtypes.uint8, "qint8": dtypes.int8, "qint32": dtypes.int32}  # a quantised dtype -> that of its codes


@dataclass(frozen=True, eq=False)
class Quantizer:
    """One scale and zero point, numbers; or a tensor of each, with the axis along which they stand."""

    scale: Any
    zero_point: Any
    axis: int | None = None

    @property
    def scheme(self) -> qscheme:
        if self.axis is None:
            return per_tensor_affine
        return per_channel_affine_float_qparams if self.zero_point.is_floating_point() else per_channel_affine

    @property
    def arguments(self) -> tuple[Any, ...]:
        return (self.scale, self.zero_point) if self.axis is None else (self.scale, self.zero_point, self.axis)

    def is_like(self, other: Quantizer) -> bool:
        """Whether codes mean the same in both."""
        if self.scheme is not other.scheme or self.axis != other.axis:
            return False
        pairs = (self.scale, other.scale), (self.zero_point, other.zero_point)
        return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)

    def along(self, axis: int) -> Quantizer:
        return replace(self, axis=axis)

    def at(self, index: Any) -> Quantizer:
        """The quantizer of one index along the axis; of a slice of them, which keep their own."""
        if isinstance(index, slice):
            return replace(self, scale=self.scale[index], zero_point=self.zero_point[index])
        return Quantizer(self.scale[index].item(), int(self.zero_point[index].item()))

    def parts(self, ndim: int) -> tuple[Any, Any]:
        """Scale and zero point as float32, as they broadcast over an array."""
        if self.axis is None:
            return np.float32(self.scale), np.float32(self.zero_point)
        shape = [1] * ndim
        shape[self.axis] = -1
        scale, zero_point = (
            np.asarray(part).astype(np.float32).reshape(shape) for part in (self.scale, self.zero_point)
        )
        return scale, zero_point

    def values(self, codes: np.ndarray) -> np.ndarray:
        """The float32 numbers that codes stand for."""
        scale, zero_point = self.parts(codes.ndim)
        if self.axis is None and codes.dtype == np.int32:  # a float32 does not hold them
            return (codes.astype(np.int64) - int(self.zero_point)).astype(np.float32) * scale
        return (codes.astype(np.float32) - zero_point) * scale

    def codes(self, values: np.ndarray, kind: np.dtype) -> np.ndarray:
        """The codes nearest to float32 numbers, ties to even, within the dtype's limits; of NaN the largest, of 32 bits
        the smallest."""
        limits = np.iinfo(kind)
        with np.errstate(all="ignore"):
            scale, zero_point = self.parts(values.ndim)
            places = np.rint(values.astype(np.float32) * (np.float32(1) / scale) + zero_point)
            nothing = limits.min if kind == np.int32 else limits.max
            places = np.where(np.isnan(places), nothing, places.astype(np.float64))
        return np.clip(places, limits.min, limits.max).astype(kind)


def codes_of(element: dtype) -> dtype:
    """The dtype of a quantised dtype's codes. RuntimeError for a dtype that is not quantised."""
    if element.name not in CODES:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    return CODES[element.name]


def codes_in(tensor: Any) -> np.ndarray:
    """The codes of a quantised tensor, in its own memory."""
    kind = codes_of(tensor._dtype)
    array = tensor._array.view(kind.numpy)
    return as_ndarray(Operand(array, kind.name, tensor._shape, tensor._stride, tensor._offset))
