"""softplus, and what is made of it: log_sigmoid and mish. Each with the operator that is its slope."""

from __future__ import annotations

from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor, empty
from redispatch.kernels import Elementwise

from ..declare.declare import Operator
from ..declare.pointwise import COMPLEX, WHOLE, pointwise
from ..declare.public import public
from ..declare.structured import Meta, resize_out
from .activations import floating_only
from .creation import preserved_strides

softplus_op = pointwise("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", out="out", cost=16)
softplus_backward_op = pointwise(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    cost=8,
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "softplus_backward_cpu"),
)


@softplus_op.check
def check_softplus(self: Tensor, beta: Any, threshold: Any) -> None:
    floating_only("softplus_cpu")(self)


@softplus_op.scalar
def softplus_element(self, beta, threshold):
    """log(1 + e^(beta x)) / beta, and x itself where beta x is above the threshold."""
    return self if self * beta > threshold else kernels.softplus(self * beta) / beta


@softplus_backward_op.scalar
def softplus_slope(grad_output, self, beta, threshold):
    return grad_output if self * beta > threshold else grad_output * kernels.sigmoid(self * beta)


def softplus_second(grad: Any, grad_output: Tensor, self: Any, beta: Any, threshold: Any) -> Tensor:
    """The slope's own slope: beta s (1 - s), and 0 where the line is straight."""
    share = (self * beta).sigmoid()
    return (grad * grad_output * (beta * share * (1 - share))).masked_fill(self * beta > threshold, 0)


softplus_backward_op.derivative(
    grad_output=lambda grad, self, beta, threshold: softplus_backward_op.functional(grad, self, beta, threshold),
    self=softplus_second,
)
softplus_op.derivative(
    self=lambda grad, self, beta, threshold: softplus_backward_op.functional(grad, self, beta, threshold)
)
softplus = public(softplus_op, method=False, module="nn")

# --- log_sigmoid -----------------------------------------------------------------------------------------------------

log_sigmoid_op = Operator("log_sigmoid(Tensor self) -> Tensor", out="out")
log_sigmoid_forward_op = Operator("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)")
log_sigmoid_forward_out_op = Operator(
    "log_sigmoid_forward.output(Tensor self, *, Tensor(a!) output, Tensor(b!) buffer) -> (Tensor(a!), Tensor(b!))"
)
log_sigmoid_backward_op = pointwise(
    "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "log_sigmoid_backward_cpu"),
)


def log_sigmoid_element(x):
    """log(1 / (1 + e^-x)), and e^-|x|, of which the slope is made."""
    return kernels.log_sigmoid(x), kernels.exp(-abs(x))


LOG_SIGMOID = Elementwise("log_sigmoid", log_sigmoid_element, outputs=2, cost=24)
is_floating = floating_only("log_sigmoid_cpu")


@log_sigmoid_forward_op.kernel("CPU", "Meta")
def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    is_floating(self)
    strides = preserved_strides(self)
    output, buffer = (empty(self._shape, self._dtype, self._device, strides) for _ in range(2))
    return fill_log_sigmoid(self, output, buffer)


@log_sigmoid_forward_out_op.kernel("CPU", "Meta")
def log_sigmoid_forward_out(self: Tensor, output: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor]:
    is_floating(self)
    for out in (output, buffer):
        resize_out(out, Meta(self._shape, self._dtype, self._device))
    return fill_log_sigmoid(self, output, buffer)


def fill_log_sigmoid(self: Tensor, output: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor]:
    if self._device.type != "meta":
        LOG_SIGMOID.run((output._operand, buffer._operand), self._operand, dtype=self._dtype.name)
    return output, buffer


@log_sigmoid_backward_op.scalar
def log_sigmoid_slope(grad_output, self, buffer):
    """1 / (1 + e^x), by the e^-|x| that was kept: it overflows nowhere."""
    return grad_output * ((1 if self < 0 else buffer) / (1 + buffer))


def log_sigmoid_second(grad: Any, grad_output: Tensor, self: Any) -> Tensor:
    share = self.sigmoid()
    return grad * grad_output * (share * (share - 1))


log_sigmoid_backward_op.derivative(
    grad_output=lambda grad, self, buffer: log_sigmoid_backward_op.functional(grad, self, buffer),
    self=log_sigmoid_second,
)
log_sigmoid_forward_op.out = log_sigmoid_forward_out_op.functional
log_sigmoid_forward_op.derivative(
    self=lambda grad, self, result1: log_sigmoid_backward_op.functional(grad, self, result1),
    nondifferentiable=(1,),
    node="LogSigmoidBackward0",
)


@log_sigmoid_op.implicit
def log_sigmoid_composite(self: Tensor) -> Tensor:
    return log_sigmoid_forward_op.functional(self)[0]


@log_sigmoid_op.kernel_out("CompositeImplicitAutograd")
def log_sigmoid_into(self: Tensor, out: Tensor) -> Tensor:
    buffer = empty((0,), self._dtype, self._device)
    return log_sigmoid_forward_out_op.functional(self, output=out, buffer=buffer)[0]


log_sigmoid = public(log_sigmoid_op, method=False, module="nn")

# --- mish ------------------------------------------------------------------------------------------------------------

mish_op = pointwise("mish(Tensor self) -> Tensor", inplace=True, out="out", cost=8)
mish_op.check(floating_only("mish_cpu"))
mish_backward_op = pointwise(
    "mish_backward(Tensor grad_output, Tensor self) -> Tensor",
    cost=16,
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "mish_backward_cpu"),
)


@mish_op.scalar
def mish_element(self):
    return kernels.mish(self)


@mish_backward_op.scalar
def mish_slope(grad_output, self):
    """d/dx x t with t = tanh(softplus(x)) is t + x (1 - t^2) sigmoid(x)."""
    t = kernels.tanh(kernels.softplus(self))
    return grad_output * (t + self * (1 - t * t) * kernels.sigmoid(self))


def mish_second(grad: Any, grad_output: Tensor, self: Any) -> Tensor:
    """The slope's own slope: (1 - t^2) s (2 + x (1 - s - 2 t s)), with s the sigmoid."""
    t, share = softplus(self).tanh(), self.sigmoid()
    return grad * grad_output * ((1 - t * t) * share * (2 + self * (1 - share - 2 * t * share)))


mish_backward_op.derivative(grad_output=lambda grad, self: mish_backward_op.functional(grad, self), self=mish_second)
mish_op.derivative(self=lambda grad, self: mish_backward_op.functional(grad, self))
mish = public(mish_op, method=False, module="nn")
