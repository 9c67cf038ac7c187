"""The operators of `redispatch.special` that are second names: `special_expit` for `sigmoid`.

With them those that are written in others. They are declared late, with those of special_functions.py.
"""

from __future__ import annotations

import math
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.out_forms import filled

from ..declare.declare import Operator, alias
from ..declare.public import public
from .activations import logit_op, sigmoid_op
from .elementary import exp2_op, expm1_op, log1p_op
from .moments import logsumexp_op
from .pairs import xlogy_op, xlogy_other_op, xlogy_self_op
from .parts import round_decimals_op, sinc_op
from .softmax import log_softmax_op, softmax_op
from .special import (
    digamma_op,
    erf_op,
    erfc_op,
    erfinv_op,
    i0_op,
    igamma_op,
    igammac_op,
    lgamma_op,
    mvlgamma_op,
    polygamma_op,
)


def second_name(name: str, of: Operator) -> Any:
    """The face of `special_name`."""
    return public(alias(f"special_{name}", of, overload="", inplace=False), method=False)


erf = second_name("erf", erf_op)
erfc = second_name("erfc", erfc_op)
erfinv = second_name("erfinv", erfinv_op)
exp2 = second_name("exp2", exp2_op)
expm1 = second_name("expm1", expm1_op)
log1p = second_name("log1p", log1p_op)
expit = second_name("expit", sigmoid_op)
logit = second_name("logit", logit_op)
sinc = second_name("sinc", sinc_op)
i0 = second_name("i0", i0_op)
digamma = second_name("digamma", digamma_op)
psi = second_name("psi", digamma_op)
polygamma = second_name("polygamma", polygamma_op)
gammaln = second_name("gammaln", lgamma_op)
multigammaln = second_name("multigammaln", mvlgamma_op)
gammainc = second_name("gammainc", igamma_op)
gammaincc = second_name("gammaincc", igammac_op)
logsumexp = second_name("logsumexp", logsumexp_op)
softmax = second_name("softmax", softmax_op)
xlogy = public(
    alias("special_xlogy", xlogy_op, overload="", inplace=False, out="out"),
    alias("special_xlogy", xlogy_self_op, overload="self_scalar", out="self_scalar_out"),
    alias("special_xlogy", xlogy_other_op, overload="other_scalar", inplace=False, out="other_scalar_out"),
    method=False,
)

# --- written in others -----------------------------------------------------------------------------------------------

special_log_softmax_op = Operator("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
special_round_op = Operator("special_round(Tensor self, *, int decimals=0) -> Tensor", out="out")
special_ndtr_op = Operator("special_ndtr(Tensor self) -> Tensor", out="out")


@special_log_softmax_op.implicit
def special_log_softmax(self: Tensor, dim: int, dtype: Any) -> Tensor:
    return log_softmax_op.functional(self, dim, dtype)


@special_round_op.implicit
def special_round(self: Tensor, decimals: int) -> Tensor:
    return round_decimals_op.functional(self, decimals=decimals)


@special_round_op.composite(special_round_op.out)
def special_round_out(self: Tensor, decimals: int, out: Tensor) -> Tensor:
    return round_decimals_op.out(self, decimals=decimals, out=out)  # type: ignore[misc]  # it has an out= form


@special_ndtr_op.implicit
def special_ndtr(self: Any) -> Tensor:
    """The normal distribution function: (1 + erf(x / sqrt(2))) / 2."""
    turned = ops.aten.add.Scalar(ops.aten.mul.Scalar(self, math.sqrt(0.5)).erf(), 1)
    return ops.aten.mul.Scalar(turned, 0.5)


@special_ndtr_op.composite(special_ndtr_op.out)
def special_ndtr_out(self: Tensor, out: Tensor) -> Tensor:
    return filled(out, special_ndtr(self))


log_softmax = public(special_log_softmax_op, method=False)
round = public(special_round_op, method=False)
ndtr = public(special_ndtr_op, method=False)
