"""The error function's family and the gamma function's, element by element."""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.dispatch import LATE, ops
from redispatch.dispatch.tensor import Tensor, overridable

from ..declare.declare import Operator
from ..declare.pointwise import COMPLEX, Pointwise, pointwise
from ..declare.public import public


def real_function(schema: str, word: str, cost: int) -> Pointwise:
    """An operator that complex numbers are refused by, under this name."""
    refused = dict.fromkeys(COMPLEX, word)
    return pointwise(schema, inplace=True, out="out", promotion="float", cost=cost, unsupported=refused)


TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

erf_op = real_function("erf(Tensor self) -> Tensor", "erf_vml_cpu", 8)


@erf_op.scalar
def erf_element(self):
    return kernels.erf(self)


erf_op.derivative(self=lambda grad, self: grad * TWO_OVER_ROOT_PI * (-self * self).exp())
erf = public(erf_op)

erfc_op = real_function("erfc(Tensor self) -> Tensor", "erfc_vml_cpu", 16)


@erfc_op.scalar
def erfc_element(self):
    return kernels.erfc(self)


erfc_op.derivative(self=lambda grad, self: grad * -TWO_OVER_ROOT_PI * (-self * self).exp())
erfc = public(erfc_op)

erfinv_op = real_function("erfinv(Tensor self) -> Tensor", "erfinv_vml_cpu", 16)


@erfinv_op.scalar
def erfinv_element(self):
    return kernels.erfinv(self)


erfinv_op.derivative(self=lambda grad, self: grad * self.erfinv().square().exp() / TWO_OVER_ROOT_PI)
erfinv = public(erfinv_op)

lgamma_op = real_function("lgamma(Tensor self) -> Tensor", "lgamma_vml_cpu", 32)


@lgamma_op.scalar
@kernels.usually(kernels.lgamma_positive, when=kernels.is_positive)
def lgamma_element(self):
    return kernels.lgamma(self)


lgamma_op.derivative(self=lambda grad, self: grad * self.digamma())
lgamma = public(lgamma_op)

digamma_op = real_function("digamma(Tensor self) -> Tensor", "digamma", 32)


@digamma_op.scalar
@kernels.usually(kernels.digamma_positive, when=kernels.is_positive)
def digamma_element(self):
    return kernels.digamma(self)


digamma_op.derivative(self=lambda grad, self: grad * polygamma(1, self))
digamma = public(digamma_op)

refused = dict.fromkeys(COMPLEX, "polygamma")
polygamma_op = pointwise(
    "polygamma(int n, Tensor self) -> Tensor", out="out", promotion="float", cost=128, unsupported=refused
)


@polygamma_op.check_numbers
def check_polygamma(n: int, self: Any) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


polygamma_op.scalar(digamma_element, when={"n": 0})


@polygamma_op.scalar
def polygamma_element(n, self):
    """The n-th derivative of digamma."""
    return kernels.polygamma(n, self)


polygamma_op.derivative(self=lambda grad, n, self: grad * polygamma(n + 1, self))
polygamma: Any = public(polygamma_op)
polygamma_inplace_op = Operator("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", tags=("inplace", "pointwise"))


@polygamma_inplace_op.explicit
def polygamma_inplace(self: Tensor, n: int) -> Tensor:
    return polygamma_op.out(n, self, out=self)  # type: ignore[misc]  # it has an out= form


polygamma_inplace_op.derivative(self=lambda grad, n, self: grad * polygamma(n + 1, self), node="PolygammaBackward1")
public(polygamma_inplace_op, function=False)


def polygamma_method(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return polygamma(n, self)


polygamma_method.__name__ = "polygamma"
Tensor.polygamma = overridable(polygamma_method)  # type: ignore[attr-defined]  # attached here

# --- the multivariate gamma function ---------------------------------------------------------------------------------

mvlgamma_op = pointwise(
    "mvlgamma(Tensor self, int p) -> Tensor",
    inplace=True,
    out="out",
    promotion="float",
    cost=128,
    unsupported=dict.fromkeys(COMPLEX, "arange_cpu"),
)


@mvlgamma_op.check
def check_mvlgamma(self: Tensor, p: int) -> None:
    if self._dtype.name == "bool":
        raise RuntimeError("The input tensor may not be a boolean tensor.")


@mvlgamma_op.check_numbers
def check_dimension(self: Tensor, p: int) -> None:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")


LOG_PI = math.log(math.pi)


@mvlgamma_op.scalar
def mvlgamma_element(self, p):
    """The logarithm of pi^(p (p - 1) / 4) times gamma(x) gamma(x - 1/2) ... gamma(x - (p - 1) / 2)."""
    total = p * (p - 1) * 0.25 * LOG_PI
    for j in range(int(p)):
        total += kernels.lgamma(self - 0.5 * j)
    return total


def mvlgamma_backward(grad: Any, self: Any, p: int) -> Any:
    slope = self.digamma()
    for j in range(1, p):
        slope = slope + (self - 0.5 * j).digamma()
    return grad * slope


mvlgamma_op.derivative(self=mvlgamma_backward)
mvlgamma = public(mvlgamma_op)

# --- incomplete gamma functions --------------------------------------------------------------------------------------

NOT_FLOATING = ("bool", "uint8", "int8", "int16", "int32", "int64", *COMPLEX)
igamma_op = pointwise(
    "igamma(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    cost=256,
    unsupported=dict.fromkeys(NOT_FLOATING, "igamma_cpu"),
)
igammac_op = pointwise(
    "igammac(Tensor self, Tensor other) -> Tensor",
    inplace=True,
    out="out",
    cost=256,
    unsupported=dict.fromkeys(NOT_FLOATING, "igammac_cpu"),
)


@igamma_op.scalar
def igamma_elements(self, other):
    return kernels.special.lower_gamma(self, other)


@igammac_op.scalar
def igammac_elements(self, other):
    return kernels.special.upper_gamma(self, other)


def gamma_density(self: Any, other: Any) -> Any:
    """x^(a - 1) e^(-x) / gamma(a)"""
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


def no_derivative_of_igamma(grad: Any) -> Any:
    raise NotImplementedError("the derivative for 'igamma: input' is not implemented.")


def no_derivative_of_igammac(grad: Any) -> Any:
    raise NotImplementedError("the derivative for 'igammac: input' is not implemented.")


igamma_op.derivative(self=no_derivative_of_igamma, other=lambda grad, self, other: grad * gamma_density(self, other))
igammac_op.derivative(self=no_derivative_of_igammac, other=lambda grad, self, other: -grad * gamma_density(self, other))
igamma = public(igamma_op)
igammac = public(igammac_op)

# --- a Bessel function -----------------------------------------------------------------------------------------------

i0_op = real_function("i0(Tensor self) -> Tensor", "i0_vml_cpu", 64)


@i0_op.scalar
def i0_element(self):
    return kernels.special.modified_bessel_i0(self)


def modified_bessel_ratio_at_zero(i1: Any, x: Any) -> Any:
    """I1(x) / x, which is 1/2 at 0."""
    return (i1 / x).masked_fill(x == 0, 0.5)


i0_op.derivative(self=lambda grad, self: grad * ops.aten.special_i1.default(self))
i0 = public(i0_op)

LATE["aten::special_"] = "redispatch.special"  # with its operators: special_functions.py, special_names.py
erfinv_op.autocast(cuda="fp32")
