"""Elementary functions of one element: signs and rounding, roots, exponentials, trigonometry, activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.tensor import Tensor

from .pointwise import pointwise
from .public import public

# --- signs and rounding --------------------------------------------------------------------------------------------

neg_op = pointwise("neg(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True)


@neg_op.check
def check_neg(self: Tensor) -> None:
    if self._dtype.name == "bool":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


@neg_op.scalar
def neg_element(self):
    return -self


neg_op.derivative(self=lambda grad: -grad)
neg = public(neg_op)
negative = public(neg_op, name="negative")

abs_op = pointwise(
    "abs(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True, unsupported={"bool": "abs_cpu"}
)


def abs_float(self):
    return math.fabs(self)


def abs_int(self):
    return -self if self < 0 else self


def same_element(self):
    return self


abs_op.scalar(int=abs_int, uint=same_element, float=abs_float)
abs_op.derivative(self=lambda grad, self: grad * self.sign())
abs = public(abs_op)
absolute = public(abs_op, name="absolute")

sign_op = pointwise("sign(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True)


@sign_op.scalar
def sign_element(self):
    return 1 if self > 0 else -1 if self < 0 else 0


sign_op.derivative(self=lambda grad: grad * 0)
sign = public(sign_op)

floor_op = pointwise(
    "floor(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True, unsupported={"bool": "floor_vml_cpu"}
)
ceil_op = pointwise(
    "ceil(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True, unsupported={"bool": "ceil_vml_cpu"}
)
trunc_op = pointwise(
    "trunc(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True, unsupported={"bool": "trunc_vml_cpu"}
)
round_op = pointwise(
    "round(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True, unsupported={"bool": "round_vml_cpu"}
)


def floor_element(self):
    return np.floor(self)


def ceil_element(self):
    return np.ceil(self)


def trunc_element(self):
    return np.trunc(self)


def round_element(self):
    return np.rint(self)  # halves go to the even neighbour


for _op, _element in (
    (floor_op, floor_element),
    (ceil_op, ceil_element),
    (trunc_op, trunc_element),
    (round_op, round_element),
):
    _op.scalar(float=_element, int=same_element, uint=same_element)
    _op.derivative(self=lambda grad: grad * 0)
floor = public(floor_op)
ceil = public(ceil_op)
round = public(round_op)
trunc = public(trunc_op)
fix = public(trunc_op, name="fix")

# --- roots, reciprocals --------------------------------------------------------------------------------------------

sqrt_op = pointwise("sqrt(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=4)


@sqrt_op.scalar
def sqrt_element(self):
    return np.sqrt(self)


sqrt_op.derivative(self=lambda grad, result: grad / (2 * result))
sqrt = public(sqrt_op)

rsqrt_op = pointwise("rsqrt(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=4)


@rsqrt_op.scalar
def rsqrt_element(self):
    return 1 / np.sqrt(self)


rsqrt_op.derivative(self=lambda grad, result: -0.5 * grad * result.pow(3))
rsqrt = public(rsqrt_op)

reciprocal_op = pointwise("reciprocal(Tensor self) -> Tensor", inplace=True, out="out", promotion="float")


@reciprocal_op.scalar
def reciprocal_element(self):
    return 1 / self


reciprocal_op.derivative(self=lambda grad, result: -grad * (result * result))
reciprocal = public(reciprocal_op)

# --- exponentials and logarithms -----------------------------------------------------------------------------------

exp_op = pointwise("exp(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@exp_op.scalar
def exp_element(self):
    return kernels.exp(self)


exp_op.derivative(self=lambda grad, result: grad * result)
exp = public(exp_op)

expm1_op = pointwise("expm1(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@expm1_op.scalar
def expm1_element(self):
    return np.expm1(self)


expm1_op.derivative(self=lambda grad, result: grad * (result + 1))
expm1 = public(expm1_op)

log_op = pointwise("log(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)
log2_op = pointwise("log2(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)
log10_op = pointwise("log10(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)
log1p_op = pointwise("log1p(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@log_op.scalar
def log_element(self):
    return kernels.log(self)


@log2_op.scalar
def log2_element(self):
    return np.log2(self)


@log10_op.scalar
def log10_element(self):
    return np.log10(self)


@log1p_op.scalar
def log1p_element(self):
    return np.log1p(self)


log_op.derivative(self=lambda grad, self: grad / self)
log2_op.derivative(self=lambda grad, self: grad / (self * math.log(2)))
log10_op.derivative(self=lambda grad, self: grad / (self * math.log(10)))
log1p_op.derivative(self=lambda grad, self: grad / (self + 1), node="Log1PBackward0")
log = public(log_op)
log2 = public(log2_op)
log10 = public(log10_op)
log1p = public(log1p_op)

# --- trigonometry and the error function ---------------------------------------------------------------------------

sin_op = pointwise("sin(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)
cos_op = pointwise("cos(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)
tan_op = pointwise("tan(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=16)
tanh_op = pointwise("tanh(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)
erf_op = pointwise("erf(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@sin_op.scalar
def sin_element(self):
    return np.sin(self)


@cos_op.scalar
def cos_element(self):
    return np.cos(self)


@tan_op.scalar
def tan_element(self):
    return np.tan(self)


@tanh_op.scalar
def tanh_element(self):
    return kernels.tanh(self)


@erf_op.scalar
def erf_element(self):
    return kernels.erf(self)


sin_op.derivative(self=lambda grad, self: grad * self.cos())
cos_op.derivative(self=lambda grad, self: grad * -self.sin())
tan_op.derivative(self=lambda grad, result: grad * (1 + result * result))
tanh_op.derivative(self=lambda grad, result: grad * (1 - result * result))
erf_op.derivative(self=lambda grad, self: grad * (2 / math.sqrt(math.pi)) * (-self * self).exp())
sin = public(sin_op)
cos = public(cos_op)
tan = public(tan_op)
tanh = public(tanh_op)
erf = public(erf_op)

# --- activations ---------------------------------------------------------------------------------------------------

sigmoid_op = pointwise("sigmoid(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@sigmoid_op.scalar
def sigmoid_element(self):
    return kernels.sigmoid(self)


sigmoid_op.derivative(self=lambda grad, result: grad * (result * (1 - result)))
sigmoid = public(sigmoid_op)

relu_op = pointwise("relu(Tensor self) -> Tensor", inplace=True)


@relu_op.check
def check_relu(self: Tensor) -> None:
    if self._dtype.name == "bool":
        raise RuntimeError("Boolean inputs not supported for relu")


@relu_op.scalar
def relu_element(self):
    return 0 if self <= 0 else self  # NaN passes


threshold_backward_op = pointwise("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")


@threshold_backward_op.scalar
def passed_above(grad_output, self, threshold):
    return 0 if self <= threshold else grad_output


threshold_backward_op.derivative(
    grad_output=lambda grad, self, threshold: threshold_backward_op.functional(grad, self, threshold),
    self=lambda grad: grad * 0,
)
relu_op.derivative(self=lambda grad, result: threshold_backward_op.functional(grad, result, 0))
relu = public(relu_op)

silu_op = pointwise("silu(Tensor self) -> Tensor", inplace=True, out="out", cost=8)


@silu_op.scalar
def silu_element(self):
    return self * kernels.sigmoid(self)


def silu_backward(grad: Tensor, self: Any) -> Tensor:
    share = self.sigmoid()
    return grad * (share * (1 + self * (1 - share)))


silu_op.derivative(self=silu_backward)
silu = public(silu_op, method=False)

gelu_op = pointwise("gelu(Tensor self, *, str approximate='none') -> Tensor", inplace=True, out="out", cost=16)


@gelu_op.check
def check_gelu(self: Tensor, approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    if not self._dtype.is_floating_point:
        raise NotImplementedError(f"\"GeluKernelImpl\" not implemented for '{self._dtype.tensor_name}'")


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
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor", cost=32
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

for _op in (expm1_op, log_op, log2_op, log10_op, log1p_op, rsqrt_op, reciprocal_op):
    _op.autocast(cuda="fp32")
