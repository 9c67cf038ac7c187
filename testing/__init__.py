"""Comparisons, samples and the table of operators, for tests: ours and those of whoever writes operators.

`assert_close` compares tensors, `make_tensor` invents them, an `OpInfo` says what is true of one operator; op_db/ holds
one for each operator of the library, and tests/op_db/ the generic tests that they drive. `check_operator` runs such
tests for one operator, wherever it is declared.
"""

from .check_operator import check_operator
from .comparison import assert_close
from .make_tensor import make_tensor
from .op_info import ErrorInput, Maker, OpInfo, SampleInput, sample
from .scalar_info import info_of

__all__ = [
    "ErrorInput",
    "Maker",
    "OpInfo",
    "SampleInput",
    "assert_close",
    "check_operator",
    "info_of",
    "make_tensor",
    "sample",
]
