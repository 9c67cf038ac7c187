"""Activations, element by element, and the slopes of those whose slope is an operator of its own."""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor

from ..declare.pointwise import COMPLEX, WHOLE, pointwise
from ..declare.public import public
from ..declare.structured import not_implemented

sigmoid_op = pointwise("sigmoid(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


def sigmoid_element(self):
    return kernels.sigmoid(self)


def sigmoid_complex(self):
    return kernels.quotient(complex(1, 0), 1 + kernels.exp(-self))


sigmoid_op.scalar(float=sigmoid_element, complex=sigmoid_complex)

sigmoid_backward_op = pointwise(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    unsupported=dict.fromkeys(WHOLE, "sigmoid_backward_cpu"),
)


def sigmoid_slope(grad_output, output):
    return grad_output * ((1 - output) * output)


def sigmoid_complex_slope(grad_output, output):
    return grad_output * ((1 - output) * output).conjugate()


sigmoid_backward_op.scalar(float=sigmoid_slope, complex=sigmoid_complex_slope)
sigmoid_backward_op.derivative(
    grad_output=lambda grad, output: sigmoid_backward_op.functional(grad, output.conj()),
    output=lambda grad, grad_output, output: grad.conj() * grad_output * (1 - 2 * output.conj()),
    for_complex=True,
)
sigmoid_op.derivative(self=lambda grad, result: sigmoid_backward_op.functional(grad, result), for_complex=True)
sigmoid = public(sigmoid_op)

logit_op = pointwise(
    "logit(Tensor self, float? eps=None) -> Tensor",
    inplace=True,
    out="out",
    promotion="float",
    cost=16,
    unsupported=dict.fromkeys(COMPLEX, "logit_cpu"),
)


@logit_op.scalar(when={"eps": None})
def logit_element(self):
    return kernels.logit(self)


@logit_op.scalar
def logit_within(self, eps):
    low = eps if self < eps else self
    return kernels.logit(1 - eps if low > 1 - eps else low)


logit_backward_op = pointwise(
    "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "logit_backward_cpu"),
)


@logit_backward_op.scalar(when={"eps": None})
def logit_slope(grad_output, self):
    """1 / (x (1 - x)), and NaN outside of [0, 1]."""
    return math.nan if self < 0 or self > 1 else grad_output / (self * (1 - self))


@logit_backward_op.scalar
def logit_slope_within(grad_output, self, eps):
    """As above, but 0 where x was moved to eps or 1 - eps."""
    return 0.0 if self < eps or self > 1 - eps else grad_output / (self * (1 - self))


def logit_second(grad: Tensor, grad_output: Tensor, self: Tensor, eps: float | None) -> Tensor:
    """The slope's own slope is (2 x - 1) / (x (1 - x))^2, and 0 where x was moved or there is none."""
    low = 0 if eps is None else eps
    slope = 1 / (self * (1 - self))
    return (grad * grad_output * (2 * self - 1) * slope * slope).masked_fill((self < low) | (self > 1 - low), 0)


logit_backward_op.derivative(
    grad_output=lambda grad, self, eps: logit_backward_op.functional(grad, self, eps), self=logit_second
)
logit_op.derivative(self=lambda grad, self, eps: logit_backward_op.functional(grad, self, eps))
logit = public(logit_op)


def floating_only(word: str) -> Any:
    """A check that refuses what is not floating, under this name."""

    def check(self: Tensor) -> None:
        if not self._dtype.is_floating_point:
            raise not_implemented(word, self._dtype)

    return check


relu_op = pointwise("relu(Tensor self) -> Tensor", inplace=True)


@relu_op.check
def check_relu(self: Tensor) -> None:
    if self._dtype.name == "bool":
        raise RuntimeError("Boolean inputs not supported for relu")
    if self._dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")


@relu_op.scalar
def relu_element(self):
    return 0 if self <= 0 else self  # NaN passes


threshold_backward_op = pointwise(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    unsupported=dict.fromkeys(("bool", *COMPLEX), "threshold_cpu"),
)


@threshold_backward_op.scalar
def passed_above(grad_output, self, threshold):
    return 0 if self <= threshold else grad_output


threshold_backward_op.derivative(
    grad_output=lambda grad, self, threshold: threshold_backward_op.functional(grad, self, threshold),
    self=lambda grad: grad * 0,
)
relu_op.derivative(self=lambda grad, result: threshold_backward_op.functional(grad, result, 0))
relu = public(relu_op)

silu_op = pointwise(
    "silu(Tensor self) -> Tensor", inplace=True, out="out", cost=8, unsupported=dict.fromkeys(WHOLE, "silu_cpu")
)


def silu_element(self):
    return kernels.silu(self)


def silu_complex(self):
    return self * sigmoid_complex(self)


silu_op.scalar(float=silu_element, complex=silu_complex)


silu_backward_op = pointwise(
    "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    cost=8,
    unsupported=dict.fromkeys(WHOLE, "silu_backward_cpu"),
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


silu_backward_op.scalar(float=silu_slope, complex=silu_complex_slope)
silu_backward_op.derivative(grad_output=lambda grad, self: silu_backward_op.functional(grad, self), self=silu_second)
silu_op.derivative(self=lambda grad, self: silu_backward_op.functional(grad, self))
silu = public(silu_op, method=False, module="nn")

gelu_op = pointwise("gelu(Tensor self, *, str approximate='none') -> Tensor", inplace=True, out="out", cost=16)


@gelu_op.check
def check_gelu(self: Tensor, approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    if not self._dtype.is_floating_point:
        raise not_implemented("GeluKernelImpl", self._dtype)


@gelu_op.scalar(when={"approximate": "none"})
def gelu_element(self):
    return kernels.gelu(self)


@gelu_op.scalar(when={"approximate": "tanh"})
def gelu_tanh_element(self):
    return kernels.gelu_tanh(self)


SQRT_HALF = math.sqrt(0.5)
DENSITY_AT_ZERO = 1 / math.sqrt(2 * math.pi)
SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715

gelu_backward_op = pointwise(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    cost=32,
    unsupported=dict.fromkeys((*WHOLE, *COMPLEX), "GeluBackwardKernelImpl"),
)


@gelu_backward_op.scalar(when={"approximate": "none"})
def gelu_slope(grad_output, self):
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


gelu_backward_op.derivative(
    grad_output=lambda grad, self, approximate: gelu_backward_op.functional(grad, self, approximate=approximate),
    self=gelu_second,
)
gelu_op.derivative(
    self=lambda grad, self, approximate: gelu_backward_op.functional(grad, self, approximate=approximate)
)
gelu = public(gelu_op, method=False, module="nn")
