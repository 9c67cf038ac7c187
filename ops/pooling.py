"""Pooling over one to three dimensions: the largest element of each window, or the mean.

max_pool, avg_pool   windows of a size and stride
adaptive_avg_pool    windows such that there are so many of them

Read next: kernels/pooling.py, to which all of these are windows along axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.kernels import pooling
from redispatch.kernels.pooling import Axis, Windows3d
from redispatch.tensor import Tensor, dtypes, empty

from .convolution import compute_dtype, copied, dense, like_images, zeros
from .declare import Operator
from .public import public

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
    return Axis(size, starts, stops, extents, d)


def adaptive_axis(size: int, count: int) -> Axis:
    """So many windows, as equal as they can be, that cover the axis; they may overlap."""
    starts = [i * size // count for i in range(count)]
    stops = [-(-(i + 1) * size // count) for i in range(count)]
    return Axis(size, starts, stops, [b - a for a, b in zip(starts, stops, strict=True)])


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
            names = ", ".join(f"dilation{'THW'[-dims:][i]}: {d}" for i, d in enumerate(self.dilation))
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


def check_dtype(name: str, x: Tensor, integers: bool = True) -> None:
    if x._dtype is dtypes.bool or x._dtype.is_complex or not (integers or x._dtype.is_floating_point):
        raise NotImplementedError(f"\"{name}\" not implemented for '{x._dtype.tensor_name}'")


def images_of(x: Tensor, dims: int) -> int:
    """How many images there are: samples times channels."""
    count = 1
    for size in x._shape[:-dims]:
        count *= size
    return count


def nothing(grad: Any, self_shape: Any) -> Any:
    """The gradient of a backward operator with respect to the images: it is linear in the other gradient alone."""
    return grad.new_zeros(self_shape)


def laid(x: Tensor, like: Tensor, dims: int) -> Tensor:
    """A batch of results, channels last if the images are."""
    return like_images(x, like) if len(like._shape) == dims + 2 else x


# --- the largest -----------------------------------------------------------------------------------------------------


def declare_max(dims: int) -> tuple[Any, Any]:
    """`max_pool2d` and `max_pool2d_with_indices`, for two dimensions."""
    name = f"max_pool{dims}d"
    n = f"int[{dims}]"
    rest = f"(Tensor self, {n} kernel_size, {n} stride=[], {n} padding=0, {n} dilation=1, bool ceil_mode=False)"
    both_op = Operator(f"{name}_with_indices{rest} -> (Tensor, Tensor)")
    backward_op = Operator(
        f"{name}_with_indices_backward(Tensor grad_output, Tensor self, {n} kernel_size, {n} stride, {n} padding, "
        f"{n} dilation, bool ceil_mode, Tensor indices) -> Tensor"
    )
    plain_op = Operator(f"{name}{rest} -> Tensor")

    @both_op.kernel("CPU", "Meta")
    def with_indices(self: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
        setting = Pooling(name, self, dims, *how)
        check_dtype(name, self)
        out = empty(setting.shape, self._dtype, self._device)
        places = empty(setting.shape, dtypes.int64, self._device)
        if out._array is not None and out._shape.numel():
            x = dense(self, self._dtype)
            pooling.largest(out._operand, places._operand, x._operand, setting.windows(), images_of(self, dims))
        return laid(out, self, dims), laid(places, self, dims)

    @backward_op.kernel("CPU", "Meta")
    def backward(grad_output: Tensor, self: Tensor, *how_and_indices: Any) -> Tensor:
        *how, indices = how_and_indices
        setting = Pooling(name, self, dims, *how)
        if tuple(grad_output._shape) != setting.shape or tuple(indices._shape) != setting.shape:
            raise RuntimeError(
                f"Expected grad_output and indices of shape {list(setting.shape)}, but got "
                f"{list(grad_output._shape)} and {list(indices._shape)}"
            )
        if self._device.type == "meta":
            return laid(empty(self._shape, grad_output._dtype, self._device), self, dims)
        compute = compute_dtype(grad_output)
        out, places = zeros(self._shape, compute), dense(indices, dtypes.int64)
        if out._shape.numel():
            grad = dense(grad_output, compute)
            pooling.put_back(out._operand, places._operand, grad._operand, setting.windows(), images_of(self, dims))
        return laid(copied(out, grad_output._dtype) if compute is not grad_output._dtype else out, self, dims)

    def gradient(
        grad: Any, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any, result1: Any
    ) -> Any:
        return backward_op.functional(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1)

    def second(grad: Any, indices: Any) -> Any:
        """What came from the places that were the largest."""
        shape = indices.shape
        return grad.flatten(-dims).gather(-1, indices.flatten(-dims)).view(shape)

    both_op.derivative(self=gradient, nondifferentiable=(1,))
    backward_op.derivative(grad_output=second, self=nothing)

    @plain_op.implicit
    def plain(self: Any, *how: Any) -> Any:
        return both_op.functional(self, *how)[0]

    return public(plain_op, method=False), public(both_op, method=False)


max_pool2d, max_pool2d_with_indices = declare_max(2)
max_pool3d, max_pool3d_with_indices = declare_max(3)

REST_1D = (
    "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False)"
)
max_pool1d_with_indices_op = Operator(f"max_pool1d_with_indices{REST_1D} -> (Tensor, Tensor)")
max_pool1d_op = Operator(f"max_pool1d{REST_1D} -> Tensor")


def as_row(name: str, self: Any, *lists: Any) -> tuple[Any, list[list[int]]]:
    """An image of one row, and the arguments for it: 1 or 0 in the added dimension."""
    if len(self._shape) not in (2, 3):
        raise RuntimeError(f"{name}() Expected 2D or 3D input tensor, but got {list(self._shape)}")
    return self.unsqueeze(-2), [[first, *one] if one else [] for first, one in lists]


@max_pool1d_with_indices_op.implicit
def max_pool1d_pair(self: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    image, lists = as_row("max_pool1d", self, (1, kernel), (1, stride), (0, padding), (1, dilation))
    values, places = max_pool2d_with_indices.operators[0](image, *lists, ceil_mode)
    return values.squeeze(-2), places.squeeze(-2)


@max_pool1d_op.implicit
def max_pool1d_composite(self: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    return max_pool1d_pair(self, kernel, stride, padding, dilation, ceil_mode)[0]


max_pool1d = public(max_pool1d_op, method=False)
max_pool1d_with_indices = public(max_pool1d_with_indices_op, method=False)

# --- the mean --------------------------------------------------------------------------------------------------------


def averaged(self: Tensor, windows: Windows3d, shape: Sequence[int], dims: int) -> Tensor:
    out = empty(shape, self._dtype, self._device)
    if out._array is not None and out._shape.numel():
        pooling.means(out._operand, dense(self, self._dtype)._operand, windows, images_of(self, dims))
    return laid(out, self, dims)


def shared_out(grad: Tensor, self: Tensor, windows: Windows3d, dims: int) -> Tensor:
    """The gradient of the means."""
    if self._device.type == "meta":
        return laid(empty(self._shape, grad._dtype, self._device), self, dims)
    compute = compute_dtype(grad)
    out = zeros(self._shape, compute)
    if out._shape.numel():
        pooling.spread(out._operand, dense(grad, compute)._operand, windows, images_of(self, dims))
    return laid(copied(out, grad._dtype) if compute is not grad._dtype else out, self, dims)


def declare_mean(dims: int) -> Any:
    """`avg_pool2d`, for two dimensions."""
    name, n = f"avg_pool{dims}d", f"int[{dims}]"
    op = Operator(
        f"{name}(Tensor self, {n} kernel_size, {n} stride=[], {n} padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor"
    )
    backward_op = Operator(
        f"{name}_backward(Tensor grad_output, Tensor self, {n} kernel_size, {n} stride, {n} padding, bool ceil_mode, "
        "bool count_include_pad, int? divisor_override) -> Tensor"
    )

    def read(self: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: Any, count: Any, divisor: Any) -> Any:
        if divisor == 0:
            raise RuntimeError("divisor must be not zero")
        setting = Pooling(name, self, dims, kernel, stride, padding, [1], ceil_mode)
        if dims == 3 and any(size < k for size, k in zip(setting.sizes, setting.kernel, strict=True)):
            sizes, kernels = (
                " ".join(f"{a}: {n}" for a, n in zip(names, numbers, strict=True))
                for names, numbers in ((("T", "H", "W"), setting.sizes), (("kT", "kH", "kW"), setting.kernel))
            )
            raise RuntimeError(f"input image ({sizes}) smaller than kernel size ({kernels})")
        return setting, setting.windows(count, divisor or 0)

    @op.kernel("CPU", "Meta")
    def forward(self: Tensor, *how: Any) -> Tensor:
        setting, windows = read(self, *how)
        check_dtype(name, self)
        return averaged(self, windows, setting.shape, dims)

    @backward_op.kernel("CPU", "Meta")
    def backward(grad_output: Tensor, self: Tensor, *how: Any) -> Tensor:
        setting, windows = read(self, *how)
        if tuple(grad_output._shape) != setting.shape:
            raise RuntimeError(
                f"Expected grad_output of shape {list(setting.shape)}, but got {list(grad_output._shape)}"
            )
        return shared_out(grad_output, self, windows, dims)

    def gradient(
        grad: Any,
        self: Any,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: Any,
        count_include_pad: Any,
        divisor_override: Any,
    ) -> Any:
        how = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return backward_op.functional(grad, self, *how)

    def second(
        grad: Any,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: Any,
        count_include_pad: Any,
        divisor_override: Any,
    ) -> Any:
        return op.functional(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

    op.derivative(self=gradient)
    backward_op.derivative(grad_output=second, self=nothing)
    return public(op, method=False)


avg_pool2d, avg_pool3d = declare_mean(2), declare_mean(3)

avg_pool1d_op = Operator(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor"
)


@avg_pool1d_op.implicit
def avg_pool1d_composite(self: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count: bool) -> Any:
    image, lists = as_row("avg_pool1d", self, (1, kernel), (1, stride), (0, padding))
    return avg_pool2d.operators[0](image, *lists, ceil_mode, count).squeeze(-2)


avg_pool1d = public(avg_pool1d_op, method=False)


def declare_adaptive(dims: int) -> Any:
    """`adaptive_avg_pool2d`, for two dimensions."""
    name = f"adaptive_avg_pool{dims}d"
    inner_op = Operator(f"_{name}(Tensor self, SymInt[{dims}] output_size) -> Tensor")
    backward_op = Operator(f"_{name}_backward(Tensor grad_output, Tensor self) -> Tensor")
    plain_op = Operator(f"{name}(Tensor self, SymInt[{dims}] output_size) -> Tensor")

    def windows_of(self: Tensor, counts: Sequence[int]) -> Windows3d:
        return Windows3d([adaptive_axis(s, c) for s, c in zip(self._shape[-dims:], counts, strict=True)])

    @inner_op.kernel("CPU", "Meta")
    def forward(self: Tensor, output_size: Sequence[int]) -> Tensor:
        ndim = len(self._shape)
        if len(output_size) != dims:
            raise RuntimeError(f"{name}: output_size must be {dims}")
        if ndim not in (dims + 1, dims + 2):
            raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got {list(self._shape)}")
        for i in range(1, dims + 1):
            if self._shape[-i] == 0:
                raise RuntimeError(
                    f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                    f"{list(self._shape)} with dimension {ndim - i} being empty"
                )
        if self._shape.numel():
            check_dtype(name if dims == 2 else f"{name}_cpu", self, integers=False)
        return averaged(self, windows_of(self, output_size), (*self._shape[:-dims], *output_size), dims)

    @backward_op.kernel("CPU", "Meta")
    def backward(grad_output: Tensor, self: Tensor) -> Tensor:
        if grad_output._shape[:-dims] != self._shape[:-dims]:
            raise RuntimeError(
                f"Expected grad_output of shape {list(self._shape[:-dims])} and more, got {list(grad_output._shape)}"
            )
        return shared_out(grad_output, self, windows_of(self, grad_output._shape[-dims:]), dims)

    inner_op.derivative(self=lambda grad, self: backward_op.functional(grad, self))
    backward_op.derivative(
        grad_output=lambda grad, grad_output_shape: inner_op.functional(grad, list(grad_output_shape[-dims:])),
        self=nothing,
    )

    @plain_op.implicit
    def plain(self: Any, output_size: Sequence[int]) -> Any:
        if dims == 2 and list(output_size) == [1, 1]:
            return self.mean([-1, -2], True)
        if dims == 3 and list(output_size) == [1, 1, 1]:
            return self.mean([-1, -2, -3], True)
        return inner_op.functional(self, output_size)

    return public(plain_op, method=False)


adaptive_avg_pool2d, adaptive_avg_pool3d = declare_adaptive(2), declare_adaptive(3)
adaptive_avg_pool1d_op = Operator("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")


@adaptive_avg_pool1d_op.implicit
def adaptive_avg_pool1d_composite(self: Any, output_size: Sequence[int]) -> Any:
    if len(self._shape) not in (2, 3):
        raise RuntimeError(f"adaptive_avg_pool1d() Expected 2D or 3D input tensor, but got {list(self._shape)}")
    return adaptive_avg_pool2d.operators[0](self.unsqueeze(-2), [1, *output_size]).squeeze(-2)


adaptive_avg_pool1d = public(adaptive_avg_pool1d_op, method=False)
