"""Elementary functions of one element: signs, rounding, roots, exponentials; circular and hyperbolic functions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor

from ..declare.declare import through
from ..declare.operator import CUDA_FP32, CUDA_PROMOTE, binary, flat, pointwise, unary
from ..declare.pointwise import COMPLEX, WHOLE, Pointwise

# --- signs and rounding --------------------------------------------------------------------------------------------

NEGATED_BOOLS = RuntimeError(
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead."
)
SIGN_OF_COMPLEX = NotImplementedError(
    "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
)


@unary("neg", exact_out=True, core=True, refuses={"bool": NEGATED_BOOLS}, derivative=lambda grad: -grad)
def neg(self):
    """Returns the negative of each element."""
    return -self


neg.op.understands("Negative", form=neg.op.inplace)  # in place, what lies in memory is negated


def abs_float(self):
    return math.fabs(self)


def abs_int(self):
    return -self if self < 0 else self


def same_element(self):
    return self


def abs_complex(self):
    return np.abs(self)


abs = unary(
    "abs",
    {"int": abs_int, "uint": same_element, "float": abs_float, "complex": abs_complex},
    "real",
    exact_out=True,
    core=True,
    refuses={"bool": "abs_cpu"},
    derivative=lambda grad, self: grad * self.sgn(),
    doc="Returns the absolute value of each element.",
)


def sign_element(self):
    return 1 if self > 0 else -1 if self < 0 else 0


def sgn_complex(self):
    return self / np.abs(self) if self != 0 else self * 0


def sgn_gradient(grad: Any, self: Any, result: Any) -> Any:
    """A real sign does not change; z / |z| changes across the direction of z only, and by 1 / |z|."""
    if not self.is_complex():
        return grad * 0
    size = self.abs()
    along = (grad / result).real * result
    return ((grad - along) / size).masked_fill(size == 0, 0)


sign = unary(
    "sign",
    sign_element,
    exact_out=True,
    core=True,
    refuses={COMPLEX: SIGN_OF_COMPLEX},
    derivative=flat,
    doc="Returns the sign of each element: -1, 0 or 1.",
)
sgn = unary(
    "sgn",
    dict.fromkeys(("float", "int", "uint", "bool"), sign_element) | {"complex": sgn_complex},
    exact_out=True,
    derivative=sgn_gradient,
    for_complex=True,
    doc="Returns the sign of each element; of a complex number x / |x|, or 0 for 0.",
)


def floor_element(self):
    """Returns the largest whole number that is not above each element."""
    return np.floor(self)


def ceil_element(self):
    """Returns the smallest whole number that is not below each element."""
    return np.ceil(self)


def trunc_element(self):
    """Returns each element without its fraction."""
    return np.trunc(self)


def round_element(self):
    return np.rint(self)  # halves go to the even neighbour


def rounding(name: str, element: Any, **facts: Any) -> Any:
    """A function to whole numbers, of which integers are some already."""
    kinds = {"float": element, "int": same_element, "uint": same_element}
    no_complex = NotImplementedError(f"{name} is not supported for complex inputs")
    refuses = {"bool": f"{name}_vml_cpu", COMPLEX: no_complex}
    all_facts: dict[str, Any] = {
        "exact_out": True,
        "core": True,
        "refuses": refuses,
        "derivative": flat,
        "doc": element.__doc__,
    } | facts
    return unary(name, kinds, **all_facts)


floor = rounding("floor", floor_element)
ceil = rounding("ceil", ceil_element)
trunc = rounding("trunc", trunc_element)
round_op = rounding(
    "round",
    round_element,
    refuses={("bool", *COMPLEX): "round_vml_cpu"},
    function=False,
    method=False,
    doc="Returns each element rounded to `decimals` places, halves to even.",
)

# --- roots, reciprocals --------------------------------------------------------------------------------------------


@unary("sqrt", "float", cost=4, core=True, derivative=lambda grad, result: grad / (2 * result))
def sqrt(self):
    """Returns the square root of each element."""
    return np.sqrt(self)


def rsqrt_element(self):
    return 1 / np.sqrt(self)


def rsqrt_complex(self):
    return kernels.quotient(complex(1, 0), np.sqrt(self))


def reciprocal_element(self):
    return 1 / self


def reciprocal_complex(self):
    return kernels.quotient(complex(1, 0), self)


rsqrt = unary(
    "rsqrt",
    {"float": rsqrt_element, "complex": rsqrt_complex},
    "float",
    cost=4,
    core=True,
    autocast=CUDA_FP32,
    derivative=lambda grad, result: -0.5 * grad * result.pow(3),
    doc="Returns 1 / sqrt(x) of each element.",
)
reciprocal = unary(
    "reciprocal",
    {"float": reciprocal_element, "complex": reciprocal_complex},
    "float",
    core=True,
    autocast=CUDA_FP32,
    derivative=lambda grad, result: -grad * (result * result),
    doc="Returns 1 / x of each element.",
)

# --- exponentials and logarithms -----------------------------------------------------------------------------------


def computed(name: str, what: str, derivative: Any = None, **facts: Any) -> Any:
    """The function of an operator that the function of this name in kernels/maths computes."""
    what, comma, more = what.partition(",")
    doc = f"Returns {what} of each element{comma}{more}."
    return unary(name, getattr(kernels, name), "float", derivative=derivative, doc=doc, **facts)


steep = partial(computed, cost=8, core=True, autocast=CUDA_FP32)
exp = steep("exp", "the exponential function", lambda grad, result: grad * result)
exp2 = computed("exp2", "2 to the power", lambda grad, result: grad * result * math.log(2), cost=8)
expm1 = steep("expm1", "exp(x) - 1, exactly near 0, too", lambda grad, result: grad * (result + 1))
log = steep("log", "the natural logarithm", lambda grad, self: grad / self)
log2 = steep("log2", "the logarithm to the base 2", lambda grad, self: grad / (self * math.log(2)))
log10 = steep("log10", "the logarithm to the base 10", lambda grad, self: grad / (self * math.log(10)))
log1p = steep("log1p", "log(1 + x), exactly near 0, too", lambda grad, self: grad / (self + 1))

# --- circular ------------------------------------------------------------------------------------------------------

circular = partial(computed, cost=16, core=True)


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


@unary(
    "tan", "float", cost=16, core=True, autocast=CUDA_FP32, derivative=lambda grad, result: grad * (1 + result * result)
)
@kernels.usually(kernels.tan_moderate, when=kernels.is_moderate)
def tan(self):
    """Returns the tangent of each element."""
    return kernels.tan(self)


steep_circular = partial(circular, autocast=CUDA_FP32)
asin = steep_circular("asin", "the inverse sine", lambda grad, self: grad * (1 - self * self).rsqrt())
acos = steep_circular("acos", "the inverse cosine", lambda grad, self: grad * -(1 - self * self).rsqrt())
atan = circular("atan", "the inverse tangent", lambda grad, self: grad / (self * self + 1))


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
    autocast=CUDA_PROMOTE,
    refuses={COMPLEX: "atan2_cpu"},
    derivative={
        "self": lambda grad, self, other: grad * over_square_of_radius(other, self, other),
        "other": lambda grad, self, other: grad * over_square_of_radius(-self, self, other),
    },
    doc="Returns the angle of each point (other, self) of the plane, from -π to π.",
)

# --- hyperbolic ----------------------------------------------------------------------------------------------------

sinh = steep("sinh", "the hyperbolic sine", lambda grad, self: grad * self.cosh())
cosh = steep("cosh", "the hyperbolic cosine", lambda grad, self: grad * self.sinh())
asinh = circular("asinh", "the inverse hyperbolic sine", lambda grad, self: grad * (self * self + 1).rsqrt())
acosh = circular("acosh", "the inverse hyperbolic cosine", lambda grad, self: grad * (self * self - 1).rsqrt())
atanh = circular("atanh", "the inverse hyperbolic tangent", lambda grad, self: grad / (1 - self * self))
tanh = computed("tanh", "the hyperbolic tangent", cost=8, core=True)


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
