"""Pooling by the largest element: of windows, of as many windows as are asked for, of windows placed at random.

Each gives the largest elements and where in the image they are; the gradient goes back there. `max_unpool` puts
elements back so, and leaves zeros elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import call
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import Tensor, dtypes, empty
from redispatch.kernels import numbers
from redispatch.kernels.cpu import pooling
from redispatch.kernels.cpu.pooling import Windows, Windows3d, WindowsOfEach
from redispatch.kernels.settings import check_determinism

from ..declare.declare import Operator, through
from ..declare.operator import CPU_FP32, composite, leaf_kernel, structured
from ..declare.public import public
from ..declare.structured import Meta
from .convolution import compute_dtype, dense, zeros
from .pooling import (
    ELSEWHERE,
    INTEGERS,
    OPERATORS,
    Pooling,
    added,
    as_row,
    at_places,
    check_adaptive,
    check_dtype,
    check_gradient,
    check_signal,
    covering,
    images_of,
    in_float32,
    kernels_of,
    laid,
    nothing,
    pooled_size,
)
from .resampling import shaped_like

# --- what all have in common -----------------------------------------------------------------------------------------


def largest(self: Tensor, shape: Sequence[int], windows: Windows, dims: int) -> tuple[Tensor, Tensor]:
    """The largest elements of windows, and where in their image they are, row by row."""
    if self._device.type in ELSEWHERE and isinstance(windows, Windows3d):
        return ELSEWHERE[self._device.type].largest(self, shape, windows, dims)
    out, places = empty(shape, self._dtype, self._device), empty(shape, dtypes.int64, self._device)
    if self._device.type != "meta" and out._shape.numel():
        x = dense(self, self._dtype)
        pooling.largest(out._operand, places._operand, x._operand, windows, images_of(self, dims))
    return out, places


def put_back(grad: Tensor, self: Tensor, indices: Tensor, dims: int, windows: Any = None) -> Tensor:
    """Scatter-adds each gradient at its window's largest element; `windows()` is asked for elsewhere."""
    if indices._dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {indices._dtype.tensor_name}")
    if tuple(indices._shape) != tuple(grad._shape):
        raise RuntimeError(f"expected indices of shape {list(grad._shape)}, but got {list(indices._shape)}")
    if self._device.type == "meta":
        return laid(empty(self._shape, grad._dtype, self._device), self, dims)
    if self._device.type in ELSEWHERE and windows is not None:
        return laid(ELSEWHERE[self._device.type].put_back(grad, self, indices, windows()), self, dims)
    places, images = dense(indices, dtypes.int64)._operand, images_of(self, dims)
    return added(
        self,
        grad,
        dims,
        lambda out, dtype: pooling.put_back(out._operand, places, dense(grad, dtype)._operand, images),
    )


def backward_of(
    both_op: Operator,
    schema: str,
    backward: Any,
    dims: int,
    *arguments: str,
    elsewhere: bool = True,
    core: bool = False,
) -> None:
    """The gradient of the largest goes back where they were; its own gradient is what came from there."""
    facts: dict[str, Any] = {
        "derivative": {"grad_output": at_places(dims), "self": nothing},
        "forward": "linear",
        "refuses": "whole complex",
        "late_out": "grad_input",
        "core": core,
    }
    if elsewhere:
        backward_op = kernels_of(schema, backward, **facts)
    else:
        backward_op = leaf_kernel(schema, face=False, **facts)(backward)
    both_op.derivative(self=through(backward_op, "grad", "self", *arguments, "result1"), nondifferentiable=(1,))


# --- windows of a size and stride ------------------------------------------------------------------------------------

PAIR = ("out", "out", "indices")


def declare_max(dims: int) -> tuple[Any, Any]:
    """`max_pool2d` and `max_pool2d_with_indices`, for two dimensions."""
    name = f"max_pool{dims}d"
    n = f"int[{dims}]"
    rest = f"(Tensor self, {n} kernel_size, {n} stride=[], {n} padding=0, {n} dilation=1, bool ceil_mode=False)"

    def with_indices(self: Tensor, *how: Any) -> tuple[Tensor, Tensor]:
        setting = Pooling(name, self, dims, *how)
        check_dtype(name, self, INTEGERS)
        out, places = largest(self, setting.shape, setting.windows(), dims)
        return laid(out, self, dims), laid(places, self, dims)

    def backward(grad_output: Tensor, self: Tensor, *how_and_indices: Any) -> Tensor:
        *how, indices = how_and_indices
        setting = Pooling(name, self, dims, *how)
        check_gradient(grad_output, setting.shape)
        check_dtype(f"{name}_backward", grad_output)
        return put_back(grad_output, self, indices, dims, setting.windows)

    both_op = kernels_of(
        f"{name}_with_indices{rest} -> (Tensor, Tensor)",
        with_indices,
        refuses="bool complex",
        core=True,
        late_out=PAIR,
    )
    backward_of(
        both_op,
        f"{name}_with_indices_backward(Tensor grad_output, Tensor self, {n} kernel_size, {n} stride, {n} padding, "
        f"{n} dilation, bool ceil_mode, Tensor indices) -> Tensor",
        backward,
        dims,
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "ceil_mode",
        core=dims == 2,
    )

    @inline
    def plain(self: Any, *how: Any) -> Any:
        return call(both_op.functional, [self, *how])[0]

    found = f"Returns the largest element of each window over {dims} dimensions"
    facts: dict[str, Any] = {"refuses": "bool complex", "autocast": in_float32(dims), "doc": f"{found}."}
    both = public(both_op, method=False, module="nn", doc=f"{found}, and its place.")
    return composite(f"{name}{rest} -> Tensor", method=False, **facts)(plain), both


max_pool2d, max_pool2d_with_indices = declare_max(2)
max_pool3d, max_pool3d_with_indices = declare_max(3)

REST_1D = (
    "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False)"
)


def max_pool1d_pair(self: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """Returns the largest element of each window of a signal, and its place."""
    image, lists = as_row("max_pool1d", self, (1, kernel), (1, stride or kernel), (0, padding), (1, dilation))
    values, places = max_pool2d_with_indices.operators[0](image, *lists, ceil_mode)
    return values.squeeze(-2), places.squeeze(-2)


def check_max_pool1d(self: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> None:
    """Raises RuntimeError for arguments of `max_pool1d` that do not fit, in its words."""
    shape, name = list(self._shape), "max_pool1d()"
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{shape}"
        )
    kinds = ("an int, list of ints or tuple of ints", "None, an int, list of ints, or tuple of ints")
    lists = (("kernel_size", kernel, kinds[0]), ("stride", stride, kinds[1]))
    for what, given, kind in (*lists, ("padding", padding, kinds[1][6:]), ("dilation", dilation, kinds[0])):
        if len(given) != 1 and (what != "stride" or given):
            raise RuntimeError(f"{name} {what} must be {kind} of size 1 but got size {len(given)}")
    (k,), (step,), (p,), (d,) = kernel, stride or kernel, padding, dilation
    for what, number in (("kernel_size", k), ("stride", step)):
        if number <= 0:
            raise RuntimeError(f"{name} {what} must be greater than zero, but got {number}")
    if p < 0:
        raise RuntimeError(f"{name} padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(
            f"{name} padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
        )
    if d <= 0:
        raise RuntimeError(f"{name} dilation must be greater than zero, but got {d}")
    count = pooled_size(shape[-1], k, p, step, d, ceil_mode)
    if count <= 0:
        raise RuntimeError(f"{name} Invalid computed output size: {count}")


@composite(f"max_pool1d{REST_1D} -> Tensor", method=False, refuses="bool complex")
def max_pool1d(self: Any, *how: Any) -> Any:
    """Returns the largest element of each window of a signal."""
    check_max_pool1d(self, *how)
    return max_pool1d_pair(self, *how)[0]


max_pool1d_with_indices = composite(
    f"max_pool1d_with_indices{REST_1D} -> (Tensor, Tensor)", method=False, refuses="bool complex"
)(max_pool1d_pair)

# --- as many windows as are asked for --------------------------------------------------------------------------------


def declare_adaptive(dims: int) -> Any:
    """`adaptive_max_pool2d`, for two dimensions."""
    name, suffix = f"adaptive_max_pool{dims}d", "" if dims == 2 else "_cpu"

    def forward(self: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
        check_adaptive(name, self, dims, channels=True)
        if len(output_size) != dims:
            raise RuntimeError(f"{name}(): internal error: output_size.size() must be {dims}")
        if self._shape.numel():
            check_dtype(f"{name}{suffix}", self)
        out, places = largest(self, (*self._shape[:-dims], *output_size), covering(self, output_size), dims)
        return (laid(out, self, dims), laid(places, self, dims)) if dims == 2 else (out, places)

    def backward(grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
        check_adaptive(name, self, dims, channels=True)
        check_dtype(f"{name}_backward", grad_output)
        check_sizes(grad_output, indices)
        return put_back(grad_output, self, indices, dims, lambda: covering(self, grad_output._shape[-dims:]))

    op = kernels_of(
        f"{name}(Tensor self, int[{dims}] output_size) -> (Tensor, Tensor)",
        forward,
        late_out=PAIR,
        refuses="whole complex",
        autocast=in_float32(dims),
        doc=f"Returns the largest element of each of so many windows over {dims} dimensions, and its place.",
    )
    schema = f"{name}_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor"
    backward_of(op, schema, backward, dims)
    return public(op, method=False, module="nn")


def check_sizes(grad: Tensor, indices: Tensor) -> None:
    if len(grad._shape) != len(indices._shape):
        raise RuntimeError(
            f"expected dimensions {len(grad._shape)} for `indices` but got dimensions {len(indices._shape)}"
        )
    if tuple(grad._shape) != tuple(indices._shape):
        raise RuntimeError(f"expected sizes {list(indices._shape)} for `grad_output` but got sizes {list(grad._shape)}")


adaptive_max_pool2d, adaptive_max_pool3d = declare_adaptive(2), declare_adaptive(3)


@composite(
    "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", method=False, refuses="whole complex"
)
def adaptive_max_pool1d(self: Any, output_size: Sequence[int]) -> Any:
    """Returns the largest element of each of `output_size` windows of a signal, and its place."""
    check_signal("adaptive_max_pool1d", self, output_size)
    check_adaptive("adaptive_max_pool1d", self, 1, channels=True)
    values, places = adaptive_max_pool2d.op.functional(self.unsqueeze(-2), [1, *output_size])
    return values.squeeze(-2), places.squeeze(-2)


# --- windows placed at random ----------------------------------------------------------------------------------------

SIDES = {2: ("height", "width"), 3: ("time", "height", "width")}
WORDS = {2: "Ints", 3: "three Ints"}


def starts_of(samples: np.ndarray, size: int, count: int, k: int) -> np.ndarray:
    """[images, count]: where windows begin along an axis, at steps of the same length, rounded after a random shift.

    Source: B. Graham, "Fractional max-pooling", 2014.
    """
    shift = samples[:, None]
    step = samples.dtype.type(size - k) / samples.dtype.type(count - 1) if count > 1 else samples.dtype.type(0)
    starts = np.trunc((np.arange(count, dtype=samples.dtype) + shift) * step) - np.trunc(shift * step)
    starts[:, count - 1 :] = size - k
    return np.clip(np.nan_to_num(starts), 0, size - k).astype(np.int64)  # numbers outside of [0, 1) show nothing else


class Fractional:
    """The arguments of `fractional_max_pool2d`, for two dimensions, checked.

    Errors: RuntimeError, in PyTorch's words.
    """

    def __init__(self, dims: int, x: Tensor, kernel: Sequence[int], counts: Sequence[int]) -> None:
        name = f"fractional_max_pool{dims}d"
        self.called = f"{name}(): " if dims == 2 else f"{name}_out(): "
        for word, given in (("kernel_size", kernel), ("output_size", counts)):
            if len(given) != dims:
                raise RuntimeError(f"{name}: {word} must either be a single Int or tuple of {WORDS[dims]}")
        self.dims, self.kernel, self.counts = dims, kernel, counts
        shape = list(x._shape)
        if len(shape) not in (dims + 1, dims + 2):
            raise RuntimeError(f"{self.called}Expected {dims + 1}D or {dims + 2}D tensor, but got: {shape}")
        for d in range(len(shape) - dims - 1, len(shape)):
            if shape[d] == 0:
                raise RuntimeError(
                    f"{self.called}Expected input to have non-zero size for non-batch dimensions, but got{shape} with "
                    f"dimension {d} being empty."
                )
        self.sizes = shape[-dims:]
        for side, size, k, count in zip(SIDES[dims], self.sizes, kernel, counts, strict=True):
            if k < 1 or count < 0:
                raise RuntimeError(f"{self.called}Expected windows of at least one element, and none less than none")
            if k > size or count + k - 1 > size - (dims == 3):
                raise RuntimeError(f"{self.called}pool {side} {k} too large relative to input {side} {size}")
        self.shape = (*shape[:-dims], *counts)

    def windows(self, x: Tensor, samples: Tensor) -> WindowsOfEach:
        """The windows of each image, by its random numbers."""
        images = x._shape[0] if len(x._shape) > self.dims + 1 else 1
        drawn = numbers(dense(samples, compute_dtype(samples))._operand)[:images].reshape(-1, self.dims)
        order = (1, 0) if self.dims == 2 else (0, 1, 2)  # of the random numbers
        per = zip(order, self.sizes, self.counts, self.kernel, strict=True)
        starts = [starts_of(drawn[:, at], size, count, k) for at, size, count, k in per]
        return WindowsOfEach(self.sizes, starts, self.kernel)


def check_samples(x: Tensor, samples: Tensor, dims: int) -> None:
    if samples._dtype is not x._dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if len(samples._shape) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(samples._shape)}")
    batch, channels = (1, x._shape[0]) if len(x._shape) == dims + 1 else x._shape[:2]
    if samples._shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples._shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples._shape[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {samples._shape[2]}.")


def declare_fractional(dims: int) -> Any:
    """`fractional_max_pool2d`, for two dimensions."""
    name, n = f"fractional_max_pool{dims}d", f"int[{dims}]"

    def forward(self: Tensor, kernel: Any, counts: Any, samples: Tensor) -> tuple[Tensor, Tensor]:
        setting = Fractional(dims, self, kernel, counts)
        check_samples(self, samples, dims)
        check_dtype(f"{name}_out_frame", self)
        if self._device.type in ELSEWHERE:
            return ELSEWHERE[self._device.type].at_random(self, setting, samples)
        if self._device.type == "meta" or not self._shape.numel():
            return empty(setting.shape, self._dtype, self._device), empty(setting.shape, dtypes.int64, self._device)
        return largest(self, setting.shape, setting.windows(self, samples), dims)

    def backward(grad_output: Tensor, self: Tensor, kernel: Any, counts: Any, indices: Tensor) -> Tensor:
        wanted = Fractional(dims, self, kernel, counts).shape
        if tuple(grad_output._shape) != wanted:
            sizes = enumerate(zip(grad_output._shape, wanted, strict=False))
            which = next((d for d, (size, right) in sizes if size != right), len(wanted) - 1)
            side = SIDES[dims][max(which - len(wanted), -dims)]
            where = f"{name}_backward(): gradOutput sizes" if dims == 2 else f"{name}_backward_out(): gradOutput {side}"
            raise RuntimeError(f"{where} unexpected")
        check_dtype(f"{name}_backward_out_frame", grad_output)
        made = put_back(grad_output, self, indices, dims)
        return dense(made, made._dtype) if made._device.type == "cpu" else made

    schema = f"{name}(Tensor self, {n} kernel_size, {n} output_size, Tensor random_samples) -> (Tensor, Tensor)"
    made = leaf_kernel(
        schema,
        method=False,
        module="nn",
        late_out=("output", "output", "indices"),
        refuses="whole complex",
        autocast=CPU_FP32,
        doc=f"Returns the largest element of windows over {dims} dimensions that begin at random, and its place.",
    )(forward)
    schema = (
        f"{name}_backward(Tensor grad_output, Tensor self, {n} kernel_size, {n} output_size, Tensor indices) -> Tensor"
    )
    backward_of(made.op, schema, backward, dims, "kernel_size", "output_size", elsewhere=False)
    OPERATORS.append(made.op)
    return made


fractional_max_pool2d, fractional_max_pool3d = declare_fractional(2), declare_fractional(3)

# --- max_unpool ------------------------------------------------------------------------------------------------------

COUNTS = {2: "two elements (height, width)", 3: "three elements (depth, height, width)"}


def check_unpool(dims: int, self: Tensor, indices: Tensor, output_size: Sequence[int], *lists: Sequence[int]) -> None:
    """RuntimeError, in PyTorch's words, where these do not belong to each other."""
    if len(output_size) != dims:
        raise RuntimeError(
            f"There should be exactly {COUNTS[dims]} in output_size, but got {len(output_size)} elements."
        )
    for name, given in zip(("stride", "padding"), lists, strict=False):
        if len(given) != dims:
            raise RuntimeError(f"There should be exactly {COUNTS[dims]} in {name}, but got: {len(given)} elements.")
    if indices._dtype is not dtypes.int64:
        got = f" but got: {indices._dtype.tensor_name}" if dims == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{got}")
    ndim = len(self._shape)
    if ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with "
            f"{ndim} dimensions."
        )
    if tuple(self._shape) != tuple(indices._shape):
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(self._shape)}) but got indices "
            f"tensor with shape: {list(indices._shape)}"
        )
    for d in range(1, ndim):
        if self._shape[d] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(self._shape)} with dimension {d} being empty."
            )
    if lists and min(lists[0]) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(lists[0])}")
    check_dtype(f"max_unpool{dims}d", self)


def check_places(places: Any, output_size: Sequence[int]) -> None:
    elements = 1
    for size in output_size:
        elements *= size
    bad = (places < 0) | (places >= elements)
    if bad.any():
        raise RuntimeError(
            f"Found an invalid max index: {places[bad].flat[0]} (output volumes are of size "
            f"{'x'.join(map(str, output_size))})"
        )


def declare_unpool(dims: int) -> Any:
    """`max_unpool2d`, for two dimensions."""
    more = ", int[3] stride, int[3] padding" if dims == 3 else ""

    def meta(self: Tensor, indices: Tensor, output_size: Sequence[int], *lists: Sequence[int]) -> Meta:
        check_determinism(f"max_unpooling{dims}d_forward_out")
        check_unpool(dims, self, indices, output_size, *lists)
        look = shaped_like((*self._shape[:-dims], *output_size), self)
        return look if dims == 2 else look._replace(strides=None)

    def body(out: Tensor, self: Tensor, indices: Tensor, output_size: Sequence[int], *lists: Sequence[int]) -> None:
        places = dense(indices, dtypes.int64)._operand
        made = zeros(out._shape, out._dtype, out._device)
        if self._shape.numel() and made._shape.numel():
            check_places(numbers(places), output_size)
            pooling.put(made._operand, places, dense(self, self._dtype)._operand, images_of(self, dims))
        kernels.copy(out._operand, made._operand)

    return structured(
        f"max_unpool{dims}d(Tensor self, Tensor indices, SymInt[{dims}] output_size{more}) -> Tensor",
        out="out",
        derivative=at_places(dims),
        forward="linear",
        module="nn",
        body=body,
        refuses="whole complex",
        autocast=CPU_FP32,
        doc=f"Returns zeros with each element back where pooling over {dims} dimensions found it.",
    )(meta)


max_unpool2d, max_unpool3d = declare_unpool(2), declare_unpool(3)
