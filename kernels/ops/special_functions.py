"""The operators of `redispatch.special` that stand nowhere else: Bessel functions, normal distribution, polynomials.

They are declared when one is first looked for (`LATE`, dispatch/core/registry.py): few programs need so many.
What is computed stands in kernels/maths/special/. Where PyTorch has no derivative, there is none here.
Read next: special_names.py, for those that are second names.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.kernels.maths import special as functions

from ..declare.declare import Function
from ..declare.pointwise import COMPLEX, Pointwise, pointwise
from ..declare.public import public
from .pairs import log_where_it_counts
from .special import modified_bessel_ratio_at_zero

NARROW = ("float16", "bfloat16")


def special(schema: str, *, out: str = "out", narrow: bool = False, cost: int = 64) -> Pointwise:
    """An operator `special_...` of real numbers; of 16 bits only if `narrow`."""
    word = schema.partition("(")[0].partition(".")[0] + "_cpu"
    refused = dict.fromkeys(COMPLEX if narrow else (*COMPLEX, *NARROW), word)
    return pointwise(f"special_{schema}", out=out, promotion="float", cost=cost, unsupported=refused)


# --- Bessel and Airy functions ---------------------------------------------------------------------------------------


def j0_element(self):
    return functions.bessel_j0(self)


def j1_element(self):
    return functions.bessel_j1(self)


def y0_element(self):
    return functions.bessel_y0(self)


def y1_element(self):
    return functions.bessel_y1(self)


def i0_element(self):
    return functions.modified_bessel_i0(self)


def i1_element(self):
    return functions.modified_bessel_i1(self)


def k0_element(self):
    return functions.modified_bessel_k0(self)


def k1_element(self):
    return functions.modified_bessel_k1(self)


def of_one_number(schema: str, element: Function) -> Any:
    """The face of an operator without a derivative."""
    op = special(schema)
    op.scalar(element)
    op.not_differentiable()
    return public(op, method=False)


bessel_j0 = of_one_number("bessel_j0(Tensor self) -> Tensor", j0_element)
bessel_j1 = of_one_number("bessel_j1(Tensor self) -> Tensor", j1_element)
bessel_y0 = of_one_number("bessel_y0(Tensor self) -> Tensor", y0_element)
bessel_y1 = of_one_number("bessel_y1(Tensor self) -> Tensor", y1_element)
modified_bessel_i0 = of_one_number("modified_bessel_i0(Tensor self) -> Tensor", i0_element)
modified_bessel_i1 = of_one_number("modified_bessel_i1(Tensor self) -> Tensor", i1_element)
modified_bessel_k0 = of_one_number("modified_bessel_k0(Tensor self) -> Tensor", k0_element)
modified_bessel_k1 = of_one_number("modified_bessel_k1(Tensor self) -> Tensor", k1_element)
scaled_modified_bessel_k0 = of_one_number(
    "scaled_modified_bessel_k0(Tensor x) -> Tensor", functions.scaled_modified_bessel_k0
)
scaled_modified_bessel_k1 = of_one_number(
    "scaled_modified_bessel_k1(Tensor x) -> Tensor", functions.scaled_modified_bessel_k1
)
spherical_bessel_j0 = of_one_number("spherical_bessel_j0(Tensor x) -> Tensor", functions.spherical_bessel_j0)
airy_ai = of_one_number("airy_ai(Tensor x) -> Tensor", functions.airy_ai)

i0e_op = special("i0e(Tensor self) -> Tensor", narrow=True)
i1_op = special("i1(Tensor self) -> Tensor", narrow=True)
i1e_op = special("i1e(Tensor self) -> Tensor", narrow=True)
i1_op.scalar(i1_element)


@i0e_op.scalar
def i0e_element(self):
    return functions.scaled_modified_bessel_i0(self)


@i1e_op.scalar
def i1e_element(self):
    return functions.scaled_modified_bessel_i1(self)


def i1_backward(grad: Any, self: Any, result: Any) -> Any:
    return grad * (self.i0() - modified_bessel_ratio_at_zero(result, self))


def i1e_backward(grad: Any, self: Any, result: Any) -> Any:
    return grad * (i0e(self) - modified_bessel_ratio_at_zero(result, self) - self.sgn() * result)


i0e_op.derivative(self=lambda grad, self, result: grad * (i1e(self) - self.sgn() * result))
i1_op.derivative(self=i1_backward)
i1e_op.derivative(self=i1e_backward)
i0e: Any = public(i0e_op, method=False)
i1 = public(i1_op, method=False)
i1e: Any = public(i1e_op, method=False)

# --- entropy and the normal distribution -----------------------------------------------------------------------------

entr_op = special("entr(Tensor self) -> Tensor", narrow=True, cost=16)
erfcx_op = special("erfcx(Tensor self) -> Tensor", cost=32)
log_ndtr_op = special("log_ndtr(Tensor self) -> Tensor")
ndtri_op = special("ndtri(Tensor self) -> Tensor")


@entr_op.scalar
def entr_element(self):
    """-x log(x): 0 at 0, and -infinity below."""
    return -self * kernels.log(self) if self > 0 or self != self else (0 if self == 0 else -math.inf)


@erfcx_op.scalar
def erfcx_element(self):
    return functions.erfcx(self)


@log_ndtr_op.scalar
def log_ndtr_element(self):
    return functions.log_ndtr(self)


@ndtri_op.scalar
def ndtri_element(self):
    return functions.ndtri(self)


entr_op.derivative(self=lambda grad, self: grad * -(1 + self.log()))
erfcx_op.derivative(self=lambda grad, self, result: grad * (2 * self * result - 2 / math.sqrt(math.pi)))
log_ndtr_op.derivative(self=lambda grad, self: grad / erfcx(self * -math.sqrt(0.5)) * math.sqrt(2 / math.pi))
ndtri_op.derivative(self=lambda grad, result: grad * math.sqrt(2 * math.pi) * (result * result / 2).exp())
entr = public(entr_op, method=False)
erfcx: Any = public(erfcx_op, method=False)
log_ndtr = public(log_ndtr_op, method=False)
ndtri = public(ndtri_op, method=False)

# --- of two numbers --------------------------------------------------------------------------------------------------

xlog1py_op = special("xlog1py(Tensor self, Tensor other) -> Tensor", narrow=True, cost=16)
xlog1py_self_op = special(
    "xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor", out="self_scalar_out", narrow=True, cost=16
)
xlog1py_other_op = special(
    "xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor", out="other_scalar_out", narrow=True, cost=16
)


@xlog1py_op.scalar
@xlog1py_self_op.scalar
@xlog1py_other_op.scalar
def xlog1py_elements(self, other):
    """x log(1 + y); 0 where x is 0, unless y is NaN."""
    return other if other != other else 0 if self == 0 else self * kernels.log1p(other)


def log1p_where_it_counts(grad: Any, self: Any, other: Any) -> Any:
    return log_where_it_counts(grad, self, other + 1)


def log1p_of_number(grad: Any, self: Any, other: Any) -> Any:
    return xlog1py_other_op.functional(grad, other).masked_fill((self == 0) * (other <= -1), 0)


xlog1py_op.derivative(self=log1p_where_it_counts, other=lambda grad, self, other: grad * self / (other + 1))
xlog1py_self_op.derivative(other=lambda grad, self, other: grad * self / (other + 1), node="SpecialXlog1PyBackward1")
xlog1py_other_op.derivative(self=log1p_of_number, node="SpecialXlog1PyBackward2")
xlog1py = public(xlog1py_op, xlog1py_self_op, xlog1py_other_op, method=False)

zeta_op = special("zeta(Tensor self, Tensor other) -> Tensor", cost=256)
zeta_self_op = special("zeta.self_scalar(Scalar self, Tensor other) -> Tensor", out="self_scalar_out", cost=256)
zeta_other_op = special("zeta.other_scalar(Tensor self, Scalar other) -> Tensor", out="other_scalar_out", cost=256)


@zeta_op.scalar
@zeta_self_op.scalar
@zeta_other_op.scalar
def zeta_elements(self, other):
    return functions.zeta(self, other)


def no_derivative_of_zeta(grad: Any) -> Any:
    raise NotImplementedError("the derivative for 'zeta' is not implemented.")


def zeta_backward(grad: Any, self: Any, other: Any) -> Any:
    return grad * -self * zeta(self + 1, other)


zeta_op.derivative(self=no_derivative_of_zeta, other=zeta_backward)
zeta_self_op.derivative(other=zeta_backward, node="SpecialZetaBackward1")
zeta_other_op.derivative(self=no_derivative_of_zeta, node="SpecialZetaBackward2")
zeta: Any = public(zeta_op, zeta_self_op, zeta_other_op, method=False)

# --- orthogonal polynomials ------------------------------------------------------------------------------------------


def polynomial(name: str, elements: Function) -> Any:
    """The face of a polynomial: of a tensor and degrees in a tensor, or of one number for either."""
    ops = (
        special(f"{name}(Tensor x, Tensor n) -> Tensor"),
        special(f"{name}.x_scalar(Scalar x, Tensor n) -> Tensor", out="x_scalar_out"),
        special(f"{name}.n_scalar(Tensor x, Scalar n) -> Tensor", out="n_scalar_out"),
    )
    for op in ops:
        op.scalar(elements)
        op.not_differentiable()
    return public(*ops, method=False)


chebyshev_polynomial_t = polynomial("chebyshev_polynomial_t", functions.chebyshev_t)
chebyshev_polynomial_u = polynomial("chebyshev_polynomial_u", functions.chebyshev_u)
chebyshev_polynomial_v = polynomial("chebyshev_polynomial_v", functions.chebyshev_v)
chebyshev_polynomial_w = polynomial("chebyshev_polynomial_w", functions.chebyshev_w)
shifted_chebyshev_polynomial_t = polynomial("shifted_chebyshev_polynomial_t", functions.shifted_chebyshev_t)
shifted_chebyshev_polynomial_u = polynomial("shifted_chebyshev_polynomial_u", functions.shifted_chebyshev_u)
shifted_chebyshev_polynomial_v = polynomial("shifted_chebyshev_polynomial_v", functions.shifted_chebyshev_v)
shifted_chebyshev_polynomial_w = polynomial("shifted_chebyshev_polynomial_w", functions.shifted_chebyshev_w)
hermite_polynomial_h = polynomial("hermite_polynomial_h", functions.hermite_h)
hermite_polynomial_he = polynomial("hermite_polynomial_he", functions.hermite_he)
laguerre_polynomial_l = polynomial("laguerre_polynomial_l", functions.laguerre_l)
legendre_polynomial_p = polynomial("legendre_polynomial_p", functions.legendre_p)
