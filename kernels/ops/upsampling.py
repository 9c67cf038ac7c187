"""Resizing images: nearest elements, lines and cubics through them, and filters that shrink without aliasing.

Each axis is resized by a sparse matrix of its own (resampling.py), and the gradient by its transpose. An operator takes
the size of the result and, if the caller gave them, the factors; its overload `vec` takes a list of either.

`interpolate` (frontend/nn/images.py) chooses among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import dataclass
from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels import as_ndarray
from redispatch.kernels.cpu.resample import AxisMap, picking

from ..declare.declare import through
from ..declare.operator import CUDA_FP32, composite, structured
from ..declare.public import public
from ..declare.structured import not_implemented
from .convolution import copied
from .resampling import (
    Hill,
    Resizing,
    filtered,
    interpolated,
    keys,
    lanczos,
    nearest,
    nearest_exact,
    resampled,
    shaped_like,
    triangle,
)

SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}
MapOf = Callable[[Resizing, Any], AxisMap]  # how an axis is resized and in what precision -> its map


@dataclass(frozen=True)
class Kind:
    """One way of resizing."""

    name: str
    dims: int
    along: MapOf
    kernel: str  # under which PyTorch's kernel refuses dtypes
    aligns: bool = True  # whether there is a choice of `align_corners`
    bytes: bool = False  # whether it takes uint8
    lays_gradient: bool = True  # whether a gradient gets the memory format of the one that flows in
    filters: bool = False  # whether it is without aliasing; PyTorch has no 16-bit floats for those

    def axes(self, sizes: Sequence[int], counts: Sequence[int], how: Sequence[Any], real: Any) -> list[AxisMap]:
        """The map of each axis; `how` is align_corners, if there is that choice, and the factors."""
        align, scales = (bool(how[0]), how[1:]) if self.aligns else (False, how)
        each = zip(sizes, counts, scales, strict=True)
        return [self.along(Resizing(size, count, scale, align), real) for size, count, scale in each]

    def real(self, x: Tensor) -> Any:
        """The precision in which the maps for such images are computed."""
        exact = x._dtype is dtypes.float64 or (x._dtype is dtypes.uint8 and self.aligns)
        return np.float64 if exact else np.float32

    def check_sizes(self, sizes: Sequence[int], output_size: Sequence[int]) -> None:
        """RuntimeError, in PyTorch's words, where these are no sizes of images."""
        dims = self.dims
        if len(output_size) != dims:
            raise RuntimeError(f"It is expected output_size equals to {dims}, but got size {len(output_size)}")
        if len(sizes) != dims + 2:
            raise RuntimeError(f"It is expected input_size equals to {dims + 2}, but got size {len(sizes)}")
        if any(size <= 0 for size in (*sizes[2:], *output_size)):
            had, made = (
                ", ".join(f"{side}: {n}" for side, n in zip("DHW"[-dims:], numbers, strict=True))
                for numbers in (sizes[2:], output_size)
            )
            raise RuntimeError(
                f"Input and output sizes should be greater than 0, but got input ({had}) {'and ' * (dims == 1)}output "
                f"({made})"
            )

    def check_images(self, x: Tensor, output_size: Sequence[int]) -> None:
        self.check_sizes(x._shape, output_size)
        if x._shape.numel() == 0 and 0 in x._shape[1:]:
            raise RuntimeError(
                f"Non-empty {self.dims + 2}D data tensor expected but got a tensor with sizes {list(x._shape)}"
            )
        self.check_dtype(self.kernel, x, self.bytes)

    def check_gradient(self, grad: Tensor, output_size: Sequence[int], input_size: Sequence[int]) -> None:
        self.check_sizes(input_size, output_size)
        if len(grad._shape) != self.dims + 2:
            raise RuntimeError(
                f"Expected grad_output to be a tensor of dimension {self.dims + 2} but got: dimension "
                f"{len(grad._shape)}"
            )
        for d, (expected, got) in enumerate(zip((*input_size[:2], *output_size), grad._shape, strict=True)):
            if expected != got:
                raise RuntimeError(
                    f"Expected grad_output to have the same shape as output; output.size({d}) = {expected} but got "
                    f"grad_output.size({d}) = {got}"
                )
        name = f"{self.name.removeprefix('_')}_backward_cpu" if self.filters else f"{self.name}_backward"
        self.check_dtype(name, grad, False)

    def check_dtype(self, kernel: str, x: Tensor, bytes: bool) -> None:
        floats = FULL_FLOATS if self.filters else FLOATS
        if x._dtype not in floats and not (bytes and x._dtype is dtypes.uint8) and x._shape.numel():
            raise not_implemented(kernel, x._dtype)


FULL_FLOATS = (dtypes.float32, dtypes.float64)
FLOATS = (*FULL_FLOATS, dtypes.float16, dtypes.bfloat16)


def declare(kind: Kind) -> Any:
    """`upsample_bilinear2d`, its overload `vec` and `upsample_bilinear2d_backward`."""
    name, dims = kind.name, kind.dims
    align = "bool align_corners, " if kind.aligns else ""
    scales = ", ".join(f"float? {scale}=None" for scale in SCALES[dims])
    sizes = f"SymInt[{dims}] output_size"
    how = (*["align_corners"] * kind.aligns, *SCALES[dims])

    @structured(
        f"{name}_backward(Tensor grad_output, {sizes}, SymInt[{dims + 2}] input_size, {align}{scales}) -> Tensor",
        out="grad_input",
        refuses="whole halves complex" if kind.filters else "whole complex",
        face=False,
        forward="linear",
    )
    def backward(grad_output, output_size, input_size, *how):
        kind.check_gradient(grad_output, output_size, input_size)
        look = shaped_like(input_size, grad_output)
        return look if kind.lays_gradient else look._replace(strides=None)

    @backward.body
    def backward_body(out, grad_output, output_size, input_size, *how):
        axes = kind.axes(input_size[2:], output_size, how, kind.real(grad_output))
        resampled(out, grad_output, [axis.transposed for axis in axes])

    @structured(
        f"{name}(Tensor self, {sizes}, {align}{scales}) -> Tensor",
        out="out",
        autocast={} if "lanczos" in name else CUDA_FP32,  # PyTorch lists all others
        refuses=("whole", "bool int8 int16 int32 int64")[kind.bytes] + " halves" * kind.filters + " complex",
        derivative=through(backward, "grad", "output_size", "self_shape", *how),
        forward="linear",
        face=False,
    )
    def op(self, output_size, *how):
        kind.check_images(self, output_size)
        return shaped_like((*self._shape[:2], *output_size), self)

    @op.body
    def body(out, self, output_size, *how):
        axes = kind.axes(self._shape[2:], output_size, how, kind.real(self))
        if self._dtype is dtypes.uint8 and any(axis.weights is not None for axis in axes):
            resampled_bytes(out, self, axes)
        else:
            resampled(out, self, axes)

    backward.derivative(grad_output=through(op, "grad", "output_size", *how))
    vec = declare_by_factors(op, name, dims, align)
    way = name.strip("_").removeprefix("upsample_").replace("_", " ")
    return public(op, vec, method=False, module="nn", doc=f"Returns images of another size: {way}.")


def declare_by_factors(op: Any, name: str, dims: int, align: str) -> Any:
    """`upsample_bilinear2d.vec`, which takes the sizes or the factors; `align` declares `align_corners`."""
    listed = name in ("upsample_nearest2d", "upsample_bilinear2d")

    @composite(
        f"{name}.vec(Tensor input, SymInt[]? output_size, {align}float[]? scale_factors) -> Tensor",
        core=listed,
        late_out=listed,
    )
    def vec(input, output_size, *how):
        *align, factors = how
        counts = counts_of(list(input._shape[2:]), output_size, factors, dims)
        return op.functional(input, counts, *align, *(factors or [None] * dims))

    return vec


def counts_of(sizes: list[int], output_size: Any, factors: Any, dims: int) -> list[int]:
    """The sizes of the result, from these or from the factors."""
    if (output_size is None) == (factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    name, given = ("output_size", output_size) if factors is None else ("scale_factors", factors)
    if len(given) != dims:
        raise RuntimeError(
            f"Expected static_cast<int64_t>({name}->size()) == spatial_dimensions to be true, but got false.  (Could "
            "this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if factors is None:
        return list(output_size)
    return [math.trunc(size * factor) for size, factor in zip(sizes, factors, strict=True)]


def resampled_bytes(out: Tensor, x: Tensor, axes: Sequence[AxisMap]) -> None:
    """Fills `out`, of uint8: the last axis first, and each axis rounded to bytes, as PyTorch does.

    The weights become whole numbers of 15 bits over a power of two; sums of such products are exact in float64.
    """
    x = copied(x, dtypes.float64)
    for d, axis in reversed(list(enumerate(axes))):
        if axis.count == axis.size:
            continue
        weights: Any = axis.merged.weights
        heaviest = max(weights.max(), axis.weights.max())  # type: ignore[union-attr]  # only picking has no weights
        bits = next(b for b in range(22) if b == 21 or int(0.5 + heaviest * (1 << (b + 1))) >= 1 << 15)
        whole = np.trunc(weights * (1 << bits) + np.copysign(0.5, weights))
        others = [picking(size, np.arange(size)) for size in x._shape[2:]]
        others[d] = AxisMap(axis.size, axis.merged.starts, axis.merged.places, whole)
        made = empty((*x._shape[: 2 + d], axis.count, *x._shape[3 + d :]), dtypes.float64)
        resampled(made, x, others)
        sums = as_ndarray(made._operand)
        np.clip(np.floor((sums + (1 << bits >> 1)) / (1 << bits)), 0, 255, out=sums)
        x = made
    kernels.copy(out._operand, x._operand)


# --- the operators ---------------------------------------------------------------------------------------------------

NEAREST, LINEAR, CUBIC = (f"compute_indices_weights_{kind}" for kind in ("nearest", "linear", "cubic"))
FILTER = "compute_index_ranges_weights"


line, cubic = partial(interpolated, cubic=False), partial(interpolated, cubic=True)


def declare_nearest(dims: int, exact: bool) -> Any:
    name, along = ("_upsample_nearest_exact", nearest_exact) if exact else ("upsample_nearest", nearest)
    kernel = "upsample_nearest2d_channels_last" if dims == 2 else NEAREST
    return declare(Kind(f"{name}{dims}d", dims, along, kernel, aligns=False, bytes=True, lays_gradient=dims != 3))


def declare_filter(name: str, hill: Hill) -> Any:
    along, lays = partial(filtered, hill=hill), hill is triangle
    return declare(Kind(f"_upsample_{name}2d_aa", 2, along, FILTER, bytes=True, lays_gradient=lays, filters=True))


upsample_nearest1d, upsample_nearest_exact1d = declare_nearest(1, False), declare_nearest(1, True)
upsample_nearest2d, upsample_nearest_exact2d = declare_nearest(2, False), declare_nearest(2, True)
upsample_nearest3d, upsample_nearest_exact3d = declare_nearest(3, False), declare_nearest(3, True)
upsample_linear1d = declare(Kind("upsample_linear1d", 1, line, LINEAR))
upsample_bilinear2d = declare(Kind("upsample_bilinear2d", 2, line, "upsample_bilinear2d_channels_last", bytes=True))
upsample_trilinear3d = declare(Kind("upsample_trilinear3d", 3, line, LINEAR))
upsample_bicubic2d = declare(Kind("upsample_bicubic2d", 2, cubic, CUBIC, bytes=True, lays_gradient=False))
upsample_bilinear2d_aa = declare_filter("bilinear", triangle)
upsample_bicubic2d_aa = declare_filter("bicubic", keys)
upsample_lanczos2d_aa = declare_filter("lanczos", lanczos)
