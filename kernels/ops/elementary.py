"""Elementary functions of one element: signs and rounding, roots, exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch.tensor import Tensor

from ..declare.pointwise import COMPLEX, pointwise
from ..declare.public import public

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
neg_op.understands("Negative", form=neg_op.inplace)  # in place, what lies in memory is negated
neg = public(neg_op)

abs_op = pointwise(
    "abs(Tensor self) -> Tensor",
    inplace=True,
    out="out",
    promotion="real",
    exact_out=True,
    unsupported={"bool": "abs_cpu"},
)


def abs_float(self):
    return math.fabs(self)


def abs_int(self):
    return -self if self < 0 else self


def same_element(self):
    return self


def abs_complex(self):
    return np.abs(self)


abs_op.scalar(int=abs_int, uint=same_element, float=abs_float, complex=abs_complex)
abs_op.derivative(self=lambda grad, self: grad * self.sgn())
abs = public(abs_op)

sign_op = pointwise("sign(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True)


@sign_op.check
def check_sign(self: Tensor) -> None:
    if self._dtype.is_complex:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )


@sign_op.scalar
def sign_element(self):
    return 1 if self > 0 else -1 if self < 0 else 0


sign_op.derivative(self=lambda grad: grad * 0)
sign = public(sign_op)

sgn_op = pointwise("sgn(Tensor self) -> Tensor", inplace=True, out="out", exact_out=True)


def sgn_complex(self):
    return self / np.abs(self) if self != 0 else self * 0


sgn_op.scalar(float=sign_element, int=sign_element, uint=sign_element, bool=sign_element, complex=sgn_complex)


def sgn_backward(grad: Any, self: Any, result: Any) -> Any:
    """A real sign does not change; z / |z| changes across the direction of z only, and by 1 / |z|."""
    if not self.is_complex():
        return grad * 0
    size = self.abs()
    along = (grad / result).real * result
    return ((grad - along) / size).masked_fill(size == 0, 0)


sgn_op.derivative(self=sgn_backward, for_complex=True)
sgn = public(sgn_op)

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
    "round(Tensor self) -> Tensor",
    inplace=True,
    out="out",
    exact_out=True,
    unsupported=dict.fromkeys(("bool", *COMPLEX), "round_vml_cpu"),
)


@floor_op.check
def check_floor(self: Tensor) -> None:
    check_real("floor", self)


@ceil_op.check
def check_ceil(self: Tensor) -> None:
    check_real("ceil", self)


@trunc_op.check
def check_trunc(self: Tensor) -> None:
    check_real("trunc", self)


def check_real(name: str, self: Tensor) -> None:
    """Raises NotImplementedError for complex numbers, which have no whole numbers below and above."""
    if self._dtype.is_complex:
        raise NotImplementedError(f"{name} is not supported for complex inputs")


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
trunc = public(trunc_op)

# --- roots, reciprocals --------------------------------------------------------------------------------------------

sqrt_op = pointwise("sqrt(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=4)


@sqrt_op.scalar
def sqrt_element(self):
    return np.sqrt(self)


sqrt_op.derivative(self=lambda grad, result: grad / (2 * result))
sqrt = public(sqrt_op)

rsqrt_op = pointwise("rsqrt(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=4)


def rsqrt_element(self):
    return 1 / np.sqrt(self)


def rsqrt_complex(self):
    return kernels.quotient(complex(1, 0), np.sqrt(self))


rsqrt_op.scalar(float=rsqrt_element, complex=rsqrt_complex)

rsqrt_op.derivative(self=lambda grad, result: -0.5 * grad * result.pow(3))
rsqrt = public(rsqrt_op)

reciprocal_op = pointwise("reciprocal(Tensor self) -> Tensor", inplace=True, out="out", promotion="float")


def reciprocal_element(self):
    return 1 / self


def reciprocal_complex(self):
    return kernels.quotient(complex(1, 0), self)


reciprocal_op.scalar(float=reciprocal_element, complex=reciprocal_complex)

reciprocal_op.derivative(self=lambda grad, result: -grad * (result * result))
reciprocal = public(reciprocal_op)

# --- exponentials and logarithms -----------------------------------------------------------------------------------

exp_op = pointwise("exp(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@exp_op.scalar
def exp_element(self):
    return kernels.exp(self)


exp_op.derivative(self=lambda grad, result: grad * result)
exp = public(exp_op)

exp2_op = pointwise("exp2(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@exp2_op.scalar
def exp2_element(self):
    return kernels.exp2(self)


exp2_op.derivative(self=lambda grad, result: grad * result * math.log(2))
exp2 = public(exp2_op)

expm1_op = pointwise("expm1(Tensor self) -> Tensor", inplace=True, out="out", promotion="float", cost=8)


@expm1_op.scalar
def expm1_element(self):
    return kernels.expm1(self)


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
    return kernels.log2(self)


@log10_op.scalar
def log10_element(self):
    return kernels.log10(self)


@log1p_op.scalar
def log1p_element(self):
    return kernels.log1p(self)


log_op.derivative(self=lambda grad, self: grad / self)
log2_op.derivative(self=lambda grad, self: grad / (self * math.log(2)))
log10_op.derivative(self=lambda grad, self: grad / (self * math.log(10)))
log1p_op.derivative(self=lambda grad, self: grad / (self + 1))
log = public(log_op)
log2 = public(log2_op)
log10 = public(log10_op)
log1p = public(log1p_op)

for _op in (expm1_op, log_op, log2_op, log10_op, log1p_op, rsqrt_op, reciprocal_op):
    _op.autocast(cuda="fp32")
