"""Activations, element by element, and the slopes of those whose slope is an operator of its own."""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.tensor import Tensor

from .pointwise import COMPLEX, WHOLE, pointwise
from .public import public
from .structured import not_implemented

sigmoid_op = pointwise("sigmoid(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


def sigmoid_element(self):
    return kernels.sigmoid(self)


def sigmoid_complex(self):
    return kernels.quotient(complex(1, 0), 1 + kernels.exp(-self))


sigmoid_op.scalar(float=sigmoid_element, complex=sigmoid_complex)

sigmoid_op.derivative(self=lambda grad, result: grad * (result * (1 - result)))
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


def logit_backward(grad: Tensor, self: Tensor, eps: float | None) -> Any:
    """1 / (x (1 - x)); 0 where x was moved to eps or 1 - eps, NaN outside of [0, 1] if eps is None."""
    slope = grad / (self * (1 - self))
    if eps is None:
        return slope.masked_fill((self < 0).logical_or(self > 1), math.nan)
    return slope.masked_fill((self < eps).logical_or(self > 1 - eps), 0)


logit_op.derivative(self=logit_backward)
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


def silu_backward(grad: Tensor, self: Any) -> Tensor:
    share = self.sigmoid()
    return grad * (share * (1 + self * (1 - share)))


silu_op.derivative(self=silu_backward)
silu = public(silu_op, method=False)

mish_op = pointwise("mish(Tensor self) -> Tensor", inplace=True, out="out", cost=8)
mish_op.check(floating_only("mish_cpu"))


@mish_op.scalar
def mish_element(self):
    return kernels.mish(self)


def mish_backward(grad: Tensor, self: Any) -> Tensor:
    """d/dx x t with t = tanh(softplus(x)) is t + x (1 - t^2) sigmoid(x)."""
    t = softplus(self).tanh()
    return grad * (t + self * (1 - t * t) * self.sigmoid())


mish_op.derivative(self=mish_backward)
mish = public(mish_op, method=False)

log_sigmoid_op = pointwise("log_sigmoid(Tensor self) -> Tensor", out="out", cost=16)
log_sigmoid_op.check(floating_only("log_sigmoid_cpu"))


@log_sigmoid_op.scalar
def log_sigmoid_element(self):
    return kernels.log_sigmoid(self)


log_sigmoid_op.derivative(self=lambda grad, self: grad * (-self).sigmoid())
log_sigmoid = public(log_sigmoid_op, method=False)

softplus_op = pointwise("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", out="out", cost=16)


@softplus_op.check
def check_softplus(self: Tensor, beta: Any, threshold: Any) -> None:
    floating_only("softplus_cpu")(self)


@softplus_op.scalar
def softplus_element(self, beta, threshold):
    """log(1 + e^(beta x)) / beta, and x itself where beta x is above the threshold."""
    return self if self * beta > threshold else kernels.softplus(self * beta) / beta


def softplus_backward(grad: Tensor, self: Any, beta: Any, threshold: Any) -> Tensor:
    return grad * (self * beta).sigmoid().masked_fill(self * beta > threshold, 1)


softplus_op.derivative(self=softplus_backward)
softplus = public(softplus_op, method=False)

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
gelu = public(gelu_op, method=False)
