"""Comparisons, samples and the table of operators, for tests: ours and those of whoever writes operators.

`assert_close` compares tensors, `make_tensor` invents them, an `OpInfo` says what is true of one operator; op_db/ holds
one for each operator of the library, and tests/op_db/ the generic tests that they drive. `check_operator` runs such
tests for one operator, wherever it is declared; `check_subclass` and `check_mode` run all operators through a subclass
or under a mode, and report what it breaks.
"""

from redispatch import _names

from .check_operator import check_operator
from .comparison import assert_allclose, assert_close
from .make_tensor import make_tensor
from .op_info import ErrorInput, Maker, OpInfo, SampleInput, sample
from .scalar_info import info_of

# Late: they want neural networks, optimizers and files, which the modes that use this room do not.
_places, __getattr__, __dir__ = _names.late(
    globals(),
    {
        ".": "_internal",
        ".file_check": "FileCheck",
        ".report": "Finding Report ReportError",
        ".subclass_check": "check_mode check_subclass",
    },
)

__all__ = [
    "ErrorInput",
    "FileCheck",
    "Finding",
    "Maker",
    "OpInfo",
    "Report",
    "ReportError",
    "SampleInput",
    "assert_allclose",
    "assert_close",
    "check_mode",
    "check_operator",
    "check_subclass",
    "info_of",
    "make_tensor",
    "sample",
]
