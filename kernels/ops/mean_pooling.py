"""Pooling by the mean, of windows of a size and stride or of as many windows as are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels.cpu import pooling
from redispatch.kernels.cpu.pooling import Windows3d
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator, through
from ..declare.public import public
from ..declare.structured import not_implemented
from .convolution import dense
from .pooling import (
    ELSEWHERE,
    OPERATORS,
    Pooling,
    adaptive_axis,
    added,
    as_row,
    check_adaptive,
    check_dtype,
    images_of,
    in_float32,
    laid,
    nothing,
)

# --- windows ---------------------------------------------------------------------------------------------------------


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
    refused = "bool uint8 int8 int16 int32 complex" + " halves" * (dims == 3)
    op = Operator(
        f"{name}(Tensor self, {n} kernel_size, {n} stride=[], {n} padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        out="out",
        refuses=refused,
        core=True,
        autocast=in_float32(dims),
    )
    backward_op = Operator(
        f"{name}_backward(Tensor grad_output, Tensor self, {n} kernel_size, {n} stride, {n} padding, bool ceil_mode, "
        "bool count_include_pad, int? divisor_override) -> Tensor",
        out="grad_input",
        refuses=refused,
        core=dims == 2,
    )

    def check(kernel: str, x: Tensor) -> None:
        if dims == 3 and x._dtype in (dtypes.float16, dtypes.bfloat16):
            raise not_implemented(f"{kernel}_out_frame", x._dtype)
        check_dtype(kernel if dims == 2 else f"{kernel}_out_frame", x, (dtypes.int64,))

    @op.kernel("CPU", "Meta")
    def forward(self: Tensor, *how: Any) -> Tensor:
        setting = Means(dims, self, *how)
        check(name, self)
        return averaged(self, setting.placed, setting.shape, dims)

    @backward_op.kernel("CPU", "Meta")
    def backward(grad_output: Tensor, self: Tensor, *how: Any) -> Tensor:
        setting = Means(dims, self, *how)
        if tuple(grad_output._shape) != setting.shape:
            raise RuntimeError(
                f"Expected grad_output of shape {list(setting.shape)}, but got {list(grad_output._shape)}"
            )
        check(f"{name}_backward", grad_output)
        return shared_out(grad_output, self, setting.placed, dims)

    OPERATORS.extend((op, backward_op))
    copy_into_out(op, backward_op)
    op.derivative(self=through(backward_op, "grad", "self", *HOW))
    op.forward("linear")
    backward_op.derivative(grad_output=through(op, "grad", *HOW), self=nothing)
    backward_op.forward("linear")
    return public(op, method=False, module="nn", doc=f"Returns the mean of each window over {dims} dimensions.")


avg_pool2d, avg_pool3d = declare_mean(2), declare_mean(3)

avg_pool1d_op = Operator(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    refuses="bool uint8 int8 int16 int32 complex",
    core=True,
    late_out=True,
)


@avg_pool1d_op.implicit
def avg_pool1d_composite(self: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count: bool) -> Any:
    image, lists = as_row("avg_pool1d", self, (1, kernel), (1, stride), (0, padding))
    return avg_pool2d.operators[0](image, *lists, ceil_mode, count).squeeze(-2)


avg_pool1d = public(avg_pool1d_op, method=False, doc="Returns the mean of each window of a signal.")


# --- as many as are asked for -----------------------------------------------------------------------------------------


def declare_adaptive(dims: int) -> Any:
    """`adaptive_avg_pool2d`, for two dimensions."""
    name, suffix = f"adaptive_avg_pool{dims}d", "" if dims == 2 else "_cpu"
    floating: dict[str, Any] = {"refuses": "whole complex"}
    inner_op = Operator(f"_{name}(Tensor self, SymInt[{dims}] output_size) -> Tensor", core=True, **floating)
    backward_op = Operator(f"_{name}_backward(Tensor grad_output, Tensor self) -> Tensor", core=dims == 2, **floating)
    schema = f"{name}(Tensor self, SymInt[{dims}] output_size) -> Tensor"
    plain_op = Operator(schema, out="out", autocast=in_float32(dims), **floating)

    def windows_of(self: Tensor, counts: Sequence[int]) -> Windows3d:
        return Windows3d([adaptive_axis(s, c) for s, c in zip(self._shape[-dims:], counts, strict=True)])

    @inner_op.kernel("CPU", "Meta")
    def forward(self: Tensor, output_size: Sequence[int]) -> Tensor:
        if len(output_size) != dims:
            raise RuntimeError(f"{name}: output_size must be {dims}")
        check_adaptive(name, self, dims, channels=False)
        if self._shape.numel():
            check_dtype(f"{name}{suffix}", self)
        return averaged(self, windows_of(self, output_size), (*self._shape[:-dims], *output_size), dims)

    @backward_op.kernel("CPU", "Meta")
    def backward(grad_output: Tensor, self: Tensor) -> Tensor:
        if grad_output._shape[:-dims] != self._shape[:-dims]:
            raise RuntimeError(
                f"Expected grad_output of shape {list(self._shape[:-dims])} and more, got {list(grad_output._shape)}"
            )
        check_dtype(f"{name}_backward{suffix}", grad_output)
        return shared_out(grad_output, self, windows_of(self, grad_output._shape[-dims:]), dims)

    OPERATORS.extend((inner_op, backward_op))
    inner_op.derivative(self=through(backward_op, "grad", "self"))
    inner_op.forward("linear")
    backward_op.derivative(
        grad_output=lambda grad, grad_output_shape: inner_op.functional(grad, list(grad_output_shape[-dims:])),
        self=nothing,
    )
    backward_op.forward("linear")

    @plain_op.implicit
    def plain(self: Any, output_size: Sequence[int]) -> Any:
        if dims == 2 and list(output_size) == [1, 1]:
            return self.mean([-1, -2], True)
        if dims == 3 and list(output_size) == [1, 1, 1]:
            return self.mean([-1, -2, -3], True)
        return inner_op.functional(self, output_size)

    copy_into_out(plain_op)
    doc = f"Returns the mean of each of so many windows over {dims} dimensions."
    return public(plain_op, method=False, module="nn", doc=doc)


adaptive_avg_pool2d, adaptive_avg_pool3d = declare_adaptive(2), declare_adaptive(3)
adaptive_avg_pool1d_op = Operator(
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", refuses="whole complex", core=True, late_out=True
)


@adaptive_avg_pool1d_op.implicit
def adaptive_avg_pool1d_composite(self: Any, output_size: Sequence[int]) -> Any:
    """Returns the means of `output_size` windows of a signal."""
    if len(self._shape) not in (2, 3):
        raise RuntimeError(f"adaptive_avg_pool1d() Expected 2D or 3D input tensor, but got {list(self._shape)}")
    return adaptive_avg_pool2d.operators[0](self.unsqueeze(-2), [1, *output_size]).squeeze(-2)


adaptive_avg_pool1d = public(adaptive_avg_pool1d_op, method=False)
