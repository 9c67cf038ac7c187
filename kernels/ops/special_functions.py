"""The operators of `redispatch.special`: Bessel functions, normal distribution, polynomials; and its second names.

They are declared when one is first looked for (`LATE`, dispatch/core/registry.py): few programs need so many.
What is computed stands in kernels/maths/special/. Where PyTorch has no derivative, there is none here.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.kernels.declare.out_forms import filled
from redispatch.kernels.maths import special as functions

from ..declare.declare import Function, Operator, alias, no_formula
from ..declare.operator import composite, operator
from ..declare.pointwise import COMPLEX, HALVES
from ..declare.public import public
from . import activations, elementary, float_parts, special
from .binary import log_where_it_counts, xlogy_op, xlogy_other_op, xlogy_self_op
from .moments import logsumexp as logsumexp_face
from .normalization import log_softmax as _log_softmax
from .normalization import softmax as _softmax
from .special import modified_bessel_ratio_at_zero


def real(schema: str, element: Function | None = None, *, narrow: bool = False, cost: int = 64, **facts: Any) -> Any:
    """The function of an operator `special_...` of real numbers; of 16 bits only if `narrow`."""
    name = schema.partition("(")[0].partition(".")[0]
    facts |= {"refuses": {COMPLEX if narrow else (*COMPLEX, *HALVES): f"{name}_cpu"}, "method": False}
    if "(" not in schema:
        schema = f"{schema}(Tensor self) -> Tensor"
    all_facts: dict[str, Any] = {"out": "out", "promotion": "float", "cost": cost} | facts
    return operator(f"special_{schema}", element, **all_facts)


# --- Bessel and Airy functions ---------------------------------------------------------------------------------------

KINDS = {  # the letter before a Bessel function's order -> its kind
    "j": "Bessel function of the first",
    "y": "Bessel function of the second",
    "i": "modified Bessel function of the first",
    "k": "modified Bessel function of the second",
}


def bessel(name: str, argument: str = "self") -> Any:
    """The function of a Bessel function, of which the name says all."""
    kind = f"spherical {KINDS['j']}" if name.startswith("spherical") else KINDS[name[-2]]
    scaled = "exp(x) times " * name.startswith("scaled")
    return real(
        f"{name}(Tensor {argument}) -> Tensor",
        getattr(functions, name),
        derivative=False,
        doc=f"Returns {scaled}the {kind} kind of order {name[-1]} of each element.",
    )


bessel_j0, bessel_j1 = bessel("bessel_j0"), bessel("bessel_j1")
bessel_y0, bessel_y1 = bessel("bessel_y0"), bessel("bessel_y1")
modified_bessel_i0, modified_bessel_i1 = bessel("modified_bessel_i0"), bessel("modified_bessel_i1")
modified_bessel_k0, modified_bessel_k1 = bessel("modified_bessel_k0"), bessel("modified_bessel_k1")
scaled_modified_bessel_k0 = bessel("scaled_modified_bessel_k0", "x")
scaled_modified_bessel_k1 = bessel("scaled_modified_bessel_k1", "x")
spherical_bessel_j0 = bessel("spherical_bessel_j0", "x")
airy_ai = real(
    "airy_ai(Tensor x) -> Tensor",
    functions.airy_ai,
    derivative=False,
    doc="Returns the Airy function Ai of each element.",
)


def i1_gradient(grad: Any, self: Any, result: Any) -> Any:
    return grad * (self.i0() - modified_bessel_ratio_at_zero(result, self))


def i0e_gradient(grad: Any, self: Any, result: Any) -> Any:
    return grad * (i1e(self) - self.sgn() * result)


def i1e_gradient(grad: Any, self: Any, result: Any) -> Any:
    return grad * (i0e(self) - modified_bessel_ratio_at_zero(result, self) - self.sgn() * result)


i1 = real(
    "i1",
    functions.modified_bessel_i1,
    narrow=True,
    derivative=i1_gradient,
    doc="Returns the modified Bessel function of the first kind of order 1 of each element.",
)
i0e = real(
    "i0e",
    functions.scaled_modified_bessel_i0,
    narrow=True,
    derivative=i0e_gradient,
    doc="Returns exp(-|x|) times the modified Bessel function of the first kind of order 0 of each element.",
)
i1e = real(
    "i1e",
    functions.scaled_modified_bessel_i1,
    narrow=True,
    derivative=i1e_gradient,
    doc="Returns exp(-|x|) times the modified Bessel function of the first kind of order 1 of each element.",
)

# --- entropy and the normal distribution -----------------------------------------------------------------------------


@real("entr", narrow=True, cost=16, derivative=lambda grad, self: grad * -(1 + self.log()))
def entr(self):
    """Returns the entropy -x log(x) of each element: 0 at 0, minus infinity below."""
    return -self * kernels.log(self) if self > 0 or self != self else (0 if self == 0 else -math.inf)


erfcx = real(
    "erfcx",
    functions.erfcx,
    doc="Returns exp(x²) erfc(x) of each element.",
    cost=32,
    derivative=lambda grad, self, result: grad * (2 * self * result - 2 / math.sqrt(math.pi)),
)
log_ndtr = real(
    "log_ndtr",
    functions.log_ndtr,
    doc="Returns the logarithm of the normal distribution function of each element.",
    derivative=lambda grad, self: grad / erfcx(self * -math.sqrt(0.5)) * math.sqrt(2 / math.pi),
)
ndtri = real(
    "ndtri",
    functions.ndtri,
    doc="Returns the inverse of the normal distribution function of each element.",
    derivative=lambda grad, result: grad * math.sqrt(2 * math.pi) * (result * result / 2).exp(),
)

# --- of two numbers --------------------------------------------------------------------------------------------------


def of_two(
    name: str, first: str, second: str, elements: Function, slopes: Any = False, node: str = "", **facts: Any
) -> list[Any]:
    """The overloads for two tensors, and for a tensor and a number on either side.

    slopes: of each overload, by its arguments; False where there is no derivative.
    """
    texts = [
        (f"{name}(Tensor {first}, Tensor {second}) -> Tensor", "out"),
        (f"{name}.{first}_scalar(Scalar {first}, Tensor {second}) -> Tensor", f"{first}_scalar_out"),
        (f"{name}.{second}_scalar(Tensor {first}, Scalar {second}) -> Tensor", f"{second}_scalar_out"),
    ]
    facts |= {"function": False}
    made = []
    for k, (schema, out) in enumerate(texts):
        facts |= {"out": out, "derivative": slopes and slopes[k], "node": f"{node}{k}" if node and k else None}
        made.append(real(schema, elements, **facts))
    return made


def xlog1py_elements(self, other):
    """x log(1 + y); 0 where x is 0, unless y is NaN."""
    return other if other != other else 0 if self == 0 else self * kernels.log1p(other)


def log1p_where_it_counts(grad: Any, self: Any, other: Any) -> Any:
    return log_where_it_counts(grad, self, other + 1)


def log1p_of_number(grad: Any, self: Any, other: Any) -> Any:
    return xlog1py_other_op.functional(grad, other).masked_fill((self == 0) * (other <= -1), 0)


def quotient_by_one_more(grad: Any, self: Any, other: Any) -> Any:
    return grad * self / (other + 1)


def zeta_gradient(grad: Any, self: Any, other: Any) -> Any:
    return grad * -self * zeta(self + 1, other)


XLOG1PY = (
    {"self": log1p_where_it_counts, "other": quotient_by_one_more},
    {"other": quotient_by_one_more},
    {"self": log1p_of_number},
)
xlog1py_ops = of_two(
    "xlog1py", "self", "other", xlog1py_elements, XLOG1PY, "SpecialXlog1PyBackward", narrow=True, cost=16
)
xlog1py_other_op = xlog1py_ops[2]
xlog1py = public(
    *xlog1py_ops, method=False, doc="Returns self log(1 + other), which is 0 where `self` is 0, unless `other` is NaN."
)
no_zeta = no_formula("zeta")
ZETA = ({"self": no_zeta, "other": zeta_gradient}, {"other": zeta_gradient}, {"self": no_zeta})
zeta: Any = public(
    *of_two("zeta", "self", "other", functions.zeta, ZETA, "SpecialZetaBackward", cost=256),
    method=False,
    doc="Returns the Hurwitz zeta function of exponent `self` from `other` on.",
)

# --- orthogonal polynomials ------------------------------------------------------------------------------------------


def polynomial(name: str, elements: Function) -> Any:
    """The function of a polynomial: of a tensor and degrees in a tensor, or of one number for either."""
    *shifted, whose, _, kind = name.split("_")
    of = " ".join([*shifted, whose.capitalize(), "polynomial", kind.upper() if len(kind) == 1 else "He"])
    return public(
        *of_two(name, "x", "n", elements), method=False, doc=f"Returns the {of} of degree `n` at each element."
    )


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

# --- second names ----------------------------------------------------------------------------------------------------


def second_name(name: str, of: Any) -> Any:
    """The function `special_name`, for an operator that has another name, too."""
    return public(alias(f"special_{name}", of, overload="", inplace=False), method=False)


erf = second_name("erf", special.erf)
erfc = second_name("erfc", special.erfc)
erfinv = second_name("erfinv", special.erfinv)
exp2 = second_name("exp2", elementary.exp2)
expm1 = second_name("expm1", elementary.expm1)
log1p = second_name("log1p", elementary.log1p)
expit = second_name("expit", activations.sigmoid)
logit = second_name("logit", activations.logit)
sinc = second_name("sinc", float_parts.sinc)
i0 = second_name("i0", special.i0)
digamma = second_name("digamma", special.digamma)
psi = second_name("psi", special.digamma)
polygamma = second_name("polygamma", special.polygamma)
gammaln = second_name("gammaln", special.lgamma)
multigammaln = second_name("multigammaln", special.mvlgamma)
gammainc = second_name("gammainc", special.igamma)
gammaincc = second_name("gammaincc", special.igammac)
logsumexp = second_name("logsumexp", logsumexp_face.op)
softmax = second_name("softmax", _softmax.op)
xlogy = public(
    alias("special_xlogy", xlogy_op, overload="", inplace=False, out="out"),
    alias("special_xlogy", xlogy_self_op, overload="self_scalar", out="self_scalar_out"),
    alias("special_xlogy", xlogy_other_op, overload="other_scalar", inplace=False, out="other_scalar_out"),
    method=False,
)

# --- written in others -----------------------------------------------------------------------------------------------

special_ndtr_op = Operator(
    "special_ndtr(Tensor self) -> Tensor",
    out="out",
    refuses=special.erf.op.refuses,
    doc="Returns the normal distribution function (1 + erf(x / sqrt(2))) / 2 of each element.",
)


@composite(
    "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    refuses="whole complex",
    doc="Returns x - log(sum of exp(x)) along `dim`, the logarithm of the softmax.",
)
def log_softmax(self, dim, dtype):
    return _log_softmax.op.functional(self, dim, dtype)


@composite(
    "special_round(Tensor self, *, int decimals=0) -> Tensor",
    out="out",
    refuses=float_parts.round_decimals_op.refuses,
    out_by=None,
    doc="Returns each element rounded to `decimals` places, halves to even.",
)
def round(self, decimals):
    return float_parts.round_decimals_op.functional(self, decimals=decimals)


@round.op.composite(round.op.out)
def special_round_out(self, decimals, out):
    return float_parts.round_decimals_op.out(self, decimals=decimals, out=out)


@special_ndtr_op.implicit
def special_ndtr(self):
    """The normal distribution function: (1 + erf(x / sqrt(2))) / 2."""
    turned = ops.aten.add.Scalar(ops.aten.mul.Scalar(self, math.sqrt(0.5)).erf(), 1)
    return ops.aten.mul.Scalar(turned, 0.5)


@special_ndtr_op.composite(special_ndtr_op.out)
def special_ndtr_out(self, out):
    return filled(out, special_ndtr(self))


ndtr = public(special_ndtr_op, method=False)
