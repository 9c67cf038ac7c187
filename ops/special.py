"""The error function's family and the gamma function's, element by element."""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels

from .pointwise import COMPLEX, Pointwise, pointwise
from .public import public


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


erfinv_op.derivative(self=lambda grad, result: grad * (result * result).exp() / TWO_OVER_ROOT_PI)
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

erfinv_op.autocast(cuda="fp32")
