"""What pooling operators have in common: where the windows of an image lie, and what their arguments must be.

Windows have a size and a stride (`Pooling`), or there are so many of them that they cover the image (`adaptive_axis`).
Read next: max_pooling.py, mean_pooling.py; kernels/cpu/pooling.py, to which all of them are windows along axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch.tensor import Tensor, dtype, dtypes
from redispatch.kernels.cpu.pooling import Axis, Windows3d

from ..declare.declare import Operator
from ..declare.structured import not_implemented
from .convolution import as_dtype, compute_dtype, like_images, zeros

INTEGERS = (dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)


class Loops(NamedTuple):
    """The functions that do the work for tensors that are not on the CPU. Results lie row by row.

    largest:   of (images, shape, windows, dims) the largest elements and their places
    at_random: of (images, setting, random numbers) the same
    put_back:  of (gradient, images, places, windows) the gradient for the images
    means:     of (images, windows, shape, dims)
    spread:    of (gradient, images, windows, dims) the gradient for the images
    """

    largest: Callable[..., tuple[Tensor, Tensor]]
    at_random: Callable[..., tuple[Tensor, Tensor]]
    put_back: Callable[..., Tensor]
    means: Callable[..., Tensor]
    spread: Callable[..., Tensor]


ELSEWHERE: dict[str, Loops] = {}  # by type of device
OPERATORS: list[Operator] = []  # whose kernels at the key CPU ask that table, and so do for other keys, too

# --- windows ---------------------------------------------------------------------------------------------------------


def sizes_over(
    name: str, what: str, values: Sequence[int], dims: int, missing: Sequence[int] | None = None
) -> list[int]:
    """One value for each dimension; a single one serves all, and none at all is `missing`, where that may be."""
    if not values and missing is not None:
        return list(missing)
    if len(values) not in (1, dims):
        words = {1: "one int", 2: "a tuple of two ints", 3: "a tuple of three ints"}[dims]
        omitted = "omitted, " if missing is not None else ""
        raise RuntimeError(f"{name}: {what} must {omitted or 'either '}be a single int, or {words}")
    return list(values) * (dims if len(values) == 1 else 1)


def pooled_size(size: int, k: int, p: int, step: int, d: int, ceil_mode: bool) -> int:
    """The number of windows along an axis. One that is rounded up starts inside the image or its left padding."""
    span = size + 2 * p - d * (k - 1) - 1
    count = (span + (step - 1 if ceil_mode else 0)) // step + 1
    return count - 1 if ceil_mode and (count - 1) * step >= size + p else count


def axis_of(size: int, k: int, p: int, step: int, d: int, ceil_mode: bool, count_padding: bool = True) -> Axis:
    """The windows along one axis, cut off at the ends of the image."""
    begins = [i * step - p for i in range(pooled_size(size, k, p, step, d, ceil_mode))]
    starts = [begin + -(-max(0, -begin) // d) * d for begin in begins]  # the first element inside
    ends = [min(begin + d * (k - 1) + 1, size + p) for begin in begins]
    stops = [min(end, size) for end in ends]
    extents = [
        (end - begin) if count_padding else stop - start
        for begin, start, end, stop in zip(begins, starts, ends, stops, strict=True)
    ]
    return Axis(size, starts, stops, extents, d, step, -p, k)


def adaptive_axis(size: int, count: int) -> Axis:
    """So many windows, as equal as they can be, that cover the axis; they may overlap."""
    starts = [i * size // count for i in range(count)]
    stops = [-(-(i + 1) * size // count) for i in range(count)]
    return Axis(size, starts, stops, [b - a for a, b in zip(starts, stops, strict=True)])


def in_float32(dims: int) -> dict[str, str]:
    """The policies of pooling under autocast, which PyTorch has for three dimensions alone."""
    return {"cpu": "fp32"} if dims == 3 else {}


class Pooling:
    """The arguments of a pooling operator, checked: lists with an item for each dimension.

    Errors: RuntimeError, in PyTorch's words.
    """

    def __init__(
        self, name: str, x: Tensor, dims: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> None:
        self.name, self.dims, self.ceil_mode = name, dims, ceil_mode
        self.kernel = sizes_over(name, "kernel_size", kernel, dims)
        self.stride = sizes_over(name, "stride", stride, dims, self.kernel)
        self.padding = sizes_over(name, "padding", padding, dims)
        self.dilation = sizes_over(name, "dilation", dilation, dims)
        if any(number <= 0 for number in self.stride):
            raise RuntimeError("stride should not be zero")
        if any(number <= 0 for number in self.kernel):
            raise RuntimeError("kernel size should be greater than zero")
        if any(number <= 0 for number in self.dilation):
            names = " ".join(f"dilation{'THW'[-dims:][i]}: {d}" for i, d in enumerate(self.dilation))
            raise RuntimeError(f"dilation should be greater than zero, but got {names}")
        check_images(x, dims)
        for k, p, d in zip(self.kernel, self.padding, self.dilation, strict=True):
            if p < 0:
                raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
            if p > (d * (k - 1) + 1) // 2:
                raise RuntimeError(
                    "pad should be at most half of effective kernel size, but got "
                    f"pad={p}, kernel_size={k} and dilation={d}"
                )
        self.sizes = list(x._shape[-dims:])
        self.counts = [pooled_size(n, k, p, step, d, ceil_mode) for n, k, p, step, d in self.per_axis()]
        if any(count < 1 for count in self.counts):
            planes = x._shape[-dims - 1]
            raise RuntimeError(
                f"Given input size: ({'x'.join(map(str, [planes, *self.sizes]))}). Calculated output size: "
                f"({'x'.join(map(str, [planes, *self.counts]))}). Output size is too small"
            )
        self.shape = (*x._shape[:-dims], *self.counts)

    def per_axis(self) -> list[Any]:
        return list(zip(self.sizes, self.kernel, self.padding, self.stride, self.dilation, strict=True))

    def windows(self, count_padding: bool = True, divisor: int = 0) -> Windows3d:
        axes = [axis_of(n, k, p, s, d, self.ceil_mode, count_padding) for n, k, p, s, d in self.per_axis()]
        return Windows3d(axes, divisor)


def check_images(x: Tensor, dims: int) -> None:
    ndim = len(x._shape)
    if ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
    if any(size == 0 for size in (x._shape[1:] if ndim == dims + 2 else x._shape)):
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(x._shape)}"
        )


def check_dtype(name: str, x: Tensor, integers: Sequence[dtype] = ()) -> None:
    """Refuses what is neither floating nor one of these."""
    if not x._dtype.is_floating_point and x._dtype not in integers:
        raise not_implemented(name, x._dtype)


def check_adaptive(name: str, self: Tensor, dims: int, channels: bool) -> None:
    """RuntimeError for another number of dimensions, or an empty one: of an image, or of its channels, too."""
    ndim = len(self._shape)
    if ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{':' * channels} {list(self._shape)}"
        )
    for d in range(ndim - dims - channels, ndim):
        if self._shape[d] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(self._shape)} with dimension {d} being empty"
            )


def images_of(x: Tensor, dims: int) -> int:
    """How many images there are: samples times channels."""
    count = 1
    for size in x._shape[:-dims]:
        count *= size
    return count


def as_row(name: str, self: Any, *lists: Any) -> tuple[Any, list[list[int]]]:
    """An image of one row, and the arguments for it: 1 or 0 in the added dimension."""
    if len(self._shape) not in (2, 3):
        raise RuntimeError(f"{name}() Expected 2D or 3D input tensor, but got {list(self._shape)}")
    return self.unsqueeze(-2), [[first, *one] if one else [] for first, one in lists]


def at_places(dims: int) -> Callable[[Any, Any], Any]:
    """A formula: the gradients that are at the places `indices` of each image."""

    def formula(grad: Any, indices: Any) -> Any:
        return grad.flatten(-dims).gather(-1, indices.flatten(-dims)).view(indices.shape)

    return formula


def nothing(grad: Any, self_shape: Any) -> Any:
    """The gradient of a backward operator with respect to the images: it is linear in the other gradient alone."""
    return grad.new_zeros(self_shape)


def laid(x: Tensor, like: Tensor, dims: int) -> Tensor:
    """A batch of results, channels last if the images are."""
    return like_images(x, like) if len(like._shape) == dims + 2 else x


def added(like: Tensor, grad: Tensor, dims: int, add: Any) -> Tensor:
    """The gradient of the images `like`: zeros, to which `add(result, dtype)` adds what flows in."""
    compute = compute_dtype(grad)
    out = zeros(like._shape, compute, like._device)
    if out._shape.numel() and grad._shape.numel():
        add(out, compute)
    return laid(as_dtype(out, grad._dtype), like, dims)
