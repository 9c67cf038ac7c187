"""Samples of kernels/ops/aliases.py: what is true of an operator is true of its second names."""

from __future__ import annotations

from ..op_info import NUMBERS, OpInfo
from .arithmetic import ARITHMETIC
from .common import second_names, unary
from .comparison import COMPARISON
from .elementary import ELEMENTARY
from .number_forms import NUMBER_FORMS

KNOWN = (*ARITHMETIC, *COMPARISON, *ELEMENTARY, *NUMBER_FORMS)

ALIASES = [
    *(info.but(f"aten::{name}", representative=False) for info, name in second_names("aliases.py", KNOWN)),
    OpInfo("positive", unary(), lambda self: self, NUMBERS),
]
