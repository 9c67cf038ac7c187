"""Samples of activations, their slopes, and fake quantization."""

from __future__ import annotations

import numpy as np
from scipy import special

from redispatch.dispatch.tensor import dtypes

from ..op_info import FLOATS, NUMBERS, OpInfo
from .backward import gradient_of
from .common import (
    but_not,
    by_numpy,
    call,
    calls,
    first_result,
    floating,
    per_shape,
    quiet,
    table,
    unary,
    x,
)

# --- smooth ones ------------------------------------------------------------------------------------------------------


def gelu(self, approximate="none"):
    wide = np.asarray(self, np.float64)
    if approximate == "tanh":
        return 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    return 0.5 * wide * (1 + special.erf(wide / np.sqrt(2)))


def silu(self):
    return self * special.expit(self)


def softplus(x, beta=1, threshold=20):
    wide = np.asarray(x, np.float64) * beta
    return np.where(wide > threshold, x, np.logaddexp(wide, 0) / beta)


def mish(self):
    return self * np.tanh(softplus(self))


SMOOTH = table(
    OpInfo("silu", unary(), silu, FLOATS),
    OpInfo("gelu", calls(unary(), unary(approximate="tanh")), gelu, FLOATS),
    OpInfo("softplus", calls(unary(), call((2, 3), beta=2.0, threshold=1.5)), softplus, FLOATS),
    OpInfo("log_sigmoid", unary(), lambda self: -softplus(-self), FLOATS, function="nn.functional.logsigmoid"),
    OpInfo("log_sigmoid_forward", unary(), lambda self: (-softplus(-self), np.exp(-np.abs(self))), FLOATS),
    OpInfo("mish", unary(), mish, FLOATS),
    representative="gelu",
    in_nn="silu gelu softplus mish",
)

# --- pieces -----------------------------------------------------------------------------------------------------------


def each_shape(*more, low=-5, high=5):
    """One tensor of each shape with the first of the arguments given, a matrix with each of the others."""
    first, *rest = more
    return calls(unary(*first, low=low, high=high), *([x(2, 3, low=low, high=high), *args] for args in rest))


def elu(self, alpha=1, scale=1, input_scale=1):
    return np.where(self > 0, scale * self, scale * alpha * np.expm1(np.minimum(self, 0) * input_scale))


def elu_slope(grad, alpha, scale, input_scale, is_result, x):
    below = x + alpha * scale if is_result else alpha * scale * np.exp(input_scale * np.minimum(x, 0))
    return grad * np.where(x > 0, scale, input_scale * below)


def celu(self, alpha=1.0):
    return np.where(self > 0, self, alpha * np.expm1(self / alpha))


def leaky_relu(self, slope=0.01):
    return np.where(self > 0, self, slope * self)


def prelu(self, weight):
    if self.ndim and weight.ndim:
        weight = weight.reshape([-1 if d == 1 else 1 for d in range(self.ndim)])
    return np.where(self > 0, self, weight * self).reshape(self.shape)


def prelu_kernel(self, weight):
    return np.where(self > 0, self, weight * self)


def hardtanh(self, min_val=-1, max_val=1):
    return np.clip(self, min_val, max_val)


def hardsigmoid(self):
    return np.clip(self + 3, 0, 6) / 6


def hardswish(self):
    return self * hardsigmoid(self)


def hardshrink(self, lambd=0.5):
    return np.where(np.abs(self) <= lambd, 0, self)


@quiet
def softshrink(self, lambd=0.5):
    return np.sign(self) * np.maximum(np.abs(self) - lambd, 0)


def glu(self, dim=-1):
    x, gate = np.split(np.asarray(self, np.float64), 2, dim)
    return x * special.expit(gate)


WEIGHED = [[(2, 3), (1,)], [(2, 3), (3,)], [(2, 3, 2), (3,)], [(3,), (1,)], [(), (1,)], [(0, 3), (3,)], [(2, 3), ()]]
BROADCAST = [[(2, 3), (1, 3)], [(), ()], [(0, 3), (1, 3)]]
ELU_SLOPES = calls(
    per_shape(lambda s: [s, 1.5, 2, 0.5, False, s]), [(2, 3), 0.5, 1, 1, True, x(2, 3, low=-0.4, high=2)]
)
PRELU_SIZES = "Mismatch of parameter numbers and input channel size. Found parameter numbers = 2 and channel size = 3."
NEGATIVE_SLOPE = "In-place elu backward calculation is triggered with a negative slope which is not supported."


PIECES = table(
    OpInfo("relu", unary(), lambda self: np.maximum(self, 0), NUMBERS),
    OpInfo("relu6", unary(high=9), lambda self: np.clip(self, 0, 6), NUMBERS),
    OpInfo("elu", each_shape((), (0.5, 2, 1.5)), elu, FLOATS),
    OpInfo("elu_backward", ELU_SLOPES, elu_slope, FLOATS),
    OpInfo("celu", each_shape((), (2.0,), (-1.5,)), celu, FLOATS),
    OpInfo("selu", unary(), lambda self: elu(self, 1.6732632423543772, 1.0507009873554805), FLOATS),
    OpInfo("leaky_relu", each_shape((), (0.5,)), leaky_relu, FLOATS),
    OpInfo(
        "threshold",
        each_shape((1, 2), (-1, 0)),
        lambda self, threshold, value: np.where(self <= threshold, value, self),
        NUMBERS,
    ),
    OpInfo(
        "threshold_backward",
        per_shape(lambda s: [s, s, 0]),
        lambda grad, self, threshold: grad * (self > threshold),
        NUMBERS,
    ),
    OpInfo("prelu", calls(*WEIGHED), prelu, FLOATS),
    OpInfo("_prelu_kernel", calls(*BROADCAST), prelu_kernel, FLOATS),
    OpInfo("hardtanh", each_shape((), (-2, 0)), hardtanh, NUMBERS),
    OpInfo("hardsigmoid", each_shape(()), hardsigmoid, FLOATS),
    OpInfo("hardswish", each_shape(()), hardswish, FLOATS),
    OpInfo("hardshrink", each_shape((), (2,)), hardshrink, FLOATS),
    OpInfo("softshrink", each_shape((), (2,)), softshrink, FLOATS),
    OpInfo("glu", calls([(2, 4)], [(4, 3), 0], [(0, 2)]), glu, FLOATS),
    references={
        "_prelu_kernel_backward": lambda grad, x, weight: (  # what the weight was expanded by is summed afterwards
            gradient_of(prelu_kernel, [0, 1], one=False)(grad, x, np.broadcast_to(weight, x.shape))
        )
    },
    errors={
        "elu_backward": {NEGATIVE_SLOPE: [(2,), -1.0, 1, 1, True, (2,)]},
        "celu": {"ZeroDivisionError: alpha cannot be 0 for CELU": [(2,), 0]},
        "prelu": {PRELU_SIZES: [(2, 3), (2,)]},
        "softshrink": {"lambda must be in range [0, 1.79769e+308] for input dtype Double, but found -1": [(2,), -1]},
        "glu": {
            "Halving dimension must be even, but dimension 1 is size 3": [(2, 3)],
            "glu does not support 0-dimensional tensors": [()],
        },
    },
    in_nn="relu6 leaky_relu hardtanh hardsigmoid hardswish softshrink glu",
)

# --- fake quantization ------------------------------------------------------------------------------------------------

LOW, HIGH = -4, 7


def quantized(x, scale, zero_point, low, high, into=np.float32):
    """(the result, where nothing was clamped), with scales in float32"""
    single = np.float32
    scale, zero_point = np.asarray(scale, single), np.trunc(np.asarray(zero_point, single))
    place = np.rint(x * (single(1) / scale).astype(x.dtype)) + zero_point
    kept = np.clip(np.nan_to_num(place, nan=low), low, high)
    return ((kept - zero_point).astype(into or x.dtype) * scale).astype(x.dtype), (place >= low) & (place <= high)


def by_channel(x, scale, zero_point, axis, low, high):
    shape = [1] * x.ndim
    shape[axis] = -1
    return quantized(x, scale.reshape(shape), zero_point.reshape(shape), low, high, x.dtype)


def switched(x, scale, zero_point, enabled, low, high):
    return quantized(x, scale, zero_point, low, high) if enabled.item() else (x, np.ones(x.shape, bool))


def parameters(scale, zero_point):
    return [x.values(scale, FLOATS[0]).detach(), x.values(zero_point, dtypes.int32)]


LARGE = [x.values([float("nan"), float("inf"), -float("inf"), 1e30]), 0.5, 1, LOW, HIGH]
BY_NUMBERS = calls(
    *([shape, 0.3, 1, LOW, HIGH] for shape in ((3, 4), (), (0,))),
    [(3, 2), 1.5, -2, LOW, HIGH],
    floating(but_not("bfloat16", "a large number is another there", LARGE)),
)
ONE, THREE = parameters([0.3], [1]), parameters([0.3, 0.5, 1], [1, 0, -2])
BY_TENSORS = calls([(3, 4), *ONE, LOW, HIGH], [(3,), *parameters(0.5, 0), LOW, HIGH])
SWITCHES = calls(*([(3, 4), *ONE, x.index(1, below=on + 1, low=on), LOW, HIGH] for on in (1, 0)))
BY_CHANNELS = calls([(3, 4), *THREE, 0, LOW, HIGH], [(2, 3, 2), *THREE, 1, LOW, HIGH])
SCALE, POINT = parameters([0.3, 0.5], [1, 0])
OUTSIDE = "`zero_point` must be between `quant_min` and `quant_max`."
WRONG_CHANNELS = {
    "`axis` must be between 0 and number of dimensions of input": [SCALE, POINT, -2],
    "dimensions of scale and zero-point are not consistent with input tensor": [SCALE, POINT, 1],
    "Scale must be Float or BFloat16, found Double": [SCALE.double(), POINT, 0],
    "Zero-point must be Int32, Float or Half, found Long": [SCALE, POINT.long(), 0],
    "scale and zero-point need to have the same dimensions": [SCALE, POINT[:1], 0],
    "scale should be a 1-D tensor": [SCALE.view(1, 2), POINT, 0],
    OUTSIDE: [SCALE, POINT.add(100), 0],
}
TENSOR, CHANNEL = "fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"
FAKE_QUANTIZE = table(
    OpInfo(TENSOR, BY_NUMBERS, first_result(quantized), FLOATS),
    OpInfo(f"{TENSOR}_cachemask", BY_NUMBERS, quantized, FLOATS),
    OpInfo(f"{TENSOR}.tensor_qparams", BY_TENSORS, first_result(quantized), FLOATS),
    OpInfo(f"_{TENSOR}_cachemask_tensor_qparams", SWITCHES, switched, FLOATS),
    OpInfo(CHANNEL, BY_CHANNELS, first_result(by_channel), FLOATS),
    OpInfo(f"{CHANNEL}_cachemask", BY_CHANNELS, by_channel, FLOATS),
    *by_numpy(
        f"{TENSOR}_cachemask_backward:multiply {CHANNEL}_cachemask_backward:multiply",
        calls([(3, 4), x.mask(3, 4)]),
        FLOATS,
    ),
    errors={
        f"{TENSOR} {TENSOR}_cachemask": {
            OUTSIDE: [(3,), 0.5, 10, LOW, HIGH],
            "`quant_min` should be less than or         equal to `quant_max`.": [(3,), 0.5, 1, HIGH, LOW],
        },
        f"{CHANNEL} {CHANNEL}_cachemask": {text: [(2, 3), *given, LOW, HIGH] for text, given in WRONG_CHANNELS.items()},
    },
    skips={
        "it has the gradient of the identity": "gradients second_gradients: *affine *_cachemask *_qparams",
        "whether zero points are within bounds is asked of their values": f"vmap: {CHANNEL} {CHANNEL}_cachemask",
    },
)

ACTIVATIONS = [*SMOOTH, *PIECES, *FAKE_QUANTIZE]
