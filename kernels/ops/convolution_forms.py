"""The same convolutions by other names: `_convolution`, with what a library of kernels is told besides; padding by a
word; and `conv_tbc`, along the first dimension.

Read next: convolution.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..declare.declare import Operator
from ..declare.public import public
from .convolution import (
    ARGUMENTS,
    convolution_backward_op,
    convolution_gradients,
    convolution_op,
    padded_same,
)

HEAD = "Tensor input, Tensor weight, Tensor? bias"
LIBRARY = "bool benchmark, bool deterministic, bool cudnn_enabled"

told_op = Operator(f"_convolution({HEAD}, {ARGUMENTS}, {LIBRARY}, bool allow_tf32) -> Tensor", refuses="bool")
older_op = Operator(
    f"_convolution.deprecated({HEAD}, {ARGUMENTS.replace('SymInt[] output', 'int[] output')}, {LIBRARY}) -> Tensor"
)
mode_op = Operator(
    f"_convolution_mode({HEAD}, SymInt[] stride, str padding, SymInt[] dilation, SymInt groups) -> Tensor",
    refuses="bool",
)


@told_op.explicit
def told(input: Any, weight: Any, bias: Any, *how_and_library: Any) -> Any:
    """A convolution. What it says of cuDNN chooses among kernels that are not here."""
    return convolution_op.functional(input, weight, bias, *how_and_library[:6])


told_op.derivative((("input", "weight", "bias"), convolution_gradients), node="ConvolutionBackward1")


@older_op.implicit
def older(input: Any, weight: Any, bias: Any, *how_and_library: Any) -> Any:
    return told_op.functional(input, weight, bias, *how_and_library, True)


@mode_op.implicit
def by_word(input: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: int) -> Any:
    dims = len(weight.shape) - 2
    return padded_same(f"conv{dims}d", dims, input, weight, bias, stride, padding, dilation, groups)


older_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
told_op.autocast(cuda="lower_precision_fp")

# --- [time, batch, channels] -----------------------------------------------------------------------------------------

conv_tbc_op = Operator("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", refuses="bool")
conv_tbc_backward_op = Operator(
    "conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad) -> (Tensor, Tensor, Tensor)"
)
ROWS, KERNELS = (1, 2, 0), (2, 1, 0)  # from [time, batch, in], [time, in, out] to what `convolution` takes
ROWS_BACK = (2, 0, 1)


def setting(pad: int) -> Sequence[Any]:
    return [1], [pad], [1], False, [0], 1


@conv_tbc_op.explicit
def conv_tbc_kernel(self: Any, weight: Any, bias: Any, pad: int) -> Any:
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
    result = convolution_op.functional(self.permute(ROWS), weight.permute(KERNELS), bias, *setting(pad))
    return result.permute(ROWS_BACK).contiguous()


@conv_tbc_backward_op.implicit
def conv_tbc_backward(self: Any, input: Any, weight: Any, bias: Any, pad: int) -> tuple[Any, Any, Any]:
    """The gradients of input, weight and bias, where `self` is that of the result."""
    turned = self.permute(ROWS), input.permute(ROWS), weight.permute(KERNELS)
    of_input, of_weight, of_bias = convolution_backward_op.functional(
        *turned, list(bias.shape), *setting(pad), [True, True, True]
    )
    return of_input.permute(ROWS_BACK).contiguous(), of_weight.permute(KERNELS).contiguous(), of_bias


conv_tbc_op.derivative(
    (
        ("self", "weight", "bias"),
        lambda grad, self, weight, bias, pad: conv_tbc_backward_op.functional(grad, self, weight, bias, pad),
    )
)
conv_tbc_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
conv_tbc = public(conv_tbc_op, method=False)
