"""Images, as functions and as modules: padding, resizing, sampling, windows as columns, channels as pixels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from redispatch.dispatch.symbolic import SymInt
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import folding, grid_sampling, padding, pooling, rearrange, upsampling

from .derived import by_dims, functional, module_of, shows
from .module import Module

pixel_shuffle, pixel_unshuffle = rearrange.pixel_shuffle, rearrange.pixel_unshuffle
channel_shuffle, native_channel_shuffle = rearrange.channel_shuffle, rearrange.native_channel_shuffle


def each(value: Any, dims: int) -> tuple[Any, ...]:
    """Returns one item for each dimension."""
    return tuple(value) if isinstance(value, list | tuple) else (value,) * dims


@overridable_function
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """`input` with more around it: two widths for each dimension, the last one first; negative ones cut off.

    mode: "constant" for `value`, "reflect" for a mirror, "replicate" for the edge, "circular" for the other side.
    """
    return padding.pad(input, list(pad), mode, value)


# --- padding ---------------------------------------------------------------------------------------------------------


class _Pad(Module):
    """`padding` is one width for all sides, or two for each dimension, the last one first."""

    dims: int
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Any) -> Any:
        return functional.pad(input, self.padding, self.mode)

    extra_repr = shows("", "padding")


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return functional.pad(input, self.padding, "constant", self.value)

    extra_repr = shows("padding value")


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Any) -> Any:
        least = self.dims + 1
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")
        return super().forward(input)


_PADDED = """

    padding: one width for all sides, or two for each dimension, the last one first.
    Shapes: (batch, channels, {size}) -> the same with larger sides, the batch optional.
    """
ConstantPad1d, ConstantPad2d, ConstantPad3d = by_dims(_ConstantPad, "Puts the number `value` around {image}." + _PADDED)
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = by_dims(
    _Pad, "Mirrors {image} at its edges." + _PADDED, name="ReflectionPad", dims=(1, 2, 3), mode=["reflect"] * 3
)
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = by_dims(
    _Pad, "Repeats the edges of {image}." + _PADDED, name="ReplicationPad", dims=(1, 2, 3), mode=["replicate"] * 3
)
CircularPad1d, CircularPad2d, CircularPad3d = by_dims(_CircularPad, "Continues {image} from its other side." + _PADDED)


class ZeroPad1d(_ZeroPad, ConstantPad1d):  # type: ignore[valid-type, misc]  # a class that module_of made
    """Puts zeros before and behind a length."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):  # type: ignore[valid-type, misc]  # a class that module_of made
    """Puts zeros around an image."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):  # type: ignore[valid-type, misc]  # a class that module_of made
    """Puts zeros around a volume."""


# --- resizing --------------------------------------------------------------------------------------------------------

RESIZE: dict[tuple[str, int], Any] = {
    ("nearest", 1): upsampling.upsample_nearest1d,
    ("nearest", 2): upsampling.upsample_nearest2d,
    ("nearest", 3): upsampling.upsample_nearest3d,
    ("nearest-exact", 1): upsampling.upsample_nearest_exact1d,
    ("nearest-exact", 2): upsampling.upsample_nearest_exact2d,
    ("nearest-exact", 3): upsampling.upsample_nearest_exact3d,
    ("area", 1): pooling.adaptive_avg_pool1d,
    ("area", 2): pooling.adaptive_avg_pool2d,
    ("area", 3): pooling.adaptive_avg_pool3d,
    ("linear", 1): upsampling.upsample_linear1d,
    ("bilinear", 2): upsampling.upsample_bilinear2d,
    ("trilinear", 3): upsampling.upsample_trilinear3d,
    ("bicubic", 2): upsampling.upsample_bicubic2d,
}
FILTER: dict[str, Any] = {
    "bilinear": upsampling.upsample_bilinear2d_aa,
    "bicubic": upsampling.upsample_bicubic2d_aa,
    "lanczos": upsampling.upsample_lanczos2d_aa,
}
WITHOUT_CORNERS = ("nearest", "area", "nearest-exact")
NEEDS = {"linear": 3, "bilinear": 4, "trilinear": 5}


@overridable_function
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Images (n, channels, ...) resized to `size`, or by `scale_factor`: a number, or one for each dimension.

    mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area", "lanczos".
    align_corners: the middles of the corner elements stay where they are, and not the corners of the image.
    antialias: shrinks without aliasing; for "bilinear" and "bicubic", and always for "lanczos".
    Errors: ValueError for options that do not go together, NotImplementedError for a mode that is for other images.
    """
    if mode in WITHOUT_CORNERS:
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    dims, align = input.dim() - 2, bool(align_corners)
    sizes, factors = _target(input, size, scale_factor)
    if recompute_scale_factor and sizes is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if recompute_scale_factor or (mode == "area" and sizes is None):
        sizes, factors = [int(n * f) for n, f in zip(input.shape[2:], factors, strict=True)], None
    if antialias and not (mode in FILTER and dims == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and dims == 2:
        if align:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    if antialias:
        return FILTER[mode](input, sizes, align, factors)
    resize = RESIZE.get((mode, dims))
    if resize is None:
        raise _no_way(mode, input.dim())
    if mode == "area":
        return resize(input, sizes)
    return resize(input, sizes, *([] if mode in WITHOUT_CORNERS else [align]), factors)


def _target(input: Tensor, size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """(sizes, None) or (None, factors), each a list with an item for each dimension of space."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    dims = input.dim() - 2
    if size is None:
        return None, _each(scale_factor, dims, input, "scale_factor", "scale_factor of shape ", "s")
    sizes = _each(size, dims, input, "output", "output size of ", "o")
    if not all(isinstance(n, int | SymInt) for n in sizes):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with types {[type(n) for n in sizes]}"
        )
    return sizes, None


def _each(given: Any, dims: int, input: Tensor, name: str, described: str, letter: str) -> list[Any]:
    """One item for each dimension of space."""
    if not isinstance(given, list | tuple):
        return [given] * dims
    if len(given) != dims:
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and {described}{given}. Please provide input tensor in (N, C, d1, d2, "
            f"...,dK) format and {described.partition(' of ')[0]} in ({letter}1, {letter}2, ...,{letter}K) format."
        )
    return list(given)


def _no_way(mode: str, ndim: int) -> NotImplementedError:
    if mode in NEEDS and ndim in (3, 4, 5):
        return NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {NEEDS[mode]}D input")
    return NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


@overridable_function
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """`interpolate` under its old name."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@overridable_function
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate(mode="nearest")` under its old name."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@overridable_function
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate(mode="bilinear", align_corners=True)` under its old name."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", UserWarning, stacklevel=4
    )


class Upsample(Module):
    """Resizes images (n, channels, ...) to a size, or by a factor: `functional.interpolate` with these arguments."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Any) -> Any:
        how = (self.size, self.scale_factor, self.mode, self.align_corners)
        return functional.interpolate(input, *how, recompute_scale_factor=self.recompute_scale_factor)

    def extra_repr(self) -> str:
        target = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{target}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes images by their nearest elements: (n, channels, height, width)."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes images by straight lines, their corner elements where they are: (n, channels, height, width)."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


# --- sampling --------------------------------------------------------------------------------------------------------

INTERPOLATIONS = ("bilinear", "nearest", "bicubic")  # by their numbers
OUTSIDES = ("zeros", "border", "reflection")


@overridable_function
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of images (n, channels, ...) at the points of a grid (n, ..., 2 or 3), with coordinates from -1 to 1.

    mode: "bilinear", "nearest" or "bicubic". padding_mode: "zeros", "border" or "reflection", for points outside.
    align_corners: -1 and 1 are the middles of the corner elements, and not the edges of the image.
    """
    if mode not in INTERPOLATIONS:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in OUTSIDES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    how = (INTERPOLATIONS.index(mode), OUTSIDES.index(padding_mode), _aligned("grid_sample", align_corners))
    return grid_sampling.grid_sampler(input, grid, *how)


@overridable_function
def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid of points to which affine maps theta[n, 2, 3] take the elements of images of this size; [n, 3, 4] in 3d.

    Errors: ValueError for maps of another shape or dtype, NotImplementedError for other sizes.
    """
    align = _aligned("affine_grid", align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    axes = len(size) - 2
    if axes not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (axes, axes + 1):
        raise ValueError(
            f"Expected a batch of {axes}D affine matrices of shape Nx{axes}x{axes + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if align and min(size[-axes:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            UserWarning,
            stacklevel=3,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return grid_sampling.affine_grid_generator(theta, list(size), align)


def _aligned(name: str, align_corners: bool | None) -> bool:
    """The choice; False, with a warning, where none was made."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            f"specify align_corners=True if the old behavior is desired. See the documentation of {name} for details.",
            UserWarning,
            stacklevel=4,
        )
    return bool(align_corners)


# --- windows as columns ----------------------------------------------------------------------------------------------


@overridable_function
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images (n, channels, height, width) as columns: (n, channels * elements of a window, windows)."""
    return folding.im2col(input, *(each(n, 2) for n in (kernel_size, dilation, padding, stride)))


@overridable_function
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Columns added up to images of this size, each element where `unfold` takes it from."""
    return folding.col2im(input, *(each(n, 2) for n in (output_size, kernel_size, dilation, padding, stride)))


Unfold = module_of("Unfold", unfold, inputs="input")
PixelShuffle = module_of(
    "PixelShuffle",
    pixel_shuffle,
    doc="Makes pixels of channels: (n, channels r², height, width) -> (n, channels, height r, width r).",
    upscale_factor=int,
)
PixelUnshuffle = module_of(
    "PixelUnshuffle",
    pixel_unshuffle,
    doc="Makes channels of pixels: (n, channels, height r, width r) -> (n, channels r², height, width).",
    downscale_factor=int,
)
ChannelShuffle = module_of(
    "ChannelShuffle",
    channel_shuffle,
    doc="Takes the channels of groups in turn, the first of each, then the second: (n, channels, ...) -> the same.",
    groups=int,
)


class Fold(Unfold):  # type: ignore[valid-type, misc]  # a class that module_of made
    """Adds up columns to images of a size, each element where Unfold takes it from.

    Shapes: (n, channels * elements of a window, windows) -> (n, channels, *output_size).
    """

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        how = (self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
        return functional.fold(input, *how)

    extra_repr = shows("output_size kernel_size dilation padding stride")
