"""Samples of kernels/ops/aliases.py: what is true of an operator is true of its second names."""

from __future__ import annotations

from ..op_info import NUMBERS, OpInfo
from .arithmetic import ARITHMETIC
from .common import unary
from .comparison import COMPARISON
from .elementary import ELEMENTARY
from .number_forms import NUMBER_FORMS

ALIASES_OF = {
    "abs": "absolute",
    "neg": "negative",
    "trunc": "fix",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "sub.Tensor": "subtract.Tensor",
    "mul.Tensor": "multiply.Tensor",
    "div.Tensor": "divide.Tensor true_divide.Tensor",
    "div.Tensor_mode": "divide.Tensor_mode",
    "sub.Scalar": "subtract.Scalar",
    "mul.Scalar": "multiply.Scalar",
    "div.Scalar": "divide.Scalar true_divide.Scalar",
    "div.Scalar_mode": "divide.Scalar_mode",
    "ne.Tensor": "not_equal.Tensor",
    "ne.Scalar": "not_equal.Scalar",
    "lt.Tensor": "less.Tensor",
    "lt.Scalar": "less.Scalar",
    "le.Tensor": "less_equal.Tensor",
    "le.Scalar": "less_equal.Scalar",
    "gt.Tensor": "greater.Tensor",
    "gt.Scalar": "greater.Scalar",
    "ge.Tensor": "greater_equal.Tensor",
    "ge.Scalar": "greater_equal.Scalar",
    "clamp": "clip",
    "clamp.Tensor": "clip.Tensor",
}

KNOWN = {str(info): info for info in (*ARITHMETIC, *COMPARISON, *ELEMENTARY, *NUMBER_FORMS)}

ALIASES = [
    *(
        KNOWN[name].but(f"aten::{alias}", representative=False)
        for name, aliases in ALIASES_OF.items()
        for alias in aliases.split()
    ),
    OpInfo("positive", unary(), lambda self: self, NUMBERS),
]
