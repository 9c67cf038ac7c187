"""The three Fourier transforms that all others are made of: from reals, to reals, and complex both ways.

numpy's FFT computes them, in float64 for float64 and else in float32. `normalization` is 0 for no factor, 1 for
1 / sqrt(n), 2 for 1 / n. The transform is a symmetric matrix times the elements, so that the derivative of one is the
same transform again (see dispatch/autograd/conjugate.py for what becomes of it for complex numbers). Where one leaves
out half of what a transform of reals gives, the derivative takes care of the half that is not there.

Note [Transformed dimensions lie innermost]
The result is dense: the dimensions that are transformed change fastest, and among these, as among the others, the order
is that of the input's strides. It is PyTorch's, with the library that it uses on the CPU.

Read next: fft.py, which makes the public functions of these three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, as_numpy, dtype, dtypes, wrap_dim

from ..declare.operator import structured
from ..declare.structured import Meta

COMPLEX = {"float32": dtypes.complex64, "float64": dtypes.complex128}
REAL = {"complex64": dtypes.float32, "complex128": dtypes.float64}

# numpy's words for a normalization. What it calls "forward" has the factor on the way there, none on the way back.
THERE: Any = ("backward", "ortho", "forward")
BACK: Any = ("forward", "ortho", "backward")


def in_kind(self: Tensor, kinds: dict[str, dtype], wanted: str) -> dtype:
    if self._dtype.name not in kinds:
        raise RuntimeError(f"Only supports {wanted} dtypes, but found: {self._dtype.tensor_name}")
    return kinds[self._dtype.name]


def axes_of(self: Tensor, dim: Sequence[int]) -> list[int]:
    return [wrap_dim(d, len(self._shape)) for d in dim]


def strides_behind(
    shape: Sequence[int], stride: Sequence[int], axes: Sequence[int], last: int | None = None
) -> tuple[int, ...]:
    """The strides of a result of this shape: Note [Transformed dimensions lie innermost]. `last` changes fastest."""
    others = sorted((d for d in range(len(shape)) if d not in axes), key=lambda d: -stride[d])
    order = [*others, *sorted((d for d in axes if d != last), key=lambda d: -stride[d])]
    order += [] if last is None else [last]
    steps, step = [0] * len(shape), 1
    for d in reversed(order):
        steps[d] = step
        step *= max(shape[d], 1)
    return tuple(steps)


@structured(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    out="out",
    forward="linear",
    face=False,
    core=True,
    refuses="whole halves complex",
)
def fft_r2c_op(self, dim, normalization, onesided):
    """The transform over `dim`; `onesided` leaves out the half of the last one that follows from the other."""
    kind = in_kind(self, COMPLEX, "floating-point")
    shape, axes = list(self._shape), axes_of(self, dim)
    last = axes[-1] if axes else None
    if onesided and last is not None:
        shape[last] = shape[last] // 2 + 1
    return Meta(tuple(shape), kind, self._device, strides_behind(shape, self._stride, axes, last))


@fft_r2c_op.body
def fft_r2c_body(out, self, dim, normalization, onesided):
    """The transform over `dim`; `onesided` leaves out the half of the last one that follows from the other."""
    axes, x = axes_of(self, dim), as_numpy(self)
    transform = np.fft.rfftn if onesided else np.fft.fftn
    as_numpy(out)[...] = transform(x, axes=axes, norm=THERE[normalization]) if axes else x


@structured(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    out="out",
    forward="linear",
    face=False,
    core=True,
    refuses="whole floating",
)
def fft_c2r_op(self, dim, normalization, last_dim_size):
    """The inverse of a onesided transform of reals, which had `last_dim_size` elements along the last of `dim`."""
    kind = in_kind(self, REAL, "complex")
    shape, axes = list(self._shape), axes_of(self, dim)
    stride = strides_behind(shape, self._stride, axes[:-1]) if axes[:-1] else self._stride
    shape[axes[-1]] = last_dim_size
    return Meta(tuple(shape), kind, self._device, strides_behind(shape, stride, axes[-1:]))


@fft_c2r_op.body
def fft_c2r_body(out, self, dim, normalization, last_dim_size):
    """The inverse of a onesided transform of reals, which had `last_dim_size` elements along the last of `dim`."""
    axes = axes_of(self, dim)
    sizes = [self._shape[d] for d in axes[:-1]] + [last_dim_size]
    as_numpy(out)[...] = np.fft.irfftn(as_numpy(self), s=sizes, axes=axes, norm=BACK[normalization])


@structured(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    out="out",
    forward="linear",
    face=False,
    refuses="whole floating",
)
def fft_c2c_op(self, dim, normalization, forward):
    in_kind(self, REAL, "complex")
    strides = strides_behind(self._shape, self._stride, axes_of(self, dim))
    return Meta(self._shape, self._dtype, self._device, strides)


@fft_c2c_op.body
def fft_c2c_body(out, self, dim, normalization, forward):
    axes, x = axes_of(self, dim), as_numpy(self)
    transform, norms = (np.fft.fftn, THERE) if forward else (np.fft.ifftn, BACK)
    as_numpy(out)[...] = transform(x, axes=axes, norm=norms[normalization]) if axes else x


# --- derivatives ------------------------------------------------------------------------------------------------------


@fft_c2c_op.gradient("self")
def fft_c2c_gradient(grad, dim, normalization, forward):
    return fft_c2c_op.functional(grad, dim, normalization, forward)


@fft_r2c_op.gradient("self", for_complex=True)
def fft_r2c_gradient(grad, self_shape, dim, normalization, onesided):
    """The inverse transform of what is there; zeros stand for the half that was left out. Of it, the real part."""
    missing = self_shape[dim[-1]] - grad.shape[dim[-1]] if onesided else 0
    if missing:
        shape = [*grad.shape]
        shape[dim[-1]] = missing
        grad = ops.aten.cat.default([grad, grad.new_zeros(shape)], dim[-1])
    return fft_c2c_op.functional(grad, dim, normalization, False).real


@fft_c2r_op.gradient("self", for_complex=True)
def fft_c2r_gradient(grad, dim, normalization, last_dim_size):
    """The onesided transform. What the inverse has counted twice, since the other half follows from it, is doubled."""
    found = fft_r2c_op.functional(grad, dim, normalization, True)
    last, twice = dim[-1], last_dim_size - found.shape[dim[-1]]
    if twice <= 0:
        return found
    once, rest = found.narrow(last, 0, 1), found.shape[last] - 1 - twice
    parts = [once, found.narrow(last, 1, twice) * 2]
    return ops.aten.cat.default([*parts, found.narrow(last, 1 + twice, rest)] if rest else parts, last)
