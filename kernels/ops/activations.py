"""Activations, element by element: smooth ones, and those made of pieces, lines that bend.

Where PyTorch has an operator for the slope of one, so is it here: `<name>_backward`. Read next: rrelu.py.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, empty, wrap_dim
from redispatch.kernels import Elementwise, output_strides

from ..declare.declare import through
from ..declare.operator import (
    CUDA_FP32,
    LOWER,
    backward,
    composite,
    flat,
    kernel,
    leaf_kernel,
    operator,
    pointwise,
    several,
    structured,
    unary,
    with_arguments,
)
from ..declare.pointwise import COMPLEX, NOT_FLOATING, WHOLE, Pointwise
from ..declare.public import public
from ..declare.structured import Meta, broadcast, c_name, check_has_kernel, resize_out
from .comparison import where_op
from .geometry import sliced
from .shape import cat_op

activation = partial(operator, inplace=True, out="out", refuses=NOT_FLOATING, method=False, module="nn")
NO_CLAMP = NotImplementedError("clamp is not supported for complex types")


# --- sigmoid, logit --------------------------------------------------------------------------------------------------


def sigmoid_complex(self):
    return kernels.quotient(complex(1, 0), 1 + kernels.exp(-self))


def sigmoid_slope(grad_output, output):
    return grad_output * ((1 - output) * output)


def sigmoid_complex_slope(grad_output, output):
    return grad_output * ((1 - output) * output).conjugate()


sigmoid = unary(
    "sigmoid",
    {"float": kernels.sigmoid, "complex": sigmoid_complex},
    "float",
    cost=8,
    core=True,
    doc="Returns the logistic function 1 / (1 + exp(-x)) of each element.",
)
sigmoid_backward_op: Pointwise = pointwise(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    {"float": sigmoid_slope, "complex": sigmoid_complex_slope},
    late_out="grad_input",
    refuses=WHOLE,
    derivative={
        "grad_output": lambda grad, output: sigmoid_backward_op.functional(grad, output.conj()),
        "output": lambda grad, grad_output, output: grad.conj() * grad_output * (1 - 2 * output.conj()),
    },
    for_complex=True,
)
sigmoid.op.derivative(self=through(sigmoid_backward_op, "grad", "result"), for_complex=True)


@operator(
    "logit(Tensor self, float? eps=None) -> Tensor",
    inplace=True,
    out="out",
    promotion="float",
    cost=16,
    refuses=COMPLEX,
)
def logit(self, eps):
    """Returns log(x / (1 - x)) of each element; with `eps`, of x clamped to [eps, 1 - eps]."""
    low = eps if self < eps else self
    return kernels.logit(1 - eps if low > 1 - eps else low)


logit.op.scalar(kernels.logit, when={"eps": None})


def logit_second(grad: Tensor, grad_output: Tensor, self: Tensor, eps: float | None) -> Tensor:
    """The slope's own slope is (2 x - 1) / (x (1 - x))^2, and 0 where x was moved or there is none."""
    low = 0 if eps is None else eps
    slope = 1 / (self * (1 - self))
    return (grad * grad_output * (2 * self - 1) * slope * slope).masked_fill((self < low) | (self > 1 - low), 0)


@backward(logit, "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", second=logit_second)
def logit_backward_op(grad_output, self, eps):
    """1 / (x (1 - x)), but 0 where x was moved to eps or 1 - eps."""
    return 0.0 if self < eps or self > 1 - eps else grad_output / (self * (1 - self))


@logit_backward_op.scalar(when={"eps": None})
def logit_slope(grad_output, self):
    """The slope of `logit`, NaN outside of [0, 1]."""
    return math.nan if self < 0 or self > 1 else grad_output / (self * (1 - self))


# --- relu, threshold -------------------------------------------------------------------------------------------------

NO_BOOLS = RuntimeError("Boolean inputs not supported for relu")


@unary("relu", out=None, core=True, refuses={"bool": NO_BOOLS, COMPLEX: NO_CLAMP})
def relu(self):
    """Returns max(0, x) of each element."""
    return 0 if self <= 0 else self  # NaN passes


@activation("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", refuses=("bool", *COMPLEX), module="")
def threshold(self, threshold, value):
    """Returns the elements that are larger than `threshold`, and `value` in the place of the others."""
    return value if self <= threshold else self  # NaN passes


@backward(
    threshold,
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    refuses={("bool", *COMPLEX): "threshold_cpu"},
)
def threshold_backward_op(grad_output, self, threshold):
    return 0 if self <= threshold else grad_output


relu.op.derivative(self=lambda grad, result: threshold_backward_op.functional(grad, result, 0))

# --- silu, gelu, mish ------------------------------------------------------------------------------------------------


def silu_complex(self):
    return self * sigmoid_complex(self)


silu = activation(
    "silu(Tensor self) -> Tensor",
    {"float": kernels.silu, "complex": silu_complex},
    cost=8,
    refuses=WHOLE,
    doc="Returns x sigmoid(x) of each element.",
)


def silu_slope(grad_output, self):
    """d/dx x s(x) = s (1 + x (1 - s)), with s the sigmoid."""
    share = kernels.sigmoid(self)
    return grad_output * (share * (1 + self * (1 - share)))


def silu_complex_slope(grad_output, self):
    share = sigmoid_complex(self)
    return grad_output * (share * (1 + self * (1 - share)))


def silu_second(grad: Tensor, grad_output: Tensor, self: Any) -> Tensor:
    """The slope's own slope: s (1 - s) (2 + x (1 - 2 s))."""
    share = self.sigmoid()
    return grad * (grad_output * (share * (1 - share) * (2 + self * (1 - 2 * share))))


silu_backward_op = backward(
    silu,
    "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    {"float": silu_slope, "complex": silu_complex_slope},
    cost=8,
    refuses=WHOLE,
    second=silu_second,
)

gelu = activation(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    kernels.gelu,
    when={"approximate": "none"},
    cost=16,
    core=True,
    refuses={NOT_FLOATING: "GeluKernelImpl"},
    doc="Returns x Φ(x) of each element, with the normal distribution function Φ, or its approximation by tanh.",
)
gelu.op.scalar(kernels.gelu_tanh, when={"approximate": "tanh"})


@gelu.op.check
def check_gelu(self, approximate):
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")


SQRT_HALF = math.sqrt(0.5)
DENSITY_AT_ZERO = 1 / math.sqrt(2 * math.pi)
SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715


def gelu_second(grad: Any, grad_output: Any, self: Any, approximate: str) -> Any:
    """The slope's own slope: phi(x) (2 - x^2); for the tanh form by the product rule."""
    if approximate == "none":
        density = DENSITY_AT_ZERO * (-0.5 * self * self).exp()
        return grad * grad_output * density * (2 - self * self)
    t = (SQRT_2_OVER_PI * (self + CUBIC * self.pow(3))).tanh()
    slope = SQRT_2_OVER_PI * (1 + 3 * CUBIC * self * self)
    bend = SQRT_2_OVER_PI * 6 * CUBIC * self
    steep = 1 - t * t
    return grad * grad_output * (steep * slope + 0.5 * self * steep * (bend - 2 * t * slope * slope))


@backward(
    gelu,
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    when={"approximate": "none"},
    cost=32,
    refuses={NOT_FLOATING: "GeluBackwardKernelImpl"},
    second=gelu_second,
)
def gelu_backward_op(grad_output, self):
    """d/dx x Phi(x) = Phi(x) + x phi(x)."""
    below = 0.5 * (1 + kernels.erf(self * SQRT_HALF))
    density = DENSITY_AT_ZERO * kernels.exp(-0.5 * self * self)
    return grad_output * (below + self * density)


@gelu_backward_op.scalar(when={"approximate": "tanh"})
def gelu_tanh_slope(grad_output, self):
    """d/dx x (1 + t) / 2 with t = tanh(u) is (1 + t) / 2 + x (1 - t^2) u' / 2."""
    t = kernels.tanh(SQRT_2_OVER_PI * (self + CUBIC * self * self * self))
    slope = SQRT_2_OVER_PI * (1 + 3 * CUBIC * self * self)
    return grad_output * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * slope)


mish = activation(
    "mish(Tensor self) -> Tensor", kernels.mish, cost=8, doc="Returns x tanh(softplus(x)) of each element."
)


def mish_second(grad: Any, grad_output: Tensor, self: Any) -> Tensor:
    """The slope's own slope: (1 - t^2) s (2 + x (1 - s - 2 t s)), with s the sigmoid."""
    t, share = softplus(self).tanh(), self.sigmoid()
    return grad * grad_output * ((1 - t * t) * share * (2 + self * (1 - share - 2 * t * share)))


@backward(mish, "mish_backward(Tensor grad_output, Tensor self) -> Tensor", cost=16, late_out=False, second=mish_second)
def mish_backward_op(grad_output, self):
    """d/dx x t with t = tanh(softplus(x)) is t + x (1 - t^2) sigmoid(x)."""
    t = kernels.tanh(kernels.softplus(self))
    return grad_output * (t + self * (1 - t * t) * kernels.sigmoid(self))


# --- softplus, log_sigmoid -------------------------------------------------------------------------------------------


@activation(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    cost=16,
    autocast=CUDA_FP32,
    inplace=False,
)
def softplus(self, beta, threshold):
    """Returns log(1 + exp(beta x)) / beta of each element; x itself where beta x is above `threshold`."""
    return self if self * beta > threshold else kernels.softplus(self * beta) / beta


def softplus_second(grad: Any, grad_output: Tensor, self: Any, beta: Any, threshold: Any) -> Tensor:
    """The slope's own slope: beta s (1 - s), and 0 where the line is straight."""
    share = (self * beta).sigmoid()
    return (grad * grad_output * (beta * share * (1 - share))).masked_fill(self * beta > threshold, 0)


@backward(
    softplus,
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    cost=8,
    second=softplus_second,
)
def softplus_backward_op(grad_output, self, beta, threshold):
    return grad_output if self * beta > threshold else grad_output * kernels.sigmoid(self * beta)


LOG_SIGMOID_CPU = {NOT_FLOATING: "log_sigmoid_cpu"}


def log_sigmoid_element(x):
    """log(1 / (1 + e^-x)), and e^-|x|, of which the slope is made."""
    return kernels.log_sigmoid(x), kernels.exp(-abs(x))


LOG_SIGMOID = Elementwise("log_sigmoid", log_sigmoid_element, outputs=2, cost=24)


@several(
    "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
    batching="pointwise",
    refuses=LOG_SIGMOID_CPU,
    face=False,
)
def log_sigmoid_forward_op(self):
    check_has_kernel("log_sigmoid_cpu", self, NOT_FLOATING)
    return broadcast(self), broadcast(self)


@log_sigmoid_forward_op.body
def log_sigmoid_body(outs, self):
    LOG_SIGMOID.run(tuple(out._operand for out in outs), self._operand, dtype=self._dtype.name)


@leaf_kernel(
    "log_sigmoid_forward.output(Tensor self, *, Tensor(a!) output, Tensor(b!) buffer) -> (Tensor(a!), Tensor(b!))",
)
def log_sigmoid_forward_out_op(self, output, buffer):
    check_has_kernel("log_sigmoid_cpu", self, NOT_FLOATING)
    for out in (output, buffer):
        resize_out(out, Meta(self._shape, self._dtype, self._device))
    if self._device.type != "meta":
        log_sigmoid_body((output, buffer), self)
    return output, buffer


def log_sigmoid_second(grad: Any, grad_output: Tensor, self: Any) -> Tensor:
    share = self.sigmoid()
    return grad * grad_output * (share * (share - 1))


@backward(
    log_sigmoid_forward_op,
    "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
    saves=("self", "result1"),
    second=log_sigmoid_second,
    node="LogSigmoidBackward0",
    nondifferentiable=(1,),
)
def log_sigmoid_backward_op(grad_output, self, buffer):
    """1 / (1 + e^x), by the e^-|x| that was kept: it overflows nowhere."""
    return grad_output * ((1 if self < 0 else buffer) / (1 + buffer))


log_sigmoid_forward_op.out = log_sigmoid_forward_out_op.functional


@composite("log_sigmoid(Tensor self) -> Tensor", out="out", refuses=LOG_SIGMOID_CPU, out_by=None, module="nn")
def log_sigmoid(self):
    """Returns the logarithm of the sigmoid of each element."""
    return log_sigmoid_forward_op.functional(self)[0]


@log_sigmoid.op.kernel_out("CompositeImplicitAutograd")
def log_sigmoid_into(self, out):
    buffer = empty((0,), self._dtype, self._device)
    return log_sigmoid_forward_out_op.functional(self, output=out, buffer=buffer)[0]


# --- elu, celu, selu -------------------------------------------------------------------------------------------------


@activation("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", cost=8, core=True)
def elu(self, alpha, scale, input_scale):
    """Returns each element x times `scale`, or scale alpha (exp(input_scale x) - 1) where x is negative."""
    return kernels.expm1(self * input_scale) * (alpha * scale) if self <= 0 else self * scale


def elu_second(
    grad: Any, grad_output: Any, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Any
) -> Any:
    """The slope's own slope: below 0 only."""
    if is_result:
        bend = grad * grad_output * input_scale
    else:
        bend = grad * grad_output * (input_scale**2 * alpha * scale) * (self_or_result * input_scale).exp()
    return bend.masked_fill(self_or_result > 0, 0)


elu_backward_op = pointwise(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
    "Tensor self_or_result) -> Tensor",
    cost=8,
    late_out="grad_input",
    refuses=NOT_FLOATING,
)


@elu_backward_op.scalar(when={"is_result": True})
def elu_slope_of_result(grad_output, alpha, scale, input_scale, self_or_result):
    below = grad_output * input_scale * (self_or_result + alpha * scale)
    return below if self_or_result <= 0 else grad_output * scale


@elu_backward_op.scalar(when={"is_result": False})
def elu_slope(grad_output, alpha, scale, input_scale, self_or_result):
    below = grad_output * input_scale * (alpha * scale) * kernels.exp(self_or_result * input_scale)
    return below if self_or_result <= 0 else grad_output * scale


@elu_backward_op.check
def check_elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    if is_result and alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not supported. This is "
            "caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead."
        )


def elu_gradient(grad: Any, self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    return elu_backward_op.functional(grad, alpha, scale, input_scale, False, self)


elu_backward_op.derivative(
    grad_output=through(elu_backward_op, "grad", *elu_backward_op.names[1:]), self_or_result=elu_second
)
elu.op.derivative(self=elu_gradient)


def check_celu(alpha: Any) -> None:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


@kernel(
    "celu(Tensor self, Scalar alpha=1.) -> Tensor",
    inplace=True,
    late_out=True,
    tags=("pointwise",),
    refuses=elu.op.refuses,
    derivative=lambda grad, self, alpha: elu_gradient(grad, self, alpha, 1.0, 1.0 / alpha),
    method=False,
)
def celu(self, alpha):
    """Returns max(0, x) + min(0, alpha (exp(x / alpha) - 1)), whose slope at 0 is 1 for every alpha."""
    check_celu(alpha)
    return elu.op.functional(self, alpha, 1.0, 1.0 / alpha)


@celu.op.kernel_inplace("CompositeExplicitAutograd")
def celu_inplace(self, alpha):
    check_celu(alpha)
    return elu.op.inplace(self, alpha, 1.0, 1.0 / alpha)


# The fixed point of mean 0 and variance 1: Klambauer et al., Self-Normalizing Neural Networks, 2017.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
selu = public(
    with_arguments("selu(Tensor self) -> Tensor", elu, SELU_ALPHA, SELU_SCALE, inplace=True),
    method=False,
    doc="Returns elu of each element, scaled such that mean and variance are kept from layer to layer.",
)

# --- leaky_relu, prelu -----------------------------------------------------------------------------------------------


@activation("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", core=True)
def leaky_relu(self, negative_slope):
    """Returns each element x, or x times `negative_slope` where it is negative."""
    return self if self > 0 else self * negative_slope


def leaky_relu_slope(grad_output, self, negative_slope):
    return grad_output if self > 0 else grad_output * negative_slope


def leaky_relu_gradient(grad: Any, self: Any, negative_slope: Any) -> Any:
    return leaky_relu_backward_op.functional(grad, self, negative_slope, False)


leaky_relu_backward_op = pointwise(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    leaky_relu_slope,
    late_out="grad_input",
    refuses=NOT_FLOATING,
    derivative={"grad_output": leaky_relu_gradient, "self": flat},
)
leaky_relu.op.derivative(self=leaky_relu_gradient)


@activation(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    refuses={NOT_FLOATING: "prelu_cpu"},
    function=False,
    inplace=False,
    out=None,
    late_out=False,
)
def prelu_kernel_op(self, weight):
    return self if self > 0 else weight * self


def prelu_slopes(grad_output, self, weight):
    """By the input, and by the weight."""
    return (grad_output, 0.0) if self > 0 else (grad_output * weight, grad_output * self)


PRELU_SLOPES = Elementwise("prelu_backward", prelu_slopes, outputs=2)


@several(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    batching="pointwise",
    refuses={NOT_FLOATING: "prelu_backward_cpu"},
    late_out=False,
)
def prelu_backward_op(grad_output, self, weight):
    """Both gradients in the shape of the operands together: what the weight was expanded by is summed afterwards."""
    check_has_kernel("prelu_backward_cpu", self, NOT_FLOATING)
    meta = prelu_kernel_op.meta_function(self, weight)
    return meta, meta


@prelu_backward_op.body
def prelu_backward_body(outs, *operands):
    given = [x._operand for x in operands]
    PRELU_SLOPES.run(tuple(out._operand for out in outs), *given, dtype=outs[0]._dtype.name)


@prelu_backward_op.gradient("grad_output", "self", "weight")
def prelu_second(grads, grad_output, self, weight):
    """Returns the gradients of g, x and w, of which each takes part in g and g w to the left of 0, and in g x by the
    weight."""
    by_self, by_weight = (self.new_zeros(self._shape) if grad is None else grad for grad in grads)
    return (
        where_op.functional(self > 0, by_self, by_self * weight + by_weight * self),
        (by_weight * grad_output).masked_fill(self > 0, 0),
        (by_self * grad_output).masked_fill(self > 0, 0),
    )


prelu_kernel_op.derivative((("self", "weight"), through(prelu_backward_op, "grad", "self", "weight")))


@composite(
    "prelu(Tensor self, Tensor weight) -> Tensor",
    autocast=LOWER,
    refuses=prelu_kernel_op.refuses,
)
def prelu(self, weight):
    """Returns each element, or its product with `weight` where it is negative, for each channel or all."""
    if self._dtype is not weight._dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {c_name(self._dtype)} and {c_name(weight._dtype)}"
        )
    if weight.numel() != 1:
        if not self._shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self._shape[1] if len(self._shape) > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if len(weight._shape) > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {len(weight._shape)}"
        )
    if len(weight._shape) != len(self._shape):
        shape = [1] * len(self._shape)
        if len(shape) > 1:
            shape[1] = weight.numel()
        weight = weight.view(shape)
    return prelu_kernel_op.functional(self, weight)


# --- hardtanh, relu6, hardsigmoid, hardswish -------------------------------------------------------------------------


@activation(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    core=True,
    refuses={"bool": RuntimeError("Bool inputs not supported for hardtanh"), "uint8": "", COMPLEX: NO_CLAMP},
)
def hardtanh(self, min_val, max_val):
    """Returns each element, clamped to the range from `min_val` to `max_val`."""
    above = min_val if self < min_val else self
    return max_val if above > max_val else above


@hardtanh.op.check_numbers
def check_limits(self, min_val, max_val):
    if self._dtype.name == "uint8" and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


@backward(
    hardtanh,
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    refuses={NOT_FLOATING: "hardshrink_backward_cpu"},
)
def hardtanh_backward_op(grad_output, self, min_val, max_val):
    return 0 if self <= min_val or self >= max_val else grad_output


relu6_op = with_arguments("relu6(Tensor self) -> Tensor", hardtanh, 0, 6, inplace=True, tags=(), refuses="bool complex")
relu6 = public(relu6_op, module="nn", doc="Returns min(max(0, x), 6) of each element.")


@activation("hardsigmoid(Tensor self) -> Tensor")
def hardsigmoid(self):
    """Returns min(max(0, x + 3), 6) / 6 of each element."""
    above = 0.0 if self + 3 < 0 else self + 3
    return (6.0 if above > 6 else above) / 6


@backward(
    hardsigmoid,
    "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    refuses={NOT_FLOATING: "hardsigmoid_backward"},
)
def hardsigmoid_backward_op(grad_output, self):
    return grad_output / 6 if self > -3 and self < 3 else 0.0


@activation("hardswish(Tensor self) -> Tensor")
def hardswish(self):
    """Returns x min(max(0, x + 3), 6) / 6 of each element."""
    above = 0.0 if self + 3 < 0 else self + 3
    return self * (6.0 if above > 6 else above) / 6


@backward(
    hardswish,
    "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    late_out=True,
    second=lambda grad, grad_output, self: (grad * grad_output / 3).masked_fill((self <= -3) | (self >= 3), 0),
)
def hardswish_backward_op(grad_output, self):
    return 0.0 if self <= -3 else grad_output * (self / 3 + 0.5) if self < 3 else grad_output


# --- hardshrink, softshrink ------------------------------------------------------------------------------------------


@operator("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", out="out", refuses=NOT_FLOATING)
def hardshrink(self, lambd):
    """Returns the elements whose magnitude is larger than `lambd`, and 0 in the place of the others."""
    return self * 0 if self >= -lambd and self <= lambd else self


@activation(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", refuses={NOT_FLOATING: "softshrink_check"}, inplace=False
)
def softshrink(self, lambd):
    """Returns each element moved by `lambd` towards 0; 0 where it is not as far away."""
    return self - lambd if self > lambd else self + lambd if self < -lambd else self * 0  # NaN stays NaN


@softshrink.op.check_numbers
def check_lambda(self, lambd):
    largest = {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308, "float16": 65504.0}.get(
        self._dtype.name, 3.3895313892515355e38
    )
    if not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {self._dtype.tensor_name}, but found {lambd:g}"
        )


def shrink_slope(grad_out, self, lambd):
    return 0 if self >= -lambd and self <= lambd else grad_out


hardshrink_backward_op = backward(
    hardshrink,
    "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
    shrink_slope,
    refuses={NOT_FLOATING: "shrink_backward_cpu"},
)


@backward(
    softshrink,
    "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
    refuses={NOT_FLOATING: "shrink_backward_cpu"},
)
def softshrink_backward_op(grad_output, self, lambd):
    return 0 if self >= -lambd and self <= lambd else grad_output


# --- glu: one half of the input is a gate for the other --------------------------------------------------------------


def halves(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Views of the first and the second half."""
    size = x._shape[dim]
    return sliced(x, dim, 0, size // 2, 1).of(x), sliced(x, dim, size // 2, size, 1).of(x)


@structured(
    "glu(Tensor self, int dim=-1) -> Tensor",
    out="out",
    batching="dims",
    refuses=NOT_FLOATING,
    module="nn",
)
def glu(self, dim):
    """Returns the first half along `dim` times the sigmoid of the second."""
    if not self._shape:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    axis = wrap_dim(dim, len(self._shape))
    size = self._shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    check_has_kernel("glu_cpu", self, NOT_FLOATING)
    shape = (*self._shape[:axis], size // 2, *self._shape[axis + 1 :])
    return Meta(shape, self._dtype, self._device, output_strides(shape, ((shape, self._stride),)))


def gated(x, gate):
    return x * kernels.sigmoid(gate)


def gated_slope(grad, gate):
    return grad * kernels.sigmoid(gate)


def gate_slope(grad, x, gate):
    share = kernels.sigmoid(gate)
    return grad * x * share * (1 - share)


GATED = Elementwise("glu", gated, cost=8)
GATED_SLOPE = Elementwise("glu_backward", gated_slope, cost=8)
GATE_SLOPE = Elementwise("glu_gate_backward", gate_slope, cost=8)


@glu.op.body
def glu_body(out, self, dim):
    """The first half times the sigmoid of the second."""
    first, second = halves(self, wrap_dim(dim, len(self._shape)))
    GATED.run(out._operand, first._operand, second._operand)


@structured(
    "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    batching="dims",
    late_out="grad_input",
    refuses={COMPLEX: ""},
    face=False,
    relies="glu",
)
def glu_backward_op(grad_output, self, dim):
    return Meta(self._shape, self._dtype, self._device)


@glu_backward_op.body
def glu_backward_body(out, grad_output, self, dim):
    axis = wrap_dim(dim, len(self._shape))
    (x, gate), (to_x, to_gate) = halves(self, axis), halves(out, axis)
    GATED_SLOPE.run(to_x._operand, grad_output._operand, gate._operand)
    GATE_SLOPE.run(to_gate._operand, grad_output._operand, x._operand, gate._operand)


def two_parts(x: Any, dim: int) -> tuple[Any, Any]:
    size = x.shape[dim] // 2
    return x.narrow(dim, 0, size), x.narrow(dim, size, size)


def glu_second(grad: Any, grad_output: Any, self: Any, dim: int) -> Any:
    """With s = kernels.sigmoid(gate), s' = s (1 - s): the two slopes are grad s and grad x s'."""
    (x, gate), (of_x, of_gate) = two_parts(self, dim), two_parts(grad, dim)
    share = gate.sigmoid()
    slope = share * (1 - share)
    to_x = of_gate * grad_output * slope
    to_gate = of_x * grad_output * slope + of_gate * grad_output * x * slope * (1 - 2 * share)
    return cat_op.functional([to_x, to_gate], dim)


def glu_second_of_grad(grad: Any, self: Any, dim: int) -> Any:
    (x, gate), (of_x, of_gate) = two_parts(self, dim), two_parts(grad, dim)
    share = gate.sigmoid()
    return of_x * share + of_gate * x * share * (1 - share)


glu_backward_op.derivative(grad_output=glu_second_of_grad, self=glu_second)
glu.op.derivative(self=through(glu_backward_op, "grad", "self", "dim"))
