"""The circular and hyperbolic functions and their inverses, element by element."""

from __future__ import annotations

from typing import Any

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor

from ..declare.declare import through
from ..declare.operator import binary, pointwise, unary
from ..declare.pointwise import COMPLEX, WHOLE, Pointwise

FP32 = {"cuda": "fp32"}

# --- circular ------------------------------------------------------------------------------------------------------


@unary("sin", "float", cost=16, core=True, derivative=lambda grad, self: grad * self.cos())
@kernels.usually(kernels.sin_moderate, when=kernels.is_moderate)
def sin(self):
    """Returns the sine of each element."""
    return kernels.sin(self)


@unary("cos", "float", cost=16, core=True, derivative=lambda grad, self: grad * -self.sin())
@kernels.usually(kernels.cos_moderate, when=kernels.is_moderate)
def cos(self):
    """Returns the cosine of each element."""
    return kernels.cos(self)


@unary("tan", "float", cost=16, core=True, autocast=FP32, derivative=lambda grad, result: grad * (1 + result * result))
@kernels.usually(kernels.tan_moderate, when=kernels.is_moderate)
def tan(self):
    """Returns the tangent of each element."""
    return kernels.tan(self)


asin = unary(
    "asin",
    kernels.asin,
    "float",
    cost=16,
    core=True,
    autocast=FP32,
    derivative=lambda grad, self: grad * (1 - self * self).rsqrt(),
    doc="Returns the inverse sine of each element.",
)
acos = unary(
    "acos",
    kernels.acos,
    "float",
    cost=16,
    core=True,
    autocast=FP32,
    derivative=lambda grad, self: grad * -(1 - self * self).rsqrt(),
    doc="Returns the inverse cosine of each element.",
)
atan = unary(
    "atan",
    kernels.atan,
    "float",
    cost=16,
    core=True,
    derivative=lambda grad, self: grad / (self * self + 1),
    doc="Returns the inverse tangent of each element.",
)


def over_square_of_radius(numerator: Any, self: Tensor, other: Tensor) -> Any:
    """Divided by y^2 + x^2; 0 at the origin, where there is no slope."""
    square = self * self + other * other
    return (numerator / square).masked_fill(square == 0, 0)


atan2 = binary(
    "atan2",
    kernels.atan2,
    "float",
    cost=16,
    core="out",
    autocast={"cuda": "promote"},
    refuses={COMPLEX: "atan2_cpu"},
    derivative={
        "self": lambda grad, self, other: grad * over_square_of_radius(other, self, other),
        "other": lambda grad, self, other: grad * over_square_of_radius(-self, self, other),
    },
    doc="Returns the angle of each point (other, self) of the plane, from -π to π.",
)

# --- hyperbolic ----------------------------------------------------------------------------------------------------

sinh = unary(
    "sinh",
    kernels.sinh,
    "float",
    cost=8,
    core=True,
    autocast=FP32,
    derivative=lambda grad, self: grad * self.cosh(),
    doc="Returns the hyperbolic sine of each element.",
)
cosh = unary(
    "cosh",
    kernels.cosh,
    "float",
    cost=8,
    core=True,
    autocast=FP32,
    derivative=lambda grad, self: grad * self.sinh(),
    doc="Returns the hyperbolic cosine of each element.",
)
tanh = unary("tanh", kernels.tanh, "float", cost=8, core=True, doc="Returns the hyperbolic tangent of each element.")


def tanh_slope(grad_output, output):
    return grad_output * (1 - output * output)


def tanh_complex_slope(grad_output, output):
    return grad_output * (1 - output * output).conjugate()


tanh_backward_op: Pointwise = pointwise(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    {"float": tanh_slope, "complex": tanh_complex_slope},
    late_out="grad_input",
    refuses={WHOLE: "tanh_backward_cpu"},
    derivative={
        "grad_output": lambda grad, output: tanh_backward_op.functional(grad, output.conj()),
        "output": lambda grad, grad_output, output: grad.conj() * grad_output * (-2 * output.conj()),
    },
    for_complex=True,
)
tanh.op.derivative(self=through(tanh_backward_op, "grad", "result"), for_complex=True)
asinh = unary(
    "asinh",
    kernels.asinh,
    "float",
    cost=16,
    core=True,
    derivative=lambda grad, self: grad * (self * self + 1).rsqrt(),
    doc="Returns the inverse hyperbolic sine of each element.",
)
acosh = unary(
    "acosh",
    kernels.acosh,
    "float",
    cost=16,
    core=True,
    derivative=lambda grad, self: grad * (self * self - 1).rsqrt(),
    doc="Returns the inverse hyperbolic cosine of each element.",
)
atanh = unary(
    "atanh",
    kernels.atanh,
    "float",
    cost=16,
    core=True,
    derivative=lambda grad, self: grad / (1 - self * self),
    doc="Returns the inverse hyperbolic tangent of each element.",
)
