"""The three Fourier transforms that all others are made of: from reals, to reals, and complex both ways.

numpy's FFT computes them, in float64 for float64 and else in float32. `normalization` is 0 for no factor, 1 for
1 / sqrt(n), 2 for 1 / n. The transform is a symmetric matrix times the elements, so that the derivative of one is the
same transform again (see autograd/conjugate.py for what becomes of it for complex numbers). Where one leaves out half
of what a transform of reals gives, the derivative takes care of the half that is not there.

Read next: fft.py, which gives them their public faces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.tensor import Tensor, as_numpy, dtype, dtypes, wrap_dim

from .from_data import from_numpy
from .structured import Meta, Structured

fft_r2c_op = Structured("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", out="out")
fft_c2r_op = Structured(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", out="out"
)
fft_c2c_op = Structured("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", out="out")

COMPLEX = {"float32": dtypes.complex64, "float64": dtypes.complex128}
REAL = {"complex64": dtypes.float32, "complex128": dtypes.float64}


def in_kind(self: Tensor, kinds: dict[str, dtype], wanted: str) -> dtype:
    if self._dtype.name not in kinds:
        raise RuntimeError(f"Only supports {wanted} dtypes, but found: {self._dtype.tensor_name}")
    return kinds[self._dtype.name]


def axes_of(self: Tensor, dim: Sequence[int]) -> list[int]:
    return [wrap_dim(d, len(self._shape)) for d in dim]


def factor(normalization: int, count: int) -> float:
    return {0: 1.0, 1: 1 / math.sqrt(count), 2: 1 / count}[normalization] if count else 1.0


@fft_r2c_op.meta
def fft_r2c_meta(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Meta:
    kind = in_kind(self, COMPLEX, "floating-point")
    shape = list(self._shape)
    if onesided and dim:
        last = axes_of(self, dim)[-1]
        shape[last] = shape[last] // 2 + 1
    return Meta(tuple(shape), kind, self._device)


@fft_r2c_op.body
def fft_r2c_body(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> None:
    """The transform over `dim`; `onesided` leaves out the half of the last one that follows from the other."""
    axes, x = axes_of(self, dim), as_numpy(self)
    found = np.fft.rfftn(x, axes=axes) if onesided else np.fft.fftn(x, axes=axes)
    as_numpy(out)[...] = found * factor(normalization, math.prod(self._shape[d] for d in axes))


@fft_c2r_op.meta
def fft_c2r_meta(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Meta:
    kind = in_kind(self, REAL, "complex")
    shape = list(self._shape)
    shape[axes_of(self, dim)[-1]] = last_dim_size
    return Meta(tuple(shape), kind, self._device)


@fft_c2r_op.body
def fft_c2r_body(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> None:
    """The inverse of a onesided transform of reals, which had `last_dim_size` elements along the last of `dim`."""
    axes = axes_of(self, dim)
    sizes = [self._shape[d] for d in axes[:-1]] + [last_dim_size]
    found = np.fft.irfftn(as_numpy(self), s=sizes, axes=axes, norm="forward")
    as_numpy(out)[...] = found * factor(normalization, math.prod(sizes))


@fft_c2c_op.meta
def fft_c2c_meta(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Meta:
    in_kind(self, REAL, "complex")
    return Meta(self._shape, self._dtype, self._device)


@fft_c2c_op.body
def fft_c2c_body(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> None:
    axes, x = axes_of(self, dim), as_numpy(self)
    found: Any = np.fft.fftn(x, axes=axes) if forward else np.fft.ifftn(x, axes=axes, norm="forward")
    as_numpy(out)[...] = found * factor(normalization, math.prod(self._shape[d] for d in axes))


# --- derivatives ------------------------------------------------------------------------------------------------------


def fft_c2c_gradient(grad: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    return fft_c2c_op.functional(grad, dim, normalization, forward)


def fft_r2c_gradient(grad: Any, self_shape: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """The inverse transform of what is there; zeros stand for the half that was left out. Of it, the real part."""
    if not onesided:
        return fft_c2c_op.functional(grad, dim, normalization, False).real
    last = dim[-1]
    missing = self_shape[last] - grad.shape[last]
    if missing:
        shape = [*grad.shape]
        shape[last] = missing
        grad = ops.aten.cat.default([grad, grad.new_zeros(shape)], last)
    return fft_c2c_op.functional(grad, dim, normalization, False).real


def fft_c2r_gradient(grad: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    """The onesided transform. What the inverse has counted twice, since the other half follows from it, is doubled."""
    found = fft_r2c_op.functional(grad, dim, normalization, True)
    last, twice = dim[-1], last_dim_size - found.shape[dim[-1]]
    if twice <= 0:
        return found
    shape = [1] * found.dim()
    shape[last] = found.shape[last]
    factors = [2.0 if 0 < k <= twice else 1.0 for k in range(shape[last])]
    return found * from_numpy(np.array(factors, found.dtype.to_real().numpy)).reshape(shape)


fft_c2c_op.derivative(self=fft_c2c_gradient)
fft_r2c_op.derivative(self=fft_r2c_gradient, for_complex=True)
fft_c2r_op.derivative(self=fft_c2r_gradient, for_complex=True)
