"""Convolutions of one to three dimensions, transposed ones too, and their gradients.

Everything is `convolution`: the functions users call only fill in its arguments. Its gradient is one operator,
`convolution_backward`, which in turn is made of convolutions, so it can be differentiated again.

`_convolution` is told besides what a library of kernels wants to know; `conv_tbc` goes along the first dimension. Read
next: kernels/cpu/convolution.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import call, ops
from redispatch.dispatch.specialiser.annotations import frozen, inline
from redispatch.dispatch.tensor import CPU, Tensor, channels_last_strides, device, dtype, dtypes, empty
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels import Operand, is_contiguous

from ..declare.declare import taking
from ..declare.operator import CPU_LOWER, CUDA_LOWER, LOWER, composite, kernel, leaf_kernel, structured
from ..declare.public import public
from ..declare.structured import Meta, not_implemented

ARGUMENTS = (
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups"
)

HOW = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")


# --- arguments -------------------------------------------------------------------------------------------------------


class Setting:
    """The arguments of a convolution over `dims` dimensions, checked, and each list with an item for each of them.

    Errors: RuntimeError, in PyTorch's words, where the arguments do not fit each other.
    """

    def __init__(
        self,
        input: Tensor,
        weight: Tensor,
        bias_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        transposed: bool,
        output_padding: Sequence[int],
        groups: int,
    ) -> None:
        self.dims = dims = len(weight._shape) - 2
        if dims < 1:
            raise RuntimeError("weight should have at least three dimensions")
        if groups <= 0:
            raise RuntimeError("non-positive groups is not supported")
        self.stride = spread_over("stride", stride, dims)
        self.padding = spread_over("padding", padding, dims)
        self.dilation = spread_over("dilation", dilation, dims)
        self.output_padding = spread_over("output_padding", output_padding, dims)
        self.transposed, self.groups = transposed, groups
        if any(number < 0 for number in self.padding):
            raise RuntimeError("negative padding is not supported")
        if any(number < 0 for number in self.output_padding):
            raise RuntimeError("negative output_padding is not supported")
        if any(number <= 0 for number in self.stride):
            raise RuntimeError("non-positive stride is not supported")
        if any(number <= 0 for number in self.dilation):
            raise RuntimeError(f"dilation should be greater than zero, but got {self.dilation}")
        self.check_channels(input, weight, bias_size)
        self.check_sizes(input, weight)

    def check_channels(self, input: Tensor, weight: Tensor, bias_size: Sequence[int] | None) -> None:
        shape, groups = list(weight._shape), self.groups
        if len(shape) != len(input._shape):
            raise RuntimeError(
                f"Expected {len(shape)}-dimensional input for {len(shape)}-dimensional weight {shape}, but got "
                f"{len(input._shape)}-dimensional input of size {list(input._shape)} instead"
            )
        if shape[0] < groups:
            raise RuntimeError(
                f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of "
                f"size {shape} instead"
            )
        if shape[0] % groups:
            raise RuntimeError(
                f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
                f"size [{shape}] instead"
            )
        taken = shape[0] if self.transposed else shape[1] * groups
        if input._shape[1] != taken:
            how = "transposed=1" if self.transposed else f"groups={groups}"
            raise RuntimeError(
                f"Given {how}, weight of size {shape}, expected input{list(input._shape)} to have {taken} channels, "
                f"but got {input._shape[1]} channels instead"
            )
        made = shape[1] * groups if self.transposed else shape[0]
        if bias_size is not None and list(bias_size) != [made]:
            raise RuntimeError(
                f"Given {'transposed=1, ' if self.transposed else ''}weight of size {shape}, expected bias to be "
                f"1-dimensional with {made} elements, but got bias of size {list(bias_size)} instead"
            )

    def check_sizes(self, input: Tensor, weight: Tensor) -> None:
        sizes, window = input._shape[2:], weight._shape[2:]
        if 0 in window:
            height, width = (1, *window)[-2:]
            got = (
                f": {' x '.join(map(str, window))} (TxHxW)"
                if self.dims == 3
                else f" kernel_height: {height} kernel_width: {width}"
            )
            raise RuntimeError(f"kernel size should be greater than zero, but got{got}")
        if self.transposed:
            for i in range(self.dims):
                if self.output_padding[i] >= max(self.stride[i], self.dilation[i]):
                    raise RuntimeError(
                        "output padding must be smaller than either stride or dilation, but got "
                        f"output_padding: {self.output_padding} stride: {self.stride} dilation: {self.dilation}"
                    )
            return
        padded = [size + 2 * p for size, p in zip(sizes, self.padding, strict=True)]
        spans = [d * (k - 1) + 1 for k, d in zip(window, self.dilation, strict=True)]
        if any(size < span for size, span in zip(padded, spans, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                f"({' x '.join(map(str, spans))}). Kernel size can't be greater than actual input size"
            )

    def torch_kernel(self) -> str:
        """Returns the name that PyTorch's errors have for the kernel of these parameters."""
        if self.transposed:
            return f"slow_conv_transpose{max(self.dims, 2)}d_out_cpu"
        if any(step != 1 for step in self.dilation):
            return "slow_conv_dilated<>"
        return "compute_columns3d" if self.dims == 3 else "slow_conv2d_cpu"

    def result_shape(self, input: Tensor, weight: Tensor) -> tuple[int, ...]:
        """The shape of the result."""
        sizes = []
        per = zip(input._shape[2:], weight._shape[2:], self.stride, self.padding, self.dilation, strict=True)
        for (size, k, step, p, d), extra in zip(per, self.output_padding, strict=True):
            span = d * (k - 1) + 1
            made = (size - 1) * step - 2 * p + span + extra if self.transposed else (size + 2 * p - span) // step + 1
            sizes.append(made)
        if any(size < 0 for size in sizes):
            raise RuntimeError(
                f"Given input size per channel: ({' x '.join(map(str, input._shape[2:]))}). Calculated output size per "
                f"channel: ({' x '.join(map(str, sizes))}). Output size is too small"
            )
        channels = weight._shape[1] * self.groups if self.transposed else weight._shape[0]
        return (input._shape[0], channels, *sizes)

    def product(
        self, image: Sequence[int], counts: Sequence[int], weight: Tensor
    ) -> kernels.Product | kernels.Depthwise:
        """Returns the product that computes it, where windows move over an image of this size in so many places."""
        lists = (image, counts, weight._shape[2:], self.stride, self.padding, self.dilation)
        missing = 3 - self.dims
        fillers = (1, 1, 1, 1, 0, 1)
        windows = kernels.Windows(*((f,) * missing + tuple(one) for one, f in zip(lists, fillers, strict=True)))
        if (
            max(
                math.prod(p + d * k for p, d, k in zip(windows.padding, windows.dilation, windows.size, strict=True)), 0
            )
            >> 62
        ):
            raise RuntimeError(
                f"convolution: windows of kernel_size={list(windows.size)}, dilation={list(windows.dilation)} and "
                f"padding={list(windows.padding)} reach too far"
            )
        into, out, dtype = weight._shape[1] * self.groups, weight._shape[0], compute_dtype(weight).name
        if into == self.groups > 1:
            return kernels.Depthwise(windows, into, out, dtype)
        product = kernels.Product(windows, self.groups, into, out, dtype)
        real = dtype in ("float32", "float64")
        return kernels.direct(windows, self.groups, into, out, dtype) if real and not product.is_plain else product


def spread_over(name: str, values: Sequence[int], dims: int) -> list[int]:
    """One value for each dimension; a single one serves all."""
    if len(values) == 1:
        return list(values) * dims
    if len(values) != dims:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the convolution "
            f"dimensions, but got {name}={list(values)}"
        )
    return list(values)


C_NAMES = {"float32": "float", "float64": "double", "int64": "long int", "float16": "c10::Half"}


def check_dtypes(input: Tensor, weight: Tensor, bias: Any) -> None:
    if input._dtype is not weight._dtype:
        raise RuntimeError(f"expected scalar type {input._dtype.tensor_name} but found {weight._dtype.tensor_name}")
    if bias is not None and bias._dtype is not input._dtype:
        ours, theirs = (C_NAMES.get(x._dtype.name, x._dtype.name) for x in (input, bias))
        raise RuntimeError(f"Input type ({ours}) and bias type ({theirs}) should be the same")


# --- between tensors and kernels -------------------------------------------------------------------------------------


def images(x: Tensor) -> Operand:
    """A batch as the kernels take it: with three dimensions of space, whatever the tensor has."""
    operand = x._operand
    missing = 5 - len(operand.shape)
    shape = (*operand.shape[:2], *(1,) * missing, *operand.shape[2:])
    strides = (*operand.strides[:2], *(0,) * missing, *operand.strides[2:])
    return Operand(operand.array, operand.dtype, shape, strides, operand.offset)


def compute_dtype(x: Tensor) -> dtype:
    """The dtype in which products are formed: float32 for floats of 8 and 16 bits."""
    name = x._dtype.name
    return dtypes.dtype_named(DTYPES[name].compute) if name in DTYPES else x._dtype


def as_dtype(x: Tensor, wanted: dtype) -> Tensor:
    """The elements in another dtype, or the tensor itself."""
    return x if x._dtype is wanted else copied(x, wanted)


def dense(x: Tensor, wanted: dtype) -> Tensor:
    """The elements in some dtype, row by row."""
    return x if x._dtype is wanted and is_contiguous(x._shape, x._stride) else copied(x, wanted)


def flat(x: Tensor) -> Any:
    """The memory of the elements, row by row and from its beginning, for loops that are told no more."""
    if x._offset or not is_contiguous(x._shape, x._stride):
        x = copied(x, x._dtype)
    return x._operand.array


def copied(x: Tensor, wanted: dtype, strides: tuple[int, ...] | None = None) -> Tensor:
    copy = empty(x._shape, wanted, x._device, strides)
    if copy._array is not None:
        kernels.copy(copy._operand, x._operand)
    elif x._device.type != "meta":
        ops.aten.copy_.default(copy, x)
    return copy


def zeros(shape: Sequence[int], of: dtype, on: device = CPU) -> Tensor:
    made = empty(shape, of, on)
    if type(made._array) is np.ndarray:
        made._array[:] = 0
    else:
        kernels.fill(made._operand, 0)
    return made


def like_images(x: Tensor, *given: Tensor) -> Tensor:
    """A result laid out channels last, if one of the arguments lies so and not row by row."""
    if any(is_channels_last(one) for one in given):
        return copied(x, x._dtype, channels_last_strides(x._shape))
    return x


def is_channels_last(x: Tensor) -> bool:
    strides = channels_last_strides(x._shape) if len(x._shape) in (4, 5) else None
    return x._stride == strides and not is_contiguous(x._shape, x._stride)


# --- forward ---------------------------------------------------------------------------------------------------------


@structured(
    f"convolution(Tensor input, Tensor weight, Tensor? bias, {ARGUMENTS}) -> Tensor",
    out="out",
    refuses="bool",
    core=True,
    autocast=CUDA_LOWER,
    method=False,
)
def convolution(input, weight, bias, *how):
    """Returns the convolution of images of any rank, transposed or not, in groups of channels."""
    check_dtypes(input, weight, bias)
    setting = Setting(input, weight, None if bias is None else bias._shape, *how)
    if input._dtype.name == "bool":
        raise not_implemented(setting.torch_kernel(), input._dtype)
    shape = setting.result_shape(input, weight)
    lies = is_channels_last(input) or is_channels_last(weight)
    return Meta(shape, input._dtype, input._device, channels_last_strides(shape) if lies else None)


@convolution.op.body
def convolution_body(out, input, weight, bias, *how):
    compute = compute_dtype(input)
    setting = Setting(input, weight, None, *how)
    whole = out._dtype is compute and is_contiguous(out._shape, out._stride) and out._offset == 0
    result = out if whole else empty(out._shape, compute, out._device)
    if not out._shape.numel():
        return
    added = None if bias is None else dense(bias, compute)._operand
    if input._shape.numel():
        w, into, made = dense(weight, compute), input._shape[2:], out._shape[2:]
        if setting.transposed:
            product = setting.product(made, into, weight)
            product.spread(images(result), dense(input, compute)._operand, w._operand, added)
        else:
            product = setting.product(into, made, weight)
            product.correlate(result._operand, images(as_dtype(input, compute)), w._operand, added)
    else:
        kernels.fill(result._operand, 0)
        kernels.add_to_channels(result._operand, added, result._shape[0])
    if result is not out:
        kernels.copy(out._operand, result._operand)


# --- backward --------------------------------------------------------------------------------------------------------


def check_gradient(grad_output: Tensor, setting: Setting, input: Tensor, weight: Tensor) -> tuple[int, ...]:
    """The shape of the result. RuntimeError where its gradient has another one."""
    made = setting.result_shape(input, weight)
    if tuple(grad_output._shape) != made:
        raise RuntimeError(
            f"Mismatch in shape: grad_output has a shape of {list(grad_output._shape)}, expected {list(made)}"
        )
    return made


@leaf_kernel(
    f"convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, {ARGUMENTS}, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    core=True,
    face=False,
    relies="| input weight grad_output",
)
def convolution_backward_op(grad_output, input, weight, bias_sizes, *how_and_mask):
    """(gradient of the input, of the weight, of the bias), each None where the mask does not ask for it."""
    *how, output_mask = how_and_mask
    setting = Setting(input, weight, None, *how)
    transposed = setting.transposed
    made, compute = check_gradient(grad_output, setting, input, weight), compute_dtype(input)
    shapes = [input._shape, weight._shape, (made[1],)]
    if input._device.type == "meta":
        wanted = zip(shapes, output_mask, strict=True)
        return tuple(empty(shape, input._dtype, input._device) if ask else None for shape, ask in wanted)
    into, out = input._shape[2:], made[2:]
    product = setting.product(out, into, weight) if transposed else setting.product(into, out, weight)
    full = grad_output._shape.numel() > 0 and input._shape.numel() > 0
    found: list[Any] = [
        (empty if full else zeros)(shape, compute, input._device) if ask else None
        for shape, ask in zip(shapes, output_mask, strict=True)
    ]
    of_input, of_weight, of_bias = found
    if full:
        grad, w = dense(grad_output, compute), dense(weight, compute)
        if of_input is not None and transposed:
            product.correlate(of_input._operand, images(grad), w._operand)
        elif of_input is not None:
            product.spread(images(of_input), grad._operand, w._operand)
        if of_weight is not None and transposed:
            product.correlations(of_weight._operand, dense(input, compute)._operand, images(grad))
        elif of_weight is not None:
            product.correlations(of_weight._operand, grad._operand, images(as_dtype(input, compute)))
    if of_bias is not None and grad_output._shape.numel():
        kernels.SUM.run(of_bias._operand, grad_output._operand, [d for d in range(len(made)) if d != 1])
    laid = (input, weight), (weight, input), ()
    return tuple(
        None if one is None else like_images(as_dtype(one, input._dtype), *given)
        for one, given in zip(found, laid, strict=True)
    )


@taking("grad", "input", "weight", "bias_shape", *HOW, "needs")
def convolution_gradients(grad: Any, input: Any, weight: Any, bias_shape: Any, *how_and_needs: Any) -> Any:
    *how, needs = how_and_needs
    sizes = list(bias_shape) or None  # that of no bias is ()
    return convolution_backward_op.functional(grad, input, weight, sizes, *how, list(needs))


convolution.op.derivative((("input", "weight", "bias"), convolution_gradients))


@taking("grads", "grad_output", "input", "weight", *HOW, "output_mask", "needs")
def second_gradients(grads: Sequence[Any], grad_output: Any, input: Any, weight: Any, *rest: Any) -> Any:
    """A convolution is linear in the input and in the weight; so are its gradients in these and in `grad_output`."""
    *how, output_mask, needs = rest
    given = iter(grads)  # of the results that are there
    of_input, of_weight, of_bias = (next(given) if there else None for there in output_mask)
    convolve, backward = convolution.op.functional, convolution_backward_op.functional
    to_grad = to_input = to_weight = None
    if needs[0]:
        parts = []
        if of_input is not None:
            parts.append(convolve(of_input, weight, None, *how))
        if of_weight is not None:
            parts.append(convolve(input, of_weight, None, *how))
        if of_bias is not None:
            parts.append(of_bias.reshape(1, -1, *(1,) * (len(grad_output._shape) - 2)).expand_as(grad_output))
        to_grad = sum(parts[1:], parts[0]) if parts else None
    if needs[1] and of_weight is not None:
        to_input = backward(grad_output, input, of_weight, None, *how, [True, False, False])[0]
    if needs[2] and of_input is not None:
        to_weight = backward(grad_output, of_input, weight, None, *how, [False, True, False])[1]
    return to_grad, to_input, to_weight


convolution_backward_op.derivative((("grad_output", "input", "weight"), second_gradients))


@composite(
    "_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, "
    f"{ARGUMENTS}, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    face=False,
)
def convolution_double_backward_op(ggI, ggW, ggb, gO, weight, self, *how_and_mask):
    """Returns the gradients of grad_output, input and weight by those of their gradients: all, whatever the mask."""
    *how, _ = how_and_mask
    grads = ggI, ggW, ggb
    given = [grad is not None for grad in grads]
    return second_gradients.function(
        [grad for grad in grads if grad is not None], gO, self, weight, *how, given, (True,) * 3
    )


# --- what users call -------------------------------------------------------------------------------------------------


def batched(name: str, dims: int, input: Any, weight: Any, bias: Any, *how: Any) -> Any:
    """`convolution` of a batch, or of a single image. RuntimeError for an input with another number of dimensions."""
    ndim = len(input._shape)
    if ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input._shape)}"
        )
    if ndim == dims + 2:
        return convolution.op.functional(input, weight, bias, *how)
    return convolution.op.functional(input.unsqueeze(0), weight, bias, *how).squeeze(0)


def padded_same(name: str, dims: int, input: Any, weight: Any, bias: Any, stride: Any, padding: str, *more: Any) -> Any:
    """A convolution whose padding is a word: "valid" for none, "same" for as much as keeps the size."""
    dilation, groups = more
    if padding == "valid":
        return batched(name, dims, input, weight, bias, stride, [0] * dims, dilation, False, [0] * dims, groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if len(weight._shape) != dims + 2:
        ndim = len(weight._shape)
        raise RuntimeError(
            f"Expected {ndim}-dimensional input for {ndim}-dimensional weight{list(weight._shape)}, but got "
            f"{len(input._shape)}-dimensional input of size {list(input._shape)} instead"
        )
    if any(step != 1 for step in spread_over("stride", stride, dims)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for k, d in zip(weight._shape[2:], spread_over("dilation", dilation, dims), strict=True)]
    sides = [total // 2 for total in totals]
    if any(total % 2 for total in totals):  # what is left over goes to the far side
        pads = [number for total in reversed(totals) for number in (0, total % 2)]
        input = ops.aten.constant_pad_nd(input, pads)
    return batched(name, dims, input, weight, bias, stride, sides, dilation, False, [0] * dims, groups)


@frozen
class Rank:
    """The number of dimensions of images; and that of a batch of them, with channels."""

    def __init__(self, dims: int) -> None:
        self.dims, self.batched, self.zeros = dims, dims + 2, [0] * dims


def declare(dims: int) -> tuple[Any, Any]:
    """`conv2d` and `conv_transpose2d`, for two dimensions."""
    name, turned, rank = f"conv{dims}d", f"conv_transpose{dims}d", Rank(dims)
    n, overload = f"SymInt[{dims}]", "" if dims == 1 else ".input"
    head = "(Tensor input, Tensor weight, Tensor? bias=None"

    @composite(
        f'{name}.padding{head}, {n} stride=1, str padding="valid", {n} dilation=1, SymInt groups=1) -> Tensor',
        autocast=CPU_LOWER,  # on CUDA the convolution below it is cast
        refuses="bool",
    )
    def by_word(input, weight, bias, stride, padding, dilation, groups):
        return padded_same(name, dims, input, weight, bias, stride, padding, dilation, groups)

    @composite(
        f"{name}{head}, {n} stride=1, {n} padding=0, {n} dilation=1, SymInt groups=1) -> Tensor",
        refuses="bool",
        autocast=LOWER,
        face=False,
    )
    @inline
    def plain(input, weight, bias, stride, padding, dilation, groups):
        if len(input._shape) == rank.batched:
            return call(
                convolution.op.functional, [input, weight, bias, stride, padding, dilation, False, rank.zeros, groups]
            )
        return batched(name, dims, input, weight, bias, stride, padding, dilation, False, [0] * dims, groups)

    @composite(
        f"{turned}{overload}{head}, {n} stride=1, {n} padding=0, {n} output_padding=0, SymInt groups=1, "
        f"{n} dilation=1) -> Tensor",
        refuses="bool",
        autocast=LOWER,
        method=False,
        doc=f"Returns the transposed convolution over {dims} dimensions, the way back of a convolution's gradient.",
    )
    @inline
    def transposed(input, weight, bias, stride, padding, output_padding, groups, dilation):
        if len(input._shape) == rank.batched:
            return call(
                convolution.op.functional,
                [input, weight, bias, stride, padding, dilation, True, output_padding, groups],
            )
        return batched(turned, dims, input, weight, bias, stride, padding, dilation, True, output_padding, groups)

    doc = f"Returns the convolution over {dims} dimensions."
    return public(plain, by_word, method=False, doc=doc), transposed


conv1d, conv_transpose1d = declare(1)
conv2d, conv_transpose2d = declare(2)
conv3d, conv_transpose3d = declare(3)

# --- by other names: _convolution, told of a library; padding by a word; conv_tbc -------------------------------------

HEAD = "Tensor input, Tensor weight, Tensor? bias"
LIBRARY = "bool benchmark, bool deterministic, bool cudnn_enabled"


@kernel(f"_convolution({HEAD}, {ARGUMENTS}, {LIBRARY}, bool allow_tf32) -> Tensor", refuses="bool", autocast=CUDA_LOWER)
def told_op(input, weight, bias, *how_and_library):
    """A convolution. What it says of cuDNN chooses among kernels that are not here."""
    return convolution.op.functional(input, weight, bias, *how_and_library[:6])


told_op.derivative((("input", "weight", "bias"), convolution_gradients), node="ConvolutionBackward1")


@composite(
    f"_convolution.deprecated({HEAD}, {ARGUMENTS.replace('SymInt[] output', 'int[] output')}, {LIBRARY}) -> Tensor",
    autocast=LOWER,
)
def older_op(input, weight, bias, *how_and_library):
    return told_op.functional(input, weight, bias, *how_and_library, True)


@composite(
    f"_convolution_mode({HEAD}, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups) -> Tensor",
    refuses="bool",
)
def mode_op(input, weight, bias, stride, padding, dilation, groups):
    dims = len(weight.shape) - 2
    return padded_same(f"conv{dims}d", dims, input, weight, bias, stride, padding, dilation, groups)


# --- [time, batch, channels] -----------------------------------------------------------------------------------------

ROWS, KERNELS = (1, 2, 0), (2, 1, 0)  # from [time, batch, in], [time, in, out] to what `convolution` takes
ROWS_BACK = (2, 0, 1)


def setting(pad: int) -> Sequence[Any]:
    return [1], [pad], [1], False, [0], 1


@kernel(
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    refuses="bool",
    autocast=LOWER,
    method=False,
)
def conv_tbc(self, weight, bias, pad):
    """Returns a convolution over time. Shapes: self [time, batch, in], weight [kernel, in, out], bias [out].

    Errors: RuntimeError for other shapes, or dtypes that differ.
    """
    if self.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if self.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    result = convolution.op.functional(self.permute(ROWS), weight.permute(KERNELS), bias, *setting(pad))
    return result.permute(ROWS_BACK).contiguous()


@composite(
    "conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)",
    face=False,
)
def conv_tbc_backward_op(self, input, weight, bias, pad):
    """The gradients of input, weight and bias, where `self` is that of the result."""
    turned = self.permute(ROWS), input.permute(ROWS), weight.permute(KERNELS)
    of_input, of_weight, of_bias = convolution_backward_op.functional(
        *turned, list(bias.shape), *setting(pad), [True, True, True]
    )
    return of_input.permute(ROWS_BACK).contiguous(), of_weight.permute(KERNELS).contiguous(), of_bias


conv_tbc.op.derivative(
    (
        ("self", "weight", "bias"),
        lambda grad, self, weight, bias, pad: conv_tbc_backward_op.functional(grad, self, weight, bias, pad),
    )
)

# --- told the size of their kernel: thnn_conv2d, slow_conv3d ----------------------------------------------------------


def told_its_size(name: str, ndim: int) -> Any:
    """A convolution of `ndim` dimensions whose kernel is given as rows, or whole, and in any case its size."""

    @composite(
        f"{name}(Tensor self, Tensor weight, SymInt[{ndim}] kernel_size, Tensor? bias=None, "
        f"SymInt[{ndim}] stride={[1] * ndim}, SymInt[{ndim}] padding={[0] * ndim}) -> Tensor",
        out="out",
        refuses="bool",
        face=False,
    )
    def op(self, weight, kernel_size, bias, stride, padding):
        if self.dim() != ndim + 2:
            raise RuntimeError(f"Expected {ndim + 2}D input tensor, but got: {list(self.shape)}")
        shape = [weight.size(0), self.size(1), *kernel_size]
        rows = weight.dim() == 2
        if list(weight.shape) != (shape if not rows else [shape[0], weight.numel() // max(shape[0], 1)]):
            raise RuntimeError(
                f"Expected a weight of shape {shape}, or one row for each output, but got: {list(weight.shape)}"
            )
        weight = weight.view(shape) if rows else weight
        return ops.aten.convolution(self, weight, bias, stride, padding, [1] * ndim, False, [0] * ndim, 1)

    return op


conv2d_op, conv3d_op = told_its_size("thnn_conv2d", 2), told_its_size("slow_conv3d", 3)
