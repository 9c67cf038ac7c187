"""The circular and hyperbolic functions and their inverses, element by element."""

from __future__ import annotations

from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor

from ..declare.pointwise import COMPLEX, WHOLE, pointwise
from ..declare.public import public

# --- circular ------------------------------------------------------------------------------------------------------

sin_op = pointwise("sin(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@sin_op.scalar
@kernels.usually(kernels.sin_moderate, when=kernels.is_moderate)
def sin_element(self):
    return kernels.sin(self)


sin_op.derivative(self=lambda grad, self: grad * self.cos())
sin = public(sin_op)

cos_op = pointwise("cos(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@cos_op.scalar
@kernels.usually(kernels.cos_moderate, when=kernels.is_moderate)
def cos_element(self):
    return kernels.cos(self)


cos_op.derivative(self=lambda grad, self: grad * -self.sin())
cos = public(cos_op)

tan_op = pointwise("tan(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@tan_op.scalar
@kernels.usually(kernels.tan_moderate, when=kernels.is_moderate)
def tan_element(self):
    return kernels.tan(self)


tan_op.derivative(self=lambda grad, result: grad * (1 + result * result))
tan = public(tan_op)

asin_op = pointwise("asin(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@asin_op.scalar
def asin_element(self):
    return kernels.asin(self)


asin_op.derivative(self=lambda grad, self: grad * (1 - self * self).rsqrt())
asin = public(asin_op)

acos_op = pointwise("acos(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@acos_op.scalar
def acos_element(self):
    return kernels.acos(self)


acos_op.derivative(self=lambda grad, self: grad * -(1 - self * self).rsqrt())
acos = public(acos_op)

atan_op = pointwise("atan(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@atan_op.scalar
def atan_element(self):
    return kernels.atan(self)


atan_op.derivative(self=lambda grad, self: grad / (self * self + 1))
atan = public(atan_op)

atan2_op = pointwise(
    "atan2(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    promotion="float",
    cost=16,
    unsupported=dict.fromkeys(COMPLEX, "atan2_cpu"),
)


@atan2_op.scalar
def atan2_elements(self, other):
    return kernels.atan2(self, other)


def over_square_of_radius(numerator: Any, self: Tensor, other: Tensor) -> Any:
    """Divided by y^2 + x^2; 0 at the origin, where there is no slope."""
    square = self * self + other * other
    return (numerator / square).masked_fill(square == 0, 0)


atan2_op.derivative(
    self=lambda grad, self, other: grad * over_square_of_radius(other, self, other),
    other=lambda grad, self, other: grad * over_square_of_radius(-self, self, other),
)
atan2 = public(atan2_op)

# --- hyperbolic ----------------------------------------------------------------------------------------------------

sinh_op = pointwise("sinh(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@sinh_op.scalar
def sinh_element(self):
    return kernels.sinh(self)


sinh_op.derivative(self=lambda grad, self: grad * self.cosh())
sinh = public(sinh_op)

cosh_op = pointwise("cosh(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@cosh_op.scalar
def cosh_element(self):
    return kernels.cosh(self)


cosh_op.derivative(self=lambda grad, self: grad * self.sinh())
cosh = public(cosh_op)

tanh_op = pointwise("tanh(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@tanh_op.scalar
def tanh_element(self):
    return kernels.tanh(self)


tanh_backward_op = pointwise(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    unsupported=dict.fromkeys(WHOLE, "tanh_backward_cpu"),
)


def tanh_slope(grad_output, output):
    return grad_output * (1 - output * output)


def tanh_complex_slope(grad_output, output):
    return grad_output * (1 - output * output).conjugate()


tanh_backward_op.scalar(float=tanh_slope, complex=tanh_complex_slope)
tanh_backward_op.derivative(
    grad_output=lambda grad, output: tanh_backward_op.functional(grad, output.conj()),
    output=lambda grad, grad_output, output: grad.conj() * grad_output * (-2 * output.conj()),
    for_complex=True,
)
tanh_op.derivative(self=lambda grad, result: tanh_backward_op.functional(grad, result), for_complex=True)
tanh = public(tanh_op)

asinh_op = pointwise("asinh(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@asinh_op.scalar
def asinh_element(self):
    return kernels.asinh(self)


asinh_op.derivative(self=lambda grad, self: grad * (self * self + 1).rsqrt())
asinh = public(asinh_op)

acosh_op = pointwise("acosh(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@acosh_op.scalar
def acosh_element(self):
    return kernels.acosh(self)


acosh_op.derivative(self=lambda grad, self: grad * (self * self - 1).rsqrt())
acosh = public(acosh_op)

atanh_op = pointwise("atanh(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)


@atanh_op.scalar
def atanh_element(self):
    return kernels.atanh(self)


atanh_op.derivative(self=lambda grad, self: grad / (1 - self * self))
atanh = public(atanh_op)

for _op in (tan_op, asin_op, acos_op, sinh_op, cosh_op):
    _op.autocast(cuda="fp32")
