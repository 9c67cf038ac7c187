"""im2col and col2im: the windows of images as columns of a matrix, and columns added up to images again.

Each is the gradient of the other. `unfold` and `fold` of nn.functional are these; a convolution is a matrix product
between them. Read next: kernels/cpu/convolution.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, dtype, dtypes
from redispatch.kernels import Operand, contiguous_strides
from redispatch.kernels.cpu.convolution import Windows, fold, image, unfold

from ..declare.operator import structured
from ..declare.structured import Meta, not_implemented
from .convolution import as_dtype, compute_dtype, dense, images, zeros

LISTS = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"


def pair(values: Sequence[int]) -> str:
    return f"({values[0]}, {values[1]})"


class Blocks:
    """Windows over images of a size, checked. Errors: RuntimeError, in PyTorch's words."""

    def __init__(self, size: Sequence[int], kernel: Any, dilation: Any, padding: Any, stride: Any) -> None:
        self.size = list(size)
        self.kernel, self.dilation, self.padding, self.stride = kernel, dilation, padding, stride
        self.described = f"kernel_size={pair(kernel)}, dilation={pair(dilation)}, padding={pair(padding)}"
        self.counts = [
            (n + 2 * p - (d * (k - 1) + 1)) // step + 1
            for n, k, d, p, step in zip(size, kernel, dilation, padding, stride, strict=True)
        ]

    @property
    def elements(self) -> int:
        """Returns the number of elements of a window."""
        return self.kernel[0] * self.kernel[1]

    @property
    def windows(self) -> Windows:
        lists = (self.size, self.counts, self.kernel, self.stride, self.padding, self.dilation)
        return Windows(*((filler, *one) for one, filler in zip(lists, (1, 1, 1, 1, 0, 1), strict=True)))

    def columns(self, x: Tensor, n: int, channels: int) -> Operand:
        """The columns of one image, in a contiguous batch."""
        shape = (channels * self.elements, self.counts[0] * self.counts[1])
        array, dtype, _, _, offset = x._operand
        return Operand(array, dtype, shape, contiguous_strides(shape), offset + n * shape[0] * shape[1])


def check_lists(kernel: Any, dilation: Any, padding: Any, stride: Any) -> None:
    given = (("kernel_size", kernel), ("dilation", dilation), ("padding", padding), ("stride", stride))
    for name, values in given:
        if len(values) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    for name, side, values in (("kernel size", "kernel", kernel), ("dilation", "dilation", dilation)):
        check_positive(name, side, values)
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    check_positive("stride", "stride", stride)


def check_positive(name: str, side: str, values: Sequence[int]) -> None:
    if min(values) <= 0:
        raise RuntimeError(
            f"{name} should be greater than zero, but got {side}_height: {values[0]} {side}_width: {values[1]}"
        )


def check_dtype(kernel_name: str, x: Tensor) -> None:
    if not (x._dtype.is_floating_point or x._dtype.is_complex or x._dtype is dtypes.bool):
        raise not_implemented(kernel_name, x._dtype)


def check_input(x: Tensor, dims: int, hint: str) -> None:
    """`dims` dimensions, or one more for a batch, which alone may be empty."""
    shape = list(x._shape)
    if len(shape) not in (dims, dims + 1) or 0 in (shape[1:] if len(shape) > dims else shape):
        raise RuntimeError(f"Expected {dims}D or {dims + 1}D (batch mode) tensor {hint}, but got: {shape}")


def adding_dtype(x: Tensor) -> dtype:
    """The dtype in which elements are added up."""
    return dtypes.int32 if x._dtype is dtypes.bool else compute_dtype(x)


def batch_of(x: Tensor, dims: int) -> int:
    return x._shape[0] if len(x._shape) > dims else 1


# --- from images to columns ------------------------------------------------------------------------------------------


def blocks_of_images(x: Tensor, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Blocks:
    check_lists(kernel, dilation, padding, stride)
    hint = "with possibly 0 batch size and other non-zero dimensions for input"
    check_input(x, 3, hint)
    blocks = Blocks(x._shape[-2:], kernel, dilation, padding, stride)
    if min(blocks.counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {pair(blocks.size)}, {blocks.described}, calculated shape of the array of "
            f"sliding blocks as {pair(blocks.counts)}, but its components must be at least one."
        )
    return blocks


@structured(
    f"im2col(Tensor self, {LISTS}) -> Tensor",
    out="out",
    refuses="integers",
    derivative=lambda grad, self_shape, kernel_size, dilation, padding, stride: col2im.op.functional(
        grad, self_shape[-2:], kernel_size, dilation, padding, stride
    ),
    forward="linear",
    module="nn",
    doc="Returns the windows of images as columns.",
)
def im2col(self, *how):
    blocks = blocks_of_images(self, *how)
    check_dtype("im2col_out_cpu", self)
    shape = (*self._shape[:-3], self._shape[-3] * blocks.elements, blocks.counts[0] * blocks.counts[1])
    return Meta(shape, self._dtype, self._device)


@im2col.op.body
def im2col_body(out, self, *how):
    blocks, dtype = blocks_of_images(self, *how), adding_dtype(self)
    x, found = batched_images(as_dtype(self, dtype)), zeros(out._shape, dtype, out._device)
    for n in range(batch_of(self, 3)):
        unfold(blocks.columns(found, n, self._shape[-3]), image(x, n), blocks.windows)
    kernels.copy(out._operand, found._operand)


def batched_images(x: Tensor) -> Operand:
    """The batch that the kernels of convolutions take, of a single image too."""
    if len(x._shape) == 4:
        return images(x)
    operand = x._operand
    shape, strides = operand.shape, operand.strides
    return Operand(
        operand.array, operand.dtype, (1, shape[0], 1, *shape[1:]), (0, strides[0], 0, *strides[1:]), operand.offset
    )


# --- from columns to images ------------------------------------------------------------------------------------------


def blocks_of_columns(x: Tensor, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Blocks:
    if len(size) != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(size)}")
    check_lists(kernel, dilation, padding, stride)
    hint = "for input with possibly 0 batch size and non-zero dimensions for input"
    check_input(x, 2, hint)
    blocks = Blocks(size, kernel, dilation, padding, stride)
    rows, columns = x._shape[-2:]
    first = len(x._shape) - 2
    if rows % blocks.elements:
        raise RuntimeError(
            f"Expected size of input's dimension {first} to be divisible by the product of kernel_size, but got "
            f"input.size({first})={rows} and kernel_size={pair(kernel)}."
        )
    count = blocks.counts[0] * blocks.counts[1]
    if columns != count or min(blocks.counts) < 1:
        raise RuntimeError(
            f"Given output_size={pair(size)}, {blocks.described}, stride={pair(stride)}, expected size of input's "
            f"dimension {first + 1} to match the calculated number of sliding blocks {blocks.counts[0]} * "
            f"{blocks.counts[1]} = {count}, but got input.size({first + 1})={columns}."
        )
    return blocks


@structured(
    f"col2im(Tensor self, SymInt[2] output_size, {LISTS}) -> Tensor",
    out="out",
    refuses="integers",
    core=True,
    derivative=lambda grad, kernel_size, dilation, padding, stride: im2col.op.functional(
        grad, kernel_size, dilation, padding, stride
    ),
    forward="linear",
    module="nn",
    doc="Returns images in which columns are added where their windows lie.",
)
def col2im(self, *how):
    blocks = blocks_of_columns(self, *how)
    check_dtype("col2im_out_cpu", self)
    shape = (*self._shape[:-2], self._shape[-2] // blocks.elements, *blocks.size)
    return Meta(shape, self._dtype, self._device)


@col2im.op.body
def col2im_body(out, self, *how):
    blocks, dtype = blocks_of_columns(self, *how), adding_dtype(self)
    columns, made = dense(self, dtype), zeros(out._shape, dtype, out._device)
    x = batched_images(made)
    for n in range(batch_of(self, 2)):
        fold(image(x, n), blocks.columns(columns, n, out._shape[-3]), blocks.windows)
    kernels.copy(out._operand, made._operand)
