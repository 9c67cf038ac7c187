"""The error function's family and the gamma function's, element by element."""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.dispatch import LATE, ops
from redispatch.dispatch.tensor import Tensor, overridable

from ..declare.declare import no_formula
from ..declare.operator import CUDA_FP32, binary, kernel, operator, unary
from ..declare.pointwise import COMPLEX, NOT_FLOATING
from .elementary import computed

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


def real(name: str, what: str, derivative: Any, **facts: Any) -> Any:
    """The function of an operator of real numbers, which a function of kernels/maths computes."""
    return computed(name, what, derivative, refuses={COMPLEX: f"{name}_vml_cpu"}, **facts)


erf = real(
    "erf", "the error function", lambda grad, self: grad * TWO_OVER_ROOT_PI * (-self * self).exp(), cost=8, core=True
)
erfc = real(
    "erfc",
    "1 - erf(x), exactly where that is small, too",
    lambda grad, self: grad * -TWO_OVER_ROOT_PI * (-self * self).exp(),
    cost=16,
)
erfinv = real(
    "erfinv",
    "the inverse error function",
    lambda grad, self: grad * self.erfinv().square().exp() / TWO_OVER_ROOT_PI,
    cost=16,
    autocast=CUDA_FP32,
)

# --- gamma ---------------------------------------------------------------------------------------------------------

LGAMMA, DIGAMMA, POLYGAMMA = {COMPLEX: "lgamma_vml_cpu"}, {COMPLEX: "digamma"}, {COMPLEX: "polygamma"}


@unary("lgamma", "float", cost=32, refuses=LGAMMA, derivative=lambda grad, self: grad * self.digamma())
@kernels.usually(kernels.lgamma_positive, when=kernels.is_positive)
def lgamma(self):
    """Returns the logarithm of the absolute value of the gamma function of each element."""
    return kernels.lgamma(self)


@kernels.usually(kernels.digamma_positive, when=kernels.is_positive)
def digamma_element(self):
    return kernels.digamma(self)


def polygamma_gradient(grad: Any, n: int, self: Any) -> Any:
    return grad * polygamma(n + 1, self)


digamma = unary(
    "digamma",
    digamma_element,
    "float",
    cost=32,
    refuses=DIGAMMA,
    derivative=lambda grad, self: grad * polygamma(1, self),
    doc="Returns the logarithmic derivative of the gamma function at each element.",
)
polygamma: Any = operator(
    "polygamma(int n, Tensor self) -> Tensor",
    kernels.polygamma,
    out="out",
    promotion="float",
    cost=128,
    refuses=POLYGAMMA,
    derivative=polygamma_gradient,
    doc="Returns the n-th derivative of the digamma function at each element.",
)
polygamma.op.scalar(digamma_element, when={"n": 0})


@polygamma.op.scalar(when={"n": 1})
def trigamma_element(self):
    return kernels.trigamma(self)


@polygamma.op.check_numbers
def check_polygamma(n, self):
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


@kernel(
    "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
    tags=("inplace", "pointwise"),
    refuses={NOT_FLOATING: ""},
    derivative=polygamma_gradient,
    node="PolygammaBackward1",
    function=False,
)
def polygamma_(self, n):
    """Replaces each element by the n-th derivative of the digamma function at it."""
    return polygamma.op.out(n, self, out=self)


def polygamma_method(self: Tensor, n: int) -> Tensor:
    """Returns the n-th derivative of digamma."""
    return polygamma(n, self)


polygamma_method.__name__ = "polygamma"
Tensor.polygamma = overridable(polygamma_method)  # type: ignore[attr-defined]  # attached here

# --- the multivariate gamma function ---------------------------------------------------------------------------------

LOG_PI = math.log(math.pi)
NO_BOOL = RuntimeError("The input tensor may not be a boolean tensor.")


def mvlgamma_gradient(grad: Any, self: Any, p: int) -> Any:
    slope = self.digamma()
    for j in range(1, p):
        slope = slope + (self - 0.5 * j).digamma()
    return grad * slope


@operator(
    "mvlgamma(Tensor self, int p) -> Tensor",
    inplace=True,
    out="out",
    promotion="float",
    cost=128,
    refuses={"bool": NO_BOOL, COMPLEX: "arange_cpu"},
    derivative=mvlgamma_gradient,
)
def mvlgamma(self, p):
    """Returns the logarithm of the multivariate gamma function of dimension `p` of each element."""
    total = p * (p - 1) * 0.25 * LOG_PI
    for j in range(int(p)):
        total += kernels.lgamma(self - 0.5 * j)
    return total


@mvlgamma.op.check_numbers
def check_dimension(self, p):
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    kernels.memory(p, float)  # RuntimeError for more terms than memory would hold, as in PyTorch, which holds all


# --- incomplete gamma functions --------------------------------------------------------------------------------------


def gamma_density(self: Any, other: Any) -> Any:
    """x^(a - 1) e^(-x) / gamma(a)"""
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


igamma = binary(
    "igamma",
    kernels.special.lower_gamma,
    cost=256,
    refuses={NOT_FLOATING: "igamma_cpu"},
    derivative={
        "self": no_formula("igamma: input"),
        "other": lambda grad, self, other: grad * gamma_density(self, other),
    },
    doc="Returns the regularized lower incomplete gamma function P(self, other).",
)
igammac = binary(
    "igammac",
    kernels.special.upper_gamma,
    cost=256,
    refuses={NOT_FLOATING: "igammac_cpu"},
    derivative={
        "self": no_formula("igammac: input"),
        "other": lambda grad, self, other: -grad * gamma_density(self, other),
    },
    doc="Returns the regularized upper incomplete gamma function Q(self, other).",
)

# --- a Bessel function -----------------------------------------------------------------------------------------------


def modified_bessel_ratio_at_zero(i1: Any, x: Any) -> Any:
    """I1(x) / x, which is 1/2 at 0."""
    return (i1 / x).masked_fill(x == 0, 0.5)


i0 = unary(
    "i0",
    kernels.special.modified_bessel_i0,
    "float",
    cost=64,
    refuses={COMPLEX: "i0_vml_cpu"},
    derivative=lambda grad, self: grad * ops.aten.special_i1.default(self),
    doc="Returns the modified Bessel function of the first kind of order 0 of each element.",
)

LATE["aten::special_"] = "redispatch.special"  # with its operators: special_functions.py
