"""Pooling: where the windows of an image lie, what the arguments must be; and pooling by the mean.

Windows have a size and a stride (`Pooling`), or there are so many of them that they cover the image (`adaptive_axis`).
Read next: max_pooling.py; kernels/cpu/pooling.py, to which all of them are windows along axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch.symbolic import SymInt
from redispatch.dispatch.tensor import Tensor, dtype, dtypes, empty
from redispatch.kernels.cpu import pooling
from redispatch.kernels.cpu.pooling import Axis, Windows3d

from ..declare.declare import Function, Operator, through
from ..declare.operator import composite, leaf_kernel
from ..declare.out_forms import copy_into_out
from ..declare.public import public
from ..declare.structured import not_implemented
from .convolution import as_dtype, compute_dtype, dense, like_images, zeros

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
        for k, p, d in zip(self.kernel, self.padding, self.dilation, strict=True):
            if p < 0:
                raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
            if p > (d * (k - 1) + 1) // 2:
                raise RuntimeError(
                    "pad should be at most half of effective kernel size, but got "
                    f"pad={p}, kernel_size={k} and dilation={d}"
                )
        check_images(name, x, dims)
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
        if any(isinstance(size, SymInt) for size in self.sizes):  # nobody looks through windows where there is no data
            return Windows3d([Axis(0, [], [], []) for _ in self.sizes], divisor)
        axes = [axis_of(n, k, p, s, d, self.ceil_mode, count_padding) for n, k, p, s, d in self.per_axis()]
        return Windows3d(axes, divisor)


def check_images(name: str, x: Tensor, dims: int) -> None:
    ndim = len(x._shape)
    if ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input")
    if any(size == 0 for size in (x._shape[1:] if ndim == dims + 2 else x._shape)):
        if dims == 3:
            first = next(d for d, size in enumerate(x._shape[-4:]) if size == 0)
            raise RuntimeError(
                f"{name}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
                f"{list(x._shape)} and non-batch dimension {first} has length zero!"
            )
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(x._shape)}"
        )


def check_dtype(name: str, x: Tensor, integers: Sequence[dtype] = ()) -> None:
    """Refuses what is neither floating nor one of these."""
    if not x._dtype.is_floating_point and x._dtype not in integers:
        raise not_implemented(name, x._dtype)


def check_counts(name: str, counts: Sequence[int], dims: int) -> None:
    """Raises RuntimeError unless there is a number of windows for each dimension."""
    if len(counts) != dims:
        raise RuntimeError(f"{name}: output_size must be {dims}")
    if min(counts) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, counts))}}}"
        )


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


def check_gradient(grad: Tensor, shape: Sequence[int]) -> None:
    """RuntimeError where the gradient of the result has another shape than that."""
    if tuple(grad._shape) != tuple(shape):
        raise RuntimeError(f"Expected grad_output of shape {list(shape)}, but got {list(grad._shape)}")


MANY = 1 << 16  # windows along an axis, before which it is asked whether there is memory for their results


def covering(x: Tensor, counts: Sequence[int]) -> Windows3d:
    """So many windows along each of the last axes; none where nobody asks for them. RuntimeError where the memory for
    their results is not to be had."""
    sizes = x._shape[len(x._shape) - len(counts) :]
    if x._device.type == "meta" or not x._shape.numel():
        sizes, counts = [0] * len(counts), [0] * len(counts)
    elif max(counts) > MANY:
        empty((*x._shape[: -len(counts)], *counts), x._dtype)
    return Windows3d([adaptive_axis(size, count) for size, count in zip(sizes, counts, strict=True)])


def images_of(x: Tensor, dims: int) -> int:
    """Returns the number of images: samples times channels."""
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


def kernels_of(schema: str, function: Function, **facts: Any) -> Operator:
    """An operator whose kernel asks ELSEWHERE, where the tensors are not on the CPU."""
    op: Operator = leaf_kernel(schema, face=False, **facts)(function)
    OPERATORS.append(op)
    return op


# --- means -----------------------------------------------------------------------------------------------------------


def averaged(self: Tensor, windows: Windows3d, shape: Sequence[int], dims: int) -> Tensor:
    if self._device.type in ELSEWHERE:
        return laid(ELSEWHERE[self._device.type].means(self, windows, shape, dims), self, dims)
    out = empty(shape, self._dtype, self._device)
    if out._array is not None and out._shape.numel():
        pooling.means(out._operand, dense(self, self._dtype)._operand, windows, images_of(self, dims))
    return laid(out, self, dims)


def shared_out(grad: Tensor, self: Tensor, windows: Windows3d, dims: int) -> Tensor:
    """The gradient of the means."""
    if self._device.type == "meta":
        return laid(empty(self._shape, grad._dtype, self._device), self, dims)
    if self._device.type in ELSEWHERE:
        return laid(ELSEWHERE[self._device.type].spread(grad, self, windows, dims), self, dims)
    images = images_of(self, dims)
    return added(
        self,
        grad,
        dims,
        lambda out, dtype: pooling.spread(out._operand, dense(grad, dtype)._operand, windows, images),
    )


HOW = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")


class Means(Pooling):
    """The arguments of `avg_pool2d`, for two dimensions, checked; and the windows."""

    def __init__(
        self, dims: int, x: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count: bool, divisor: Any
    ) -> None:
        if divisor == 0:
            raise RuntimeError("divisor must be not zero")
        super().__init__(f"avg_pool{dims}d", x, dims, kernel, stride, padding, [1], ceil_mode)
        if dims == 3 and any(size < k for size, k in zip(self.sizes, self.kernel, strict=True)):
            sizes = " ".join(f"{a}: {n}" for a, n in zip(("T", "H", "W"), self.sizes, strict=True))
            kernels = " ".join(f"{a}: {n}" for a, n in zip(("kT", "kH", "kW"), self.kernel, strict=True))
            raise RuntimeError(f"input image ({sizes}) smaller than kernel size ({kernels})")
        self.placed = self.windows(count, divisor or 0)


def declare_mean(dims: int) -> Any:
    """`avg_pool2d`, for two dimensions."""
    name, n = f"avg_pool{dims}d", f"int[{dims}]"

    def check(kernel: str, x: Tensor) -> None:
        if dims == 3 and x._dtype in (dtypes.float16, dtypes.bfloat16):
            raise not_implemented(f"{kernel}_out_frame", x._dtype)
        check_dtype(kernel if dims == 2 else f"{kernel}_out_frame", x, (dtypes.int64,))

    def forward(self: Tensor, *how: Any) -> Tensor:
        setting = Means(dims, self, *how)
        check(name, self)
        return averaged(self, setting.placed, setting.shape, dims)

    def backward(grad_output: Tensor, self: Tensor, *how: Any) -> Tensor:
        setting = Means(dims, self, *how)
        check_gradient(grad_output, setting.shape)
        check(f"{name}_backward", grad_output)
        return shared_out(grad_output, self, setting.placed, dims)

    refused = "bool uint8 int8 int16 int32 complex" + " halves" * (dims == 3)
    op = kernels_of(
        f"{name}(Tensor self, {n} kernel_size, {n} stride=[], {n} padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        forward,
        out="out",
        forward="linear",
        refuses=refused,
        core=True,
        autocast=in_float32(dims),
    )
    backward_op = kernels_of(
        f"{name}_backward(Tensor grad_output, Tensor self, {n} kernel_size, {n} stride, {n} padding, bool ceil_mode, "
        "bool count_include_pad, int? divisor_override) -> Tensor",
        backward,
        out="grad_input",
        derivative={"grad_output": through(op, "grad", *HOW), "self": nothing},
        forward="linear",
        refuses=refused,
        core=dims == 2,
    )
    op.derivative(self=through(backward_op, "grad", "self", *HOW))
    return public(op, method=False, module="nn", doc=f"Returns the mean of each window over {dims} dimensions.")


avg_pool2d, avg_pool3d = declare_mean(2), declare_mean(3)


@composite(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    method=False,
    core=True,
    late_out=True,
    refuses="bool uint8 int8 int16 int32 complex",
)
def avg_pool1d(self: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count: bool) -> Any:
    """Returns the mean of each window of a signal."""
    image, lists = as_row("avg_pool1d", self, (1, kernel), (1, stride), (0, padding))
    return avg_pool2d.operators[0](image, *lists, ceil_mode, count).squeeze(-2)


def declare_adaptive(dims: int) -> Any:
    """`adaptive_avg_pool2d`, for two dimensions: as many windows as are asked for."""
    name, suffix = f"adaptive_avg_pool{dims}d", "" if dims == 2 else "_cpu"

    def forward(self: Tensor, output_size: Sequence[int]) -> Tensor:
        check_counts(name, output_size, dims)
        check_adaptive(name, self, dims, channels=False)
        if self._shape.numel():
            check_dtype(f"{name}{suffix}", self)
        return averaged(self, covering(self, output_size), (*self._shape[:-dims], *output_size), dims)

    def backward(grad_output: Tensor, self: Tensor) -> Tensor:
        if grad_output._shape[:-dims] != self._shape[:-dims]:
            raise RuntimeError(
                f"Expected grad_output of shape {list(self._shape[:-dims])} and more, got {list(grad_output._shape)}"
            )
        check_dtype(f"{name}_backward{suffix}", grad_output)
        return shared_out(grad_output, self, covering(self, grad_output._shape[-dims:]), dims)

    def second(grad: Any, grad_output_shape: Any) -> Tensor:
        return inner_op.functional(grad, list(grad_output_shape[-dims:]))

    backward_op = kernels_of(
        f"_{name}_backward(Tensor grad_output, Tensor self) -> Tensor",
        backward,
        derivative={"grad_output": second, "self": nothing},
        forward="linear",
        refuses="whole complex",
        core=dims == 2,
    )
    inner_op = kernels_of(
        f"_{name}(Tensor self, SymInt[{dims}] output_size) -> Tensor",
        forward,
        derivative=through(backward_op, "grad", "self"),
        forward="linear",
        refuses="whole complex",
        core=True,
    )

    def plain(self: Any, output_size: Sequence[int]) -> Any:
        if list(output_size) == [1] * dims:
            return self.mean([-1, -2, -3][:dims], True)
        return inner_op.functional(self, output_size)

    schema = f"{name}(Tensor self, SymInt[{dims}] output_size) -> Tensor"
    facts: dict[str, Any] = {
        "refuses": "whole complex",
        "autocast": in_float32(dims),
        "doc": f"Returns the mean of each of so many windows over {dims} dimensions.",
    }
    return composite(schema, out="out", method=False, module="nn", out_by=copy_into_out, **facts)(plain)


adaptive_avg_pool2d, adaptive_avg_pool3d = declare_adaptive(2), declare_adaptive(3)


def check_signal(name: str, self: Tensor, output_size: Sequence[int]) -> None:
    """Raises RuntimeError unless it is a signal, or a batch of some, and there is one number of windows."""
    ndim = len(self._shape)
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {name})"
        )
    if len(output_size) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(output_size)})")


@composite(
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    method=False,
    core=True,
    late_out=True,
    refuses="whole complex",
)
def adaptive_avg_pool1d(self: Any, output_size: Sequence[int]) -> Any:
    """Returns the means of `output_size` windows of a signal."""
    check_signal("adaptive_avg_pool1d", self, output_size)
    return adaptive_avg_pool2d.operators[0](self.unsqueeze(-2), [1, *output_size]).squeeze(-2)
